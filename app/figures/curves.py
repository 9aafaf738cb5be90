"""Figures of a reproduced table: curves, or points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.reproduce import Figure

MANY = 12  # more curves than this need no legend


def draw_curves(target: Any, figures: Sequence[Figure]) -> None:
    """Figures side by side."""
    axes = target.subplots(1, max(len(figures), 2), squeeze=False)[0]
    for axis in axes[len(figures) :]:
        axis.set_axis_off()
    for axis, figure in zip(axes, figures, strict=False):
        for number, (name, (x, y)) in enumerate(figure.curves.items()):
            style = "." if figure.points else "-" if number % 2 == 0 else "--"
            axis.plot(x, y, style, ms=1.5, lw=1.0, label=name)
        if figure.log_x:
            axis.set_xscale("log")
        if figure.log_y:
            axis.set_yscale("log")
        axis.set(xlabel=figure.x_label, ylabel=figure.y_label)
        axis.set_title(figure.title)
        if 1 < len(figure.curves) <= MANY:
            axis.legend()
