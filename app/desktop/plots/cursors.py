"""Two cursors on a plot, snapped to its data: difference, ratio and frequency between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyqtgraph as pg

from app.desktop.plots.samples import nearest
from app.desktop.widgets.basics import sentence

if TYPE_CHECKING:
    from app.desktop.plots.plot import Plot

BELOW = [(0, 0), (1, 0)]  # the corner of a label that is held: all of it is in the view, however low that is
PLACES = (1 / 3, 2 / 3)  # of the view, where they appear


class Cursors:
    """Vertical lines through all rows; they stand on samples of the row in which one was dragged last.

    Where a line stands for more samples than there are pixels, the samples are read and not the envelope.
    """

    def __init__(self, plot: Plot) -> None:
        self.plot = plot
        self.row = 0  # whose values are told
        (low, high), _ = plot.items[0].getViewBox().viewRange()
        self.lines: list[Any] = []  # of the first row, A and B
        self._rows: list[list[Any]] = []  # [row][A, B]
        for row, item in enumerate(plot.items):
            pair = []
            for which, (place, name) in enumerate(zip(PLACES, "AB", strict=True)):
                line = pg.InfiniteLine(
                    low + place * (high - low), 90, movable=True, label=name if row == 0 else None,
                    labelOpts={"position": 1.0, "anchors": BELOW},
                )  # fmt: skip
                line.setZValue(11)  # before curves and markers: a dense signal would hide the letter
                line.sigDragged.connect(lambda line, row=row, which=which: self._dragged(row, which))
                line.sigPositionChangeFinished.connect(lambda _, which=which: self._snap(which))
                item.addItem(line, ignoreBounds=True)
                pair.append(line)
            self._rows.append(pair)
        self.lines = self._rows[0]
        self.recolour()
        for which in range(2):
            self._snap(which)

    def recolour(self) -> None:
        """Take the colours of the theme."""
        colours = self.plot.theme.colours
        for line in (line for pair in self._rows for line in pair):
            line.setPen(pg.mkPen(colours.accent, width=2))
            if hasattr(line, "label"):
                line.label.setColor(colours.accent)
                line.label.fill = pg.mkBrush(colours.surface)
                line.label.update()

    def remove(self) -> None:
        for item, pair in zip(self.plot.items, self._rows, strict=False):
            for line in pair:
                item.removeItem(line)
        self.plot.readout.setText("")

    def at(self, row: int, which: int) -> tuple[float, float] | None:
        """Place and value, as they are drawn, of the sample that a cursor stands on in a row."""
        for drawn in self.plot.items[row].items:
            if isinstance(drawn, pg.PlotCurveItem | pg.ScatterPlotItem):
                found = nearest(drawn, self.lines[which].value())
                if found is not None:
                    return found
        return None

    def _dragged(self, row: int, which: int) -> None:
        self.row = row
        self._move(which, self._rows[row][which].value())
        self.read()

    def _move(self, which: int, x: float) -> None:
        for pair in self._rows:
            pair[which].setPos(x)

    def _snap(self, which: int) -> None:
        found = self.at(self.row, which)
        if found is not None:
            self._move(which, found[0])
        self.read()

    def read(self) -> None:
        """Words for both cursors, in the head of the card; the other rows follow in its help."""
        words = [self._words(row) for row in range(len(self.plot.items))]
        if not words[self.row]:
            return
        self.plot.readout.setText(words[self.row])
        several = len([text for text in words if text]) > 1
        names = [item.getAxis("left").labelText.partition(" [")[0] for item in self.plot.items]
        told = enumerate(zip(names, words, strict=True))
        lines = [
            f"{name}: {text}; {self._ends(row)}" if several else f"{text}; {self._ends(row)}"
            for row, (name, text) in told
            if text
        ]
        self.plot.readout.setToolTip("\n".join(lines))

    def _ends(self, row: int) -> str:
        """The values that the cursors stand on."""
        item, unit = self.plot.items[row], self._units(row)[1]
        points = [self.at(row, which) for which in range(2)]
        values = [_value(item, "left", point[1]) for point in points if point is not None]
        told = (f"{name} {value:.5g} {unit}".rstrip() for name, value in zip("AB", values, strict=False))
        return sentence(", ".join(told))

    def _words(self, row: int) -> str:
        """From A to B in one row; nothing where it has no data."""
        a, b = self.at(row, 0), self.at(row, 1)
        if a is None or b is None:
            return ""
        item = self.plot.items[row]
        x = [_value(item, "bottom", point[0]) for point in (a, b)]
        y = [_value(item, "left", point[1]) for point in (a, b)]
        if not np.isfinite(y).all():
            return "no sample there"
        return sentence(difference((x[0], x[1]), (y[0], y[1]), self._units(row)))

    def _units(self, row: int) -> tuple[str, str]:
        labels = (
            self.plot.items[-1].getAxis("bottom").labelText,
            self.plot.items[row].getAxis("left").labelText,
        )
        across, upwards = (text.partition(" [")[2].rstrip("]").strip("–") for text in labels)
        return across, upwards


def _value(item: pg.PlotItem, side: str, value: float) -> float:
    return float(10.0**value if item.getAxis(side).logMode else value)


def difference(x: tuple[float, float], y: tuple[float, float], units: tuple[str, str]) -> str:
    """From A to B, in words: of times also the frequency."""
    dx, dy = x[1] - x[0], y[1] - y[0]
    across, upwards = units
    parts = [f"B − A: {dx:.4g} {across}".rstrip()]
    if across in ("s", "ms") and dx:
        parts[0] += f" ({1 / abs(dx * (1e-3 if across == 'ms' else 1.0)):.4g} Hz)"
    parts.append(f"{dy:.4g} {upwards}".rstrip())
    if y[0]:
        parts.append(f"ratio {y[1] / y[0] + 0.0:.4g}")  # no minus before a zero
    return "; ".join(parts)
