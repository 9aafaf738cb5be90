"""Two cursors on a plot, snapped to its data: difference, ratio and frequency between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyqtgraph as pg

from app.desktop.words import with_minus

if TYPE_CHECKING:
    from app.desktop.plots.plot import Plot

PLACES = (1 / 3, 2 / 3)  # of the view, where they appear


class Cursors:
    """Vertical lines that are dragged; they stand on samples of the first curve of the first row."""

    def __init__(self, plot: Plot) -> None:
        self.plot = plot
        self.item = plot.items[0]
        (low, high), _ = self.item.getViewBox().viewRange()
        self.lines = []
        for place, name in zip(PLACES, "AB", strict=True):
            line = pg.InfiniteLine(
                low + place * (high - low), 90, movable=True, label=name,
                pen=pg.mkPen(plot.theme.colours.accent, width=2),
                labelOpts={"position": 0.95, "color": plot.theme.colours.accent},
            )  # fmt: skip
            line.sigPositionChanged.connect(self.read)
            line.sigPositionChangeFinished.connect(lambda line: self._snap(line))
            self.item.addItem(line, ignoreBounds=True)
            self.lines.append(line)
        for line in self.lines:
            self._snap(line)

    def remove(self) -> None:
        for line in self.lines:
            self.item.removeItem(line)
        self.plot.readout.setText("")

    def data(self) -> tuple[Any, Any] | None:
        """The curve that the cursors stand on, as it is drawn."""
        for drawn in self.item.items:
            if isinstance(drawn, pg.PlotCurveItem | pg.ScatterPlotItem):
                x, y = drawn.getData()
                if x is not None and len(x) > 1:
                    return np.asarray(x), np.asarray(y)
        return None

    def _snap(self, line: pg.InfiniteLine) -> None:
        found = self.data()
        if found is not None:
            x = found[0]
            line.setValue(float(x[int(np.nanargmin(np.abs(x - line.value())))]))
        self.read()

    def read(self) -> None:
        """Words for both cursors, in the head of the card."""
        found = self.data()
        if found is None:
            return
        at = [int(np.nanargmin(np.abs(found[0] - line.value()))) for line in self.lines]
        x = [self._value("bottom", found[0][i]) for i in at]
        y = [self._value("left", found[1][i]) for i in at]
        self.plot.readout.setText(with_minus(difference((x[0], x[1]), (y[0], y[1]), self._units())))
        self.plot.readout.setToolTip(self.plot.readout.text())

    def _value(self, side: str, value: float) -> float:
        return float(10.0**value if self.item.getAxis(side).logMode else value)

    def _units(self) -> tuple[str, str]:
        labels = (
            self.plot.items[-1].getAxis("bottom").labelText,
            self.item.getAxis("left").labelText,
        )
        across, upwards = (text.partition(" [")[2].rstrip("]").strip("–") for text in labels)
        return across, upwards


def difference(x: tuple[float, float], y: tuple[float, float], units: tuple[str, str]) -> str:
    """From A to B, in words: of times also the frequency."""
    dx, dy = x[1] - x[0], y[1] - y[0]
    across, upwards = units
    parts = [f"B − A: {dx:.4g} {across}".rstrip()]
    if across in ("s", "ms") and dx:
        parts[0] += f" ({1 / abs(dx * (1e-3 if across == 'ms' else 1.0)):.4g} Hz)"
    parts.append(f"{dy:.4g} {upwards}".rstrip())
    if y[0]:
        parts.append(f"ratio {y[1] / y[0]:.4g}")
    return ", ".join(parts)
