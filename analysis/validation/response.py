"""The model's response beside the measured one: restarted again and again, and left to run by itself.

A chaotic motion cannot be followed for long by any model. So the model is started from the measured state at
regular intervals and followed for a stretch; how the error grows from the restart on, and after what time it
has reached half of the motion's own spread, says how good the model is: a right one follows for a Lyapunov
time or more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.progress import SILENT, Progress
from analysis.base.words import rounded
from analysis.simulation.simulate import simulate
from analysis.validation.check import Check, Panel, Status, Trace, graded, impossible
from analysis.validation.subject import Subject

Array = NDArray[np.float64]

NAME, TITLE = "response", "Response"
LOST = 0.5  # of the motion's spread: the prediction says nothing more
_LYAPUNOV_TIMES = 4.0  # of a stretch
_PERIODS = 8.0  # of a stretch, where the motion is not chaotic
_RESTARTS = 120
_SHOWN = 3  # stretches drawn
_FOLLOWED, _HARDLY = 1.0, 0.5  # Lyapunov times that a right model follows, and that a wrong one may
_DRIFTED = 0.2  # error of the free run of such a motion, of the spread
_CLOSE, _FAR = 0.10, 0.30  # error over a stretch of a motion that is not chaotic, of the spread


@dataclass(frozen=True, eq=False)
class Prediction:
    """Outputs as measured and as the model has them; rows follow ``names``."""

    names: tuple[str, ...]
    times: Array  # [N], from the first sample
    measured: Array  # [q, N]
    restarted: Array  # [q, N], from the measured state at each of ``starts``; nan after the last stretch
    starts: NDArray[np.int64]
    free: Array  # [q, N], from the first sample on
    spread: Array  # [q] standard deviation of the measured signals
    since: Array  # [K], time after a restart
    growth: Array  # [q, K] rms error, as a fraction of the spread
    horizon: float  # time until the error reaches half of the spread; inf if it does not within a stretch

    @property
    def error(self) -> Array:
        """[q] rms error of the restarted prediction over all its samples, as a fraction of the spread."""
        with np.errstate(invalid="ignore"):
            return np.asarray(
                np.sqrt(np.nanmean((self.restarted - self.measured) ** 2, axis=1)) / self.spread
            )


def predict_response(subject: Subject, stretch: float, progress: Progress = SILENT) -> Prediction:
    """Follow the record with the model, restarted every ``stretch`` (eight samples at least)."""
    model, data, N = subject.model, subject.data, len(subject.record)
    shown = subject.shown
    length = max(8, round(stretch / subject.dt))
    starts = np.arange(0, N - 1, length)[:_RESTARTS]
    if len(starts) == 0 or N < 16:
        raise DataError("The record is too short to compare a model with it.")
    restarted = np.full((len(shown), N), np.nan)
    times, inputs = subject.times, subject.inputs
    for number, start in enumerate(starts):
        progress.report(0.8 * number / len(starts), "following the record")
        stop = min(int(start) + length, N)
        run = simulate(model, times[start:stop], subject.states[:, start], None, inputs, rtol=1e-7)
        restarted[:, start:stop] = run.outputs[shown, : stop - start]
    progress.report(0.8, "running freely")
    run = simulate(model, times, subject.states[:, 0], None, inputs, rtol=1e-7)
    measured, spread = data.outputs[shown], subject.spread
    since, growth, horizon = _growth(measured, restarted, spread, length, subject.dt, len(starts))
    names = tuple(model.outputs[i] for i in shown)
    free = run.outputs[shown]
    since_first = data.times - subject.origin  # as the record has them, wherever the drive is at its start
    return Prediction(names, since_first, measured, restarted, starts, free, spread, since, growth, horizon)


def _growth(
    measured: Array, restarted: Array, spread: Array, length: int, dt: float, restarts: int
) -> tuple[Array, Array, float]:
    """Error by time since the restart, and when it reaches half of the spread."""
    whole = min(measured.shape[1] // length, restarts)
    if whole == 0:
        whole, length = 1, measured.shape[1]
    cut = slice(0, whole * length)
    squares = ((restarted[:, cut] - measured[:, cut]) / spread[:, None]) ** 2
    squares = np.where(np.isfinite(restarted[:, cut]), squares, 1e6)  # a motion that ran away
    squares = np.where(np.isfinite(measured[:, cut]), squares, np.nan)
    with np.errstate(invalid="ignore"):
        growth = np.sqrt(np.nanmean(squares.reshape(len(spread), whole, length), axis=1))
    worst = np.nanmax(growth, axis=0)
    beyond = np.flatnonzero(worst > LOST)
    since = np.arange(float(length)) * dt
    return since, growth, float(since[beyond[0]]) if len(beyond) else float("inf")


def _parting(subject: Subject, found: Prediction) -> float:
    """Time in which runs of the model part by half of the spread that begin as far apart as it is from the
    record at a restart; inf if they do not within a stretch."""
    apart = float(np.nanmax(found.growth[:, 0])) * np.std(subject.states, axis=1)
    length, N = len(found.since), len(subject.record)
    beside = np.full_like(found.restarted, np.nan)
    for number, start in enumerate(found.starts):
        stop = min(int(start) + length, N)
        side = np.where((np.arange(len(apart)) + number) % 2, 1.0, -1.0)  # each state to either side in turn
        first = subject.states[:, start] + side * apart
        run = simulate(subject.model, subject.times[start:stop], first, None, subject.inputs, rtol=1e-7)
        beside[:, start:stop] = run.outputs[subject.shown, : stop - start]
    return _growth(beside, found.restarted, found.spread, length, subject.dt, len(found.starts))[2]


def check_response(subject: Subject, exponent: float, progress: Progress) -> Check:
    """How long, or how closely, the model follows; ``exponent`` is its largest, nats per unit of time."""
    if subject.hidden:
        return impossible(
            NAME,
            TITLE,
            f"Nothing shows {', '.join(subject.hidden)}, so the model cannot be started from the record.",
        )
    chaotic = bool(exponent * subject.base > 1e-3)
    longest = 0.2 * subject.record.duration
    wanted = max(_LYAPUNOV_TIMES / exponent, 2 * subject.base) if chaotic else _PERIODS * subject.base
    found = predict_response(subject, min(wanted, longest), progress)
    error = float(np.nanmax(found.error))
    numbers = {"horizon": found.horizon, "stretch": float(found.since[-1]), "error_of_spread": error}
    with np.errstate(invalid="ignore", over="ignore"):
        free = np.sqrt(np.nanmean((found.free - found.measured) ** 2, axis=1)) / found.spread
    unit = subject.unit
    if chaotic:
        numbers["lyapunov_times"] = times = found.horizon * exponent
        status: Status = "passed" if times >= _FOLLOWED else "doubtful" if times >= _HARDLY else "failed"
        if np.isinf(found.horizon):
            words = f"The model follows the record over every stretch of {found.since[-1]:.3g} {unit}"
            words += f" ({found.since[-1] * exponent:.2g} Lyapunov times)."
        else:
            words = (
                f"The model follows the record for {found.horizon:.3g} {unit} ({times:.2g} Lyapunov times) "
                "before the two part."
            )
    else:
        numbers["free_error_of_spread"] = float(np.nanmax(free)) if np.isfinite(free).all() else float("nan")
        status = graded(error, _CLOSE, _FAR)
        if status == "passed" and numbers["free_error_of_spread"] > _DRIFTED:
            status = "doubtful"
        words = (
            f"Restarted every {found.since[-1]:.3g} {unit}, the model misses the record by "
            f"{rounded(100 * error, 2)} % of its spread."
        )
        if np.isfinite(numbers["free_error_of_spread"]):
            whole = 100 * numbers["free_error_of_spread"]
            words += f" Left to run from the first sample it misses by {rounded(whole, 2)} %."
        if status == "failed" and subject.fading and found.horizon >= _parting(subject, found):
            status = "doubtful"  # chaos that was stopped, for one: it has no exponent to go by
            words += " Runs of the model that begin as far apart part as soon: a right one may do no better."
    return Check(NAME, TITLE, status, words, numbers, (), _panels(subject, found))


def _panels(subject: Subject, found: Prediction) -> tuple[Panel, ...]:
    unit, length = subject.unit, len(found.since)
    part = slice(0, min(_SHOWN * length, len(found.times)))
    broken = found.restarted.copy()
    broken[:, found.starts] = np.nan  # the line breaks where the model is restarted
    t = found.times[part]
    panels = []
    moving = [i for i, name in enumerate(found.names) if name not in subject.model.equations.driven]
    for i in moving[:2]:
        name = found.names[i]
        room = 3 * np.ptp(found.measured[i][np.isfinite(found.measured[i])])
        model = np.where(
            np.abs(broken[i, part] - np.nanmean(found.measured[i])) < room, broken[i, part], np.nan
        )
        panels.append(
            Panel(
                name,
                f"time [{unit}]",
                subject.label(name),
                (
                    Trace("measured", t, found.measured[i, part], "measured"),
                    Trace("model", t, model, "model"),
                ),
                markers=subject.record.marked(t),
            )
        )
    error = 100 * np.minimum(np.nanmax(found.growth, axis=0), 10.0)
    ends = np.array([0.0, found.since[-1]])
    panels.append(
        Panel(
            "Error after a restart",
            f"time since restart [{unit}]",
            "error [% of spread]",
            (
                Trace("model", found.since, np.maximum(error, 1e-4), "model"),
                Trace("above this the model tells nothing more", ends, np.full(2, 100 * LOST), "limit"),
            ),
            log_y=True,
        )
    )
    return tuple(panels)
