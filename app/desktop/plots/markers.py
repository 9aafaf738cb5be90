"""Moments that somebody marked while recording, as dashed lines through the rows of a plot."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PyQt6.QtCore import Qt

from app.desktop.theme import Theme

DRAWN = 100  # at most
Place = tuple[float, str]  # where on the horizontal axis, and the word


class MarkerLines:
    """A line at each place in every row; the words of neighbours stand in different rows."""

    def __init__(self, theme: Theme, items: list[pg.PlotItem]) -> None:
        self._theme, self._items = theme, items  # the rows of the plot, as it has them at any time
        self.lines: list[list[pg.InfiniteLine]] = []  # for each place one in each row

    def show(self, places: Sequence[Place], worded: int | None = None) -> None:
        """Draw these and no others; ``worded``: how many rows, from the top, have room for words."""
        for lines in self.lines:
            for item, line in zip(self._items, lines, strict=True):
                item.removeItem(line)
        rows = min(worded or len(self._items), len(self._items))
        self.lines = [
            [
                self._line(item, x, text if row == number % rows else "")
                for row, item in enumerate(self._items)
            ]
            for number, (x, text) in enumerate(places[:DRAWN])
        ]
        self.recolour()

    def move(self, xs: Sequence[float]) -> None:
        """The same markers elsewhere: as cheap as it can be, for every frame."""
        for x, lines in zip(xs, self.lines, strict=False):
            for line in lines:
                line.setValue(x)

    def forget(self) -> None:
        """The rows are gone, and the lines with them."""
        self.lines = []

    def recolour(self) -> None:
        """Take the colours of the theme."""
        colour, ground = self._theme.colours.text, self._theme.colours.surface
        for line in (line for lines in self.lines for line in lines):
            line.setPen(pg.mkPen(colour, style=Qt.PenStyle.DashLine))
            if hasattr(line, "label"):
                line.label.setColor(colour)
                line.label.fill = pg.mkBrush(ground)
                line.label.update()

    def _line(self, item: pg.PlotItem, x: float, text: str) -> pg.InfiniteLine:
        options = {"position": 1.0, "anchors": [(0.0, 0.0), (1.0, 0.0)]}  # hangs from the upper edge
        line = pg.InfiniteLine(x, 90, label=_worded(text) or None, labelOpts=options)
        if text:
            line.label.setFont(self._theme.font(11))
            line.label.textItem.document().setDocumentMargin(1)  # a low row has room for the word alone
        line.setZValue(10)  # before the curves: a dense signal would hide line and word
        item.addItem(line, ignoreBounds=True)
        return line


def _worded(text: str) -> str:
    """The word at a line, which pyqtgraph takes for a format; of several lines the first."""
    first, _, more = text.strip().partition("\n")
    return f"{first.strip()}{' …' if more else ''}".replace("{", "{{").replace("}", "}}")
