"""Small multiples: one closed loop to a tile."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QPainter, QPaintEvent, QPolygonF
from PyQt6.QtWidgets import QAbstractButton

from app.desktop.theme import Theme

Samples = NDArray[np.float64]


class OrbitTile(QAbstractButton):
    """One orbit drawn in the shared frame of all; on: it is used further on."""

    def __init__(
        self,
        theme: Theme,
        x: Samples,
        y: Samples,
        frame: tuple[float, float, float, float],
        lines: tuple[str, ...],
    ) -> None:
        super().__init__()
        self._theme, self._x, self._y, self._frame, self._lines = theme, x, y, frame, lines
        self.setCheckable(True)
        self.setChecked(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFixedSize(theme.px(158), theme.px(190))
        self.setToolTip("\n".join(lines) + "\nClick to include or leave out.")
        self.setAccessibleName(", ".join(lines))

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
