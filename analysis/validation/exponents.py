"""Lyapunov exponents: of the record and of the model, by the same method and from the same kind of data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import Progress
from analysis.dynamics.lyapunov import LyapunovSpectrum, lyapunov_spectrum
from analysis.model import Model
from analysis.reconstruct.exponents import LargestExponent, largest_exponent
from analysis.signal.noise import noise_levels
from analysis.validation.chance import judged_among
from analysis.validation.check import Check, Panel, Status, Trace, impossible
from analysis.validation.subject import Subject

Array = NDArray[np.float64]

NAME, TITLE = "exponents", "Lyapunov exponents"
_STARTS, _LONG_RUN, _TRANSIENT = 8, 50.0, 6.0  # runs for the model's spectrum, their periods (or turns)
_BLOCKS = 10  # of a run: in which of them does its growth end?
_A_PERIOD, _MOST = 40, 25_000  # samples a period, and in all
_NEAR, _FAR = 0.25, 0.5  # relative difference of the exponents: agreement, doubt
_PHASE = 3.0  # weight of the phase, in spreads of the motion
_FLAT = 0.02  # nats a period: below it, neighbours do not part
_LEAST_STATES = 3  # of an undriven motion that can be chaotic


def thinned(subject: Subject, states: Array) -> tuple[Array, float]:
    """States in units of their spread, no more of them a period than are needed, and their interval."""
    every = max(1, round(subject.base / subject.dt / _A_PERIOD))
    part = states[:, ::every][:, :_MOST]
    size = np.std(part, axis=1, keepdims=True)
    return np.ascontiguousarray(part / np.where(size > 0, size, 1.0)), every * subject.dt


@dataclass(frozen=True, eq=False)
class ModelSpectrum(LyapunovSpectrum):
    """The mean of runs from states of a record, its error from their scatter."""

    runs: int
    regular: int  # runs that left chaos and settled on a regular motion

    @property
    def remark(self) -> str:
        """What is to be known of the mean; empty where all runs are of one kind."""
        if not self.regular:
            return ""
        return (
            f"{self.regular} of {self.runs} runs left chaos for a regular motion within {_LONG_RUN:g} "
            "periods: the mean is of neither motion."
        )


def model_spectrum(subject: Subject, progress: Progress, model: Model | None = None) -> ModelSpectrum | None:
    """Variational spectrum of the model along the record: the mean of runs from its states; None where most
    of them escape, and where there is no model by itself. Another ``model`` is run from the same states."""
    driven = model or subject.driven
    if driven is None or subject.driven is None or subject.escapes:
        return None
    found = []
    for number, place in enumerate(subject.places(_STARTS)):
        try:
            found.append(
                lyapunov_spectrum(
                    driven, _LONG_RUN * subject.base, _TRANSIENT * subject.base, blocks=_BLOCKS,
                    initial=subject.states[:, place], start=subject.origin, rtol=1e-7,
                    progress=progress.part(number / _STARTS, (number + 1) / _STARTS),
                )
            )  # fmt: skip
        except ShakedownError:
            continue
    if 2 * len(found) < _STARTS:
        return None
    rates = np.array([s.exponents for s in found]).T
    error = rates.std(axis=1, ddof=1) / np.sqrt(len(found))
    duration = len(found) * found[0].duration
    regular = sum(s.left_chaos is not None for s in found)
    end = found[-1].final_state
    return ModelSpectrum(rates.mean(axis=1), error, rates, duration, end, len(found), regular)


def check_exponents(subject: Subject, spectrum: ModelSpectrum | None) -> Check:
    """The record's largest exponent beside the model's, by diverging neighbours; the model's spectrum."""
    if subject.driven is None or subject.fading:
        return impossible(NAME, TITLE, subject.reason or subject.fading)
    if not subject.forced and len(subject.model.states) < _LEAST_STATES:
        words = "An undriven motion of two states cannot be chaotic (Poincaré and Bendixson)."
        return impossible(NAME, TITLE, words)
    if subject.escapes or spectrum is None or subject.twin is None:
        return Check(NAME, TITLE, "failed", "The model escapes: its motion grows without bound.")
    numbers = {f"model_{i}": float(v) for i, v in enumerate(spectrum.exponents, 1)}
    numbers |= {f"model_{i}_stderr": float(v) for i, v in enumerate(spectrum.stderr, 1)}
    own = "; ".join(f"{v:.3g} ± {e:.1g}" for v, e in zip(spectrum.exponents, spectrum.stderr, strict=True))
    said = f"The model's own spectrum is {own} per {subject.unit}. {spectrum.remark}".rstrip()
    measured = _estimate(subject, subject.states)
    if measured is None:
        words = f"The record is too short for an exponent. {said}"
        return replace(impossible(NAME, TITLE, words), numbers=numbers)
    numbers |= {"record": measured.value, "record_stderr": measured.stderr}
    twin = _estimate(subject, subject.twin, measured.region)
    if twin is None:
        words = f"The model's motion has no neighbours that could part as the record's do. {said}"
        return replace(impossible(NAME, TITLE, words), numbers=numbers)
    status, verdict = _judged(measured, twin, subject.base)
    if status != "passed":  # is it further off than another record of the same motion would be?
        others = [_estimate(subject, states, measured.region) for states in subject.other_twins]
        values = np.array([t.value for t in (twin, *others) if t is not None])
        status, verdict = judged_among(measured.value, values, status, verdict)
    numbers |= {"model_by_same_method": twin.value, "model_by_same_method_stderr": twin.stderr}
    part = (
        f"Neighbouring motions part at {measured.value:.3g} ± {measured.stderr:.1g} in the record and at "
        f"{twin.value:.3g} ± {twin.stderr:.1g} in the model"
    )
    words = f"{part}, nats per {subject.unit}: {verdict}. {said}"
    return Check(NAME, TITLE, status, words, numbers, (), (_panel(subject, measured, twin),))


def _estimate(
    subject: Subject, states: Array, region: tuple[float, float] | None = None
) -> LargestExponent | None:
    """By diverging neighbours; the phase of a drive is part of the state, so neighbours share it."""
    points, dt = thinned(subject, states)
    level = np.sqrt(np.sum(noise_levels(points) ** 2))
    if subject.forced:
        angle = 2 * np.pi * dt / subject.base * np.arange(points.shape[1])
        points = np.concatenate([points, _PHASE * np.cos(angle)[None], _PHASE * np.sin(angle)[None]])
    try:
        found = largest_exponent(points, dt, region=region, noise=float(level / np.sqrt(len(points))))
    except ShakedownError:
        return None
    return found if np.isfinite(found.value) and np.isfinite(found.stderr) else None


def _judged(record: LargestExponent, twin: LargestExponent, base: float) -> tuple[Status, str]:
    gap, size = abs(twin.value - record.value), max(abs(record.value), _FLAT / base)
    noise = 2 * float(np.hypot(record.stderr, twin.stderr))
    if gap <= max(_NEAR * size, noise):
        return "passed", "they agree"
    if gap <= _FAR * size or record.message:
        return "doubtful", "they hardly agree"
    return "failed", "they do NOT agree"


def _panel(subject: Subject, record: LargestExponent, twin: LargestExponent) -> Panel:
    traces = (
        Trace("measured", record.times, record.curve, "measured"),
        Trace("model", twin.times, twin.curve, "model"),
    )
    return Panel("Neighbours part", f"time [{subject.unit}]", "mean ln distance [–]", traces)
