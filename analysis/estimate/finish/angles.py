"""Parameters that are angles: a whole turn more is the same number, so they are given in the guess's turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import SILENT, Progress
from analysis.estimate.finish.fit import run_engine
from analysis.estimate.finish.fitted import Fitted
from analysis.model.drive import drive_of

Array = NDArray[np.float64]

TURN = 2 * np.pi
_PLACES = 5  # states at which a turn changes nothing
_SAME, _OTHER = 1e-9, 1e-6  # of rates and outputs: what counts as nothing, and as something
_WORSE = 1.0  # of chi-square, by which the same motion in other numbers may seem worse


def is_angle(fitted: Fitted, unknown: int) -> bool:
    """Whether the model does the same when a parameter is larger by a whole turn, but not by half of one: a
    phase, a direction. A stiffness of 1e24 does not notice half a turn either, and is no angle."""
    piece = fitted.pieces[0]
    places = np.linspace(0, len(piece.times) - 1, _PLACES).astype(int)
    shown = [[_shown(fitted, n, {unknown: turn}) for turn in (0.0, TURN, TURN / 2)] for n in places]
    if not all(np.allclose(here, turned, rtol=_SAME, atol=0.0) for here, turned, _ in shown):
        return False
    return not all(np.allclose(here, half, rtol=_OTHER, atol=0.0) for here, _, half in shown)


def _shown(fitted: Fitted, sample: int, more: dict[int, float], piece: int = 0) -> Array:
    """Rates and outputs at a sample of the fitted motion, with unknowns that are larger."""
    part, model = fitted.pieces[piece], fitted.experiment.model
    values = fitted.values[part.record, : len(model.parameters)].copy()
    for i, change in more.items():
        if fitted.unknowns[i].record in (-1, part.record):
            values[fitted.unknowns[i].index] += change
    t, x = float(part.times[sample]), np.ascontiguousarray(part.states[:, sample])
    u = np.ascontiguousarray(part.run.inputs.values(part.times[sample : sample + 1])[:, 0])
    rates, outputs = np.empty(len(x)), np.empty(len(model.outputs))
    kernels = model.kernels()
    kernels.rhs(t, x, u, values, rates)
    kernels.out(t, x, u, values, outputs)
    return np.concatenate([rates, outputs])


def with_signs_of_guesses(fitted: Fitted, progress: Progress = SILENT) -> Fitted:
    """The fit with amplitudes of the sign of their guess: a cos(w t + p) is -a cos(w t + p + pi).

    Instead of a phase it may be the unknown time of the drive that takes up half a period.
    """
    guesses = [p.value for p in fitted.experiment.model.parameters.values()]
    shared = [i for i, u in enumerate(fitted.unknowns) if u.kind == "parameter" and u.record < 0]
    for size in shared:
        if not fitted.estimate[size] * guesses[fitted.unknowns[size].index] < 0:
            continue
        for half_turn in _half_turns(fitted, [i for i in shared if i != size]):
            change = {size: -2 * float(fitted.estimate[size]), **half_turn}
            if _is_mirror(fitted, change):
                fitted = _mirrored(fitted, change, progress)
                break
    return fitted


def _half_turns(fitted: Fitted, parameters: Sequence[int]) -> Iterator[dict[int, float]]:
    """Changes of unknowns that may turn a drive by half a period: of a phase, or of the drive's time."""
    for phase in parameters:
        if is_angle(fitted, phase):
            yield {phase: TURN / 2}
    times = [i for i, u in enumerate(fitted.unknowns) if u.kind == "phase"]
    if not times:
        return
    model = fitted.experiment.model
    values = dict(zip(model.parameters, fitted.values[0, : len(model.parameters)], strict=True))
    period = drive_of(model.with_values({name: float(values[name]) for name in model.free})).period
    if period is not None:
        yield {i: period / 2 if fitted.estimate[i] <= 0 else -period / 2 for i in times}


def _is_mirror(fitted: Fitted, change: dict[int, float]) -> bool:
    """Whether the model does the same with the unknowns changed so, all inside their bounds."""
    for i, more in change.items():
        if not fitted.unknowns[i].lower <= fitted.estimate[i] + more <= fitted.unknowns[i].upper:
            return False
    return all(
        np.allclose(_shown(fitted, n, {}, k), _shown(fitted, n, change, k), rtol=_SAME, atol=0.0)
        for k, piece in enumerate(fitted.pieces)
        for n in np.linspace(0, len(piece.times) - 1, _PLACES).astype(int)
    )


def _mirrored(fitted: Fitted, change: dict[int, float], progress: Progress) -> Fitted:
    """The fit again from the same motion in the other numbers; as it was where that does not end there."""
    start, values = fitted.as_start(), fitted.values.copy()
    for i, more in change.items():
        unknown = fitted.unknowns[i]
        values[slice(None) if unknown.record < 0 else unknown.record, unknown.index] += more
    k = len(fitted.experiment.model.parameters)
    start = replace(start, values=values[:, :k], sensors=values[:, k:])
    try:
        again = run_engine(fitted.experiment, start, progress)
    except (ShakedownError, np.linalg.LinAlgError):
        return fitted
    size = next(iter(change))
    if again.estimate[size] * fitted.estimate[size] > 0 or again.chi2_at(fitted.sigma) > (
        fitted.chi2_at(fitted.sigma) + _WORSE
    ):
        return fitted
    return replace(again, start=fitted.start, iterations=fitted.iterations + again.iterations)


def in_the_guess_turn(fitted: Fitted, progress: Progress = SILENT) -> Fitted:
    """The fit with every angle within half a turn of its guess, where its bounds let it."""
    fitted = with_signs_of_guesses(fitted, progress)
    estimate, values = fitted.estimate.copy(), fitted.values.copy()
    guesses = list(fitted.experiment.model.parameters.values())
    for i, unknown in enumerate(fitted.unknowns):
        if unknown.kind != "parameter" or not np.isfinite(estimate[i]):
            continue
        turns = TURN * np.round((guesses[unknown.index].value - estimate[i]) / TURN)
        inside = unknown.lower <= estimate[i] + turns <= unknown.upper
        if turns == 0.0 or not inside or not is_angle(fitted, i):
            continue
        estimate[i] += turns
        rows = slice(None) if unknown.record < 0 else unknown.record
        values[rows, unknown.index] += turns
    return replace(fitted, estimate=estimate, values=values)
