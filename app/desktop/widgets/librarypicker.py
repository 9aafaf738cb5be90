"""Recordings of the library to choose from, several at once, with what drives each of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app import library
from app.desktop.widgets.basics import button, dialog_buttons, entry, label
from app.desktop.workbench import Workbench
from app.library import Entry
from app.words import duration

PATH = Qt.ItemDataRole.UserRole


class LibraryPicker(QDialog):
    """The library without some recordings; ``chosen()`` are the ticked ones."""

    def __init__(self, bench: Workbench, parent: QWidget, title: str, without: Sequence[Path] = ()) -> None:
        super().__init__(parent)
        self.bench, self._without, self._elsewhere = bench, set(without), list[Path]()
        px = bench.theme.px
        self.setWindowTitle(title)
        self.resize(px(520), px(440))
        self.search = entry("", "Search names, tags, notes", "Shows the recordings that contain every word")
        self.search.setAccessibleName("Search the recordings")
        self.search.textChanged.connect(self._filter)
        self.list = QListWidget()
        self.list.setAccessibleName("Recordings to choose from")
        self.list.itemActivated.connect(self._toggle)
        self.list.itemChanged.connect(lambda _: self._follow())
        self.state = label("Reading the library …", "small", wrap=True)
        self.file_button = button("From a file …", self._ask_files, "A recording that is not in the library")
        buttons = dialog_buttons(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        self.ok = buttons.button(QDialogButtonBox.StandardButton.Ok)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        row = QHBoxLayout()
        row.addWidget(self.file_button)
        row.addWidget(self.state, 1)
        row.addWidget(buttons)
        box = QVBoxLayout(self)
        box.setContentsMargins(*(px(14),) * 4)
        box.setSpacing(px(8))
        box.addWidget(self.search)
        box.addWidget(self.list, 1)
        box.addLayout(row)
        self._entries: dict[Path, Entry] = {}
        self._follow()

    def read(self) -> None:
        """Read the library, elsewhere."""
        folder = self.bench.settings.library_folder
        job = self.bench.workers.run("Reading the library", library.scan, folder, {}, quiet=True)
        job.done.connect(self.offer)
        job.failed.connect(self.state.setText)

    def offer(self, entries: Sequence[Entry]) -> None:
        """Show these recordings, none of them ticked."""
        self.list.blockSignals(True)
        for recording in entries:
            if recording.path not in self._without and not recording.problem:
                self._entries[recording.path] = recording
                facts = [
                    recording.drive or "no drive",
                    duration(recording.seconds),
                    ", ".join(recording.channels),
                ]
                item = QListWidgetItem(f"{recording.name}\n{'  ·  '.join(facts)}")
                item.setData(PATH, recording.path)
                item.setCheckState(Qt.CheckState.Unchecked)
                item.setToolTip(recording.notes or recording.name)
                self.list.addItem(item)
        self.list.blockSignals(False)
        self.state.setText("" if self._entries else "The library holds no other recording.")
        self._follow()

    def _items(self) -> list[QListWidgetItem]:
        return [item for i in range(self.list.count()) if (item := self.list.item(i)) is not None]

    def _filter(self, words: str) -> None:
        for item in self._items():
            item.setHidden(not self._entries[item.data(PATH)].matches(words))

    def _toggle(self, item: QListWidgetItem) -> None:
        on = item.checkState() == Qt.CheckState.Checked
        item.setCheckState(Qt.CheckState.Unchecked if on else Qt.CheckState.Checked)

    def _ask_files(self) -> None:
        names, _ = QFileDialog.getOpenFileNames(self, self.windowTitle(), str(Path.home()))
        if names:
            self._elsewhere = [Path(name) for name in names]
            self.accept()

    def _follow(self) -> None:
        if self.ok is not None:
            self.ok.setEnabled(bool(self.chosen()))

    def chosen(self) -> list[Path]:
        """What was ticked, also where a search hides it, and files from elsewhere."""
        ticked = [i.data(PATH) for i in self._items() if i.checkState() == Qt.CheckState.Checked]
        return [*ticked, *self._elsewhere]
