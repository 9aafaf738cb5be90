"""The fit as a picture: the measured signal, the model on it, and what is left over below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyqtgraph as pg
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QComboBox

from app.desktop.plots.plot import Plot, axis_text
from app.desktop.theme import Theme
from app.words import plain, with_minus

if TYPE_CHECKING:
    from app.desktop.tasks import FitPicture

LOW = 150  # height of a card that has no room for the residual
NO_LIMIT = 16_777_215  # Qt's own
EMPTY = "Measured and model appear here after a fit."


class FitPlot(Plot):
    """Measured as a wide pale line, the model as a thin one on it; the residual on an axis of its own."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Fit", "", "", "The model, started anew now and then, on the measured signal")
        self.picture: FitPicture | None = None
        self.output = QComboBox()
        self.output.setToolTip("Which measured quantity is drawn")
        self.output.setAccessibleName("Which measured quantity is drawn")
        self.output.currentIndexChanged.connect(lambda _: self._draw())
        self.output.hide()
        self.head.insertWidget(1, self.output)
        self.item.getAxis("bottom").setStyle(showValues=False)
        self.item.getAxis("bottom").setHeight(0)
        self.rest = self.add_row("time [s]", "residual")
        self.rest.getAxis("left").setTickDensity(0.4)
        self.view.ci.layout.setRowStretchFactor(0, 2)
        self.view.ci.layout.setRowStretchFactor(1, 1)
        self._measured, self._model = self.curve(self.item, 6, "measured"), self.curve(self.item, 1, "model")
        self._measured.pen_of = self._pale
        self._measured.setPen(self._pale(6))
        self._rest = self.curve(self.rest, 1, "measured − model")
        self.show_words(EMPTY)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        """In a low card the room is for the signals; the residual is drawn where it can be read."""
        super().resizeEvent(event)
        low = self.height() < self.theme.px(LOW)
        layout, axis = self.view.ci.layout, self.rest.getAxis("left")
        layout.setRowMaximumHeight(1, self.rest.getAxis("bottom").height() + 2 if low else NO_LIMIT)
        self._rest.setVisible(not low)
        axis.setStyle(showValues=not low and self.picture is not None)
        axis.showLabel(not low)

    def _number_axes(self, on: bool) -> None:
        """Numbers beside a picture that is not there would mean nothing."""
        for axis in (self.item.getAxis("left"), self.rest.getAxis("bottom")):
            axis.setStyle(showValues=on)
        self.rest.getAxis("left").setStyle(showValues=on and self.height() >= self.theme.px(LOW))

    def _pale(self, index: int) -> Any:
        colour = pg.mkColor(self.theme.colours.data[index])
        colour.setAlpha(110)
        return pg.mkPen(colour, width=4)

    def show_words(self, words: str) -> None:
        """Nothing is drawn, for this reason."""
        self.picture = None
        self.output.hide()
        for curve in (self._measured, self._model, self._rest):
            curve.setData([], [])
        self.markers.show([])
        self._number_axes(False)
        self.readout.setText(words)
        self.readout.setToolTip(words)

    def show_picture(self, picture: FitPicture) -> None:
        if picture.problem:
            self.show_words(picture.problem)
            return
        self.picture = picture
        self.output.blockSignals(True)
        self.output.clear()
        self.output.addItems(list(picture.names))
        self.output.blockSignals(False)
        self.output.setVisible(len(picture.names) > 1)
        self.markers.show(picture.markers, 1)  # the row below is too low for words
        self._draw()

    def _draw(self) -> None:
        picture, index = self.picture, self.output.currentIndex()
        if picture is None or index < 0:
            return
        measured, model = picture.measured[index], picture.model[index]
        self._measured.setData(picture.times, measured)
        self._model.setData(picture.times, model)
        self._rest.setData(picture.times, measured - model)
        self.item.setLabel("left", axis_text(picture.names[index], picture.units[index]))
        self._number_axes(True)
        size = float(np.nanmax(np.abs(measured - model), initial=0.0))
        self.rest.setYRange(-1.1 * size or -1.0, 1.1 * size or 1.0, padding=0)
        words = f"fit {fit_text(picture.fit[index])}, started anew every {picture.stretch:.3g} s"
        self.readout.setText(words)
        self.readout.setToolTip(f"{words}. 100 %: nothing is left; 0 %: no better than the mean.")
        self.item.enableAutoRange()


def fit_text(fit: float) -> str:
    """Per cent, with as many nines as there are."""
    if not np.isfinite(fit):
        return "not known"
    left = max(100.0 - fit, 1e-4)
    decimals = int(np.clip(1 - np.floor(np.log10(left)), 0, 4))
    return with_minus(f"{fit:.{decimals}f} %" if fit > -1000 else f"{plain(fit)} %")
