"""Settings that are worth a dialog; all of them are lines of one plain file."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from app.desktop.about import About
from app.desktop.widgets.basics import IconButton, add_row, dialog_buttons, entry, form, label
from app.desktop.workbench import Workbench
from app.settings import config_folder

THEMES = ("system", "light", "dark")
SCALES = (0.0, 0.9, 1.0, 1.25, 1.5, 2.0)


class Preferences(QDialog):
    """Theme, size of text, library folder, operator, and whether virtual rigs start by themselves."""

    def __init__(self, bench: Workbench, parent: QWidget) -> None:
        super().__init__(parent)
        self.bench = bench
        settings, theme = bench.settings, bench.theme
        self.setWindowTitle("Settings")
        self.setMinimumWidth(theme.px(520))
        self.theme_box, self.scale_box = QComboBox(), QComboBox()
        self.theme_box.addItems(["Like the system", "Light", "Dark"])
        self.theme_box.setCurrentIndex(THEMES.index(settings.theme) if settings.theme in THEMES else 0)
        self.scale_box.addItems(["Chosen from the screen", *(f"{100 * s:.0f} %" for s in SCALES[1:])])
        self.scale_box.setCurrentIndex(SCALES.index(settings.scale) if settings.scale in SCALES else 0)
        self.scale_box.setToolTip("Size of text and controls; takes effect at the next start")
        self.library = entry(settings.library, str(settings.library_folder))
        self.library.setAccessibleName("Folder for recordings")
        self.operator = entry(settings.operator, "stored with each recording")
        self.shaking = QCheckBox("Virtual rigs start shaking when they are opened")
        self.shaking.setChecked(settings.start_shaking)
        self.specimens = QCheckBox("Each start clamps a new specimen, with parameters that nobody knows")
        self.specimens.setToolTip("Virtual rigs only; off: the specimen that the profile describes")
        self.specimens.setChecked(settings.new_specimens)
        fields = form(theme)
        add_row(theme, fields, "Appearance", self.theme_box)
        add_row(theme, fields, "Size", self.scale_box)
        folder = QWidget()
        row = QHBoxLayout(folder)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.library, 1)
        browse = IconButton(theme, "folder", "Choose the folder for recordings")
        browse.clicked.connect(self._browse)
        row.addWidget(browse)
        add_row(theme, fields, "Recordings in", folder)
        add_row(theme, fields, "Operator", self.operator)
        box = QVBoxLayout(self)
        box.setContentsMargins(*(theme.px(18),) * 4)
        box.setSpacing(theme.px(12))
        box.addLayout(fields)
        box.addWidget(self.shaking)
        box.addWidget(self.specimens)
        box.addWidget(label(f"Everything is kept in {config_folder() / 'settings.toml'}", "small", wrap=True))
        buttons = dialog_buttons(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        about = buttons.addButton("About", QDialogButtonBox.ButtonRole.HelpRole)
        assert about is not None
        about.clicked.connect(lambda: About(self.bench, self).exec())
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        box.addWidget(buttons)

    def _browse(self) -> None:
        start = str(self.bench.settings.library_folder)
        if chosen := QFileDialog.getExistingDirectory(self, "Folder for recordings", start):
            self.library.setText(chosen)

    def accept(self) -> None:
        settings = self.bench.settings
        settings.theme = THEMES[self.theme_box.currentIndex()]
        settings.scale = SCALES[self.scale_box.currentIndex()]
        text = self.library.text().strip()
        settings.library = str(Path(text).expanduser()) if text else ""
        settings.operator = self.bench.rig.operator = self.operator.text().strip()
        settings.start_shaking = self.shaking.isChecked()
        settings.new_specimens = self.specimens.isChecked()
        try:
            settings.save()
        except OSError as error:
            self.bench.say(f"The settings could not be saved: {error.strerror}.", "bad")
        self.bench.theme.choose(settings.theme)
        super().accept()
