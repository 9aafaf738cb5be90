"""Is the motion sampled fast enough to tell a frequency from its alias?

A frequency f and its mirror images (rate - f ...) give the same samples. Where a period has few samples, or
the guess turned above half the rate (a slow fit is then its alias: 11 Hz at 10 samples a second is 1 Hz), the
parameter that sets the frequency is moved to where the model turns at the mirror image and everything is
fitted again: if that follows the record as well, only bounds on the parameter can choose.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import SILENT, Progress
from analysis.estimate.finish.fit import run_engine
from analysis.estimate.finish.fitted import Fitted, Piece
from analysis.estimate.finish.rivals import Rival, no_choice

Array = NDArray[np.float64]

_PLACES = 9  # states along a piece at which the model is linearised
_FEW = 6.0  # samples a period from which on down the mirror image is tried
_SETS = 0.1  # relative change of the frequency per relative change of a parameter that sets it
_MOST_STEPS = 12  # of the search for the parameter's value at the mirror image
_EXACT = 1e-6  # relative accuracy of that frequency


def alias(fitted: Fitted, progress: Progress = SILENT) -> Rival | None:
    """The fit at the mirror image of the model's frequency, where that follows the record as well.

    Only the lowest frequency of the model counts: higher ones (sensors, actuators, stiff modes) may lie where
    they like.
    """
    piece = fitted.pieces[0]
    values = fitted.values[piece.record, : len(fitted.experiment.model.parameters)]
    rate, found = 1.0 / piece.run.dt, _lowest_frequency(fitted, piece, values)
    if found is None:
        return None
    guessed = _lowest_frequency(fitted, piece, fitted.experiment.model.values())
    mirrored = _image(found, guessed or 0.0, rate)
    if mirrored is None:
        return None
    place = _setting(fitted, piece, values, found)
    if place is None or mirrored == 0.0:
        return None
    unknown = fitted.unknowns[place]
    there = _value_at(fitted, piece, values, unknown.index, mirrored)
    if there is None or not unknown.lower <= there <= unknown.upper:
        return None
    other = _fit_from(fitted, unknown.index, there, progress)
    if other is None or other.chi2_at(fitted.sigma) > fitted.chi2_at(fitted.sigma) + no_choice(fitted):
        return None
    ended = other.values[piece.record, unknown.index]
    words = (
        f"With {unknown.name} = {ended:.4g} the model turns at {mirrored:.3g} in place of {found:.3g} cycles "
        f"per unit of time and follows the record as well: {rate:.3g} samples per unit of time do not tell a "
        f"frequency from its alias. Bounds on {unknown.name} would choose."
    )
    return Rival(words, (place,))


def _image(found: float, guessed: float, rate: float) -> float | None:
    """The frequency with the same samples that is to be tried; None where nothing speaks for another one.

    Few samples a period, or a guess above half the rate: then the image nearest to the guess.
    """
    if guessed > rate / 2:
        whole = rate * np.round(guessed / rate)
        images = [f for f in (abs(whole - found), whole + found) if not np.isclose(f, found)]
        return float(min(images, key=lambda f: abs(f - guessed))) if images else None
    return float(abs(found - rate * np.ceil(found / rate))) if found * _FEW >= rate else None


def _setting(fitted: Fitted, piece: Piece, values: Array, frequency: float) -> int | None:
    """The unknown that sets the frequency most, by relative change."""
    best, most = None, _SETS
    for i, unknown in enumerate(fitted.unknowns):
        if unknown.kind != "parameter" or unknown.record >= 0 or values[unknown.index] == 0.0:
            continue
        moved = values.copy()
        moved[unknown.index] *= 1.01
        changed = _lowest_frequency(fitted, piece, moved)
        change = 0.0 if changed is None else abs(changed / frequency - 1.0) / 0.01
        if change > most:
            best, most = i, change
    return best


def _value_at(fitted: Fitted, piece: Piece, values: Array, index: int, wanted: float) -> float | None:
    """The parameter's value at which the model turns at the wanted frequency: secants in logarithms."""
    logs: list[float] = [0.0, 0.01]
    frequencies: list[float] = []
    for _ in range(_MOST_STEPS):
        for log in logs[len(frequencies) :]:
            moved = values.copy()
            moved[index] *= np.exp(log)
            found = _lowest_frequency(fitted, piece, moved)
            if found is None or not np.isfinite(found):
                return None
            frequencies.append(float(np.log(found / wanted)))
        if abs(frequencies[-1]) < _EXACT:
            return float(values[index] * np.exp(logs[-1]))
        slope = (frequencies[-1] - frequencies[-2]) / (logs[-1] - logs[-2])
        if slope == 0.0:
            return None
        logs.append(logs[-1] - frequencies[-1] / slope)
    return None


def _fit_from(fitted: Fitted, index: int, value: float, progress: Progress) -> Fitted | None:
    """Everything fitted again with one parameter begun elsewhere: one motion, for a path that is sampled so
    coarsely has no slopes to begin with."""
    start = fitted.as_start()
    values = start.values.copy()
    values[:, index] = value
    try:
        return run_engine(fitted.experiment, replace(start, values=values, engine="shooting"), progress)
    except (ShakedownError, np.linalg.LinAlgError):
        return None


def _lowest_frequency(fitted: Fitted, piece: Piece, values: Array) -> float | None:
    """Median over the motion of the lowest frequency of the linearised model; None if nothing oscillates."""
    model = fitted.experiment.model
    places = np.unique(np.linspace(0, piece.states.shape[1] - 1, _PLACES).astype(int))
    times = np.ascontiguousarray(piece.times[places])
    X = np.ascontiguousarray(piece.states[:, places])
    U = np.ascontiguousarray(piece.run.inputs.values(times))
    n, k, N = X.shape[0], len(values), len(places)
    F, Fx, Fp = np.empty((n, N)), np.empty((n, n, N)), np.empty((n, k, N))
    model.kernels().jac_many(times, X, U, np.ascontiguousarray(values), F, Fx, Fp)
    found = []
    for slopes in Fx.transpose(2, 0, 1):
        if np.isfinite(slopes).all():
            turning = np.abs(np.linalg.eigvals(slopes).imag) / (2 * np.pi)
            found += [float(turning[turning > 0].min())] if np.any(turning > 0) else []
    return float(np.median(found)) if found else None
