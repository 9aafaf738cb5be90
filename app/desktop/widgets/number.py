"""The field for a number: what it shows, what it holds, and what it refuses.

It holds the last number that was applied. What is being typed counts only when it is applied: by Enter, by
leaving the field, or, in a field that drives the shaker, by Enter and Apply alone. A text that is refused
stays in the field, red, with the reason beneath, and the number held does not change. The wheel changes
nothing.
"""

from __future__ import annotations

import math

from PyQt6.QtCore import QEvent, Qt, pyqtSignal
from PyQt6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QPalette, QWheelEvent
from PyQt6.QtWidgets import QFormLayout, QLabel, QLineEdit, QSizePolicy, QStyle, QStyleOptionFrame

from app.numbers import NumberError, is_unfinished, number_text, read_number

STEPS = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1, Qt.Key.Key_PageUp: 10, Qt.Key.Key_PageDown: -10}
ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class Number(QLineEdit):
    """A number between two limits, with its unit.

    ``drives``: the number goes to the shaker, so that leaving the field does not apply it.
    ``empty``: words for the lowest number, which is then shown as an empty field.
    """

    valueChanged = pyqtSignal(float)  # another number is held now, set by hand or by the program
    edited = pyqtSignal()  # there is, or is no longer, a text that was not applied

    def __init__(
        self,
        value: float,
        lower: float,
        upper: float,
        unit: str = "",
        digits: int = 4,
        drives: bool = False,
        empty: str = "",
    ) -> None:
        self._unit = ""
        super().__init__()
        self._value, self._lower, self._upper, self._digits = value, lower, upper, digits
        self._drives, self._empty = drives, empty
        self.problem = ""  # why the text cannot be applied, in words
        self.words = QLabel()  # the same for the user, laid out below the field by show_words_in
        self.words.setWordWrap(True)
        self._words_form: QFormLayout | None = None
        self.setPlaceholderText(empty)
        self.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(60)
        self.set_unit(unit)
        self.setRange(lower, upper)
        self.textEdited.connect(lambda _: self._follow_typing())
        self._show()

    # -- the number held

    def value(self) -> float:
        """The number that was applied last."""
        return self._value

    def setValue(self, value: float) -> None:
        """Hold another number, brought between the limits; what was being typed is dropped."""
        before, self._value = self._value, min(max(value, self._lower), self._upper)
        self._show()
        if self._value != before:
            self.valueChanged.emit(self._value)

    def setRange(self, lower: float, upper: float) -> None:
        self._lower, self._upper = lower, upper
        self.setValue(self._value)

    def minimum(self) -> float:
        return self._lower

    def maximum(self) -> float:
        return self._upper

    @property
    def unit(self) -> str:
        return self._unit

    def set_unit(self, unit: str) -> None:
        """Show another unit behind the number."""
        self._unit = unit
        room = self.fontMetrics().horizontalAdvance(f" {unit}") if unit else 0
        self.setTextMargins(0, 0, room, 0)
        self.update()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if event is not None and event.type() == QEvent.Type.FontChange:
            self.set_unit(self._unit)  # its room is that of the new letters

    @property
    def pending(self) -> bool:
        """Whether the field shows a text that was not applied."""
        return self.text() != self._text_of(self._value)

    def read(self) -> float:
        """Apply what was typed, if anything, and give the number; NumberError if it cannot be applied."""
        if not self.apply():
            raise NumberError(f"{self.accessibleName() or 'A number'}: {self.problem}")
        return self._value

    def apply(self) -> bool:
        """Hold the number that was typed; False, with the reason shown, if there is none or it may not be."""
        if not self.pending:
            return True
        try:
            value = self._allowed(self.text())
        except NumberError as error:
            self._complain(str(error))
            return False
        self.setValue(value)
        return True

    # -- typing

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        if event.key() in ENTER:
            if self.apply():
                super().keyPressEvent(event)  # on to the default button of a dialog
            else:
                event.accept()
        elif event.key() in STEPS:
            self._step(STEPS[Qt.Key(event.key())])
            event.accept()
        elif event.key() == Qt.Key.Key_Escape:
            self._show()
            super().keyPressEvent(event)
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent | None) -> None:
        super().focusOutEvent(event)
        if not self._drives:
            self.apply()

    def wheelEvent(self, event: QWheelEvent | None) -> None:
        if event is not None:
            event.ignore()  # what lies around the field scrolls

    def _step(self, steps: int) -> None:
        """One unit of the second digit up or down; a text that was not applied is applied first."""
        if self.pending:
            self._say("Press Enter first.", "bad" if self.problem else "pending")
            return
        size = abs(self._value)
        step = 10.0 ** (math.floor(math.log10(size)) - 1) if size else 0.0
        step = max(step, 10.0**-self._digits)
        self.setValue(round(self._value + steps * step, self._digits))

    def _allowed(self, text: str) -> float:
        plain = text.strip()
        if self._unit and plain.lower().endswith(self._unit.lower()):
            plain = plain[: -len(self._unit)]
        if self._empty and not plain.strip():
            return self._lower
        value = read_number(plain)
        for beyond, limit, words in (
            (value > self._upper, self._upper, "at most"),
            (value < self._lower, self._lower, "at least"),
        ):
            if beyond:
                raise NumberError(
                    f"Beyond the limit: {words} {self._text_of(limit)} {self._unit}".rstrip() + "."
                )
        return value

    def _follow_typing(self) -> None:
        """Say at once what will be refused; a number that is not finished is no mistake."""
        if not self.pending:
            self._say("", "")
        elif is_unfinished(self.text()):
            self._say("", "pending")
        else:
            try:
                self._allowed(self.text())
            except NumberError as error:
                self._complain(str(error))
            else:
                self._say("Enter applies it." if self._drives else "", "pending")

    # -- showing

    def _text_of(self, value: float) -> str:
        if self._empty and value == self._lower:
            return ""
        return number_text(value, self._digits)

    def _show(self) -> None:
        text = self._text_of(self._value)
        if self.text() != text:
            self.setText(text)
        self._say("", "")

    def _complain(self, problem: str) -> None:
        self._say(problem, "bad")

    def _say(self, words: str, state: str) -> None:
        """``state``: bad, pending or nothing, as the style sheet knows them."""
        self.problem = words if state == "bad" else ""
        self.words.setText(words)
        self.words.setObjectName("bad" if state == "bad" else "small")
        if self._words_form is not None:
            self._words_form.setRowVisible(self.words, bool(words))
        self.setAccessibleDescription(words or self._unit)
        if self.property("state") != state:
            self.setProperty("state", state)
            for part in (self, self.words):
                if (style := part.style()) is not None:
                    style.unpolish(part)
                    style.polish(part)
        self.edited.emit()

    def show_words_in(self, layout: QFormLayout) -> None:
        """Have the reasons stand in the next row of a form."""
        layout.addRow(self.words)
        layout.setRowVisible(self.words, False)
        self._words_form = layout

    def paintEvent(self, event: QPaintEvent | None) -> None:
        super().paintEvent(event)
        words = self._empty and not self.text() and not self.hasFocus()
        if not self._unit or words:  # they need no unit, what is about to be typed does
            return
        painter = QPainter(self)
        painter.setPen(self.palette().color(QPalette.ColorRole.PlaceholderText))
        look, style = QStyleOptionFrame(), self.style()
        self.initStyleOption(look)
        assert style is not None
        inside = style.subElementRect(QStyle.SubElement.SE_LineEditContents, look, self)
        at = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(inside.adjusted(0, 0, -2, 0), at, self._unit)  # beside the text's own margin


class Count(Number):
    """A whole number."""

    def __init__(self, value: int, lower: int, upper: int, unit: str = "") -> None:
        super().__init__(value, lower, upper, unit, digits=0)

    def value(self) -> int:
        return round(super().value())

    def read(self) -> int:
        return round(super().read())

    def _allowed(self, text: str) -> float:
        value = super()._allowed(text)
        if value != round(value):
            raise NumberError(f"“{text.strip()}” is not a whole number.")
        return value
