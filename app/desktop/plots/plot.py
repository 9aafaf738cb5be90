"""The plot every page uses: titled, with units, zoom, crosshair with read-out, and export."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QFont, QFontMetrics, QKeyEvent, QPainter, QPixmap, QResizeEvent
from PyQt6.QtWidgets import QApplication, QGraphicsItem, QGraphicsView, QMenu

from app.desktop.plots.cursors import Cursors
from app.desktop.plots.markers import MarkerLines
from app.desktop.plots.samples import MOST_ROWS, rows_shown, shown
from app.desktop.plots.saving import (
    ask_where,
    copy_table,
    draw_svg,
    plot_menu,
    save_picture,
    saved,
    write_table,
)
from app.desktop.theme import Theme
from app.desktop.widgets.basics import Card, IconButton, Readout, timer
from app.numbers import localised
from app.words import counted

Samples = NDArray[np.float64]
ROOMY = 240  # width of a card that has room for all its buttons
POWER, RAISED = re.compile(r"e([-+]\d+)$"), str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
NUMBERS, LONG_NUMBERS = 62, 78  # width of a vertical axis
SMALLEST = 0.7  # of the size of an axis's name
GAP = 0.5  # between two numbers side by side, of their height


def axis_text(name: str, unit: str = "") -> str:
    """Name and unit of an axis; what has no unit says so."""
    return f"{name} [{unit or '–'}]"


class Axis(pg.AxisItem):
    """An axis that shows its numbers as they are: its label is made once and not with every change."""

    labelText: str
    whole = False  # its values are counts
    crowded: Callable[[], object] | None = None  # hears that numbers and label have no room side by side
    _written = ""  # the label as it was last laid out by its room

    def updateAutoSIPrefix(self) -> None:
        return

    def labelString(self) -> str:
        """The label, without its unit or shortened where it would lie over that of the next row."""
        whole = self.labelText
        if self.orientation == "left" and self.label is not None and self.size().height() > 0:
            metrics = QFontMetrics(self.label.font())
            room = int(self.size().height())
            self.labelText = metrics.elidedText(whole, Qt.TextElideMode.ElideMiddle, room)
            if self.labelText != whole:  # on a low axis without its unit, and small rather than cut
                name = whole.partition(" [")[0]
                metrics = self._smaller(name, room, metrics)
                self.labelText = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, room)
        try:
            return str(super().labelString())
        finally:
            self.labelText = whole
            self.labelStyle.pop("font-size", None)

    def _smaller(self, name: str, room: int, metrics: QFontMetrics) -> QFontMetrics:
        """Have a name written smaller where it needs it, as far as it stays legible."""
        assert self.label is not None
        font = QFont(self.label.font())
        least = round(SMALLEST * font.pixelSize())
        for size in range(font.pixelSize() - 1, least - 1, -1):
            if metrics.horizontalAdvance(name) <= room:
                break
            font.setPixelSize(size)
            metrics = QFontMetrics(font)
            self.labelStyle["font-size"] = f"{size}px"
        return metrics

    def setLabel(self, *args: Any, **kwargs: Any) -> None:
        """A label that comes later stands in the middle too: pyqtgraph places it only at a new size."""
        super().setLabel(*args, **kwargs)
        self.resizeEvent()

    def resizeEvent(self, ev: Any = None) -> None:
        if self.label is not None and self.labelText and self.orientation == "left":
            text = self.labelString()
            if text != self._written:  # only then: it is laid out anew
                self._written = text
                self.label.setHtml(text)
        super().resizeEvent(ev)

    def tickSpacing(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, float]]:
        """Numbers have room for their height or width: a low or narrow axis has fewer of them."""
        levels: list[tuple[float, float]] = super().tickSpacing(minVal, maxVal, size)
        if self.whole:
            levels = [level for level in levels if level[0] >= 1] or [(1.0, 0.0)]
        font = self.style["tickFont"]
        if self.logMode or font is None or not levels or size <= 0 or not maxVal > minVal:
            return levels
        metrics, per_pixel = QFontMetrics(font), (maxVal - minVal) / size
        if self._apart(levels[0][0], minVal, maxVal, metrics) * per_pixel <= levels[0][0]:
            return _nested(levels)
        decade = 10.0 ** np.floor(np.log10(levels[0][0]))
        wider = (n * decade * 10.0**k for k in range(4) for n in (1, 2, 5))
        fits = (
            step for step in wider
            if step > levels[0][0] and self._apart(step, minVal, maxVal, metrics) * per_pixel <= step
        )  # fmt: skip
        return _nested([(next(fits, 10 * (maxVal - minVal)), 0.0), *levels])

    def _apart(self, step: float, low: float, high: float, metrics: QFontMetrics) -> float:
        """Least distance of two numbers of the axis that are ``step`` apart, pixels."""
        if self.orientation == "left":
            return metrics.height()
        ends = [step * np.floor(end / step) for end in (low, high)]
        return max(map(metrics.horizontalAdvance, self.tickStrings(ends, 1.0, step))) + GAP * metrics.height()

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Numbers with the true minus sign and powers of ten, as everywhere else in the window."""
        written = super().tickStrings(values, scale, spacing)
        told = [localised(POWER.sub(_as_power, text).replace("-", "−")) for text in written]
        if self.crowded is not None and self._is_crowded(told):
            self.crowded()
        return told

    def _is_crowded(self, numbers: Sequence[str]) -> bool:
        font = self.style["tickFont"]
        if font is None or self.label is None or not self.label.isVisible():
            return False
        metrics = QFontMetrics(font)
        offset = self.style["tickTextOffset"][0] - self.style["tickLength"]
        widest = max(map(metrics.horizontalAdvance, numbers), default=0)
        return bool(widest + offset + metrics.height() > self.width())

    def logTickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """10 and 100 in full, longer ones as powers of ten; between two decades 2 and 5, which have room."""
        powers = super().logTickStrings(values, scale, spacing)
        told = [
            localised(f"{10**v:g}") if -4 <= v < 4 else text for v, text in zip(values, powers, strict=True)
        ]
        return [
            text if round(10 ** (v % 1), 6) in (1, 2, 5, 10) else ""
            for v, text in zip(values, told, strict=True)
        ]


