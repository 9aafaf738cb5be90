"""Where local losses of stiffness are likely to lie, read from a smooth curve that follows the data.

Near a curve that follows the data the misfit is a quadratic form of the curve, which is known from the
sensitivities. Which straight line with losses is closest to the smooth curve in that measure needs no
further simulation, so every place and width can be tried. A dip of the curve alone can mislead: what no
sensor sees of it counts as much there as what all see.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.functions.beam import local_loss
from analysis.estimate.functions.beam.fit import Problem, problem
from analysis.estimate.functions.beam.system import BeamSystem
from analysis.estimate.functions.beam.unknowns import UnknownProperties, layout
from analysis.estimate.functions.penalised import Fit

Array = NDArray[np.float64]

_FINE = 40  # intervals of the curve on which the quadratic form is taken
_PLACES = np.linspace(0.02, 0.98, 97)
_TRIED_WIDTHS = (0.025, 0.05, 0.1, 0.2)
_LEAST = 0.02  # q below which there is no loss
_APART = 0.08  # of the length, by which one set of places differs from another
_SETS = 3
MOST_LIKELY = 2  # losses of a set at most
_TOLD_APART = 1e-6  # determinant over the product of both: two losses that the data can tell apart


@dataclass(frozen=True)
class LikelyLosses:
    """Losses beside a straight stiffness, and the unknowns of the latter that go with them."""

    losses: list[Array]
    straight: UnknownProperties
    theta: Array  # of ``straight``


def likely_losses(task: Problem, smooth: Fit, count: int, elements: int) -> list[LikelyLosses]:
    """Sets of ``count`` losses (1 or 2) that come closest to the smooth fit, the closest first."""
    fine, theta = _on_fine_curve(task, smooth.theta, elements)
    here = fine.misfit(theta)
    fine.set_noise(here.squares, smooth.freedom)
    here = fine.misfit(theta)
    kept = {b.key: b.intervals for b in fine.unknowns.blocks if b.intervals and b.key != "stiffness"}
    straight = layout(task.system.beam, intervals={**kept, "stiffness": 1})
    columns, start = _straight_in(fine.unknowns, straight, theta)
    places, widths = (a.ravel() for a in np.meshgrid(_PLACES, _TRIED_WIDTHS, indexing="ij"))
    dents = _dents(fine.unknowns, places, widths)
    # Cost of theta + columns z + dents q - theta: the curve itself gives way to the line.
    hessian, offset = here.hessian, start - theta
    slope = here.gradient + hessian @ offset
    inner = columns.T @ hessian @ columns
    inner += 1e-9 * np.trace(inner) / len(inner) * np.eye(len(inner))
    across = np.linalg.solve(inner, columns.T @ hessian @ dents)
    drop = dents.T @ slope - across.T @ (columns.T @ slope)
    form = dents.T @ hessian @ dents - (columns.T @ hessian @ dents).T @ across
    chosen = _closest(form, -drop, places, count)
    found = []
    for rows in chosen:
        q = np.linalg.solve(form[np.ix_(rows, rows)], -drop[rows])
        z = np.asarray(np.linalg.solve(inner, -columns.T @ slope) - across[:, rows] @ q, dtype=np.float64)
        depths = np.log(np.clip(q, _LEAST, 0.9 * local_loss.DEEPEST))
        losses = [np.array([places[r], np.log(widths[r]), d]) for r, d in zip(rows, depths, strict=True)]
        found.append(LikelyLosses(losses, straight, _moved(straight, fine.unknowns, start, z)))
    return found


def _on_fine_curve(task: Problem, theta: Array, elements: int) -> tuple[Problem, Array]:
    """The problem with a finer curve of stiffness, at the same curve."""
    old, beam = task.unknowns, task.system.beam
    kept = {b.key: b.intervals for b in old.blocks if b.intervals and b.key != "stiffness"}
    unknowns = layout(beam, intervals={**kept, "stiffness": _FINE})
    fine = unknowns.start.copy()
    for block in unknowns.blocks:
        own = old.block(block.key)
        assert own is not None
        fine[block.where] = (
            theta[own.where] if block.key != "stiffness" else _fitted(unknowns, _along(old, theta))
        )
    system = BeamSystem(beam, unknowns, max(elements, task.system.space.elements), task.system.count)
    return problem(system, task.observations), fine


def _samples(unknowns: UnknownProperties) -> Array:
    return np.linspace(0.0, unknowns.beam.length, 8 * _FINE + 1)


def _along(unknowns: UnknownProperties, theta: Array) -> Array:
    """Logarithm of the stiffness along the beam."""
    return np.log(unknowns.property_at("stiffness", theta, _samples(unknowns)))


def _fitted(fine: UnknownProperties, values: Array) -> Array:
    """Coefficients of the fine curve [coefficients] or [coefficients, k] for values along the beam."""
    block = fine.block("stiffness")
    assert block is not None
    return np.asarray(np.linalg.lstsq(fine.basis(block, _samples(fine)), values, rcond=None)[0])


def _straight_in(fine: UnknownProperties, straight: UnknownProperties, theta: Array) -> tuple[Array, Array]:
    """The straight problem's unknowns as columns of the fine one's, and the fine one's with a flat curve."""
    block, own = fine.block("stiffness"), straight.block("stiffness")
    assert block is not None and own is not None
    columns, start = np.zeros((fine.size, straight.size)), theta.copy()
    start[block.where] = 0.0
    columns[block.where, own.where] = _fitted(fine, straight.basis(own, _samples(fine)))
    for other in straight.blocks:
        if other.key != "stiffness":
            there = fine.block(other.key)
            assert there is not None
            columns[there.where, other.where] = np.eye(other.size)
    return columns, start


