"""A held orbit over the drive's phase: its average on the model's orbit, and below what lies between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QColor
from PyQt6.QtWidgets import QComboBox

from app.desktop.plots.plot import Plot, axis_text
from app.desktop.theme import Theme

Samples = NDArray[np.float64]
BAND = 2.0  # standard errors drawn on either side
SHADE = 70  # of 255, of the band's colour


class HeldOrbitPlot(Plot):
    """One channel of one held orbit."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(
            theme, "Held orbit", "", "",
            "Above: the averaged orbit (line) and the model's own (dashes). Below: their difference, with "
            "two standard errors of the average on either side.",
        )  # fmt: skip
        self.channel = QComboBox()
        self.channel.setToolTip("The channel that is drawn")
        self.channel.setAccessibleName("Channel of the held orbit")
        self.channel.currentIndexChanged.connect(lambda _: self._draw())
        self.head.insertWidget(1, self.channel)
        self.item.hideAxis("bottom")
        self.model = self.curve(colour=1, name="model")
        self.model.pen_of = lambda index: self.pen(index, style=Qt.PenStyle.DashLine)
        self.mean = self.curve(colour=0, name="held")
        self.below = self.add_row("drive periods [–]", "")
        self.low, self.high = self.curve(self.below, 0, "low"), self.curve(self.below, 0, "high")
        self.band = pg.FillBetweenItem(self.low, self.high)
        self.below.addItem(self.band)
        self.difference = self.curve(self.below, 0, "held − model")
        self.zero = pg.InfiniteLine(0.0, angle=0)
        self.below.addItem(self.zero, ignoreBounds=True)
        self._orbit: dict[str, Any] = {}
        self._beside: dict[str, Samples] = {}
        self._units: dict[str, str] = {}
        self.recolour()

    def recolour(self) -> None:
        super().recolour()
        if hasattr(self, "zero"):
            c = self.theme.colours
            self.zero.setPen(pg.mkPen(c.muted, style=Qt.PenStyle.DashLine))
            shade = QColor(c.data[0])
            shade.setAlpha(SHADE)
            self.band.setBrush(shade)
            for edge in (self.low, self.high):
                edge.setPen(None)

    def show_orbit(
        self, told: dict[str, Any] | None, beside: dict[str, Samples], units: dict[str, str]
    ) -> None:
        """An orbit as the result tells it, and the channels of the model's one at its phases; None: empty."""
        self._orbit, self._beside, self._units = told or {}, beside, units
        names = list(self._orbit.get("orbit", {}))
        self.channel.blockSignals(True)
        before = self.channel.currentText()
        self.channel.clear()
        self.channel.addItems(names)
        self.channel.setCurrentText(before if before in names else next(iter(names), ""))
        self.channel.setVisible(len(names) > 1)
        self.channel.blockSignals(False)
        self._draw()
        self.fit()

    def _draw(self) -> None:
        name = self.channel.currentText()
        lines = (self.mean, self.model, self.difference, self.low, self.high)
        if not name:
            for line in lines:
                line.setData([], [])
            return
        row = self._orbit["orbit"][name]
        mean, error = np.array(row["mean"], dtype=float), np.array(row["stderr"], dtype=float)
        turns = np.array(self._orbit["phase"]) / (2 * np.pi)
        off = mean - self._beside[name]
        for line, values in zip(
            lines, (mean, self._beside[name], off, off - BAND * error, off + BAND * error), strict=True
        ):
            line.setData(turns, values)
        unit = self._units.get(name, "")
        self.item.setLabel("left", axis_text(name, unit))
        self.below.setLabel("left", axis_text("held − model", unit))
