"""What may be wrong with a channel: an offset of an output, a sensor that is not linear or that loses slow
motion (see high_pass.py), a delay of an output or of an input, and with all of them: a filter that delays
their frequencies unequally.

Each is one more column of the score test (see score.py). A delay d of an input that was recorded late means
that f(t + d) drove the specimen: its column is the slope of the input carried through the linearised flow.
A filter that all channels passed changes nothing of a linear specimen. Of others it shows in the harmonics:
with a phase of -b omega^3 the recorded y is y + b y''', the drive was u - b u''' where u was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.gaps import filled
from analysis.estimate.finish.high_pass import high_passed
from analysis.estimate.finish.linearised import Linearisation, Regression
from analysis.estimate.finish.missing_terms import tested
from analysis.estimate.finish.score import Missing, Scores, output_columns
from analysis.signal.bandlimited import third_rate

if TYPE_CHECKING:
    from analysis.estimate.finish.fitted import Fitted

Array = NDArray[np.float64]

OFFSET, DELAY, DRIFT, DISPERSION = "offset", "delay", "drift", "dispersion"
SENSOR_FAULTS = (OFFSET, DELAY, DRIFT)
CHANNELS = "all channels"
_CURVE = (2, 3)  # powers of an output that a sensor which is not linear adds
_HALF = 0.15  # samples around half a sample within which an early input looks like one that is held


def channel_faults(
    fitted: Fitted, linear: Sequence[Linearisation], regressions: Sequence[Regression]
) -> list[Missing]:
    """Offset, delay, drift, curve and high-pass of every output, delay of every input taken as exact.

    The delay of a noisy input is left to the outputs: the slope of its noise would pass for a delay.
    """
    model = fitted.experiment.model
    found = high_passed(fitted, linear, regressions)
    for i, name in enumerate(model.outputs):
        found += _of_output(fitted, linear, regressions, i, name)
        found += _curve_of_output(fitted, linear, regressions, i, name)
    if not fitted.inputs_estimated:
        for i, name in enumerate(model.inputs):
            columns = [part.columns(*part.shifted_input(i)) for part in linear]
            rows = [
                part.stretch.inputs.values(part.stretch.times)[i] for part in linear if part.stretch.inputs
            ]
            slopes = [np.gradient(row, p.stretch.times) for row, p in zip(rows, linear, strict=True)]
            found.append(
                _missing(tested(fitted, regressions, columns), 0, DELAY, name, _power(slopes), _power(rows))
            )
            found += _in_outputs(fitted, linear, regressions, name, rows)
    return found


def _in_outputs(
    fitted: Fitted,
    linear: Sequence[Linearisation],
    regressions: Sequence[Regression],
    name: str,
    rows: Sequence[Array],
) -> list[Missing]:
    """An input and its rate as parts of every output: a current that induces a voltage, a table that a sensor
    rides on. The rate by splines: differences of neighbours lose a quarter of a wave of five samples."""
    from scipy.interpolate import CubicSpline

    slopes = [
        CubicSpline(p.stretch.times, row)(p.stretch.times, 1) for row, p in zip(rows, linear, strict=True)
    ]
    found = []
    for i, output in enumerate(fitted.experiment.model.outputs):
        columns = []
        for part, row, slope in zip(linear, rows, slopes, strict=True):
            shifts = np.zeros((part.q, part.N, 2))
            shifts[i, :, 0], shifts[i, :, 1] = row, slope
            columns.append(output_columns(part, shifts))
        scored = tested(fitted, regressions, columns)
        size = _power([np.nan_to_num(part.stretch.outputs[i]) for part in linear])
        found += [
            _missing(scored, j, term, output, _power(own), size)
            for j, (term, own) in enumerate(((name, rows), (f"d{name}/dt", slopes)))
        ]
    return found


def dispersion(
    fitted: Fitted, linear: Sequence[Linearisation], regressions: Sequence[Regression]
) -> list[Missing]:
    """Dispersion of a filter that all channels passed, where these are said to be band-limited."""
    experiment = fitted.experiment
    if experiment.conditions.inputs != "bandlimited" or experiment.model.is_linear or fitted.inputs_estimated:
        return []
    columns, moved, whole = [], [], []
    for part in linear:
        pushes, shifts = part.changed_inputs(third_rate, -1.0)
        rows = part.stretch.outputs - part.residuals.T * part.stretch.sigma[:, None]  # of the model
        for i, row in enumerate(rows):
            if not np.isfinite(row).any():
                continue
            rate = third_rate(filled(row), float(np.diff(part.stretch.times[:2])[0]))
            shifts[:, i, 0] += rate / part.stretch.sigma[i]
            moved.append(rate)
            whole.append(np.nan_to_num(row))
        columns.append(part.columns(pushes, shifts))
    scored = tested(fitted, regressions, columns)
    return [_missing(scored, 0, DISPERSION, CHANNELS, _power(moved), _power(whole))]


def _of_output(
    fitted: Fitted, linear: Sequence[Linearisation], regressions: Sequence[Regression], i: int, name: str
) -> list[Missing]:
    columns, moved, whole = [], [], []
    for part in linear:
        rows = part.stretch.outputs - part.residuals.T * part.stretch.sigma[:, None]  # of the model
        shifts = np.zeros((part.q, part.N, 3))
        shifts[i, :, 0] = 1.0
        shifts[i, :, 1] = -np.gradient(filled(rows[i]), part.stretch.times)
        shifts[i, :, 2] = part.stretch.times - part.stretch.origin
        columns.append(output_columns(part, shifts))
        moved.append(shifts[i])
        whole.append(np.nan_to_num(part.stretch.outputs[i]))
    scored = tested(fitted, regressions, columns)
    size = _power(whole)
    return [
        _missing(scored, j, kind, name, _power([rows[:, j] for rows in moved]), size)
        for j, kind in enumerate(SENSOR_FAULTS)
    ]


def _curve_of_output(
    fitted: Fitted, linear: Sequence[Linearisation], regressions: Sequence[Regression], i: int, name: str
) -> list[Missing]:
    """Square and cube of an output about its mean: a sensor that saturates softly or is not linear."""
    rows = [p.stretch.outputs[i] - p.residuals[:, i] * p.stretch.sigma[i] for p in linear]  # of the model
    seen = np.concatenate(rows)
    mean = float(np.nanmean(seen)) if np.isfinite(seen).any() else 0.0
    moved = [np.nan_to_num(row - mean) for row in rows]
    columns = []
    for part, row in zip(linear, moved, strict=True):
        shifts = np.zeros((part.q, part.N, len(_CURVE)))
        shifts[i] = np.stack([row**power for power in _CURVE], axis=1)
        columns.append(output_columns(part, shifts))
    scored = tested(fitted, regressions, columns)
    size = _power([np.nan_to_num(part.stretch.outputs[i]) for part in linear])
    return [
        _missing(scored, j, f"{name}^{power}", name, _power([row**power for row in moved]), size)
        for j, power in enumerate(_CURVE)
    ]


def is_curve(missing: Missing) -> bool:
    """Whether it is the curved characteristic of a sensor that is missing."""
    return missing.name in [f"{missing.place}^{power}" for power in _CURVE]


def _power(rows: Sequence[Array]) -> float:
    return float(sum(np.sum(row**2) for row in rows))


def _missing(scored: Scores, j: int, kind: str, name: str, own: float, whole: float) -> Missing:
    coefficients, errors = scored.coefficients()
    share = abs(float(coefficients[j])) * np.sqrt(own / whole) if whole > 0 else 0.0
    shift = tuple(float(change) for change in -scored.along[:, j] * coefficients[j])
    t = float(scored.t_values()[j])
    return Missing(kind, name, t, float(coefficients[j]), float(errors[j]), float(share), shift=shift)


def looks_held(channel: str, samples: float, inputs: Sequence[str], outputs: Sequence[str]) -> bool:
    """Whether a channel that seems late by so many samples speaks of inputs that are held between them."""
    if channel in inputs:
        return abs(samples + 0.5) < _HALF
    return len(inputs) > 0 and len(outputs) == 1 and abs(samples - 0.5) < _HALF


def dispersion_words(fault: Missing) -> str:
    """A filter that all channels seem to have passed, in words, with the option that undoes it."""
    return (
        "All channels seem to have passed a filter that delays their frequencies unequally (phase "
        f"-b*omega^3, b = {fault.coefficient:.3g} ± {fault.stderr:.2g}, t = {abs(fault.t):.1f}): the option "
        f"dispersion={fault.coefficient:.4g} undoes it."
    )


def fault_words(fault: Missing, interval: float, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """An offset or a delay in words, with the option that fits it."""
    size = f"t = {abs(fault.t):.1f}"
    if fault.name == OFFSET:
        return (
            f"The sensor of {fault.place} seems to have an offset of {fault.coefficient:.3g} ± "
            f"{fault.stderr:.2g} ({size}): the option offsets={fault.place} fits it."
        )
    if fault.name == DRIFT:
        return (
            f"The zero of the sensor of {fault.place} seems to drift by {fault.coefficient:.3g} ± "
            f"{fault.stderr:.2g} a unit of time ({size}): the option drifts={fault.place} fits it."
        )
    samples = fault.coefficient / interval
    way = "late" if samples > 0 else "early"
    option = f"delays={','.join(outputs) if fault.place in inputs else fault.place}"
    if looks_held(fault.place, samples, inputs, outputs):
        option = f"inputs=hold (a force that is held between samples acts so) or {option}"
    size = f"{fault.coefficient / np.sign(samples):.3g} ± {fault.stderr:.2g}, {size}"
    late = f"{fault.place} seems to come {abs(samples):.2g} samples too {way}"
    return f"{late} ({size}): the option {option} fits it."
