"""A field for notes of several lines."""

from __future__ import annotations

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtGui import QFocusEvent
from PyQt6.QtWidgets import QPlainTextEdit

from app.desktop.theme import Theme

LINES = 3  # shown without scrolling, where there is room


class Notes(QPlainTextEdit):
    """Plain text; Tab leaves the field, Enter begins a new line."""

    editingFinished = pyqtSignal()  # the field was left

    def __init__(self, theme: Theme, placeholder: str = "") -> None:
        super().__init__()
        self.setPlaceholderText(placeholder)
        self.setTabChangesFocus(True)
        self._theme = theme
        self.show_lines(LINES)

    def show_lines(self, count: int) -> None:
        """Be so high that this many lines are seen without scrolling."""
        self.setFixedHeight(self.fontMetrics().lineSpacing() * count + self._theme.px(18))

    def text(self) -> str:
        return self.toPlainText()

    def setText(self, text: str) -> None:
        if text != self.text():
            self.setPlainText(text)

    def focusOutEvent(self, event: QFocusEvent | None) -> None:
        super().focusOutEvent(event)
        self.editingFinished.emit()
