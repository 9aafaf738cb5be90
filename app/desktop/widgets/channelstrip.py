"""The channels at a glance: colour, lamp, size of the signal, and a switch that shows or hides it."""

from __future__ import annotations

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QColor, QPainter, QPaintEvent
from PyQt6.QtWidgets import QAbstractButton, QSizePolicy, QVBoxLayout, QWidget

from app.desktop.feed import ChannelStats
from app.desktop.theme import Theme
from app.desktop.widgets.basics import sentence
from app.words import plain
from drivers.base.protocols import ChannelInfo

# Units that take a prefix: 0.2 mV, not 0.0002 V.
PREFIXED = ("m", "m/s", "m/s²", "m/s^2", "m/s2", "V", "A", "N", "Pa", "W", "Nm", "N m")
PREFIXES = {"m": 1e-3, "µ": 1e-6, "n": 1e-9, "p": 1e-12}


def value_text(value: float, unit: str = "") -> str:
    """Four digits and the unit, without a power of ten where one can do without."""
    size = abs(value)
    if value != value:
        return f"– {unit}".rstrip()
    prefix = ""
    if 0 < size < 1e-3 and unit in PREFIXED:
        prefix = next((p for p, scale in PREFIXES.items() if size >= scale), "p")
        value /= PREFIXES[prefix]
        size = abs(value)
    if size == 0 or 1e-3 <= size < 1e5:
        text = f"{value:.4g}"
    else:
        text = plain(value, 3) if 1e-6 <= size < 1e9 else f"{value:.2e}"
    return sentence(f"{text} {prefix}{unit}".rstrip())


class ChannelTile(QAbstractButton):
    """One channel. On: drawn in the live plots. The lamp is a red square while the channel is overloaded."""

    def __init__(self, theme: Theme, info: ChannelInfo, colour: int) -> None:
        super().__init__()
        self._theme, self.info, self._colour = theme, info, colour
        self.stats = ChannelStats()
        self.setCheckable(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFixedHeight(theme.px(62))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(info.name)
        self.setToolTip(
            f"{info.name}: {info.sensor or 'sensor'}, range {info.lower:g} to {info.upper:g} {info.unit}. "
            "Click to show or hide it. Numbers of the last second: rms about the mean, and peak to peak."
        )
        theme.changed.connect(self.update)

    def show_stats(self, stats: ChannelStats) -> None:
        self.stats = stats
        self.update()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        c, px = self._theme.colours, self._theme.px
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = self.rect().adjusted(1, 1, -1, -1)
        painter.setPen(QColor(c.accent if self.hasFocus() else c.border))
        painter.setBrush(QColor(c.surface if self.isChecked() else c.window))
        painter.drawRoundedRect(box, px(8), px(8))
        painter.setPen(Qt.PenStyle.NoPen)
        swatch = QColor(c.data[self._colour % len(c.data)] if self.isChecked() else c.border)
        painter.setBrush(swatch)
        painter.drawRoundedRect(px(8), px(9), px(5), self.height() - px(18), px(2), px(2))
        self._lamp(painter)
        left, width = px(20), self.width() - px(28)
        painter.setFont(self._theme.font(13, bold=True))
        painter.setPen(QColor(c.text if self.isChecked() else c.muted))
        name = painter.fontMetrics().elidedText(self.info.name, Qt.TextElideMode.ElideRight, width - px(22))
        painter.drawText(left, px(21), name)
        painter.setFont(self._theme.font(11.5))
        painter.setPen(QColor(c.muted))
        spread = self.stats.high - self.stats.low
        lines = (
            f"ac rms {value_text(self.stats.rms, self.info.unit)}",
            f"p-p {value_text(spread, self.info.unit)}",
        )
        for row, text in enumerate(lines):
            shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, width)
            painter.drawText(left, px(38 + 15 * row), shown)

    def _lamp(self, painter: QPainter) -> None:
        c, px = self._theme.colours, self._theme.px
        x, y, size = self.width() - px(22), px(9), px(12)
        if self.stats.overloaded:
            painter.setBrush(QColor(c.stop))
            painter.drawRoundedRect(x, y, size, size, 2, 2)
        else:
            painter.setBrush(QColor(c.warn if self.stats.overloads else c.good))
            painter.drawEllipse(x, y, size, size)


class ChannelStrip(QWidget):
    """A tile for each channel; tells which ones are to be drawn."""

    chosen = pyqtSignal(list)
    most = 4  # drawn at the start; the others wait for a click

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(theme.px(6))
        self._box.addStretch(1)
        self.tiles: list[ChannelTile] = []

    def rebuild(self, channels: tuple[ChannelInfo, ...]) -> None:
        for tile in self.tiles:
            self._box.removeWidget(tile)
            tile.deleteLater()
        self.tiles = [ChannelTile(self._theme, info, i) for i, info in enumerate(channels)]
        for i, tile in enumerate(self.tiles):
            tile.setChecked(i < self.most)
            tile.toggled.connect(self._tell)
            self._box.insertWidget(i, tile)
        self._tell()

    def shown(self) -> list[int]:
        return [i for i, tile in enumerate(self.tiles) if tile.isChecked()]

    def show_stats(self, stats: list[ChannelStats]) -> None:
        for tile, values in zip(self.tiles, stats, strict=False):
            tile.show_stats(values)

    def _tell(self) -> None:
        if not self.shown() and self.tiles:
            self.tiles[0].setChecked(True)  # an empty scope helps nobody
            return
        self.chosen.emit(self.shown())
