"""Basins of attraction on a grid of initial states: where each start ends up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.progress import SILENT, Progress
from analysis.model import Model
from analysis.simulation.sets import Ensemble
from analysis.simulation.simulate import States, Values, initial_vector, parameter_vector, state_index

Array = NDArray[np.float64]

DIVERGED = -1


@dataclass(frozen=True, eq=False)
class Basins:
    """``labels[rows, columns]`` of the attractor that each start reaches (-1: none, it diverged).

    ``attractors`` holds for each label the points [n, K] on the section; labels go by falling share.
    """

    axes: tuple[str, str]
    first: Array  # values of the first axis: columns
    second: Array  # values of the second axis: rows
    labels: NDArray[np.int64]
    attractors: tuple[Array, ...]

    @property
    def shares(self) -> Array:
        """Fraction of the grid that belongs to each attractor."""
        return np.array([np.mean(self.labels == label) for label in range(len(self.attractors))])


def basins(
    model: Model,
    grid: Mapping[str, Array],
    period: float,
    transient: int = 100,
    keep: int = 16,
    steps: int = 100,
    initial: States = None,
    values: Values = None,
    tolerance: float = 1e-2,
    progress: Progress = SILENT,
) -> Basins:
    """Starts on a grid of two states (the others from ``initial``), followed over ``transient`` periods of
    the drive and compared once a period (autonomous models: any interval longer than the slowest return).

    Two starts belong together if their last points come within ``tolerance`` of the attractors' size, so a
    chaotic attractor is one label once ``keep`` points cover it.
    """
    if len(grid) != 2:
        raise DataError("Basins are drawn over two states: give exactly two axes.")
    (name1, axis1), (name2, axis2) = ((n, np.asarray(a, dtype=np.float64)) for n, a in grid.items())
    if not (period > 0 and keep >= 1 and steps >= 1 and len(axis1) and len(axis2)):
        raise DataError("Basins need a positive period and axes with values.")
    start = _other_states(model, grid, initial)
    x1, x2 = np.meshgrid(axis1, axis2)
    states = np.repeat(start[:, None], x1.size, axis=1)
    states[state_index(model, name1)], states[state_index(model, name2)] = x1.ravel(), x2.ravel()
    parameters = np.repeat(parameter_vector(model, values)[:, None], x1.size, axis=1)
    ensemble = Ensemble.prepare(model, states, parameters)
    kept = np.empty((len(start), keep, x1.size))
    for k in range(transient + keep):
        progress.report(k / (transient + keep), "basins of attraction")
        ensemble.times = np.full(x1.size, k * period)
        ensemble.advance(period, steps)
        if k >= transient:
            kept[:, k - transient] = ensemble.states
    progress.report(1.0, "basins of attraction")
    labels, attractors = group(kept, tolerance)
    return Basins((name1, name2), axis1, axis2, labels.reshape(x1.shape), attractors)


def _other_states(model: Model, grid: Mapping[str, Array], initial: States) -> Array:
    if initial is not None:
        return initial_vector(model, initial)
    known = {name: start.value for name, start in model.initial.items()}
    return initial_vector(model, {name: 0.0 for name in grid if name not in known})


def group(kept: Array, tolerance: float) -> tuple[NDArray[np.int64], tuple[Array, ...]]:
    """Labels of the columns of kept[n, K, S] by the sets of points they visit, the largest group first."""
    finite = np.all(np.isfinite(kept), axis=(0, 1)) & np.all(np.abs(kept) < 1e12, axis=(0, 1))
    labels = np.full(kept.shape[2], DIVERGED, dtype=np.int64)
    good = kept[:, :, finite]
    attractors: list[Array] = []
    if good.shape[2]:
        size = np.maximum(np.ptp(good, axis=(1, 2)), 1e-300)[:, None, None]
        scaled = good / size
        unknown = np.arange(good.shape[2])
        found = np.empty(good.shape[2], dtype=np.int64)
        while len(unknown):  # all columns that touch the first unknown one are one group
            members = unknown[_touching(scaled, unknown, tolerance)]
            found[members] = len(attractors)
            attractors.append(good[:, :, members[0]])
            unknown = np.setdiff1d(unknown, members, assume_unique=True)
        order = np.argsort(-np.bincount(found))
        attractors = [attractors[i] for i in order]
        labels[finite] = np.argsort(order)[found]
    return labels, tuple(attractors)


def _touching(scaled: Array, unknown: NDArray[np.int64], tolerance: float) -> NDArray[np.bool_]:
    """Which columns have a point near those of the group that grows from the first one."""
    from scipy.spatial import cKDTree

    inside = np.zeros(len(unknown), dtype=bool)
    inside[0] = True
    fresh = inside.copy()
    while fresh.any():
        core = scaled[:, :, unknown[fresh]].reshape(len(scaled), -1).T
        if len(core) > 4000:  # enough to know the set
            core = core[:: len(core) // 4000]
        rest = np.flatnonzero(~inside)
        if not len(rest):
            break
        last = scaled[:, -1, unknown[rest]].T
        near = cKDTree(core).query(last, distance_upper_bound=tolerance)[0] < tolerance
        fresh = np.zeros_like(inside)
        fresh[rest[near]] = True
        inside |= fresh
    return inside
