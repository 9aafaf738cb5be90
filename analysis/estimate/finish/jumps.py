"""Unmarked jumps in time: samples that were lost without a word, or a knock on the specimen.

The motion after such a place does not follow from the one before, so that no single motion fits, and the
misfit all along the record looks like a wrong model. In parts with states of their own all but one fit. That
part is left out, the motion before it is run on until the samples leave it, and the record is cut there: few
samples are given up, so that a stretch in which the model misses the motion still shows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import SILENT, Progress
from analysis.estimate.finish.fit import fit, optimum_near
from analysis.estimate.finish.fitted import Fitted, Piece
from analysis.estimate.finish.honest import PARTS
from analysis.estimate.shooting.build import noise_from_differences
from analysis.simulation.simulate import simulate

if TYPE_CHECKING:
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

_MOST_JUMPS = 2  # more of them would hide a model that misses a stretch of large motion
_STANDS_OUT = 1.3  # residual of the worst part over the middle one of the parts
_AT_NOISE = 1.3  # residual of the rest over the noise that the samples show
_LEFT = 5.0  # noise by which samples have left a motion that is run on
_IN_A_ROW = 2  # of them: one may be a spike
_BEFORE = 0.01  # of a run: samples before that place that are not trusted
_AFTER = 4  # samples behind it: inputs that are splined over a jump swing there
_SHORTEST = 50  # samples of a part


def cut_at_jumps(fitted: Fitted, progress: Progress = SILENT) -> Fitted | None:
    """The fit of the record cut where time jumps; None where no such place is found."""
    experiment = fitted.experiment
    said = experiment.conditions
    if experiment.given.equations.hold_time or said.offsets or said.delays or said.drifts:
        return None  # the time, or what the sensor adds, would be another after the jump
    found, times = fitted, []
    for _ in range(_MOST_JUMPS):
        place = _jump(found, progress)
        if place is None:
            break
        number, first, stop = place
        again = optimum_near(_without(found.experiment, number, first, stop), found, progress)
        if again is None:
            return None
        found = again
        times.append(float(found.experiment.runs[number].times[stop]))
    if not times:
        return None
    return replace(found, start=replace(fitted.start, jumps=times))


def jump_words(fitted: Fitted) -> list[str]:
    """Where the record was cut, in a sentence."""
    places = ", ".join(f"{t:.4g}" for t in sorted(fitted.start.jumps))
    return [
        f"The motion jumps just before t = {places} (samples lost and not marked, or a knock): before and "
        "after it was fitted with states of their own."
    ]


def _jump(fitted: Fitted, progress: Progress) -> tuple[int, int, int] | None:
    """A run, and its samples first (included) to stop (excluded) that hold a jump."""
    cuts = int(np.ceil(PARTS / len(fitted.pieces)))
    if min(len(piece.times) for piece in fitted.pieces) < cuts * _SHORTEST:
        return None
    try:
        parts = fit(fitted.experiment, fitted.as_start(), progress, cuts=cuts)
    except (ShakedownError, np.linalg.LinAlgError):
        return None
    noise = noise_from_differences(fitted.experiment)
    sizes = [_size(piece, noise[piece.record]) for piece in parts.pieces]
    worst = int(np.argmax(sizes))
    bad = parts.pieces[worst]
    if sizes[worst] < _STANDS_OUT * float(np.median(sizes)):
        return None
    rest = optimum_near(_without(parts.experiment, bad.record, bad.first, bad.stop), parts, progress)
    if rest is None or max(_size(piece, noise[piece.record]) for piece in rest.pieces) > _AT_NOISE:
        return None
    before = [p for p in rest.pieces if p.record == bad.record and p.stop == bad.first]
    if not before:
        return None  # nothing to run on: a part that the model misses looks the same
    left = _leaves(rest, before[0], bad.stop, noise[bad.record])
    if left is None:
        return None
    first = max(left - max(int(_BEFORE * len(bad.run.times)), 1), before[0].first)
    return bad.record, first, left + _AFTER


def _size(piece: Piece, noise: Array) -> float:
    """Residual over the noise, rms, of the output that is followed worst."""
    with np.errstate(invalid="ignore"):
        rows = piece.residuals / noise[:, None]
    return max((float(np.sqrt(np.nanmean(r**2))) for r in rows if np.isfinite(r).any()), default=0.0)


def _leaves(fitted: Fitted, piece: Piece, stop: int, noise: Array) -> int | None:
    """The sample at which the record leaves the motion of a piece that is run on up to ``stop``."""
    model, run = fitted.experiment.model, piece.run
    k = len(model.parameters)
    values = dict(zip(model.parameters, fitted.values[piece.record, :k].tolist(), strict=True))
    times = run.times[piece.stop - 1 : stop]
    try:
        motion = simulate(model, times, piece.states[:, -1], values, run.inputs)
    except ShakedownError:
        return None
    far = np.abs(run.outputs[:, piece.stop - 1 : stop] - motion.outputs) > _LEFT * noise[:, None]
    away = far.any(axis=0)
    rows = np.flatnonzero(np.logical_and.reduce([np.roll(away, -i) for i in range(_IN_A_ROW)]))
    return piece.stop - 1 + int(rows[0]) if len(rows) else None


def _without(experiment: Experiment, number: int, first: int, stop: int) -> Experiment:
    """The experiment without some samples of a run, what is before and after on either side of a break."""
    spans = []
    for a, b in experiment.runs[number].spans:
        spans += [(a, min(b, first)), (max(a, stop), b)] if a < stop and b > first else [(a, b)]
    kept = tuple((a, b) for a, b in spans if b - a >= _SHORTEST)
    return experiment.with_spans(number, kept)
