"""Cards, headings, lamps and rows of forms: the vocabulary of every page."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import QObject, QSize, Qt, QTimer
from PyQt6.QtGui import QColor, QIcon, QPainter, QPaintEvent
from PyQt6.QtWidgets import (
    QComboBox,
    QDialogButtonBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.desktop.icons import icon
from app.desktop.theme import Theme
from app.desktop.widgets.number import Number
from app.numbers import localised
from app.words import unbroken, with_minus


class Wrapped(QLabel):
    """Text over several lines; none ends between a number and its unit."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.setWordWrap(True)
        self.setText(text)

    def setText(self, a0: str | None) -> None:
        self._said = a0 or ""
        super().setText(unbroken(self._said))

    def text(self) -> str:
        """As it was said, with plain spaces."""
        return self._said


def label(text: str, role: str = "", wrap: bool = False) -> QLabel:
    """Text in one of the roles of the style sheet: title, heading, muted, small, big, good, warn, bad."""
    result = Wrapped(text) if wrap else QLabel(text)
    result.setObjectName(role)
    return result


class Choice(QComboBox):
    """A list of which the chosen entry ends in … where the room does."""

    def __init__(self) -> None:
        super().__init__()
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)

    def paintEvent(self, e: QPaintEvent | None) -> None:
        painter, option, style = QStylePainter(self), QStyleOptionComboBox(), self.style()
        self.initStyleOption(option)
        if self.currentIndex() < 0:
            option.currentText = self.placeholderText()
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        field = QStyle.SubControl.SC_ComboBoxEditField
        assert style is not None
        room = style.subControlRect(QStyle.ComplexControl.CC_ComboBox, option, field, self).width()
        ends = Qt.TextElideMode.ElideRight
        option.currentText = self.fontMetrics().elidedText(option.currentText, ends, room - 2)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)


FEWEST = 6  # letters, below which a line that is cut tells nothing


class Elided(QLabel):
    """One line of text in a role of the style sheet that ends in … where the room does."""

    def __init__(self, role: str = "") -> None:
        super().__init__()
        self.setObjectName(role)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def paintEvent(self, a0: QPaintEvent | None) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        shown = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        if shown == self.text() or len(shown) > FEWEST:
            painter.drawText(self.contentsRect(), int(self.alignment()), shown)


class Readout(Elided):
    """Numbers in one line, with the true minus sign and the decimal mark of the locale."""

    def setText(self, a0: str | None) -> None:
        super().setText(with_minus(localised(a0 or "")))


def sentence(text: str) -> str:
    """A sentence about numbers, with the true minus sign and the decimal mark of the locale."""
    return with_minus(localised(text))


def set_role(widget: QWidget, role: str) -> None:
    """Change a widget's role in the style sheet."""
    if widget.objectName() != role:
        widget.setObjectName(role)
        style = widget.style()
        if style is not None:
            style.unpolish(widget)
            style.polish(widget)


class Card(QFrame):
    """A quiet box around things that belong together, with an optional heading."""

    def __init__(self, theme: Theme, heading: str = "", help_text: str = "") -> None:
        super().__init__()
        self.setObjectName("card")
        gap = theme.px(12)
        self.box = QVBoxLayout(self)
        self.box.setContentsMargins(gap, theme.px(10), gap, gap)
        self.box.setSpacing(theme.px(8))
        self.head = QHBoxLayout()
        self.head.setSpacing(theme.px(6))
        if heading:
            title = label(heading, "heading")
            title.setToolTip(help_text)
            self.head.addWidget(title)
            self.head.addStretch(1)
            self.box.addLayout(self.head)

    def add(self, widget: QWidget, stretch: int = 0) -> QWidget:
        self.box.addWidget(widget, stretch)
        return widget


def button(
    text: str, action: Callable[[], object], tip: str, role: str = "", shortcut: str = ""
) -> QPushButton:
    """A push button that says what it does."""
    result = QPushButton(text)
    result.setObjectName(role)
    result.setToolTip(f"{tip} ({shortcut})" if shortcut else tip)
    result.setCursor(Qt.CursorShape.PointingHandCursor)
    if shortcut:
        result.setShortcut(shortcut)
    result.clicked.connect(lambda: action())
    return result


class IconButton(QToolButton):
    """A small quiet button with a picture; its words are in the tooltip."""

    def __init__(self, theme: Theme, name: str, tip: str, checkable: bool = False, text: str = "") -> None:
        super().__init__()
        self.setObjectName("quiet")
        self._theme, self._name = theme, name
        self.setToolTip(tip)
        self.setAccessibleName(tip)
        self.setCheckable(checkable)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setIconSize(QSize(theme.px(17), theme.px(17)))
        if text:
            self.setText(text)
            self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._colour()
        theme.changed.connect(self._colour)

    def _colour(self) -> None:
        c = self._theme.colours
        self.setIcon(icon(self._name, c.muted, c.accent))


