"""What a model is held against besides the record in hand: other recordings, a transfer function."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QFileDialog, QHBoxLayout, QVBoxLayout, QWidget

from app.desktop.widgets.basics import button, label
from app.desktop.widgets.librarypicker import LibraryPicker
from app.desktop.workbench import Workbench


class EvidenceBox(QWidget):
    """Files that the checks may use; each change asks for new checks."""

    changed = pyqtSignal()

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self.bench = bench
        self.others: list[Path] = []
        self.transfer: Path | None = None
        self.state = label("", "small", wrap=True)
        self.clear_button = button("Clear", self.clear, "Check against the record in hand alone")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(bench.theme.px(6))
        column.addWidget(
            button(
                "Other recordings …",
                self._choose_others,
                "Recordings at other settings of the drive: they test the bifurcation diagram",
            )
        )
        column.addWidget(
            button(
                "Transfer function …",
                self._choose_transfer,
                "A table (frequency, real, imag, coherence) or a recording under a broadband input: "
                "it tests rest states and small motions",
            )
        )
        row = QHBoxLayout()
        row.addWidget(self.state, 1)
        row.addWidget(self.clear_button)
        column.addLayout(row)
        self._tell()

    def add_others(self, paths: list[Path]) -> None:
        """Recordings at other settings of the drive."""
        self.others += [path for path in paths if path not in self.others]
        self._tell()
        self.changed.emit()

    def use_transfer(self, path: Path) -> None:
        """A measured transfer function, or a recording from which it is computed."""
        self.transfer = path
        self._tell()
        self.changed.emit()

    def clear(self) -> None:
        self.forget()
        self.changed.emit()

    def forget(self) -> None:
        """Nothing besides the record in hand; the checks are not asked for."""
        self.others, self.transfer = [], None
        self._tell()

    def _choose_others(self) -> None:
        record = self.bench.record
        known = [*self.others, *([record.path] if record is not None and record.path is not None else [])]
        picker = LibraryPicker(self.bench, self, "Recordings at other settings", known)
        picker.read()
        if picker.exec() and (chosen := picker.chosen()):
            self.add_others(chosen)

    def _choose_transfer(self) -> None:
        folder = str(self.bench.settings.library_folder)
        name, _ = QFileDialog.getOpenFileName(self, "Transfer function", folder)
        if name:
            self.use_transfer(Path(name))

    def _tell(self) -> None:
        names = [path.stem for path in (*self.others, self.transfer) if path is not None]
        self.state.setText(f"Also beside {', '.join(names)}" if names else "")
        self.state.setVisible(bool(names))
        self.clear_button.setVisible(bool(names))
