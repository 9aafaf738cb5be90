"""The maximum-likelihood path as an engine of the finish: an experiment in, pieces with Jacobians out."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.progress import Progress
from analysis.estimate.finish.fitted import Fitted, Piece
from analysis.estimate.path.estimate import estimate_path
from analysis.estimate.path.result import PathEstimate
from analysis.estimate.path.segment import PathSegment
from analysis.estimate.start import Start

if TYPE_CHECKING:
    from analysis.experiment import Experiment, Run

Array = NDArray[np.float64]

Place = tuple[int, int, int]  # run, first sample, the one after the last

_SHORTEST = 8  # samples of a piece, at least
_TIGHT = 1e-6  # of a state's range: the distance from a known or bounding value that counts as none
_MOST_BOUNDS = 4  # fits in which first states that leave their bounds are put on them


def fit_path(
    experiment: Experiment,
    start: Start,
    progress: Progress,
    cuts: int = 1,
    max_iterations: int = 60,
    penalty: Array | None = None,
) -> Fitted:
    """States at all samples and the unknowns by maximum likelihood (see analysis/estimate/path).

    ``penalty`` [k, k]: of squares of the parameters; the information stays that of the data.
    """
    model, unknowns = experiment.model, experiment.unknowns
    records = len(experiment.runs)
    segments, places = segments_of(experiment, start, cuts)
    free = sorted({u.index for u in unknowns})
    local = {u.index for u in unknowns if u.record >= 0}
    there = {(u.index, u.record) for u in unknowns}
    values, sensors = start_values(experiment, start), start.sensors
    for _ in range(_MOST_BOUNDS):
        found = estimate_path(
            model.kernels(),
            segments,
            values,
            free,
            local=sorted(local),
            absent={(j, r) for j in local for r in range(records)} - there,
            lower=np.array([p.lower for p in model.parameters.values()]),
            upper=np.array([p.upper for p in model.parameters.values()]),
            sigma=experiment.sigma,
            sensors=sensors,
            sharing=experiment.noise_sharing,
            penalty=penalty,
            steps=start.steps,
            max_iterations=max_iterations,
            details=True,
            progress=progress,
        )
        held = _held_initials(experiment, segments, places, found)
        if held is None:
            break
        segments, k = held, len(model.parameters)
        values, sensors = found.values[:, :k], found.values[:, k:]
    return fitted_path(experiment, start, segments, places, found)


def _held_initials(
    experiment: Experiment, segments: list[PathSegment], places: list[Place], found: PathEstimate
) -> list[PathSegment] | None:
    """The segments with first states that left their bounds held at them; None if none did."""
    changed, moved = [], False
    for segment, (number, first, _), path in zip(segments, places, found.states, strict=True):
        run = experiment.runs[number]
        if first > 0 or not len(run.initial_lower):
            changed.append(replace(segment, states=path))
            continue
        tight = _TIGHT * np.maximum(np.ptp(path, axis=1), np.abs(path[:, 0]))
        out = (path[:, 0] < run.initial_lower - tight) | (path[:, 0] > run.initial_upper + tight)
        moved = moved or bool(out.any())
        wanted = np.clip(path[:, 0], run.initial_lower, run.initial_upper)
        old = np.full(len(out), np.nan) if segment.initial is None else segment.initial
        initial, spread = np.where(out, wanted, old), np.where(tight > 0, 0.1 * tight, _TIGHT)
        changed.append(replace(segment, states=path, initial=initial, initial_spread=spread))
    return changed if moved else None


def start_values(experiment: Experiment, start: Start) -> Array:
    """Parameters [records, k] of the start, inside their bounds."""
    parameters = experiment.model.parameters.values()
    rows = np.broadcast_to(np.atleast_2d(start.values), (len(experiment.runs), len(parameters)))
    return np.clip(rows, [p.lower for p in parameters], [p.upper for p in parameters])


def segments_of(
    experiment: Experiment, start: Start, cuts: int = 1, length: int = 0
) -> tuple[list[PathSegment], list[Place]]:
    """Unbroken stretches as the path takes them, and of each: run, first sample, the one after the last.

    Each is cut into ``cuts`` parts, or with ``length`` given into parts of about so many samples.
    """
    values = start_values(experiment, start)
    given = list(start.states) or [None] * len(experiment.runs)
    missing = experiment.start_states(values) if any(path is None for path in given) else ()
    segments: list[PathSegment] = []
    places: list[Place] = []
    for number, run in enumerate(experiment.runs):
        path = given[number] if given[number] is not None else missing[number]
        for first, stop in _pieces(run, cuts, length):
            if not np.isfinite(run.outputs[:, first:stop]).any():
                continue
            segments.append(_segment(run, number, np.asarray(path), first, stop))
            places.append((number, first, stop))
    if not segments:
        raise DataError("Every stretch of the records is broken by lost samples: nothing is left to fit.")
    return segments, places


def _pieces(run: Run, cuts: int, length: int) -> list[tuple[int, int]]:
    pieces = []
    for first, stop in run.spans:
        wanted = round((stop - first) / length) if length else cuts
        count = max(min(wanted, (stop - first) // _SHORTEST), 1)
        edges = np.linspace(first, stop, count + 1).round().astype(int)
        pieces += [(int(a), int(b)) for a, b in pairwise(edges)]
    return pieces


def _segment(run: Run, number: int, path: Array, first: int, stop: int) -> PathSegment:
    initial = spread = None
    if first == 0 and run.initial_known.any():
        reach = np.ptp(path, axis=1)
        initial = np.where(run.initial_known, run.initial_lower, np.nan)
        spread = 0.1 * _TIGHT * np.where(reach > 0, reach, 1.0)
    return PathSegment(
        np.ascontiguousarray(run.times[first:stop]),
        np.ascontiguousarray(run.outputs[:, first:stop]),
        np.ascontiguousarray(path[:, first:stop]),
        run.inputs if run.inputs.count else None,
        number,
        origin=float(run.times[0]),
        initial=initial,
        initial_spread=spread,
        variants=run.variants,
        input_noise=run.input_noise,
    )


def fitted_path(
    experiment: Experiment,
    start: Start,
    segments: list[PathSegment],
    places: list[Place],
    found: PathEstimate,
) -> Fitted:
    """A path estimate in the common form, its unknowns in the experiment's order."""
    order = _order(experiment, found)
    pieces = []
    for i, (segment, (number, first, stop), more) in enumerate(
        zip(segments, places, found.details, strict=True)
    ):
        pieces.append(
            Piece(
                experiment.runs[number],
                number,
                first,
                stop,
                segment.times,
                found.states[i],
                found.residuals[i],
                more.jacobian[:, :, order],
                more.initial_slope[:, order],
                more.initial_information,
                more.input_residuals,
                more.input_jacobian[:, :, order],
            )
        )
    both = np.ix_(order, order)
    return Fitted(
        experiment,
        start,
        "path",
        experiment.unknowns,
        found.estimate[order],
        found.values,
        found.information[both],
        found.input_covariance[both],
        found.sigma,
        found.chi2,
        found.dof,
        found.converged,
        found.iterations,
        found.evaluations,
        found.history,
        found.message,
        tuple(pieces),
        int(found.steps),
        found.defect,
        len(segments),
    )


def _order(experiment: Experiment, found: PathEstimate) -> list[int]:
    place = {item: i for i, item in enumerate(found.unknowns)}
    return [place[(u.index, u.record)] for u in experiment.unknowns]
