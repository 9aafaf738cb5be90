"""The model's long-term motion over a range of a parameter, recordings at other settings laid over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ShakedownError
from analysis.base.progress import Progress
from analysis.base.record import Record
from analysis.dynamics.bifurcation import APERIODIC, bifurcation, bifurcation_of_section, classify
from analysis.model import Model
from analysis.signal.strobe import sample_at
from analysis.simulation.sets import Ensemble
from analysis.validation.check import Check, Panel, Status, Trace, impossible
from analysis.validation.drive import SCALE, scaled
from analysis.validation.section import energy_distance
from analysis.validation.subject import Subject, prepare_subject

Array = NDArray[np.float64]

NAME, TITLE = "bifurcation", "Bifurcation diagram"
_VALUES, _TRANSIENT, _KEEP, _STEPS = 240, 200, 60, 100
_CHANCE, _FAR = 2.5, 5.0  # distance of the points over that of chance
_CLOSE = 0.15  # distance, in spreads, below which the points are the same to the eye
_MOST = 400  # points of a recording that are compared
_FOLLOWED = 50  # periods for which the model goes on from each of a recording's points
_REPEATS = 0.05  # of the points' size: a difference one or several periods later that counts as none


@dataclass(frozen=True)
class Sweep:
    """Which parameter, and from where to where; without a name the drive, from half to one and a half."""

    parameter: str = SCALE
    lower: float = float("nan")
    upper: float = float("nan")


def check_bifurcation(subject: Subject, sweep: Sweep, others: Sequence[Record], progress: Progress) -> Check:
    """Diagram of the model; each recording's points must lie where the model has its own."""
    if subject.driven is None:
        return impossible(NAME, TITLE, subject.reason)
    model: Model | None = subject.driven
    if sweep.parameter == SCALE and SCALE not in subject.driven.parameters:
        model = scaled(subject.driven) if subject.forced else None
    if model is None:
        return impossible(NAME, TITLE, "Choose a parameter to draw the diagram over.")
    model.index(sweep.parameter)
    centre = float(model.values()[model.index(sweep.parameter)])
    lower = sweep.lower if np.isfinite(sweep.lower) else 0.5 * centre
    upper = sweep.upper if np.isfinite(sweep.upper) else 1.5 * centre
    settings = [(centre, _points(subject))]
    settings += [_placed(subject, sweep.parameter, centre, record) for record in others]
    measured = [(value, states[0]) for value, states in settings]
    grid = np.unique(np.concatenate([np.linspace(lower, upper, _VALUES), [v for v, _ in measured]]))
    try:
        points = _model_points(subject, model, sweep.parameter, grid, progress)
    except ShakedownError as error:
        return impossible(NAME, TITLE, str(error))
    ratios = [_ratio(p, points[:, int(np.searchsorted(grid, v))]) for v, p in measured]
    unsettled = []
    for i, (value, states) in enumerate(settings):
        if subject.forced and ratios[i] > _CHANCE and _is_aperiodic(states):
            period = _period_at(subject, model, sweep.parameter, value)
            onward = _followed(model, sweep.parameter, value, states, period)
            ratios[i] = min(ratios[i], _ratio(states[0, _FOLLOWED:], onward))
            unsettled += [f"{value:.3g}"] if ratios[i] <= _CHANCE else []
    panel = _panel(subject, sweep.parameter, grid, points, measured)
    if not others:
        words = (
            "One recording tests one setting of the diagram; give recordings at other settings to test more."
        )
        return Check(NAME, TITLE, "not possible", words, {"settings": 1.0}, (), (panel,))
    worst = float(np.max(ratios))
    status: Status = "passed" if worst <= _CHANCE else "doubtful" if worst <= _FAR else "failed"
    at = [f"{v:.3g}" for (v, _), r in zip(measured, ratios, strict=True) if r > _CHANCE]
    words = f"Recordings at {len(measured)} settings lie " + (
        "where the model has its points."
        if not at
        else f"elsewhere than the model's points at {', '.join(at)}."
    )
    if unsettled:
        words += (
            f" At {', '.join(unsettled)} the model agrees for a time only: it goes on from the recording's "
            "points as the recording does, and then settles elsewhere."
        )
    rows = [{"value": v, "distance_over_chance": r} for (v, _), r in zip(measured, ratios, strict=True)]
    return Check(
        NAME, TITLE, status, words, {"settings": float(len(measured)), "worst": worst}, rows, (panel,)
    )


def _points(subject: Subject) -> Array:
    """States [n, M] of a record, strobed when the model's time is a whole number of periods."""
    period = subject.base / subject.dt
    first = (-subject.origin / subject.dt) % period
    positions = np.arange(first, subject.states.shape[1] - 3, period)
    if not subject.forced:
        return subject.states[:, :: max(1, round(period))]
    return sample_at(subject.states, positions[positions >= 2])


