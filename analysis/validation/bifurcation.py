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
_CHANCE, _FAR = 1.5, 3.0  # distance of the points over that of chance
_CLOSE = 0.15  # distance, in spreads of the motion, below which the points are the same to the eye
_MOST = 400  # points of a recording that are compared
_PARTS = 4  # of a recording, each held against the others: so far apart points of the same motion lie
_SOON, _LATE = 20, 50  # periods for which the model goes on from each of a recording's points
_REPEATS = 0.05  # of the points' size: a difference one or several periods later that counts as none


@dataclass(frozen=True)
class Sweep:
    """Which parameter, and from where to where; without a name the drive, from half to one and a half."""

    parameter: str = SCALE
    lower: float = float("nan")
    upper: float = float("nan")


@dataclass(frozen=True, eq=False)
class Setting:
    """A recording's place in the diagram: the parameter's value, its points [n, M] and its spread."""

    value: float
    states: Array
    spread: float  # standard deviation of the first state over the whole motion

    @property
    def settled(self) -> Array:
        """The points [n, M] that are compared: the last ones, where these repeat, or else all up to a number.

        Chaos may be a transient of random length before a periodic motion: of a recording that holds both,
        only the end is determined.
        """
        end = self.states[:, -2 * _KEEP :]
        return end if self.repeats else self.states[:, -_MOST:]

    @property
    def repeats(self) -> bool:
        """Whether the last points repeat, so that the motion is periodic there."""
        end = self.states[:1, -2 * _KEEP :, None]
        return bool(classify(end, tolerance=_REPEATS)[0] != APERIODIC)


def check_bifurcation(subject: Subject, sweep: Sweep, others: Sequence[Record], progress: Progress) -> Check:
    """Diagram of the model; each recording's points must lie where the model has its own.

    The diagram that is drawn is one run of the model for each value. Where motions coexist, or chaos lasts
    for a time only, a rounding error decides where such a run ends. So what is compared is where the model
    carries the recording's own points to.
    """
    if subject.driven is None:
        return impossible(NAME, TITLE, subject.reason)
    model: Model | None = subject.driven
    if sweep.parameter == SCALE and SCALE not in subject.driven.parameters:
        model = scaled(subject.driven) if subject.forced else None
    if model is None:
        return impossible(NAME, TITLE, "Choose a parameter to draw the diagram over.")
    model.index(sweep.parameter)
    centre = float(model.values()[model.index(sweep.parameter)])
    settings = [_setting(subject, centre)]
    settings += [_placed(subject, sweep.parameter, centre, record) for record in others]
    try:
        panel = _panel(subject, sweep.parameter, settings, *_diagram(subject, model, sweep, centre, progress))
    except ShakedownError as error:
        return impossible(NAME, TITLE, str(error))
    if not others:
        words = (
            "One recording tests one setting of the diagram; give recordings at other settings to test more."
        )
        return Check(NAME, TITLE, "not possible", words, {"settings": 1.0}, (), (panel,))
    compared = [_compared(subject, model, sweep.parameter, setting) for setting in settings]
    ratios = [ratio for ratio, _ in compared]
    worst = float(np.max(ratios))
    status: Status = "passed" if worst <= _CHANCE else "doubtful" if worst <= _FAR else "failed"
    at = [f"{s.value:.3g}" for s, r in zip(settings, ratios, strict=True) if r > _CHANCE]
    words = f"Recordings at {len(settings)} settings lie " + (
        "where the model has its points."
        if not at
        else f"elsewhere than the model's points at {', '.join(at)}."
    )
    unsettled = [f"{s.value:.3g}" for s, (_, leaves) in zip(settings, compared, strict=True) if leaves]
    if unsettled:
        words += (
            f" At {', '.join(unsettled)} the model agrees for a time only: it goes on from the recording's "
            "points as the recording does, and then settles elsewhere."
        )
    rows = [{"value": s.value, "distance_over_chance": r} for s, r in zip(settings, ratios, strict=True)]
    return Check(
        NAME, TITLE, status, words, {"settings": float(len(settings)), "worst": worst}, rows, (panel,)
    )


