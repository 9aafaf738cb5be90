"""The profile likelihood of a parameter: how much worse the best fit gets when it is held elsewhere."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph as pg
from PyQt6.QtCore import Qt

from app.desktop.plots.plot import Plot, axis_text
from app.desktop.theme import Theme

if TYPE_CHECKING:
    from analysis import Estimate

LEVEL = 3.84  # rise of chi-square at the ends of the 95 % interval
TOP = 2.0  # of the level: how far the axis reaches
EMPTY = "Choose a parameter and press Trace."


class ProfilePlot(Plot):
    """Rise of chi-square over the parameter, the 95 % level, and the parabola of the standard error."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(
            theme,
            "Profile",
            "",
            "rise of χ² [–]",
            "How much worse the fit gets with the parameter held there",
        )
        self._parabola = self.curve(colour=7, name="standard error")
        self._parabola.pen_of = lambda index: self.pen(index, style=Qt.PenStyle.DashLine)
        self._parabola.setPen(self._parabola.pen_of(7))
        self._curve = self.curve(colour=0, name="profile")
        self._dots = self.points(colour=0, size=6, name="profile")
        self._level = pg.InfiniteLine(
            LEVEL, 0, label="95 %", labelOpts={"position": 0.5, "anchors": [(0.5, 1.0), (0.5, 1.0)]}
        )
        self._ends = [pg.InfiniteLine(0.0, 90) for _ in range(2)]
        self.item.addItem(self._level, ignoreBounds=True)
        for line in self._ends:
            self.item.addItem(line, ignoreBounds=True)
            line.hide()
        self.recolour()
        self._points: list[tuple[float, float]] = []

    def recolour(self) -> None:
        super().recolour()
        if hasattr(self, "_ends"):
            pen = pg.mkPen(self.theme.colours.data[1])
            self._level.setPen(pen)
            self._level.label.setColor(self.theme.colours.data[1])
            for line in self._ends:
                line.setPen(pg.mkPen(self.theme.colours.data[1], style=Qt.PenStyle.DotLine))

    def begin(self, name: str, estimate: Estimate) -> None:
        """An empty curve of a parameter; its points come by :meth:`take`."""
        self._points = [(estimate.value, 0.0)]
        self.item.setLabel("bottom", axis_text(name, estimate.unit))
        for line in self._ends:
            line.hide()
        self._draw(estimate)

    def take(self, value: float, rise: float, estimate: Estimate) -> None:
        """One more point."""
        self._points.append((value, rise))
        self._draw(estimate)

    def show_profile(self, x: list[float], y: list[float], estimate: Estimate, name: str) -> None:
        """The whole curve, with the ends of its interval."""
        self.begin(name, estimate)
        self._points = list(zip(x, y, strict=True))
        self._draw(estimate)
        for line, end in zip(self._ends, (estimate.lower, estimate.upper), strict=True):
            if math.isfinite(end):
                line.setValue(end)
            line.setVisible(math.isfinite(end))

    def _draw(self, estimate: Estimate) -> None:
        x, y = np.array(sorted(self._points)).T
        self._curve.setData(x, y)
        self._dots.setData(x, y)
        across = np.linspace(x[0], x[-1], 200)
        told = len(x) > 1 and math.isfinite(estimate.stderr) and estimate.stderr > 0
        height = ((across - estimate.value) / estimate.stderr) ** 2 if told else np.full(200, np.nan)
        self._parabola.setData(across, np.where(height <= TOP * LEVEL, height, np.nan))
        self.item.setYRange(
            min(0.0, float(y.min())), TOP * LEVEL if len(x) > 1 else 1.5 * LEVEL, padding=0.03
        )
        if len(x) > 1:
            self.item.setXRange(float(x[0]), float(x[-1]), padding=0.06)

    def fit(self) -> None:
        """All of the curve, with the level."""
        self.item.enableAutoRange()
