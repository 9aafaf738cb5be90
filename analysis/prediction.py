"""A model's prediction beside the measurement: restarted again and again, and left to run by itself.

A chaotic motion cannot be followed for long by any model. So the model is started from the measured state at
regular intervals and followed for a stretch; how the error grows from the restart on, and after what time it
has reached half of the motion's own spread, says how good the model is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.errors import DataError
from analysis.measurement import measurements, start_states
from analysis.model import Model
from analysis.progress import SILENT, Progress
from analysis.record import Record
from analysis.simulation import simulate

Array = NDArray[np.float64]
LOST = 0.5  # of the motion's spread: the prediction says nothing more


@dataclass(frozen=True, eq=False)
class Prediction:
    """Outputs as measured and as the model has them; rows follow ``names``."""

    names: tuple[str, ...]
    times: Array  # [N], s
    measured: Array  # [q, N]
    restarted: Array  # [q, N], from the measured state at each of ``starts``
    starts: NDArray[np.int64]
    free: Array  # [q, N], from the first sample on
    spread: Array  # [q] standard deviation of the measured signals
    since: Array  # [K], s after a restart
    growth: Array  # [q, K] rms error, as a fraction of the spread
    horizon: float  # s until the error reaches half of the spread; inf if it does not within a stretch

    @property
    def error(self) -> Array:
        """[q] rms error of the restarted prediction over all samples, as a fraction of the spread."""
        with np.errstate(invalid="ignore"):
            return np.asarray(
                np.sqrt(np.nanmean((self.restarted - self.measured) ** 2, axis=1)) / self.spread
            )


def predict(
    model: Model,
    record: Record,
    values: Mapping[str, float],
    stretch: float,
    progress: Progress = SILENT,
) -> Prediction:
    """Follow the record with the model, restarted every ``stretch`` seconds (eight samples at least)."""
    (data,) = measurements(model, [record])
    known = model.values({name: v for name, v in values.items() if name in model.parameters})
    path = start_states(model, data, known)
    shown = np.flatnonzero(data.measured)
    length = max(8, round(stretch * record.rate))
    starts = np.arange(0, len(record) - 1, length)
    if len(starts) == 0:
        raise DataError("The record is too short to compare a model with it.")
    inputs = data.inputs if data.inputs.count else None
    restarted = np.full((len(shown), len(record)), np.nan)
    for number, start in enumerate(starts):
        progress.report(0.1 + 0.6 * number / len(starts), "Following the record")
        stop = min(int(start) + length, len(record))
        run = simulate(model, data.times[start:stop], path[:, start], known, inputs, rtol=1e-7, atol=1e-10)
        restarted[:, start:stop] = run.outputs[shown, : stop - start]
    progress.report(0.75, "Running freely")
    run = simulate(model, data.times, path[:, 0], known, inputs, rtol=1e-7, atol=1e-10)
    measured = data.outputs[shown]
    spread = np.maximum(np.nanstd(measured, axis=1), 1e-300)
    since, growth, horizon = _growth(measured, restarted, spread, length, record.dt)
    names = tuple(model.outputs[i] for i in shown)
    return Prediction(
        names, data.times, measured, restarted, starts, run.outputs[shown], spread, since, growth, horizon
    )


def _growth(
    measured: Array, restarted: Array, spread: Array, length: int, dt: float
) -> tuple[Array, Array, float]:
    """Error by time since the restart, and when it reaches half of the spread."""
    whole = measured.shape[1] // length
    if whole == 0:
        whole, length = 1, measured.shape[1]
    cut = slice(0, whole * length)
    squares = ((restarted[:, cut] - measured[:, cut]) / spread[:, None]) ** 2
    with np.errstate(invalid="ignore"):
        growth = np.sqrt(np.nanmean(squares.reshape(len(spread), whole, length), axis=1))
    worst = np.nanmax(growth, axis=0)
    beyond = np.flatnonzero(worst > LOST)
    since = np.arange(float(length)) * dt
    return since, growth, float(since[beyond[0]]) if len(beyond) else float("inf")
