"""Small multiples: one closed loop to a tile."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PyQt6.QtCore import QPoint, QPointF, QRect, QRectF, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PyQt6.QtWidgets import QAbstractButton

from app.desktop.theme import Theme

Samples = NDArray[np.float64]


class OrbitTile(QAbstractButton):
    """One orbit drawn in the shared frame of all; on: it is used further on.

    One that ``enlarges`` has a box to tick: a click elsewhere, or Enter, asks for the orbit at full size.
    """

    opened = pyqtSignal()
    enlarges = False

    def __init__(
        self,
        theme: Theme,
        x: Samples,
        y: Samples,
        frame: tuple[float, float, float, float],
        lines: tuple[str, ...],
    ) -> None:
        super().__init__()
        self._theme, self._x, self._y, self._frame = theme, x, y, frame
        self.setCheckable(True)
        self.setChecked(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFixedSize(theme.px(158), theme.px(190))
        self.tell(lines)

    def tell(self, lines: tuple[str, ...]) -> None:
        """Say this of the orbit, below its picture."""
        self._lines = lines
        self.setToolTip("\n".join(lines) + "\nClick to include or leave out.")
        self.setAccessibleName(", ".join(lines))
        self.update()

    def enlarge(self) -> None:
        """From now on a click asks for the orbit at full size, and the box includes it."""
        self.enlarges = True
        self.setToolTip("\n".join(self._lines) + "\nClick to enlarge; tick to include.")

    def box(self) -> QRect:
        """The box to tick."""
        side, edge = self._theme.px(16), self._theme.px(8)
        return QRect(self.width() - side - edge, edge, side, side)

    def hitButton(self, pos: QPoint) -> bool:
        """Only the box includes it; with some room around, for a quick hand."""
        room = self._theme.px(6)
        return not self.enlarges or self.box().adjusted(-room, -room, room, room).contains(pos)

    def mouseReleaseEvent(self, e: QMouseEvent | None) -> None:
        super().mouseReleaseEvent(e)
        if e is not None and self.enlarges and e.button() == Qt.MouseButton.LeftButton:
            at = e.position().toPoint()
            if self.rect().contains(at) and not self.hitButton(at):
                self.opened.emit()

    def keyPressEvent(self, e: QKeyEvent | None) -> None:
        if e is not None and self.enlarges and e.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.opened.emit()
        else:
            super().keyPressEvent(e)

    def _tick(self, painter: QPainter) -> None:
        c, box = self._theme.colours, QRectF(self.box())
        on = self.isChecked()
        painter.setPen(QPen(QColor(c.accent if on else c.muted), self._theme.px(1)))
        painter.setBrush(QColor(c.accent if on else c.surface))
        painter.drawRoundedRect(box, self._theme.px(3), self._theme.px(3))
        if on:
            painter.setPen(QPen(QColor(c.on_accent), self._theme.px(2)))
            corners = ((0.22, 0.52), (0.42, 0.72), (0.78, 0.3))
            points = [QPointF(box.left() + a * box.width(), box.top() + b * box.height()) for a, b in corners]
            painter.drawPolyline(QPolygonF(points))

    def paintEvent(self, event: QPaintEvent | None) -> None:
        c, px = self._theme.colours, self._theme.px
        on = self.isChecked()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(1.5, 1.5, -1.5, -1.5)
        pen = QColor(c.accent if on or self.hasFocus() else c.border)
        painter.setPen(pen)
        painter.setBrush(QColor(c.surface if on else c.window))
        painter.drawRoundedRect(box, px(8), px(8))
        area = QRectF(box.left() + px(10), box.top() + px(10), box.width() - px(20), box.height() - px(70))
        painter.setPen(QColor(c.data[0] if on else c.muted))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(self._polygon(area))
        if self.enlarges:
            self._tick(painter)
        painter.setFont(self._theme.font(12, bold=True))
        painter.setPen(QColor(c.text if on else c.muted))
        y = area.bottom() + px(20)
        for row, text in enumerate(self._lines):
            if row == 1:
                painter.setPen(QColor(c.muted))
            for size in (11, 10, 9) if row else ():
                painter.setFont(self._theme.font(size))
                if painter.fontMetrics().horizontalAdvance(text) <= area.width():
                    break
            shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(area.width()))
            painter.drawText(QPointF(area.left(), y + row * px(16)), shown)

    def _polygon(self, area: QRectF) -> QPolygonF:
        left, right, low, high = self._frame
        xs = area.left() + (self._x - left) / ((right - left) or 1.0) * area.width()
        ys = area.bottom() - (self._y - low) / ((high - low) or 1.0) * area.height()
        step = max(1, len(xs) // 400)
        return QPolygonF([QPointF(float(a), float(b)) for a, b in zip(xs[::step], ys[::step], strict=True)])
