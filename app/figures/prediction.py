"""Model beside measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from app.figures.style import MEASURED, MODEL, SOFT

if TYPE_CHECKING:
    from analysis.prediction import Prediction
    from analysis.record import Record
    from app.desktop.tasks import Comparison

PERIODS = 40.0


def draw_prediction(figure: Any, found: Prediction, record: Record) -> None:
    """The first output followed by the restarted model, and how the error grows after a restart."""
    left, right = figure.subplots(1, 2, width_ratios=[2, 1])
    drive = record.excitation
    span = PERIODS / drive.frequency if drive is not None and drive.frequency > 0 else found.times[-1] / 10
    count = int(np.searchsorted(found.times, found.times[0] + span))
    left.plot(
        found.times[:count], found.measured[0, :count], color=MEASURED, lw=1.6, label="measured", alpha=0.75
    )
    left.plot(found.times[:count], found.restarted[0, :count], color=MODEL, lw=0.9, label="model, restarted")
    for start in found.starts[found.starts < count]:
        left.axvline(found.times[start], color=SOFT, lw=0.4, ls=":")
    left.set(xlabel="time [s]", ylabel=found.names[0])
    left.legend(loc="upper right", ncols=2)
    left.set_title("Following the record")
    for name, row in zip(found.names, found.growth, strict=True):
        right.semilogy(found.since, 100 * np.maximum(row, 1e-6), label=name)
    right.axhline(50, color=SOFT, lw=0.7, ls="--")
    right.set(xlabel="time since restart [s]", ylabel="rms error [% of spread]")
    right.legend(loc="lower right")
    right.set_title("Growth of the error")


def draw_sections(figure: Any, found: Comparison) -> None:
    """Stroboscopic sections of record and model, the same points of phase."""
    names = found.prediction.names
    if len(names) > 1 and np.ptp(found.measured_section[1]) > 0.05 * found.prediction.spread[1]:
        pairs = [
            (found.measured_section[:2], (names[0], names[1])),
            (found.model_section[:2], (names[0], names[1])),
        ]
    else:  # one output shows the motion: each strobed value against the one before
        labels = (f"{names[0]}, one period", f"{names[0]}, the next")
        pairs = [
            (np.stack([s[0, :-1], s[0, 1:]]), labels) for s in (found.measured_section, found.model_section)
        ]
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for axis, (points, labels), colour, title in zip(
        axes, pairs, (MEASURED, MODEL), ("measured", "model, running freely"), strict=True
    ):
        axis.plot(*points, ".", ms=2, color=colour, rasterized=points.shape[1] > 3000)
        axis.set(xlabel=labels[0], ylabel=labels[1])
        axis.set_title(title)