def _compared(subject: Subject, model: Model, parameter: str, setting: Setting) -> tuple[float, bool]:
    """Distance over that of chance, and whether it is that small for a time only."""
    period = _period_at(subject, model, parameter, setting.value)
    points = setting.settled
    late = _ratio(points[0], _followed(model, parameter, setting, _LATE, period), setting.spread)
    if setting.repeats or late <= _CHANCE:
        return late, False
    soon = _ratio(points[0], _followed(model, parameter, setting, _SOON, period), setting.spread)
    return min(soon, late), soon <= _CHANCE


def _setting(subject: Subject, value: float) -> Setting:
    return Setting(value, _points(subject), float(np.std(subject.states[0])))


def _points(subject: Subject) -> Array:
    """States [n, M] of a record, strobed when the model's time is a whole number of periods."""
    period = subject.base / subject.dt
    first = (-subject.origin / subject.dt) % period
    positions = np.arange(first, subject.states.shape[1] - 3, period)
    if not subject.forced:
        return subject.states[:, :: max(1, round(period))]
    return sample_at(subject.states, positions[positions >= 2])


def _placed(subject: Subject, parameter: str, centre: float, record: Record) -> Setting:
    """A recording at the value of the parameter that its drive tells."""
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
    return _setting(prepare_subject(subject.model, record, {}, there.frequency), value)


def _followed(model: Model, parameter: str, setting: Setting, count: int, period: float) -> Array:
    """First state of the model ``count`` periods on from each of a recording's points."""
    starts = setting.settled
    ensemble = Ensemble.prepare(model, starts, {parameter: setting.value})
    for k in range(count):
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


def _diagram(
    subject: Subject, model: Model, sweep: Sweep, centre: float, progress: Progress
) -> tuple[Array, Array]:
    """Values [S] of the parameter and the model's points [keep, S] of the first state there."""
    lower = sweep.lower if np.isfinite(sweep.lower) else 0.5 * centre
    upper = sweep.upper if np.isfinite(sweep.upper) else 1.5 * centre
    start, parameter = subject.states[:, 0], sweep.parameter
    if not subject.forced:
        grid = np.linspace(lower, upper, _VALUES // 3)
        name, level = model.states[0], float(np.mean(subject.states[0]))
        found = bifurcation_of_section(
            model, parameter, grid, name, level, keep=40,
            transient=50 * subject.base, longest=200 * subject.base, initial=start, progress=progress,
        )  # fmt: skip
        return grid, np.asarray(found.points[-1])
    grid = np.linspace(lower, upper, _VALUES)
    factor = _frequency_factor(centre, subject.base)
    periods = factor / grid if factor is not None and parameter != SCALE else subject.base
    found = bifurcation(
        model, parameter, grid, periods, _TRANSIENT, _KEEP, steps=_STEPS, initial=start, progress=progress
    )
    return grid, np.asarray(found.points[0])


def _ratio(measured: Array, own: Array, spread: float) -> float:
    """Distance of two sets of points over that of chance; below one where they are the same to the eye."""
    own = own[np.isfinite(own)]
    if len(own) < _PARTS or len(measured) < 2 * _PARTS:
        return float("inf")
    scale = spread or 1.0
    distance = energy_distance(measured[None] / scale, own[None] / scale)
    if distance <= _CLOSE:
        return distance / _CLOSE
    return distance / max(_chance(measured / scale), _CLOSE)


def _chance(points: Array) -> float:
    """The largest distance of a part of the points to the others."""
    parts = np.array_split(points, _PARTS)
    others = (np.concatenate(parts[:k] + parts[k + 1 :]) for k in range(_PARTS))
    return max(energy_distance(part[None], other[None]) for part, other in zip(parts, others, strict=True))


def _panel(subject: Subject, parameter: str, settings: list[Setting], grid: Array, points: Array) -> Panel:
    x = np.repeat(grid[None, :], len(points), axis=0).ravel()
    y = points.ravel()
    measured = [(s.value, s.states[0]) for s in settings]
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
