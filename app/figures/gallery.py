"""A gallery of periodic orbits found in a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis import percent
from app.figures.style import COLOURS, SOFT

if TYPE_CHECKING:
    from analysis import PeriodicOrbit

PER_ROW = 4


def draw_gallery(
    figure: Any, points: NDArray[np.float64], orbits: Sequence[PeriodicOrbit], labels: Sequence[str]
) -> None:
    """Small multiples: each orbit over the motion that it was found in, in the first two coordinates."""
    rows = -(-len(orbits) // PER_ROW)
    axes = figure.subplots(rows, PER_ROW, sharex=True, sharey=True, squeeze=False)
    ground = points[:2, :: max(points.shape[1] // 4000, 1)]
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        for spine in axis.spines.values():
            spine.set_visible(False)
    for axis, orbit in zip(axes.flat, orbits, strict=False):
        axis.plot(*ground, ",", color="#c9d2da", rasterized=True)
        axis.plot(*points[:2, orbit.segment], lw=1.2, color=COLOURS[0])
        name = f"period {orbit.multiple}" if orbit.multiple else f"{orbit.period:.1f} samples"
        axis.set_title(name, fontsize=8.5)
        axis.text(
            0.5, -0.02, f"closes to {percent(orbit.closure)}, seen {orbit.count}×",
            transform=axis.transAxes, ha="center", va="top", fontsize=7, color=SOFT,
        )  # fmt: skip
    figure.supxlabel(labels[0], fontsize=8)
    figure.supylabel(labels[1], fontsize=8)