def _dents(fine: UnknownProperties, places: Array, widths: Array) -> Array:
    """What a loss of q = 1 takes from the fine curve, a column for each place and width."""
    block = fine.block("stiffness")
    assert block is not None
    s = _samples(fine) / fine.beam.length
    shapes = [
        -local_loss.depth(np.array([p, np.log(w), 0.0]), s) for p, w in zip(places, widths, strict=True)
    ]
    columns = np.zeros((fine.size, len(places)))
    columns[block.where] = _fitted(fine, np.array(shapes).T)
    return columns


def _closest(form: Array, gain: Array, places: Array, count: int) -> list[list[int]]:
    """Columns of the sets of losses that lower the quadratic form most, each with positive depths."""
    own = np.maximum(np.diag(form), 1e-300)
    single = np.where(gain > 0, 0.5 * gain**2 / own, -np.inf)
    if count == 1:
        ranked = [[int(i)] for i in np.argsort(-single)]
        return _different(ranked, single[np.argsort(-single)], places)
    determinant = own[:, None] * own[None, :] - form**2
    good = (determinant > _TOLD_APART * own[:, None] * own[None, :]) & (
        np.abs(places[:, None] - places[None, :]) > _APART
    )
    determinant = np.where(good, determinant, 1.0)
    first = (own[None, :] * gain[:, None] - form * gain[None, :]) / determinant
    both = np.where(good & (first > 0) & (first.T > 0), first * gain[:, None], -np.inf)
    both = 0.5 * np.triu(both + both.T, 1)
    both[~(good & (first > 0) & (first.T > 0))] = -np.inf
    order = np.argsort(-both, axis=None)[: 50 * len(places)]
    ranked = [[int(i // len(places)), int(i % len(places))] for i in order]
    return _different(ranked, both.ravel()[order], places)


def _different(ranked: list[list[int]], gains: Array, places: Array) -> list[list[int]]:
    """The first few sets whose places differ."""
    kept: list[list[int]] = []
    for rows, gain in zip(ranked, gains, strict=True):
        if len(kept) == _SETS or not gain > 0:
            break
        there = np.sort(places[rows])
        if all(np.max(np.abs(there - np.sort(places[other]))) > _APART for other in kept):
            kept.append(rows)
    return kept


def _moved(straight: UnknownProperties, fine: UnknownProperties, start: Array, z: Array) -> Array:
    """The straight problem's unknowns: z is the line itself, and steps of all others."""
    theta = z.copy()
    for block in straight.blocks:
        if block.key != "stiffness":
            own = fine.block(block.key)
            assert own is not None
            theta[block.where] += start[own.where]
    return theta
