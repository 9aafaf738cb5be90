"""The unknowns of a beam as one vector: spline coefficients of its properties, then single numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.functions.beam import local_loss
from analysis.estimate.functions.beam.description import Beam

Array = NDArray[np.float64]
LOSS = "loss "  # followed by its number


@dataclass(frozen=True)
class Block:
    """Part of the vector that belongs to one property or number."""

    key: str  # "stiffness", ..., "tip_mass", "load", a spring, "length", "density", "loss 1", ...
    symbol: str
    unit: str
    where: slice
    intervals: int = 0
    log: bool = True
    penalty: Array | None = None  # of the integrated squared second derivative over the unit beam

    prior: float = 0.0  # standard error of what is known beforehand; 0: nothing is

    @property
    def size(self) -> int:
        return self.where.stop - self.where.start

    @property
    def local(self) -> bool:
        """A local loss of stiffness."""
        return self.key.startswith(LOSS)


@dataclass(frozen=True)
class UnknownProperties:
    """Layout of the vector that holds a beam's properties, and its start."""

    beam: Beam
    blocks: tuple[Block, ...]
    start: Array

    @property
    def size(self) -> int:
        return len(self.start)

    def basis(self, block: Block, x: Array) -> Array:
        """Cubic splines of a property at points of the beam: [len(x), coefficients]."""
        return cubic_basis(block.intervals, x / self.beam.length, natural=block.log)

    def property_at(self, key: str, theta: Array, x: Array) -> Array:
        """Values of a property, whether known or unknown."""
        value = self._smooth_at(key, theta, x)
        if key == "stiffness":
            for block in self.losses:
                value = value * np.exp(-local_loss.depth(theta[block.where], x / self.beam.length))
        return value * self.factor("density", theta) if key == "mass" else value

    def _smooth_at(self, key: str, theta: Array, x: Array) -> Array:
        for block in self.blocks:
            if block.key == key:
                inner = self.basis(block, x) @ theta[block.where]
                return np.asarray(np.exp(inner) if block.log else inner)
        profile = self.beam.profiles.get(key)
        return np.zeros(len(x)) if profile is None else np.asarray(profile.shape(x), dtype=np.float64)

    def slopes(self, block: Block, theta: Array, x: Array, value: Array) -> Array:
        """Derivatives of the property that a block belongs to, whose values are given: [len(x), size]."""
        if block.local:
            return -value[:, None] * local_loss.slopes(theta[block.where], x / self.beam.length)
        if block.key == "density":
            return value[:, None].copy()
        basis = self.basis(block, x)
        return basis * value[:, None] if block.log else basis

    @property
    def losses(self) -> tuple[Block, ...]:
        return tuple(b for b in self.blocks if b.local)

    def block(self, key: str) -> Block | None:
        return next((b for b in self.blocks if b.key == key), None)

    def scalar(self, key: str, theta: Array) -> float:
        block = self.block(key)
        return float(self.beam.scalars[key].value) if block is None else float(np.exp(theta[block.where][0]))

    def factor(self, key: str, theta: Array) -> float:
        """Of the length or the known density as described: 1 where they are exact."""
        block = self.block(key)
        return 1.0 if block is None else float(np.exp(theta[block.where][0]))

    def shifts(self) -> Array:
        """One column for each unknown: its common factor (all coefficients shifted alike)."""
        columns = np.zeros((self.size, len(self.blocks)))
        for i, block in enumerate(self.blocks):
            columns[block.where, i] = 1.0
        return columns

    def with_losses(self, theta: Array, places: Sequence[Array]) -> UnknownProperties:
        """The unknowns at ``theta`` with local losses of stiffness beside them."""
        blocks, start = list(self.blocks), [theta]
        for own in places:
            position = blocks[-1].where.stop if blocks else 0
            name = f"{LOSS}{len([b for b in blocks if b.local]) + 1}"
            blocks.append(Block(name, name, "", slice(position, position + local_loss.SIZE), log=False))
            start.append(own)
        return UnknownProperties(self.beam, tuple(blocks), np.concatenate(start))


