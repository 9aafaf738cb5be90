"""Equilibria of a model at rest, and the small motions around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.model import Model
from analysis.simulation.simulate import Values, parameter_vector, state_index

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A state that stays, and the eigenvalues of the motion linearised about it (per unit time)."""

    state: Array
    eigenvalues: NDArray[np.complex128]

    @property
    def stable(self) -> bool:
        return bool(np.all(self.eigenvalues.real < 0))

    @property
    def frequencies(self) -> Array:
        """Damped natural frequencies in cycles per unit time, ascending."""
        return np.sort(self.eigenvalues.imag[self.eigenvalues.imag > 0]) / (2 * np.pi)

    @property
    def natural_frequencies(self) -> Array:
        """Undamped natural frequencies in cycles per unit time, in the order of ``frequencies``."""
        return np.asarray(self.frequencies / np.sqrt(1 - self.damping_ratios**2))

    @property
    def damping_ratios(self) -> Array:
        """Fraction of critical damping of each oscillating pair, in the order of ``frequencies``."""
        pairs = self.eigenvalues[self.eigenvalues.imag > 0]
        pairs = pairs[np.argsort(pairs.imag)]
        return np.asarray(-pairs.real / np.abs(pairs))


def equilibria(
    model: Model,
    box: Mapping[str, tuple[float, float]],
    values: Values = None,
    inputs: Sequence[float] = (),
    t: float = 0.0,
    starts: int = 200,
) -> list[Equilibrium]:
    """All equilibria that damped Newton finds from evenly spread starts in ``box`` (states not named start at
    zero), with forcing and measured inputs frozen at time t; sorted by the first state."""
    p, u = parameter_vector(model, values), np.ascontiguousarray(inputs, dtype=np.float64)
    if len(u) != len(model.inputs):
        raise DataError(
            f"The model has the measured inputs {', '.join(model.inputs) or 'none'}: give each a value."
        )
    found: list[Array] = []
    scale = np.ones(len(model.states))
    for name, (lower, upper) in box.items():
        scale[state_index(model, name)] = upper - lower
    for start in _spread(model, box, starts):
        x = _newton(model, start, u, p, t, scale)
        if x is not None and all(np.max(np.abs(x - y) / scale) > 1e-6 for y in found):
            found.append(x)
    found.sort(key=lambda x: tuple(x))
    return [Equilibrium(x, _eigenvalues(_slope(model, x, u, p, t)[1])) for x in found]


def _eigenvalues(matrix: Array) -> NDArray[np.complex128]:
    return np.linalg.eigvals(matrix).astype(np.complex128)


def _spread(model: Model, box: Mapping[str, tuple[float, float]], starts: int) -> Array:
    """Start points: a line for one state, a low-discrepancy set for more."""
    points = np.zeros((starts, len(model.states)))
    if len(box) == 1:
        unit = np.linspace(0, 1, starts)[:, None]
    else:
        unit = np.column_stack([_radical_inverse(starts, base) for base in _primes(len(box))])
    for column, (name, (lower, upper)) in enumerate(box.items()):
        points[:, state_index(model, name)] = lower + (upper - lower) * unit[:, column]
    return points


def _primes(count: int) -> list[int]:
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % prime for prime in found):
            found.append(number)
        number += 1
    return found


def _radical_inverse(count: int, base: int) -> Array:
    """0, 1, 2, ... with their digits mirrored at the point: one coordinate of the set of Halton (1960). Of
    our own because the library's brings half a second of imports with it."""
    left, unit, place = np.arange(count), np.zeros(count), 1.0
    while left.any():
        place /= base
        unit += place * (left % base)
        left //= base
    return unit


def _slope(model: Model, x: Array, u: Array, p: Array, t: float) -> tuple[Array, Array]:
    n = len(x)
    dx, jx, jp = np.empty(n), np.empty((n, n)), np.empty((n, len(p)))
    kernel: Any = model.kernels().jac
    kernel(t, x, u, p, dx, jx, jp)
    return dx, jx


def _newton(model: Model, start: Array, u: Array, p: Array, t: float, scale: Array) -> Array | None:
    """Newton with step halving; None if it does not arrive."""
    x = start.copy()
    dx, jx = _slope(model, x, u, p, t)
    for _ in range(60):
        if not (np.all(np.isfinite(dx)) and np.all(np.isfinite(jx))):
            return None
        try:
            step = np.linalg.solve(jx, -dx)
        except np.linalg.LinAlgError:
            return None
        if np.max(np.abs(step) / scale) < 1e-12:
            return x + step
        size = np.max(np.abs(dx))
        for _ in range(12):
            trial = x + step
            dx, jx = _slope(model, trial, u, p, t)
            if np.max(np.abs(dx)) < size:
                break
            step = step / 2
        else:
            return x if np.max(np.abs(step) / scale) < 1e-10 else None
        x = trial
    return None
