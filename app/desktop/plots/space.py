"""A rotatable view of the motion in three dimensions, with the tools of a plot; painted by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PyQt6.QtCore import QPointF, Qt, pyqtSignal
from PyQt6.QtGui import (
    QColor,
    QContextMenuEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QPolygonF,
    QWheelEvent,
)
from PyQt6.QtWidgets import QApplication, QMenu, QWidget

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
from app.desktop.widgets.basics import Card, IconButton, Readout
from app.numbers import localised_delay

Samples = NDArray[np.float64]
MOST = 12_000  # points drawn
SHADES = 8  # from far to near
FAINTEST = 0.22  # of the curve's colour in the farthest shade; the rest is the ground's
FIRST_VIEW = 0.6, 0.5, 1.0  # turn and tilt [rad], zoom
REACH = 12  # px between the pointer and a point that is read


class SpaceView(QWidget):
    """Drag to turn, wheel to come closer, arrow keys turn too."""

    pointed = pyqtSignal(str)  # words for the point under the pointer, while reading

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._values = np.empty((3, 0))
        self._points = np.empty((3, 0))
        self._labels: tuple[str, ...] = ()
        self._turn, self._tilt, self._zoom = FIRST_VIEW
        self._read: int | None = None  # the point that is read
        self._grip: QPointF | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(theme.px(200), theme.px(160))
        self.setToolTip("Drag to turn, wheel or + and − to come closer; arrow keys turn too")
        self.setAccessibleName("Motion in three dimensions")
        theme.changed.connect(self.update)

    def show_points(self, points: Samples, labels: tuple[str, ...]) -> None:
        """Draw the first three coordinates."""
        step = max(1, points.shape[1] // MOST)
        kept = points[:3, ::step]
        kept = kept[:, np.isfinite(kept).all(axis=0)]
        self._values, self._read = kept, None
        low, high = kept.min(axis=1, keepdims=True), kept.max(axis=1, keepdims=True)
        self._points = (kept - 0.5 * (low + high)) / np.maximum(0.5 * (high - low), 1e-300)
        self._labels = tuple(map(localised_delay, labels[:3]))
        self.update()

    def project(self, points: Samples) -> Samples:
        """Screen x, screen y (upwards) and depth of points in the cube -1 to 1."""
        a, b = self._turn, self._tilt
        x, y, z = points
        right = np.cos(a) * x - np.sin(a) * y
        deep = np.sin(a) * x + np.cos(a) * y
        up = np.cos(b) * z - np.sin(b) * deep
        far = np.sin(b) * z + np.cos(b) * deep
        return np.stack([right, up, far])

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        self.paint(painter)
        painter.end()

    def paint(self, painter: QPainter) -> None:
        """The motion: what is near strong and on top, what is far pale."""
        c = self._theme.colours
        painter.fillRect(self.rect(), QColor(c.surface))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._axes(painter)
        if self._points.shape[1] < 2:
            return
        placed = self.project(self._points)
        screen, deep = self._screen(placed), placed[2]
        span = max(float(np.ptp(deep)), 1e-12)
        nearness = np.clip(((deep.max() - deep) / span * SHADES).astype(int), 0, SHADES - 1)
        breaks = np.flatnonzero(np.diff(nearness)) + 1
        pieces = zip([0, *breaks], [*(breaks + 1), len(nearness)], strict=True)
        for start, stop in sorted(pieces, key=lambda piece: nearness[piece[0]]):
            painter.setPen(self._shade(nearness[start] / (SHADES - 1)))
            line = QPolygonF([QPointF(x, y) for x, y in screen[:, start:stop].T])
            painter.drawPolyline(line)
        if self._read is not None:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(c.data[1]))
            painter.drawEllipse(QPointF(*screen[:, self._read]), self._theme.px(4), self._theme.px(4))

    def _shade(self, near: float) -> QColor:
        """The colour of what is this near, 0 to 1."""
        part = FAINTEST + (1 - FAINTEST) * near
        ground, full = QColor(self._theme.colours.surface), QColor(self._theme.colours.data[0])
        mixed = [
            part * f + (1 - part) * g for f, g in zip(full.getRgbF()[:3], ground.getRgbF()[:3], strict=True)
        ]
        return QColor.fromRgbF(*mixed)

    def _screen(self, placed: Samples) -> Samples:
        size = 0.28 * min(self.width(), self.height() * 1.2) * self._zoom
        return np.stack([self.width() / 2 + size * placed[0], self.height() / 2 - size * placed[1]])

    def _axes(self, painter: QPainter) -> None:
        """Three edges of the cube with the names of the coordinates at their ends."""
        c = self._theme.colours
        corner = np.array([-1.0, -1.0, -1.0])
        for axis in range(3):
            end = corner.copy()
            end[axis] = 1.15
            (x0, x1), (y0, y1) = self._screen(self.project(np.stack([corner, end], axis=1)))
            painter.setPen(QColor(c.border))
            painter.drawLine(QPointF(x0, y0), QPointF(x1, y1))
            painter.setPen(QColor(c.muted))
            painter.setFont(self._theme.font(11))
            text = self._labels[axis] if axis < len(self._labels) else ""
            letters = painter.fontMetrics()
            width = letters.horizontalAdvance(text)
            x = min(max(x1 - width / 2, 4.0), self.width() - width - 4.0)
            y = min(max(y1 - 4, letters.ascent()), self.height() - letters.descent())
            painter.drawText(QPointF(x, y), text)

    # -- turning

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        if event.button() == Qt.MouseButton.LeftButton:  # of the right one the menu takes the release
            self._grip = event.position()

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        if self._grip is not None:
            moved = event.position() - self._grip
            self._grip = event.position()
            self.turn(0.01 * moved.x(), 0.01 * moved.y())
        elif self.hasMouseTracking():
            self._read_at(event.position())

    def read(self, on: bool) -> None:
        """Tell the values of the point under the pointer, or no longer."""
        self.setMouseTracking(on)
        if not on:
            self._read = None
            self.pointed.emit("")
        self.update()

    def _read_at(self, at: QPointF) -> None:
        if self._points.shape[1] == 0:
            return
        placed = self.project(self._points)
        away = np.hypot(*(self._screen(placed) - np.array([[at.x()], [at.y()]])))
        close = np.flatnonzero(away <= min(away.min() + 1.5, self._theme.px(REACH)))
        # Of strands that cross under the pointer the nearest to the eye: it is the one that is seen.
        self._read = int(close[np.argmin(placed[2, close])]) if len(close) else None
        self.pointed.emit("" if self._read is None else self._words(self._values[:, self._read]))
        self.update()

    def _words(self, values: Samples) -> str:
        named = (label.partition(" [") for label in self._labels)
        return "   ".join(
            f"{name} = {value:.4g} {unit.rstrip(']').replace('–', '')}".rstrip()
            for (name, _, unit), value in zip(named, values, strict=True)
        )

    def reset(self) -> None:
        """The view as it was at first."""
        self._turn, self._tilt, self._zoom = FIRST_VIEW
        self.update()

    def table(self) -> Iterator[Sequence[object]]:
        """The coordinates that are drawn, with a header of names and units."""
        yield list(self._labels)
        for row in self._values.T:
            yield [f"{value:.9g}" for value in row]

    def picture(self) -> QPixmap:
        """The view at twice its size on screen."""
        canvas = QPixmap(self.size() * 2)
        canvas.setDevicePixelRatio(2)
        painter = QPainter(canvas)
        self.paint(painter)
        painter.end()
        canvas.setDevicePixelRatio(1)
        return canvas

    def mouseDoubleClickEvent(self, event: QMouseEvent | None) -> None:
        self.reset()

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        self._grip = None

    def wheelEvent(self, event: QWheelEvent | None) -> None:
        assert event is not None
        self._come(1.001 ** event.angleDelta().y())

    def _come(self, closer: float) -> None:
        self._zoom = float(np.clip(self._zoom * closer, 0.3, 8.0))
        self.update()

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        keys = Qt.Key
        steps = {
            keys.Key_Left: (-0.1, 0.0),
            keys.Key_Right: (0.1, 0.0),
            keys.Key_Up: (0.0, -0.1),
            keys.Key_Down: (0.0, 0.1),
        }
        if event.key() in steps:
            self.turn(*steps[keys(event.key())])
        elif event.key() in (keys.Key_Plus, keys.Key_Equal, keys.Key_Minus):
            self._come(0.8 if event.key() == keys.Key_Minus else 1.25)
        else:
            super().keyPressEvent(event)

    def turn(self, around: float, over: float) -> None:
        self._turn += around
        self._tilt = float(np.clip(self._tilt + over, -1.5, 1.5))
        self.update()


class SpaceCard(Card):
    """The view with the tools that every plot has, and their keys."""

    def __init__(self, theme: Theme, title: str, help_text: str = "") -> None:
        super().__init__(theme, title, help_text)
        self.title, self.view = title, SpaceView(theme)
        self.readout = Readout("small")
        self.readout.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.head.setSpacing(theme.px(1))
        self.head.insertWidget(1, self.readout, 1)
        self.head.setStretch(2, 0)
        self.cross = IconButton(theme, "crosshair", "Read the values under the pointer (C)", checkable=True)
        self.fit_button = IconButton(theme, "fit", "The view as it was at first (F or double click)")
        self.export_button = IconButton(theme, "export", "Save this plot as picture or table (E)")
        for tool in (self.cross, self.fit_button, self.export_button):
            self.head.addWidget(tool)
        self.cross.toggled.connect(self.view.read)
        self.view.pointed.connect(self.readout.setText)
        self.fit_button.clicked.connect(self.view.reset)
        self.export_button.clicked.connect(self._export_menu)
        self.add(self.view, 1)

    def menu(self) -> QMenu:
        """What can be done with the picture: also by a click with the right button."""
        return plot_menu(
            self,
            self._ask_and_export,
            {
                "Copy the picture": self.copy_picture,
                "Copy the values": lambda: copy_table(self.view.table()),
            },
        )

    def contextMenuEvent(self, event: QContextMenuEvent | None) -> None:
        assert event is not None
        self.menu().popup(event.globalPos())

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        acts = {
            Qt.Key.Key_C: self.cross.toggle,
            Qt.Key.Key_F: self.view.reset,
            Qt.Key.Key_E: self._export_menu,
        }
        act = acts.get(Qt.Key(event.key()))
        if act is not None:
            act()
        else:
            super().keyPressEvent(event)

    def _export_menu(self) -> None:
        self.menu().popup(self.export_button.mapToGlobal(self.export_button.rect().bottomLeft()))

    def copy_picture(self) -> None:
        """The view to the clipboard."""
        board = QApplication.clipboard()
        assert board is not None
        board.setPixmap(self.view.picture())

    def _ask_and_export(self, kind: str) -> None:
        path = ask_where(self, self.title, kind)
        if path is not None:
            self.readout.setText(saved(self.export, path))

    def export(self, path: Path) -> None:
        """Write the view as its file name asks: .png, .svg or .csv."""
        kind = path.suffix.lower()
        if kind == ".csv":
            write_table(path, self.view.table())
        elif kind == ".svg":
            draw_svg(path, self.title, self.view.size(), self.view.paint)
        else:
            save_picture(path, self.view.picture())