def layout(beam: Beam, log: bool = True, intervals: Mapping[str, int] | None = None) -> UnknownProperties:
    """Unknowns of a beam.

    ``log``: the logarithm of a property is a natural cubic spline, so that it is never negative and runs
    straight where an end carries no moment and the data are silent (the optimum of a curvature penalty is
    such a spline). Otherwise the property itself is a cubic spline of M + 3 coefficients, as published.
    """
    blocks: list[Block] = []
    start = []
    position = 0
    for key, profile in beam.profiles.items():
        if not profile.free:
            continue
        count = (intervals or {}).get(key, profile.intervals)
        x = np.linspace(0.0, beam.length, 8 * max(count, 1) + 1)
        values = np.asarray(profile.shape(x), dtype=np.float64)
        basis = cubic_basis(count, x / beam.length, natural=log)
        coefficients = np.asarray(np.linalg.lstsq(basis, np.log(values) if log else values, rcond=None)[0])
        where = slice(position, position + len(coefficients))
        penalty = curvature_penalty(count) if log and count > 1 else None
        blocks.append(Block(key, profile.symbol, profile.unit, where, count, log, penalty))
        start.append(coefficients)
        position = where.stop
    numbers = [(key, s.unit, float(np.log(s.value)), 0.0) for key, s in beam.scalars.items() if s.free]
    if log and beam.length_error:
        numbers.append(("length", "m", 0.0, beam.length_error))
    if log and beam.mass_error:
        numbers.append(("density", "", 0.0, beam.mass_error))
    for key, unit, value, prior in numbers:
        blocks.append(Block(key, key, unit, slice(position, position + 1), prior=prior))
        start.append(np.array([value]))
        position += 1
    return UnknownProperties(beam, tuple(blocks), np.concatenate(start))


def _knots(intervals: int) -> Array:
    return np.concatenate([np.zeros(3), np.linspace(0.0, 1.0, intervals + 1), np.ones(3)])


def cubic_basis(intervals: int, s: Array, natural: bool = False) -> Array:
    """Cubic splines on the unit interval at s: M + 3 of them, M + 1 natural ones, for M = 0 the constant."""
    from scipy.interpolate import BSpline

    s = np.clip(np.asarray(s, dtype=np.float64), 0.0, 1.0)
    if intervals == 0:
        return np.ones((len(s), 1))
    design = np.asarray(BSpline.design_matrix(s, _knots(intervals), 3).toarray())
    return design @ _natural(intervals) if natural else design


def curvature_penalty(intervals: int) -> Array:
    """Integral of the product of two natural splines' second derivatives over the unit interval."""
    nodes, weights = np.polynomial.legendre.leggauss(3)
    width = 1.0 / intervals
    s = ((np.arange(intervals) + 0.5)[:, None] * width + 0.5 * width * nodes).ravel()
    second = _second(intervals, s) @ _natural(intervals)
    return np.asarray((second * np.tile(0.5 * width * weights, intervals)[:, None]).T @ second)


def _second(intervals: int, s: Array) -> Array:
    from scipy.interpolate import BSpline

    return np.asarray(BSpline(_knots(intervals), np.eye(intervals + 3), 3)(s, nu=2))


def _natural(intervals: int) -> Array:
    """Coefficients of the M + 3 splines whose curvature vanishes at both ends, by those of M + 1.

    A common shift of the new coefficients shifts the spline by the same amount.
    """
    left, right = _second(intervals, np.array([0.0, 1.0]))
    count = intervals + 3
    if intervals == 1:  # straight lines: two coefficients, the values at the ends
        return np.column_stack([1.0 - np.arange(4) / 3.0, np.arange(4) / 3.0])
    turn = np.zeros((count, count - 2))
    turn[1:-1] = np.eye(count - 2)
    turn[0, :2] = -left[1:3] / left[0]
    turn[-1, -2:] = -right[-3:-1] / right[-1]
    return turn
