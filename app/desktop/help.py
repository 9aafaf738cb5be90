"""Help: the chapter of the page in view and the list of keys, without a network, beside the window."""

from __future__ import annotations

from importlib.resources import files

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QComboBox, QHBoxLayout, QTextBrowser, QVBoxLayout, QWidget

from app.desktop.pages import STAGES
from app.desktop.theme import Theme
from app.desktop.widgets.basics import button, label

KEYS = "keys"


def chapter(key: str) -> str:
    """The text of a chapter in Markdown, by the key of its page."""
    return (files("resources") / "help" / f"{key}.md").read_text(encoding="utf-8")


class Help(QWidget):
    """A window of its own that never blocks the other: STOP stays in reach."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("page")
        self.setWindowTitle("Help")
        self._theme = theme
        screen = parent.screen()
        most = screen.availableGeometry().height() if screen is not None else theme.px(620)
        self.resize(theme.px(560), min(theme.px(620), most))
        self.chooser = QComboBox()
        self.chooser.setAccessibleName("Chapter")
        for stage in STAGES:
            self.chooser.addItem(stage.title, stage.key)
        self.chooser.addItem("Keys", KEYS)
        self.chooser.currentIndexChanged.connect(lambda _: self._show_chosen())
        self.text = QTextBrowser()
        self.text.setAccessibleName("Help text")
        row = QHBoxLayout()
        row.addWidget(label("Chapter"))
        row.addWidget(self.chooser, 1)
        row.addWidget(button("Keys", lambda: self.show_chapter(KEYS), "All keys in one list"))
        row.addWidget(button("Close", self.close, "Close the help"))
        box = QVBoxLayout(self)
        box.addLayout(row)
        box.addWidget(self.text, 1)
        theme.changed.connect(self._colour)
        self._colour()

    def show_chapter(self, key: str) -> None:
        """Bring a chapter to the front."""
        self.chooser.setCurrentIndex(self.chooser.findData(key))
        self._show_chosen()
        self.show()
        self.raise_()

    def _show_chosen(self) -> None:
        self.text.setMarkdown(chapter(str(self.chooser.currentData())))

    def _colour(self) -> None:
        self.setStyleSheet(self._theme.sheet)
