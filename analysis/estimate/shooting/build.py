"""The output-error problem of an experiment, and the point to start it from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.estimate.evaluation import Point
from analysis.estimate.shooting.problem import Problem
from analysis.estimate.stretch import Place, bounds_at, stretch_of
from analysis.estimate.unknowns import Unknowns
from analysis.signal.noise import noise_of

if TYPE_CHECKING:
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

LEAST_NOISE = 1e-6  # of an output's spread: what the integration and double precision can resolve


def problem_of(
    experiment: Experiment, sigma: Array | None = None, places: Sequence[Place] | None = None
) -> Problem:
    """The problem on every unbroken stretch, or on the stretches given."""
    model = experiment.model
    parameters, q = list(model.parameters.values()), len(model.outputs)
    wide = np.full(3 * q, np.inf)
    places = stretches_of(experiment) if places is None else places
    return Problem(
        model,
        [stretch_of(experiment, place) for place in places],
        Unknowns([(u.index, u.record) for u in experiment.unknowns], len(experiment.runs)),
        np.concatenate([[p.lower for p in parameters], -wide]),
        np.concatenate([[p.upper for p in parameters], wide]),
        np.array([p.lower >= 0 and p.value > 0 for p in parameters] + 3 * q * [False]),
        np.array([abs(p.value) for p in parameters] + 3 * q * [0.0]),
        noise_from_differences(experiment) if sigma is None else sigma,
    )


def stretches_of(experiment: Experiment) -> list[Place]:
    """Stretches in which all inputs are known and something was measured."""
    places = [
        (i, first, stop)
        for i, run in enumerate(experiment.runs)
        for first, stop in run.spans
        if np.isfinite(run.outputs[:, first:stop]).any()
    ]
    if not places:
        raise DataError("Every stretch of the records is broken by lost samples: nothing is left to fit.")
    return places


def noise_from_differences(experiment: Experiment) -> Array:
    """Noise [records, q] of the outputs: as said, else from their differences, of records that have one level
    the median."""
    found = experiment.sigma
    for i, apart in enumerate(experiment.noise_sharing.apart):
        unknown = np.flatnonzero(~np.isfinite(found[:, i]))
        rows = [experiment.runs[r].outputs[i] for r in unknown]
        spread = [float(np.nanstd(row)) if np.isfinite(row).any() else 0.0 for row in rows]
        levels = [noise_of(row) for row in rows]
        if not apart:
            there = [level for level, row in zip(levels, rows, strict=True) if np.isfinite(row).any()]
            together = float(np.nanstd(np.concatenate(rows))) if there else 0.0
            spread, levels = len(rows) * [together], len(rows) * [float(np.median(there)) if there else 0.0]
        for r, level, size in zip(unknown, levels, spread, strict=True):
            found[r, i] = max(level, LEAST_NOISE * size) or 1.0
    return found


def start_point(
    experiment: Experiment, values: Array, states: Sequence[Array], sensors: Array | None = None
) -> Point:
    """Parameters [records, k] and the states at the beginning of each stretch, inside all bounds."""
    records, q = len(experiment.runs), len(experiment.model.outputs)
    chain = np.zeros((records, 3 * q))
    if sensors is not None:
        chain[:] = np.atleast_2d(sensors)
    parameters = experiment.model.parameters.values()
    rows = np.broadcast_to(np.atleast_2d(values), (records, len(parameters)))
    inside = np.clip(rows, [p.lower for p in parameters], [p.upper for p in parameters])
    initials = []
    for number, first, _ in stretches_of(experiment):
        state = np.array(states[number][:, first], dtype=np.float64)
        lower, upper = bounds_at(experiment.runs[number], first)
        initials.append(np.clip(state, lower, upper) if len(lower) else state)
    return Point(np.hstack([inside, chain]), tuple(initials))
