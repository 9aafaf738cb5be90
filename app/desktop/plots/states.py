"""A state of the model along the record, with the band in which it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray

from app.desktop.plots.plot import Plot, axis_text
from app.desktop.theme import Theme

WITHIN = 1.96  # standard errors, 95 %


class StatePlot(Plot):
    """The state as a line, its 95 % band behind it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(
            theme, "State", "time [s]", "", "A state of the model, also one that no sensor shows"
        )
        self._low, self._high = self.curve(colour=6, name="95 % from"), self.curve(colour=6, name="95 % to")
        self._band = pg.FillBetweenItem(self._low, self._high, brush=self._pale())
        self.item.addItem(self._band)
        self._state = self.curve(colour=1, name="state")

    def _pale(self) -> Any:
        colour = pg.mkColor(self.theme.colours.data[6])
        colour.setAlpha(110)
        return pg.mkBrush(colour)

    def recolour(self) -> None:
        super().recolour()
        if hasattr(self, "_band"):
            self._band.setBrush(self._pale())

    def clear(self) -> None:
        for curve in (self._low, self._high, self._state):
            curve.setData([], [])
        self.markers.show([])

    def show_state(
        self, rate: float, name: str, unit: str, values: NDArray[np.float64], stderr: NDArray[np.float64]
    ) -> None:
        """``rate`` in Hz; values and standard errors in the state's unit."""
        times = np.arange(len(values)) / rate
        self._low.setData(times, values - WITHIN * stderr)
        self._high.setData(times, values + WITHIN * stderr)
        self._state.setData(times, values)
        self.item.setLabel("left", axis_text(name, unit))
        self.item.enableAutoRange()
