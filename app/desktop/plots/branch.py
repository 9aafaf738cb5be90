"""A branch that is being tracked: points with error bars, the model's branch under them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PyQt6.QtGui import QColor

from app.desktop.plots.plot import Plot
from app.desktop.theme import Theme

Samples = NDArray[np.float64]
BARS = 2.0  # standard errors on either side
FAINT = 90  # of 255: a point whose stability is not known (yet)
LEGEND = "● stable   ○ unstable   ◌ not told   × fold   – model"


class BranchPlot(Plot):
    """Amplitude of the response over force or frequency."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(
            theme, "Branch", "frequency [Hz]", "amplitude [–]",
            "Filled: stable without the loop; open: unstable; pale: not told. Bars: two standard errors.",
        )  # fmt: skip
        self.model = self.curve(colour=1, name="model")
        self.bars = pg.ErrorBarItem(x=np.empty(0), y=np.empty(0), beam=0.0)
        self.item.addItem(self.bars)
        self.dots = pg.ScatterPlotItem(size=9 * theme.scale)
        self.item.addItem(self.dots)
        self.folds = pg.ScatterPlotItem(size=13 * theme.scale, symbol="x")
        self.item.addItem(self.folds)
        self.readout.setText(LEGEND)
        self._points: list[dict[str, Any]] = []
        self._over = "frequency"
        self.recolour()
        self.show_points([], [])

    def begin(self, over: str, force_unit: str, response_unit: str) -> None:
        """Empty, for a branch over ``force`` or ``frequency``."""
        self._over = over
        unit = force_unit if over == "force" else "Hz"
        self.item.setLabel("bottom", f"{over} [{unit or '–'}]")
        self.item.setLabel("left", f"amplitude [{response_unit or '–'}]")
        self.model.setData([], [])
        self.show_points([], [])
        self.readout.setText(LEGEND)

    def show_points(self, points: Sequence[dict[str, Any]], folds: Sequence[dict[str, Any]]) -> None:
        """Points as results tell them, each with ``stable``: True, False, or None where it is not known."""
        self._points = list(points)
        for name in ("left", "bottom"):  # beside nothing numbers would mean nothing
            self.item.getAxis(name).setStyle(showValues=bool(points))
        x, y = self._column(self._over), self._column("amplitude")
        width, height = self._column(f"{self._over}_stderr"), self._column("amplitude_stderr")
        self.bars.setData(x=x, y=y, width=2 * BARS * width, height=2 * BARS * height)
        self._draw_dots(x, y)
        known = [(f["at"], f["amplitude"]) for f in folds if f.get("amplitude") is not None]
        self.folds.setData(x=[f[0] for f in known], y=[f[1] for f in known])

    def show_model(self, parameter: Samples, amplitude: Samples) -> None:
        self.model.setData(np.asarray(parameter, dtype=float), np.asarray(amplitude, dtype=float))

    def _column(self, name: str) -> Samples:
        return np.array([p[name] if p.get(name) is not None else np.nan for p in self._points], dtype=float)

    def _draw_dots(self, x: Samples, y: Samples) -> None:
        colour = QColor(self.theme.colours.data[0])
        pale = QColor(colour)
        pale.setAlpha(FAINT)
        fill = {True: colour, False: QColor(self.theme.colours.surface), None: pale}
        brushes = [pg.mkBrush(fill[p.get("stable")]) for p in self._points]
        self.dots.setData(x=x, y=y, brush=brushes, pen=pg.mkPen(colour))

    def recolour(self) -> None:
        super().recolour()
        if hasattr(self, "_over"):
            c = self.theme.colours
            self.bars.setOpts(pen=pg.mkPen(c.data[0]))
            self.folds.setPen(pg.mkPen(c.data[3], width=2))
            self.folds.setBrush(pg.mkBrush(c.data[3]))
            if self._points:
                self._draw_dots(self._column(self._over), self._column("amplitude"))