def _placed(subject: Subject, parameter: str, centre: float, record: Record) -> tuple[float, Array]:
    """Value of the parameter for a recording, and its points."""
    here, there = subject.record.excitation, record.excitation
    if here is None or there is None:
        raise DataError("Recordings at other settings need their drive's frequency and amplitude.")
    moved = abs(there.frequency / here.frequency - 1) > 1e-6
    if _frequency_factor(centre, subject.base) is not None and parameter != SCALE:
        value = centre * there.frequency / here.frequency
    elif here.amplitude and there.amplitude is not None and not moved:
        value = centre * there.amplitude / here.amplitude
    else:
        raise DataError(f"The recordings' drives do not tell which value of {parameter} each belongs to.")
    if here.phase is not None and there.phase is not None:
        shift = (there.phase - here.phase) / (2 * np.pi * there.frequency)
        record = replace(record, drive_time=subject.origin + shift)
    other = prepare_subject(subject.model, record, {}, there.frequency)
    return value, _points(other)


def _is_aperiodic(states: Array) -> bool:
    """Whether a recording's points never repeat, as in chaos."""
    recent = states[:1, -2 * _KEEP :, None]
    return bool(classify(recent, tolerance=_REPEATS)[0] == APERIODIC)


def _followed(model: Model, parameter: str, value: float, states: Array, period: float) -> Array:
    """First state of the model some periods on from each of a recording's points.

    Chaos may be a transient of random length before a periodic motion. A single run of the model then tells
    nothing of a recording that has not settled; where the model carries the recording's points to does.
    """
    starts = states[:, -_MOST - _FOLLOWED : -_FOLLOWED]
    if starts.shape[1] == 0:
        return np.empty(0)
    ensemble = Ensemble.prepare(model, starts, {parameter: value})
    for k in range(_FOLLOWED):
        ensemble.times = np.full(starts.shape[1], k * period)
        ensemble.advance(period, _STEPS)
    return ensemble.states[0]


def _period_at(subject: Subject, model: Model, parameter: str, value: float) -> float:
    """Period of the drive where the parameter has that value."""
    factor = _frequency_factor(float(model.values()[model.index(parameter)]), subject.base)
    return factor / value if factor is not None and parameter != SCALE else subject.base


def _frequency_factor(centre: float, base: float) -> float | None:
    """Period times parameter, if the parameter is the drive's frequency (or angular frequency)."""
    for factor in (1.0, 2 * np.pi):
        if abs(centre * base / factor - 1) < 1e-6:
            return factor
    return None


def _model_points(subject: Subject, model: Model, parameter: str, grid: Array, progress: Progress) -> Array:
    """Points [keep, S] of the first state."""
    start = subject.states[:, 0]
    if not subject.forced:
        name = model.states[0]
        level = float(np.mean(subject.states[0]))
        found = bifurcation_of_section(
            model, parameter, grid[:: max(1, len(grid) // 80)], name, level, keep=40,
            transient=50 * subject.base, longest=200 * subject.base, initial=start, progress=progress,
        )  # fmt: skip
        return np.asarray(found.points[-1])
    factor = _frequency_factor(float(model.values()[model.index(parameter)]), subject.base)
    periods = factor / grid if factor is not None and parameter != SCALE else subject.base
    found = bifurcation(
        model, parameter, grid, periods, _TRANSIENT, _KEEP, steps=_STEPS, initial=start, progress=progress
    )
    return np.asarray(found.points[0])


def _ratio(measured: Array, own: Array) -> float:
    """Distance of two sets of points over that of chance; below one where they are the same to the eye."""
    own = own[np.isfinite(own)]
    if len(own) < 4 or len(measured) < 4:
        return float("inf")
    measured = measured[-_MOST:]
    half = len(measured) // 2
    scale = float(np.std(measured)) or 1.0
    distance = energy_distance(measured[None] / scale, own[None] / scale)
    chance = energy_distance(measured[None, :half] / scale, measured[None, half:] / scale)
    if distance <= _CLOSE:
        return min(1.0, distance / _CLOSE)
    return distance / max(chance, 1e-12)


def _panel(
    subject: Subject, parameter: str, grid: Array, points: Array, measured: list[tuple[float, Array]]
) -> Panel:
    x = np.repeat(grid[None, :], len(points), axis=0).ravel()
    y = points.ravel()
    spans = [float(np.ptp(p)) or 1.0 for _, p in measured]
    low = min(float(p.min()) for _, p in measured) - 2 * max(spans)
    high = max(float(p.max()) for _, p in measured) + 2 * max(spans)
    good = np.isfinite(y) & (y > low) & (y < high)
    seen = [(np.full(min(len(p), 200), v), p[-200:]) for v, p in measured]
    unit = subject.model.unit(parameter) if parameter in subject.model.parameters else ""
    words = "drive [× as recorded]" if parameter == SCALE else f"{parameter} [{unit or '–'}]"
    return Panel(
        "Once a period" if subject.forced else "On a section",
        words,
        subject.label(subject.model.states[0]),
        (
            Trace("model", x[good], y[good], "model", points=True),
            Trace(
                "measured", np.concatenate([a for a, _ in seen]), np.concatenate([b for _, b in seen]),
                "measured", points=True,
            ),
        ),
    )  # fmt: skip
