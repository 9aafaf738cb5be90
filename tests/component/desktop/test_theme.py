"""The style sheet is whole wherever the program is installed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PyQt6.QtGui import QColor
from PyQt6.QtWidgets import QCheckBox
from pytestqt.qtbot import QtBot

from app.desktop import theme


def test_given_a_program_in_a_folder_with_odd_signs_in_its_name_then_its_widgets_are_styled(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / 'Prüf "stand" (1), 加速 {x}; é'
    shutil.copytree(theme.FOLDER, odd)
    monkeypatch.setattr(theme, "FOLDER", odd)
    box = QCheckBox("ticked")
    qtbot.addWidget(box)
    box.setStyleSheet(theme.stylesheet(theme.LIGHT, 1.0))
    box.setChecked(True)
    box.resize(200, 60)
    shown = box.grab().toImage()
    colours = [shown.pixelColor(x, y) for x in range(40) for y in range(shown.height())]
    assert QColor(theme.LIGHT.accent) in colours  # Qt drops a whole style sheet that it cannot read
    assert colours.count(QColor("white")) > 10  # the tick