def _nested(levels: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without steps that do not divide the coarsest: numbers at 200, 400 and 500 lie on each other."""
    coarsest = levels[0][0]
    return [level for level in levels if abs(coarsest / level[0] - round(coarsest / level[0])) < 1e-6]


def _as_power(exponent: re.Match[str]) -> str:
    return "×10" + str(int(exponent[1])).translate(RAISED)


def empty_plot() -> pg.PlotItem:
    """A plot for one row. They are half of what a page costs: some are made before they are needed."""
    axes = {side: Axis(side) for side in ("left", "bottom")}
    return pg.PlotItem(axisItems=axes, enableMenu=False)


class Plot(Card):
    """A card with a plot. ``self.item`` is the pyqtgraph PlotItem; add rows for plots that share x."""

    def __init__(self, theme: Theme, title: str, x: str = "", y: str = "", help_text: str = "") -> None:
        super().__init__(theme, title, help_text)
        self.theme, self.title = theme, title
        self.box.setContentsMargins(theme.px(10), theme.px(6), theme.px(8), theme.px(6))
        self.box.setSpacing(theme.px(2))
        self.setMinimumSize(theme.px(168), theme.px(140))
        self.readout = Readout("small")
        self.readout.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.head.setSpacing(theme.px(1))
        self.head.insertWidget(1, self.readout, 1)
        self.head.setStretch(2, 0)
        self.cross = self._tool("crosshair", "Crosshair: read values under the pointer (C)", checkable=True)
        self.fit_button = self._tool("fit", "Show everything again (F or double click)")
        self.export_button = self._tool("export", "Save this plot as picture or table (E)")
        self.cross.toggled.connect(self._crosshair)
        self.fit_button.clicked.connect(self.fit)
        self.export_button.clicked.connect(self._export_menu)
        self.view = pg.GraphicsLayoutWidget()
        self.view.setViewportUpdateMode(QGraphicsView.ViewportUpdateMode.FullViewportUpdate)
        self.view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.view.ci.layout.setContentsMargins(0, 0, theme.px(4), theme.px(5))
        self.view.ci.layout.setSpacing(0)
        self.box.addWidget(self.view, 1)
        self.items: list[pg.PlotItem] = []
        self._numbers = NUMBERS
        self._crowding = timer(self, 0, self._widen, single=True)  # not while an axis is drawn
        self.markers = MarkerLines(theme, self.items)
        self.cursors: Cursors | None = None
        self.item = self.add_row(x, y)
        self._lines: list[tuple[pg.InfiniteLine, pg.InfiniteLine]] = []
        self.view.scene().sigMouseMoved.connect(self._moved)
        self.view.scene().sigMouseClicked.connect(self._clicked)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # after a click, too, the keys are the plot's
        theme.changed.connect(self.recolour)
        self.recolour()

    # -- building

    def add_row(self, x: str = "", y: str = "") -> pg.PlotItem:
        """One more plot below, sharing the horizontal axis of the first."""
        stock = self.theme.plots_ahead
        item = stock.pop() if stock else empty_plot()
        self.view.addItem(item, row=len(self.items), col=0)
        item.getAxis("left").crowded = self._crowded
        item.hideButtons()
        item.setLabel("bottom", x)
        item.setLabel("left", y)
        for name in ("left", "bottom"):
            axis = item.getAxis(name)
            axis.enableAutoSIPrefix(False)
            axis.setStyle(tickFont=self.theme.font(11), tickTextOffset=self.theme.px(4), tickLength=-4)
            axis.label.setFont(self.theme.font(11))
        item.getAxis("left").setWidth(self.theme.px(self._numbers))
        item.getAxis("bottom").setHeight(self.theme.px(38))
        item.showGrid(x=True, y=True, alpha=0.25)
        item.getViewBox().setDefaultPadding(0.03)
        if self.items:
            item.setXLink(self.items[0])
        self.items.append(item)
        self._cache_axes(True)
        self._colour_item(item)
        return item

    def _cache_axes(self, on: bool) -> None:
        """Text and grid as a ready picture: drawing them anew costs four fifths of a live frame."""
        mode = QGraphicsItem.CacheMode.DeviceCoordinateCache if on else QGraphicsItem.CacheMode.NoCache
        for item in self.items:
            for name in ("left", "bottom"):
                axis = item.getAxis(name)
                axis.setCacheMode(mode)
                axis.label.setCacheMode(mode)

    def _crowded(self) -> None:
        if self._numbers == NUMBERS:
            self._numbers = LONG_NUMBERS
            self._crowding.start()

    def _widen(self) -> None:
        """Long numbers get more room, in all rows alike: their curves stand one below the other."""
        width = self.theme.px(self._numbers)
        for axis in (item.getAxis("left") for item in self.items):
            axis.setWidth(max(width, axis.width()))

    def clear_rows(self) -> None:
        """Remove every plot; add rows anew."""
        self._crosshair(False)
        self.cursors = None  # they go with their plot
        self.view.clear()
        self.items.clear()
        self._numbers = NUMBERS
        self.markers.forget()

    def count_whole(self) -> None:
        """The rows' values are counts: no half numbers beside the axes."""
        for item in self.items:
            item.getAxis("left").whole = True

    def pen(self, index: int = 0, width: float = 1.0, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> Any:
        """Pen of the n-th curve; width 1 draws many times faster than any other."""
        colours = self.theme.colours.data
        return pg.mkPen(colours[index % len(colours)], width=width, style=style)

    def curve(self, item: pg.PlotItem | None = None, colour: int = 0, name: str = "", **style: Any) -> Any:
        """An empty line in the n-th colour that follows the theme."""
        target = item if item is not None else self.item
        drawn = pg.PlotCurveItem(pen=self.pen(colour), name=name or None, connect="finite", **style)
        drawn.colour_index = colour
        drawn.pen_of = self.pen  # makes its pen in the colours of the theme
        drawn.caption = name
        target.addItem(drawn)
        return drawn

    def points(
        self, item: pg.PlotItem | None = None, colour: int = 0, size: float = 3.0, name: str = ""
    ) -> Any:
        """Empty dots in the n-th colour that follow the theme."""
        target = item if item is not None else self.item
        drawn = pg.ScatterPlotItem(
            size=size * self.theme.scale,
            pen=None,
            brush=self.theme.colours.data[colour % 8],
            name=name or None,
        )
        drawn.colour_index = colour
        drawn.caption = name
        target.addItem(drawn)
        return drawn

    # -- looks

    def recolour(self) -> None:
        """Take the colours of the theme."""
        self.view.setBackground(self.theme.colours.surface)
        for item in self.items:
            self._colour_item(item)
        self.markers.recolour()
        if self.cursors is not None:
            self.cursors.recolour()
        for line in (line for pair in self._lines for line in pair):
            line.setPen(pg.mkPen(self.theme.colours.accent))

    def _colour_item(self, item: pg.PlotItem) -> None:
        c = self.theme.colours
        for name in ("left", "bottom"):
            axis = item.getAxis(name)
            axis.setPen(pg.mkPen(c.border))
            axis.setTextPen(c.muted)
        for drawn in item.items:
            index = getattr(drawn, "colour_index", None)
            if index is None:
                continue
            colour = c.data[index % len(c.data)]
            if isinstance(drawn, pg.ScatterPlotItem):
                drawn.setBrush(colour)
            else:
                drawn.setPen(drawn.pen_of(index))

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        """In a narrow card, or one whose title would be cut, the keys F and E, and a double click, do what
        the last two buttons do."""
        super().resizeEvent(event)
        tools = (self.cross, self.fit_button, self.export_button)
        hidden = sum(tool.sizeHint().width() + self.head.spacing() for tool in tools if tool.isHidden())
        margins = self.box.contentsMargins()
        room = self.width() - margins.left() - margins.right()
        roomy = self.width() >= self.theme.px(ROOMY) and self.head.minimumSize().width() + hidden <= room
        for tool in (self.fit_button, self.export_button):
            tool.setVisible(roomy)
        if roomy or self.cross.isVisible():
            crowded = self.head.minimumSize().width() > self.width() - self.theme.px(26)
            self.cross.setVisible(roomy or not crowded)

    def _tool(self, picture: str, tip: str, checkable: bool = False) -> IconButton:
        tool = IconButton(self.theme, picture, tip, checkable)
        self.head.addWidget(tool)
        return tool

    # -- reading

    def fit(self) -> None:
        """Show everything."""
        for item in self.items:
            item.enableAutoRange()

    def _crosshair(self, on: bool) -> None:
        for item, pair in zip(self.items, self._lines, strict=False):
            for line in pair:
                item.removeItem(line)
        self._lines = []
        self.readout.setText("")
        if on:
            pen = pg.mkPen(self.theme.colours.accent)
            for item in self.items:
                pair = pg.InfiniteLine(angle=90, pen=pen), pg.InfiniteLine(angle=0, pen=pen)
                for line in pair:
                    line.hide()
                    item.addItem(line, ignoreBounds=True)
                self._lines.append(pair)

    def _moved(self, at: QPointF) -> None:
        if not self._lines:
            return
        for item, (_, horizontal) in zip(self.items, self._lines, strict=False):
            inside = item.sceneBoundingRect().contains(at)
            horizontal.setVisible(inside)
            if not inside:
                continue
            point = item.getViewBox().mapSceneToView(at)
            horizontal.setPos(point.y())
            for vertical, _ in self._lines:
                vertical.show()
                vertical.setPos(point.x())
            self.readout.setText(self.read(item, point.x(), point.y()))

    def read(self, item: pg.PlotItem, x: float, y: float) -> str:
        """Words for the point under the pointer, with units."""
        x_log, y_log = item.getAxis("bottom").logMode, item.getAxis("left").logMode
        x, y = (10**x if x_log else x), (10**y if y_log else y)
        below, beside = self.items[-1].getAxis("bottom").labelText, item.getAxis("left").labelText
        return f"{_worded(below or 'x', x)}   {_worded(beside or 'y', y)}"

    def _clicked(self, event: Any) -> None:
        if event.double():
            self.fit()
        elif event.button() == Qt.MouseButton.RightButton:
            self.menu().popup(event.screenPos().toPoint())

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        key, keys = event.key(), Qt.Key
        box = self.items[0].getViewBox() if self.items else None
        if key == keys.Key_C:
            self.cross.toggle()
        elif key == keys.Key_F:
            self.fit()
        elif key == keys.Key_E:
            self._export_menu()
        elif key == keys.Key_X:
            self.toggle_cursors()
        elif box is not None and key in (keys.Key_Plus, keys.Key_Equal, keys.Key_Minus):
            box.scaleBy(y=1.0, x=1.25 if key == keys.Key_Minus else 0.8)
        elif box is not None and key in (keys.Key_Left, keys.Key_Right):
            (low, high), _ = box.viewRange()
            box.translateBy(x=(0.1 if key == keys.Key_Right else -0.1) * (high - low))
        else:
            super().keyPressEvent(event)

    # -- saving

    def menu(self) -> QMenu:
        """What can be done with the plot: also by a click with the right button."""
        return plot_menu(
            self,
            self._ask_and_export,
            {
                "Copy the picture": self.copy_picture,
                "Copy the values": self.copy_values,
                "Two cursors (X)": self.toggle_cursors,
            },
        )

    def toggle_cursors(self) -> None:
        """Two cursors that stand on the data, or none."""
        if self.cursors is not None:
            self.cursors.remove()
            self.cursors = None
        elif self.items:
            self.cross.setChecked(False)
            self.cursors = Cursors(self)

    def _export_menu(self) -> None:
        self.menu().popup(self.export_button.mapToGlobal(self.export_button.rect().bottomLeft()))

    def copy_picture(self) -> None:
        """The plot to the clipboard, at twice its size on screen."""
        board = QApplication.clipboard()
        assert board is not None
        self._cache_axes(False)
        board.setPixmap(_picture(self.view, 2))
        self._cache_axes(True)

    def copy_values(self) -> None:
        """What is drawn to the clipboard, as spreadsheets take it."""
        problem = self.too_long()
        if problem:
            self._say(problem)
            return
        copy_table(self.table())

    def _say(self, words: str) -> None:
        self.readout.setText(words)
        self.readout.setToolTip(words)

    def _ask_and_export(self, kind: str) -> None:
        problem = self.too_long() if kind == "csv" else ""
        if problem:
            self._say(problem)
            return
        path = ask_where(self, self.title, kind)
        if path is not None:
            self._say(saved(self.export, path))

    def export(self, path: Path) -> None:
        """Write the plot as its file name asks: .png, .svg or .csv."""
        kind = path.suffix.lower()
        if kind == ".csv":
            write_table(path, self.table())
            return
        self._cache_axes(False)  # sharp text at any size
        try:
            if kind == ".svg":
                draw_svg(path, self.title, self.view.size(), self._paint)
            else:
                save_picture(path, _picture(self.view, 2))
        finally:
            self._cache_axes(True)

    def _paint(self, painter: QPainter) -> None:
        size = self.view.size()
        painter.fillRect(QRectF(0, 0, size.width(), size.height()), self.view.backgroundBrush())
        self.view.render(painter)

    def _edges(self) -> tuple[float, float]:
        """What is seen of the horizontal axis."""
        (left, right), _ = self.items[0].getViewBox().viewRange() if self.items else ((0.0, 0.0), None)
        return left, right

    def too_long(self) -> str:
        """Why the values in view are no table for a spreadsheet; nothing if they are."""
        left, right = self._edges()
        curves = (c for item in self.items for c in item.items if isinstance(c, pg.PlotCurveItem))
        rows = max((rows_shown(curve, left, right) for curve in curves), default=0)
        if rows <= MOST_ROWS:
            return ""
        return f"{counted(rows, 'sample')} are in view, a table takes a million: zoom in first."

    def table(self) -> Iterator[Sequence[object]]:
        """Rows of the CSV file: a header with units, then the values; of an envelope the samples in view."""
        columns: list[tuple[str, Samples]] = []
        left, right = self._edges()
        for item in self.items:
            x_name = self.items[-1].getAxis("bottom").labelText or "x"
            y_name = item.getAxis("left").labelText or "y"
            for drawn in item.items:
                if not isinstance(drawn, pg.PlotCurveItem | pg.ScatterPlotItem):
                    continue
                x, y = shown(drawn, left, right)
                if len(x) == 0:
                    continue
                caption = getattr(drawn, "caption", "")
                values = [_unlogged(item.getAxis(side), data) for side, data in (("bottom", x), ("left", y))]
                columns += [(x_name, values[0]), (_heading(caption, y_name), values[1])]
        yield [name for name, _ in columns]
        for row in range(max((len(v) for _, v in columns), default=0)):
            yield [f"{v[row]:.9g}" if row < len(v) else "" for _, v in columns]


def _heading(caption: str, axis: str) -> str:
    """Head of a column: the line's own name before that of its axis, unless it is the same or has a unit."""
    return (
        caption
        if "[" in caption
        else axis
        if axis.partition(" [")[0] == caption
        else f"{caption} {axis}".strip()
    )


def _unlogged(axis: pg.AxisItem, values: Samples) -> Samples:
    """The values that an axis names; on a logarithmic one their decadic logarithms are drawn."""
    return np.asarray(10.0 ** np.asarray(values) if axis.logMode else values)


def _worded(axis: str, value: float) -> str:
    """A value with the name and unit of its axis: ``time = 1.25 s``."""
    name, _, unit = axis.partition(" [")
    return f"{name} = {value:.4g} {unit.rstrip(']')}".rstrip()


def _picture(view: pg.GraphicsView, ratio: int) -> QPixmap:
    """The plot at ``ratio`` times its size on screen."""
    canvas = QPixmap(view.size() * ratio)
    canvas.fill(view.backgroundBrush().color())
    painter = QPainter(canvas)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    view.render(painter)
    painter.end()
    return canvas
