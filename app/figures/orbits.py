"""Extracted periodic orbits and the recurrences they were found by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis import percent
from app.figures.saving import new_figure, save

if TYPE_CHECKING:
    from analysis import Orbits

_MOST = 10


def save_orbits(
    found: Orbits,
    points: NDArray[np.float64],
    labels: list[str],
    dt: float,
    period: float | None,
    path: str,
) -> None:
    """Draw the recurrence histogram, the record, and the closest orbit of each period."""
    chosen = _closest(found)
    rows = (len(chosen) + 2 + 3) // 4
    figure, axes = new_figure(rows, 4)
    panels = list(axes.ravel())
    _recurrences(panels[0], found, dt, period)
    second = min(1, len(points) - 1)
    panels[1].plot(points[0, :20_000], points[second, :20_000], lw=0.15, color="0.4")
    panels[1].set(title="record", xlabel=labels[0], ylabel=labels[second])
    for axis, orbit in zip(panels[2:], chosen, strict=False):
        segment = points[:, orbit.segment]
        axis.plot(segment[0], segment[second], lw=1.0)
        name = f"period {orbit.multiple}" if orbit.multiple else f"period {orbit.period * dt:.4g} s"
        axis.set(title=f"{name}, closure {percent(orbit.closure)}", xlabel=labels[0], ylabel=labels[second])
    for axis in panels[2 + len(chosen) :]:
        axis.set_visible(False)
    save(figure, path)


def _closest(found: Orbits) -> list[Any]:
    """The closest orbit of each period, at most ten of them."""
    best: dict[object, Any] = {}
    for orbit in found:
        key = orbit.multiple or round(orbit.period)
        if key not in best or orbit.closure < best[key].closure:
            best[key] = orbit
    return list(best.values())[:_MOST]


def _recurrences(axis: Any, found: Orbits, dt: float, period: float | None) -> None:
    if period is not None:
        axis.bar(found.lags / period, found.recurrences)
        axis.set(title="close returns", xlabel="lag [drive periods]", ylabel="returns")
    else:
        axis.plot(found.lags * dt, found.recurrences, lw=0.8)
        axis.set(title="close returns", xlabel="lag [s]", ylabel="points")
