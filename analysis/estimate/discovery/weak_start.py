"""Coefficients of a library from the weak form, with the noise of the samples taken out of the moments.

With a test function phi the equation of state i says -int phi' x_i dt = sum_j c_j int phi psi_j(x) dt.
Noise of variance s^2 biases the terms, psi(x + e) having the mean exp(s^2/2 d^2/dx^2) psi(x), and the normal
equations, in which the noise of one sample meets itself. Both are undone: terms are replaced by
2 psi(x) - (psi(x + s) + psi(x - s))/2 in each measured state, whose mean is psi for powers up to the third,
and products of a sample with itself are left out of the sums (Fuller 1987, Measurement Error Models).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.estimate.discovery.quadratic import Quadratic, Subset
from analysis.estimate.weak.system import Nodes, nodes
from analysis.signal.splines import Probes, make_probes

if TYPE_CHECKING:
    from analysis.estimate.discovery.motion import Motion
    from analysis.experiment import Experiment
    from analysis.model import Model

Array = NDArray[np.float64]

_SHIFTS = ((0.0, 2.0), (1.0, -0.5), (-1.0, -0.5))  # in units of the noise, and their weights
_MOST_NOISY = 3  # states whose noise is taken out of products; each triples the work
_OVERLAP = 3.0  # test functions that share most of their samples count as one


@dataclass(frozen=True, eq=False)
class Stretch:
    """Unbroken samples of all states and the noise of each, 0 where it was smoothed or derived."""

    nodes: Nodes
    noise: Array  # [n]


@dataclass(frozen=True)
class Row:
    """An equation in weak form: of ``state``, or of the second derivative of ``of``, whose rate it is."""

    state: int
    of: int = -1
    factor: float = 1.0


@dataclass(frozen=True, eq=False)
class Block:
    """One equation over all stretches: rows left = coefficients @ terms, and their moments without noise."""

    columns: NDArray[np.int64]  # the model's parameters that enter it linearly
    terms: Array  # [J, M] integrals of the terms against the test functions
    left: Array  # [M] what they have to explain
    gram: Array  # [J, J]
    right: Array  # [J]

    def information(self, floor: float) -> tuple[Array, Array]:
        """H and b of the quadratic; directions with eigenvalues below ``floor`` of the scaled gram matrix
        are left out of the solution."""
        raised, solved, size = self._solved(floor)
        variance = _OVERLAP * self._misfit(solved / size) + np.finfo(float).tiny
        return raised * np.outer(size, size) / variance, size * (raised @ solved) / variance

    def misfit(self, floor: float) -> float:
        """Mean square of what all terms together leave of the rows."""
        _, solved, size = self._solved(floor)
        return self._misfit(solved / size)

    def _misfit(self, coefficients: Array) -> float:
        return float(np.mean((self.left - coefficients @ self.terms) ** 2))

    def _solved(self, floor: float) -> tuple[Array, Array, Array]:
        """Scaled moments with their eigenvalues raised to the floor, scaled solution, and the scale."""
        seen_at_all = np.diag(self.gram) > 0  # of others the noise has left nothing
        size = np.sqrt(np.where(seen_at_all, np.diag(self.gram), 1.0))
        scaled = np.where(np.outer(seen_at_all, seen_at_all), self.gram / np.outer(size, size), 0.0)
        values, vectors = np.linalg.eigh(scaled)
        seen = values > floor
        solved = vectors[:, seen] @ ((vectors.T @ (self.right / size))[seen] / values[seen])
        raised = (vectors * np.maximum(values, floor)) @ vectors.T
        return raised, solved, size


def weak_rows(
    experiment: Experiment, given: Sequence[Motion], linear: Sequence[int]
) -> tuple[list[Stretch], list[Row]]:
    """The samples of an experiment and the equations to be explained."""
    pattern = np.asarray(experiment.model.kernels().pattern_p)
    unknown = sorted({int(i) for i, j in pattern.T if j in set(linear)})
    stretches: list[Stretch] = []
    derived: dict[int, tuple[int, float]] = {}
    for run, motion in zip(experiment.runs, given, strict=True):
        derived |= motion.derived
        valid = np.zeros(len(run.times), dtype=np.bool_)
        for first, stop in run.spans:
            valid[first:stop] = np.isfinite(run.outputs[run.measured, first:stop]).all(axis=0)
        stretches += [Stretch(n, motion.noise) for n in nodes(run.times, motion.values, run.inputs, valid)]
    return stretches, [Row(i, *derived.get(i, ())) for i in unknown]


def weak_quadratic(
    blocks: Sequence[Block],
    parameters: int,
    floor: float,
    always: Subset,
    price: float,
    bound: Mapping[int, Subset],
) -> Quadratic:
    """The misfit of all subsets of the parameters by the weak form."""
    information, linear = np.zeros((parameters, parameters)), np.zeros(parameters)
    for block in blocks:
        H, b = block.information(floor)
        information[np.ix_(block.columns, block.columns)] += H
        linear[block.columns] += b
    return Quadratic(information, linear, always, price, bound)


def weak_blocks(
    model: Model, stretches: Sequence[Stretch], rows: Sequence[Row], linear: Sequence[int], spacing: int
) -> list[Block]:
    """The equations ``rows`` in weak form, in the parameters ``linear``."""
    found: list[list[tuple[Array, Array, Array, Array]]] = [[] for _ in rows]
    pattern = np.asarray(model.kernels().pattern_p)
    entries = [np.flatnonzero((pattern[0] == row.state) & np.isin(pattern[1], linear)) for row in rows]
    for stretch in stretches:
        data = stretch.nodes
        probes = make_probes(data.times, data.pieces, spacing)
        if not len(probes):
            continue
        known, terms = _without_noise(model, stretch, linear)
        for parts, row, own in zip(found, rows, entries, strict=True):
            parts.append(_moments(probes, stretch, row, known[row.state], terms[own]))
    if not found[0]:
        raise DataError("The record is too short, or too broken by lost samples, for a single test function.")
    blocks = []
    for parts, own in zip(found, entries, strict=True):
        terms, left = (np.concatenate([p[i] for p in parts], axis=-1) for i in (0, 1))
        gram, right = (np.sum([p[i] for p in parts], axis=0) for i in (2, 3))
        blocks.append(Block(pattern[1][own], terms, left, gram, right))
    return blocks


def _moments(
    probes: Probes, stretch: Stretch, row: Row, known: Array, terms: Array
) -> tuple[Array, Array, Array, Array]:
    """Integrals of terms and of the left side, and their moments without products of like samples."""
    states = stretch.nodes.states
    weight, own, sign = probes.slope, states[row.state], -1.0
    if row.of >= 0:
        weight, own, sign = probes.curvature, states[row.of], 1.0 / row.factor
    integrals = probes.integrals(terms)
    left = sign * probes.integrals(own[None], weight)[0] - probes.integrals(known[None])[0]
    if not stretch.noise.any():  # smoothed: neighbouring samples share their errors all the same
        return integrals, left, integrals @ integrals.T, integrals @ left
    same, mixed = np.zeros(len(own)), np.zeros(len(own))
    for c, first in enumerate(probes.first):
        shape = c if len(probes.value) > 1 else 0
        stop = min(first + probes.value.shape[1], len(own))
        phi = probes.value[shape, : stop - first]
        same[first:stop] += phi * phi
        mixed[first:stop] += phi * weight[shape, : stop - first]
    gram = integrals @ integrals.T - (terms * same) @ terms.T
    right = integrals @ left - sign * (terms * mixed) @ own + (terms * same) @ known
    return integrals, left, gram, right


def _without_noise(model: Model, stretch: Stretch, linear: Sequence[int]) -> tuple[Array, Array]:
    """Right-hand sides [n, N] with the linear parameters at zero, and the terms [entries, N] of these."""
    kernels, data = model.kernels(), stretch.nodes
    values = model.values()
    values[list(linear)] = 0.0
    noisy = np.flatnonzero(stretch.noise > 0)
    if len(noisy) > _MOST_NOISY:  # those whose noise is the largest share of their spread
        share = stretch.noise[noisy] / np.std(data.states[noisy], axis=1)
        noisy = noisy[np.argsort(-share)[:_MOST_NOISY]]
    known = np.zeros_like(data.states)
    terms = np.zeros((kernels.pattern_p.shape[1], len(data.times)))
    rates, slopes = np.empty_like(known), np.empty_like(terms)
    for shifts in product(_SHIFTS, repeat=len(noisy)):
        moved = data.states.copy()
        for j, (shift, _) in zip(noisy, shifts, strict=True):
            moved[j] += shift * stretch.noise[j]
        weight = float(np.prod([w for _, w in shifts]))
        kernels.jac_p_sparse_many(data.times, moved, data.inputs, values, rates, slopes)
        known += weight * rates
        terms += weight * slopes
    return known, terms
