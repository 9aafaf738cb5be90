"""Vector icons in the colour of the text around them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from PyQt6.QtCore import QByteArray, QRectF, QSize, Qt
from PyQt6.QtGui import QIcon, QPainter, QPixmap
from PyQt6.QtSvg import QSvgRenderer

FOLDER = Path(__file__).parents[2] / "resources" / "icons"


def icon(name: str, colour: str, checked: str | None = None) -> QIcon:
    """An icon of resources/icons; ``checked`` is its colour when its button is on."""
    result = QIcon(pixmap(name, colour))
    if checked is not None:
        result.addPixmap(pixmap(name, checked), QIcon.Mode.Normal, QIcon.State.On)
    return result


@lru_cache(maxsize=256)
def pixmap(name: str, colour: str, size: int = 96) -> QPixmap:
    """The drawing at ``size`` pixels, large enough to be scaled down on any screen."""
    svg = (FOLDER / f"{name}.svg").read_text(encoding="utf-8").replace("currentColor", colour)
    canvas = QPixmap(QSize(size, size))
    canvas.fill(Qt.GlobalColor.transparent)
    painter = QPainter(canvas)
    QSvgRenderer(QByteArray(svg.encode())).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return canvas
