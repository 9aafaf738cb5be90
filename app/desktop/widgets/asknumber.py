"""A question whose answer is one number."""

from __future__ import annotations

from PyQt6.QtWidgets import QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from app.desktop.theme import Theme
from app.desktop.widgets.basics import add_row, dialog_buttons, form, label
from app.desktop.widgets.number import Number


class NumberDialog(QDialog):
    """Asks for a number; it closes only with one that can be read and is allowed."""

    def __init__(self, theme: Theme, parent: QWidget, title: str, question: str, number: Number) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.number = number
        box = QVBoxLayout(self)
        box.addWidget(label(question, "", wrap=True))
        fields = form(theme)
        add_row(theme, fields, "", number)
        number.setAccessibleName(question)
        box.addLayout(fields)
        buttons = dialog_buttons(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        box.addWidget(buttons)
        number.setFocus()
        number.selectAll()

    def accept(self) -> None:
        if self.number.apply():
            super().accept()

    def ask(self) -> float | None:
        """The answer; None: cancelled."""
        return self.number.value() if self.exec() else None
