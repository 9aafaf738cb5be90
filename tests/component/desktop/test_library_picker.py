"""Other recordings are picked from the library, by what drives them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PyQt6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.desktop.widgets.librarypicker import LibraryPicker
from app.desktop.window import MainWindow
from app.library import Entry


def test_given_a_library_then_what_is_ticked_is_chosen_also_behind_a_search(
    make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    window = make_window("report", begin=False)
    picker = LibraryPicker(window.bench, window, "Recordings", [Path("hand.h5")])
    qtbot.addWidget(picker)
    picker.offer([
        Entry(Path("hand.h5"), "1"), Entry(Path("low.h5"), "2", drive="sine 7 Hz", rate=10.0, samples=600),
        Entry(Path("high.h5"), "3", drive="sine 9 Hz"), Entry(Path("broken.h5"), "4", problem="damaged"),
    ])  # fmt: skip
    assert [item.data(Qt.ItemDataRole.UserRole).stem for item in picker._items()] == ["low", "high"]
    assert picker.ok is not None and not picker.ok.isEnabled()
    assert "sine 7 Hz" in picker._items()[0].text()
    picker._items()[0].setCheckState(Qt.CheckState.Checked)
    picker.search.setText("9 Hz")
    assert picker._items()[0].isHidden() and not picker._items()[1].isHidden()
    picker.list.itemActivated.emit(picker._items()[1])
    assert [p.stem for p in picker.chosen()] == ["low", "high"] and picker.ok.isEnabled()
