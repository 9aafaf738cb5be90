"""A rotatable view of the motion in three dimensions, drawn with ordinary painting."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PyQt6.QtCore import QPointF, Qt
from PyQt6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPolygonF, QWheelEvent
from PyQt6.QtWidgets import QWidget

from app.desktop.theme import Theme

Samples = NDArray[np.float64]
MOST = 12_000  # points drawn
SHADES = 4  # from far to near


class SpaceView(QWidget):
    """Drag to turn, wheel to come closer, arrow keys turn too."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._points = np.empty((3, 0))
        self._labels: tuple[str, ...] = ()
        self._turn, self._tilt, self._zoom = 0.6, 0.5, 1.0
        self._grip: QPointF | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(theme.px(200), theme.px(160))
        self.setToolTip("Drag to turn, wheel to come closer; arrow keys turn too")
        self.setAccessibleName("Motion in three dimensions")
        theme.changed.connect(self.update)

    def show_points(self, points: Samples, labels: tuple[str, ...]) -> None:
        """Draw the first three coordinates."""
        step = max(1, points.shape[1] // MOST)
        kept = points[:3, ::step]
        kept = kept[:, np.isfinite(kept).all(axis=0)]
        low, high = kept.min(axis=1, keepdims=True), kept.max(axis=1, keepdims=True)
        self._points = (kept - 0.5 * (low + high)) / np.maximum(0.5 * (high - low), 1e-300)
        self._labels = tuple(labels[:3])
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
        c = self._theme.colours
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(c.surface))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._axes(painter)
        if self._points.shape[1] < 2:
            return
        placed = self.project(self._points)
        screen = self._screen(placed)
        nearness = np.clip(((1.8 - placed[2]) / 3.6 * SHADES).astype(int), 0, SHADES - 1)
        breaks = np.flatnonzero(np.diff(nearness)) + 1
        pieces = zip([0, *breaks], [*(breaks + 1), len(nearness)], strict=True)
        colour = QColor(c.data[0])
        shades = []
        for shade in range(SHADES):
            tint = QColor(colour)
            tint.setAlphaF(0.35 + 0.65 * (shade + 1) / SHADES)
            shades.append(tint)
        ordered = sorted(pieces, key=lambda piece: nearness[piece[0]])
        for start, stop in ordered:
            painter.setPen(shades[nearness[start]])
            line = QPolygonF([QPointF(x, y) for x, y in screen[:, start:stop].T])
            painter.drawPolyline(line)

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
            width = painter.fontMetrics().horizontalAdvance(text)
            x = min(max(x1 - width / 2, 4.0), self.width() - width - 4.0)
            painter.drawText(QPointF(x, min(max(y1 - 4, 14.0), self.height() - 6.0)), text)

    # -- turning

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        self._grip = event.position()

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        if self._grip is not None:
            moved = event.position() - self._grip
            self._grip = event.position()
            self.turn(0.01 * moved.x(), 0.01 * moved.y())

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        self._grip = None

    def wheelEvent(self, event: QWheelEvent | None) -> None:
        assert event is not None
        self._zoom = float(np.clip(self._zoom * 1.001 ** event.angleDelta().y(), 0.3, 8.0))
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
        else:
            super().keyPressEvent(event)

    def turn(self, around: float, over: float) -> None:
        self._turn += around
        self._tilt = float(np.clip(self._tilt + over, -1.5, 1.5))
        self.update()
