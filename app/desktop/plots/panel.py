"""A panel of a check as a plot of the window: the same traces that the report draws."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyqtgraph as pg
from PyQt6.QtCore import Qt

from app.desktop.plots.plot import Plot
from app.desktop.theme import Theme
from app.desktop.widgets.basics import label

if TYPE_CHECKING:
    from analysis import Panel, Trace

WIDE = 20_000  # points: wide lines of more take too long to draw
COLOURS = {"measured": 6, "model": 1, "limit": 4}  # of the theme's data colours


class PanelPlot(Plot):
    """Measured in grey, model in orange, limits dashed."""

    def __init__(self, theme: Theme, panel: Panel) -> None:
        super().__init__(theme, panel.title, panel.x_label, panel.y_label)
        self.panel = panel
        item = self.item
        item.getAxis("bottom").setLogMode(panel.log_x)
        item.getAxis("left").setLogMode(panel.log_y)
        for trace in panel.traces:
            self._draw(trace)
        self.markers.show(panel.markers)
        self.caption = label("", "small", wrap=True)
        self.caption.setVisible(bool(self._limits()))
        self.box.addWidget(self.caption)
        self._tell_limits()
        if panel.x_range is not None and panel.y_range is not None:
            item.setRange(xRange=panel.x_range, yRange=panel.y_range, padding=0)

    def _draw(self, trace: Trace) -> None:
        x = np.log10(trace.x) if self.panel.log_x else trace.x
        y = np.log10(trace.y) if self.panel.log_y else trace.y
        colour = COLOURS[trace.role]
        if trace.points:
            size = 5.0 if len(x) < 100 else 2.5 if len(x) < 3000 else 1.2
            self.points(self.item, colour, size, trace.label).setData(x, y)
            return
        curve = self.curve(self.item, colour, trace.label)
        curve.setData(x, y)
        if trace.role == "limit":
            curve.pen_of = partial(self.pen, style=Qt.PenStyle.DashLine)
        elif trace.role == "measured" and len(x) < WIDE:
            curve.pen_of = self._pale
            curve.setZValue(-1)  # the model lies on it as a thin line
        curve.setPen(curve.pen_of(colour))

    def _limits(self) -> list[str]:
        """What the dashed lines mean."""
        return [trace.label for trace in self.panel.traces if trace.role == "limit" and trace.label]

    def _tell_limits(self) -> None:
        colour = self.theme.colours.data[COLOURS["limit"]]
        told = [f'<span style="color:{colour}">╌╌</span> {words}' for words in self._limits()]
        self.caption.setText("&nbsp;&nbsp; ".join(told))

    def recolour(self) -> None:
        super().recolour()
        if hasattr(self, "caption"):  # not while the card is being built
            self._tell_limits()

    def link(self, other: PanelPlot) -> None:
        """Zoom and move along with another panel that shows the same stretch."""
        mine, theirs = self.panel, other.panel
        if (mine.x_label, mine.log_x, mine.x_range) != (theirs.x_label, theirs.log_x, theirs.x_range):
            return
        if not np.allclose(_extent(mine), _extent(theirs), rtol=0.01, equal_nan=False):
            return
        self.item.setXLink(other.item)

    def _pale(self, index: int) -> Any:
        colour = pg.mkColor(self.theme.colours.data[index])
        colour.setAlpha(110)
        return pg.mkPen(colour, width=4)


def _extent(panel: Panel) -> tuple[float, float]:
    """Least and greatest x of all traces; not a number where there are none."""
    ends = [f(t.x) for f in (np.nanmin, np.nanmax) for t in panel.traces if len(t.x)]
    return (float(min(ends)), float(max(ends))) if ends else (np.nan, np.nan)


def legend(theme: Theme) -> str:
    """What the colours of every panel mean."""
    data = theme.colours.data
    return "&nbsp;&nbsp;&nbsp;".join(
        f'<span style="color:{data[COLOURS[role]]}">━</span> {role}' for role in ("measured", "model")
    )
