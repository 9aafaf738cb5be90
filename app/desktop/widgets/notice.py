"""Messages that do not get in the way: they float above the status bar and leave by themselves."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QHideEvent, QShowEvent
from PyQt6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QTabBar,
    QToolButton,
    QWidget,
)

from app.desktop.icons import icon
from app.desktop.theme import Theme
from app.desktop.widgets.basics import timer
from app.desktop.workbench import Notice

STAY = {"info": 4000, "good": 4000, "warn": 12000, "bad": 0}  # ms; 0: until dismissed
UNDO = 12_000  # ms, for what can be taken back
READING = 4000  # ms for which a lesser message waits behind a warning
CONTROLS = (
    QAbstractButton,
    QComboBox,
    QLineEdit,
    QAbstractSpinBox,
    QTabBar,
)  # what a message must leave in reach
PICTURES = {"info": "help", "good": "check", "warn": "warning", "bad": "warning"}


class NoticeBar(QFrame):
    """The newest message. Problems stay until they are dismissed."""

    followed = pyqtSignal(str)  # page the message leads to
    toggled = pyqtSignal()  # it has come or gone: what else floats there may give way

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("notice")
        self._theme = theme
        self.notice: Notice | None = None
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.px(14), theme.px(8), theme.px(8), theme.px(8))
        row.setSpacing(theme.px(10))
        self._picture, self._text = QLabel(), QLabel()
        self._text.setWordWrap(True)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._go, self._close, self.undo = QToolButton(), QToolButton(), QToolButton()
        self._go.setAccessibleName("Go there")
        self.undo.setText("Undo")
        self.undo.setToolTip("Take it back (Ctrl+Z)")
        self._close.setIconSize(QSize(theme.px(16), theme.px(16)))
        self._close.setToolTip("Dismiss this message")
        self._close.setAccessibleName("Dismiss")
        row.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self._text, 1)
        row.addWidget(self.undo)
        row.addWidget(self._go)
        row.addWidget(self._close, 0, Qt.AlignmentFlag.AlignVCenter)
        self._close.clicked.connect(self.hide)
        self._go.clicked.connect(self._follow)
        self.undo.clicked.connect(self._take_back)
        self._timer = timer(self, 0, self.hide, single=True)
        self._reading = timer(self, READING, self._show_waiting, single=True)
        self._waiting: Notice | None = None  # the newest that has not been shown yet
        self.hide()
        parent.installEventFilter(self)
        theme.changed.connect(self._colour)

    def _colour(self) -> None:
        if self.notice is None:
            return
        c, side = self._theme.colours, self._theme.px(18)
        self._picture.setPixmap(icon(PICTURES[self.notice.level], c.surface).pixmap(QSize(side, side)))
        self._close.setIcon(icon("close", c.surface))

    def show_notice(self, notice: Notice) -> None:
        """Show a message; a problem is not pushed away by a lesser message, unless that can be taken back.

        Behind a warning that has just come a lesser message waits.
        """
        shown = self.notice.level if self.isVisible() and self.notice is not None else ""
        if shown == "bad" and notice.level != "bad" and notice.undo is None:
            return
        lesser = notice.level in ("info", "good") and notice.undo is None
        if shown == "warn" and lesser and self._reading.isActive():
            self._waiting = notice
            return
        self._waiting = None
        if notice.level == "warn":
            self._reading.start()
        self.notice = notice
        self._colour()
        self._text.setText(notice.text)
        self._go.setVisible(bool(notice.action))
        self._go.setText(f"Go to {notice.action.capitalize()}")
        self.undo.setVisible(notice.undo is not None)
        self.place()
        self.show()
        self.raise_()
        if stay := UNDO if notice.undo is not None else STAY[notice.level]:
            self._timer.start(stay)
        else:
            self._timer.stop()

    def _show_waiting(self) -> None:
        if self._waiting is not None:
            self.show_notice(self._waiting)

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self.toggled.emit()

    def hideEvent(self, event: QHideEvent | None) -> None:
        super().hideEvent(event)
        self.toggled.emit()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Follow the parent, which also grows and shrinks inside the window: the bar of a stopped drive."""
        if event is not None and event.type() == QEvent.Type.Resize and self.isVisible():
            self.place()
        return super().eventFilter(watched, event)

    def place(self) -> None:
        """Centre above the lower edge of the parent."""
        parent = self.parentWidget()
        assert parent is not None
        width = min(self._theme.px(640), parent.width() - self._theme.px(40))
        self.setFixedWidth(width)
        height = self.heightForWidth(width)  # not the size hint: that is of text wrapped narrowly
        self.resize(width, height)
        self.move(self._free_place(parent, width, height))

    def _free_place(self, parent: QWidget, width: int, height: int) -> QPoint:
        """As low as it covers nothing to be pressed, nor a list or text; at the lower edge if it cannot."""
        edge = self._theme.px(6)
        middle, lowest = (parent.width() - width) // 2, parent.height() - height - edge
        for kinds in ((*CONTROLS, QPlainTextEdit, QAbstractItemView), (*CONTROLS, QPlainTextEdit), CONTROLS):
            taken = self._seen(parent, kinds)
            for y in range(lowest, 0, -self._theme.px(8)):
                for x in (middle, edge, parent.width() - width - edge):
                    if not any(control.intersects(QRect(x, y, width, height)) for control in taken):
                        return QPoint(x, y)
        return QPoint(middle, lowest)

    def _seen(self, parent: QWidget, kinds: tuple[type[QWidget], ...]) -> list[QRect]:
        """What is to be seen of such widgets, but for those of the message."""
        return [
            widget.visibleRegion().boundingRect().translated(widget.mapTo(parent, QPoint(0, 0)))
            for widget in (w for kind in kinds for w in parent.findChildren(kind))
            if widget.isVisible() and not self.isAncestorOf(widget)
        ]

    def _take_back(self) -> None:
        self.hide()
        if self.notice is not None and self.notice.undo is not None:
            self.notice.undo()

    def _follow(self) -> None:
        self.hide()
        if self.notice is not None:
            self.followed.emit(self.notice.action)
