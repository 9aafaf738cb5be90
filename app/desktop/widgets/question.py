"""Questions whose answer is one number, or a few words."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtWidgets import QDialog, QDialogButtonBox, QLineEdit, QVBoxLayout, QWidget

from app.desktop.theme import Theme
from app.desktop.widgets.basics import add_row, dialog_buttons, entry, form, label
from app.desktop.widgets.number import Number


class QuestionDialog(QDialog):
    """Asks for what one field holds; it closes only with an answer that is allowed."""

    def __init__(self, theme: Theme, parent: QWidget, title: str, question: str, field: QLineEdit) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setMinimumWidth(theme.px(380))
        box = QVBoxLayout(self)
        box.addWidget(label(question, "", wrap=True))
        fields = form(theme)
        add_row(theme, fields, "", field)
        field.setAccessibleName(question)
        box.addLayout(fields)
        self.problem = label("", "bad", wrap=True)
        self.problem.hide()
        box.addWidget(self.problem)
        buttons = dialog_buttons(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        box.addWidget(buttons)
        field.setFocus()
        field.selectAll()


class NumberDialog(QuestionDialog):
    """Asks for a number that can be read and is allowed."""

    def __init__(self, theme: Theme, parent: QWidget, title: str, question: str, number: Number) -> None:
        super().__init__(theme, parent, title, question, number)
        self.number = number

    def accept(self) -> None:
        if self.number.apply():
            super().accept()

    def ask(self) -> float | None:
        """The answer; None: cancelled."""
        return self.number.value() if self.exec() else None


class NameDialog(QuestionDialog):
    """Asks for a name; ``refuse`` says in a sentence why one cannot be had, or nothing."""

    def __init__(
        self,
        theme: Theme,
        parent: QWidget,
        title: str,
        question: str,
        name: str,
        refuse: Callable[[str], str],
    ) -> None:
        self.name, self._refuse = entry(name), refuse
        super().__init__(theme, parent, title, question, self.name)

    def accept(self) -> None:
        name = self.name.text().strip()
        problem = self._refuse(name) if name else "Give a name."
        self.problem.setText(problem)
        self.problem.setVisible(bool(problem))
        if not problem:
            super().accept()

    def ask(self) -> str:
        """The answer; empty: cancelled."""
        return self.name.text().strip() if self.exec() else ""