def dialog_buttons(which: QDialogButtonBox.StandardButton) -> QDialogButtonBox:
    """The buttons of a dialog in words alone, as all others are: pictures differ from system to system."""
    row = QDialogButtonBox(which)
    for part in row.buttons():
        part.setIcon(QIcon())
    return row


def entry(text: str = "", placeholder: str = "", tip: str = "") -> QLineEdit:
    """A field for words."""
    result = QLineEdit(text)
    result.setPlaceholderText(placeholder)
    result.setToolTip(tip)
    return result


def progress_bar(steps: int) -> QProgressBar:
    """A thin bar without words."""
    bar = QProgressBar()
    bar.setTextVisible(False)
    bar.setRange(0, steps)
    return bar


def timer(parent: QObject, milliseconds: int, action: Callable[[], object], single: bool = False) -> QTimer:
    """A timer that has not been started."""
    result = QTimer(parent)
    result.setInterval(milliseconds)
    result.setSingleShot(single)
    result.timeout.connect(action)
    return result


def form(theme: Theme) -> QFormLayout:
    """Labels to the left, fields to the right, with room for gloves."""
    layout = QFormLayout()
    layout.setHorizontalSpacing(theme.px(12))
    layout.setVerticalSpacing(theme.px(8))
    layout.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    layout.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    return layout


def add_row(theme: Theme, layout: QFormLayout, words: str, field: QWidget, tip: str = "") -> None:
    """A field with its name beside it, at the same height."""
    name = label(words)
    name.setMinimumHeight(theme.px(34))
    name.setBuddy(field)
    for part in (name, field):
        part.setToolTip(tip or field.toolTip())
    field.setAccessibleName(words)
    layout.addRow(name, field)
    if isinstance(field, Number):
        field.show_words_in(layout)


def menu_heading(menu: QMenu, words: str) -> None:
    """A line between entries with words: those of Qt's own sections are not drawn with a style sheet."""
    if menu.actions():
        menu.addSeparator()
    action = menu.addAction(words)
    assert action is not None
    action.setEnabled(False)


class Lamp(QWidget):
    """A round lamp: grey, green, amber or red, with a shape so that colour is never the only sign."""

    def __init__(self, theme: Theme, tip: str = "") -> None:
        super().__init__()
        self._theme, self._state = theme, "off"
        self.setFixedSize(theme.px(16), theme.px(16))
        self.setToolTip(tip)
        theme.changed.connect(self.update)

    @property
    def state(self) -> str:
        return self._state

    def show_state(self, state: str) -> None:
        """One of off, good, warn, bad."""
        if state != self._state:
            self._state = state
            self.update()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        c = self._theme.colours
        colour = {"off": c.border, "good": c.good, "warn": c.warn, "bad": c.stop}[self._state]
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colour))
        box = self.rect().adjusted(2, 2, -2, -2)
        if self._state == "bad":
            painter.drawRoundedRect(box, 2, 2)  # square: overload reads without colour
        else:
            painter.drawEllipse(box)


def scrolled(widget: QWidget) -> QScrollArea:
    """The widget in a frame that scrolls up and down when it does not fit."""
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    widget.setObjectName("scrolled")
    area.setWidget(widget)
    viewport = area.viewport()
    if viewport is not None:
        viewport.setAutoFillBackground(False)
    return area


class Empty(QWidget):
    """What a page shows when there is nothing to show: a picture, what is missing, and the way to get it."""

    def __init__(self, theme: Theme, picture: str, text: str, action: str = "") -> None:
        super().__init__()
        self._theme, self._picture = theme, picture
        box = QVBoxLayout(self)
        box.addStretch(1)
        self._image = QLabel()
        self._image.setAlignment(Qt.AlignmentFlag.AlignCenter)
        box.addWidget(self._image)
        self.text = label(text, "muted", wrap=True)
        self.text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        box.addWidget(self.text)
        self.button = QPushButton(action)
        self.button.setObjectName("primary")
        box.addSpacing(theme.px(8))
        box.addWidget(self.button, 0, Qt.AlignmentFlag.AlignHCenter)
        self.button.setVisible(bool(action))  # has its place by now: else it would be a window for a moment
        box.addStretch(1)
        self._colour()
        theme.changed.connect(self._colour)

    def _colour(self) -> None:
        size = self._theme.px(56)
        self._image.setPixmap(icon(self._picture, self._theme.colours.border).pixmap(QSize(size, size)))
