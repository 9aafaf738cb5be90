"""From a recording on the virtual rig to a record in hand, and what can be made of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from PyQt6.QtCore import QMimeData, QPointF, Qt, QTimer, QUrl
from PyQt6.QtGui import QDropEvent
from PyQt6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from analysis.base.record import Marker, Record
from app.desktop.pages.recordings import ENTRY, RecordingsPage
from app.desktop.window import MainWindow
from drivers.formats import read, write
from tests.waiting import LONG_MS as LONG

Make = Callable[..., MainWindow]


def _library(folders: Path) -> Path:
    folder = folders / "data" / "shakedown" / "recordings"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _page(window: MainWindow) -> RecordingsPage:
    window.show_page("recordings")
    page = window.page
    assert isinstance(page, RecordingsPage)
    return page


def _sine(seconds: float = 4.0) -> Record:
    t = np.arange(int(500 * seconds)) / 500.0
    return Record.from_arrays(500.0, {"x": np.sin(20 * t), "v": np.cos(20 * t)}, {"x": "mm", "v": "mm/s"})


def test_given_a_recording_on_the_rig_when_saved_then_it_is_listed_found_and_taken_in_hand(
    window: MainWindow, qtbot: QtBot
) -> None:
    rig = window.bench.rig
    with qtbot.waitSignal(rig.recorded, timeout=LONG) as saved:
        rig.record("run one", "loud", ["chaos"], seconds=1.0)
    path = saved.args[0]
    page = _page(window)
    qtbot.waitUntil(lambda: page.current() is not None, timeout=LONG)
    entry = page.current()
    assert entry is not None and entry.path == path
    assert entry.tags == ("chaos",) and entry.samples == round(rig.rate)
    page.search.setText("chaos loud")
    assert page.list.count() == 1
    page.search.setText("quiet")
    assert page.list.count() == 0
    page.search.setText("")
    with qtbot.waitSignal(window.bench.record_changed, timeout=LONG):
        page.use()
    assert window.bench.record is not None
    assert len(window.bench.record.record) == entry.samples
    assert "run-one" in window.record_chip.text()


def test_given_files_when_dropped_then_good_ones_are_imported_and_bad_ones_explained(
    make_window: Make, qtbot: QtBot, folders: Path
) -> None:
    good, bad = folders / "bench.csv", folders / "broken.csv"
    write(_sine(), good)
    bad.write_text("t,x\n0,1\nhello")
    window = make_window(begin=False)
    page = _page(window)
    said: list[str] = []
    window.bench.noticed.connect(lambda notice: said.append(notice.text))
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(p)) for p in (good, bad)])
    drop = QDropEvent(
        QPointF(50, 50),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    page.dropEvent(drop)
    qtbot.waitUntil(lambda: len(said) >= 2, timeout=LONG)
    qtbot.waitUntil(lambda: page.current() is not None, timeout=LONG)
    assert any("bench is in the library" in text for text in said)
    assert any("broken.csv" in text for text in said)
    imported = read(_library(folders) / "bench.h5")
    assert np.allclose(imported["x"], _sine()["x"], atol=1e-6)


def test_given_a_recording_when_cut_and_annotated_then_the_original_is_untouched(
    make_window: Make, qtbot: QtBot, folders: Path
) -> None:
    path = _library(folders) / "run.h5"
    write(replace(_sine(), markers=(Marker(750, "tap"),)), path)
    before = path.read_bytes()
    window = make_window(begin=False)
    page = _page(window)
    qtbot.waitUntil(lambda: page.current() is not None, timeout=LONG)
    page.refresh()  # the folder is being read while it changes
    page.tags.setText("good, slow")
    page.notes.setText("looks fine")
    page.notes.editingFinished.emit()
    qtbot.waitUntil(lambda: bool(page.current() and page.current().tags == ("good", "slow")), timeout=LONG)
    page._cut()
    assert page.view.region is not None
    page._cut()  # a double click: nobody has marked anything yet
    assert page.cut_button.isChecked() and page.view.region is not None
    page.view.region.setRegion((1.0, 1.0))
    page._cut()
    assert "is empty" in window.notice._text.text() and page.view.region is not None
    page.view.region.setRegion((1.0, 2.0))
    page._cut()
    piece = _library(folders) / "run-cut.h5"
    qtbot.waitUntil(lambda: len(page.entries) == 2, timeout=LONG)
    assert path.read_bytes() == before
    record = read(piece)
    assert len(record) == 500
    assert np.allclose(record["x"], _sine()["x"][500:1000])
    assert record.metadata["derived_from"] == "run.h5"
    assert record.markers == (Marker(250, "tap"),)
    # One of the two behind the other, each from its own beginning.
    page.list.setCurrentRow(next(i for i in range(2) if page.list.item(i).data(ENTRY).name == "run"))
    qtbot.waitUntil(lambda: page.beside.count() == 2 and page.recording is not None, timeout=LONG)
    assert [line.value() for lines in page.view.markers.lines for line in lines] == [1.5, 1.5]
    page.beside.setFocus()
    qtbot.keyClick(page.beside, Qt.Key.Key_Down)
    assert page.beside.currentText() == "with run-cut"
    x, y = page.view._behind[0][0].getData()
    assert np.allclose(y, record["x"]) and x[0] == 0.0 and page.view._behind[1][1] == "v"
    page.view.fit()
    qtbot.keyClick(page.beside, Qt.Key.Key_Up)
    assert page.other is None and page.view._behind == []


def test_given_a_recording_when_replayed_then_the_acquire_page_shows_it_as_a_rig(
    make_window: Make, qtbot: QtBot, folders: Path
) -> None:
    write(_sine(), _library(folders) / "run.h5")
    window = make_window(begin=False)
    page = _page(window)
    qtbot.waitUntil(lambda: page.current() is not None, timeout=LONG)
    page.replay()
    qtbot.waitUntil(lambda: window.bench.feed.ring.stop > 200, timeout=LONG)
    assert window.bench.settings.page == "acquire"
    assert window.bench.rig.title == "Replay of run"
    assert window.bench.rig.limits is None


def test_given_a_damaged_file_in_the_library_when_listed_then_it_says_so_and_nothing_breaks(
    make_window: Make, qtbot: QtBot, folders: Path
) -> None:
    (_library(folders) / "torn.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + b"junk" * 100)
    window = make_window(begin=False)
    page = _page(window)
    qtbot.waitUntil(lambda: page.current() is not None, timeout=LONG)
    entry = page.current()
    assert entry is not None and "torn.h5" in entry.problem
    assert not page.use_button.isEnabled()


def test_given_an_empty_library_when_the_examples_are_loaded_then_one_can_be_taken_in_hand(
    make_window: Make, qtbot: QtBot
) -> None:
    window = make_window(begin=False)
    page = _page(window)
    page.load_examples()
    qtbot.waitUntil(lambda: page.current() is not None, timeout=LONG)
    with qtbot.waitSignal(window.bench.record_changed, timeout=LONG):
        page.use()
    assert window.bench.record is not None
    assert window.bench.record.record.excitation is not None
    assert window.bench.record.record.metadata["model"] == "beam_on_shaker"


def test_given_a_recording_in_the_bin_when_taken_back_then_it_is_there_again_with_its_notes(
    make_window: Make, qtbot: QtBot, folders: Path
) -> None:
    path = _library(folders) / "run [1].h5"  # a name that a pattern would misread
    write(_sine(), path)
    result = path.with_suffix(".json")
    result.write_text(json.dumps({"files": [str(path)]}))  # of the loop that made the recording
    before = path.read_bytes()
    window = make_window(begin=False)
    page = _page(window)
    assert page.empty.text.text() == "Reading the library …"
    qtbot.waitUntil(lambda: page.current() is not None and page.recording is not None, timeout=LONG)
    page.notes.setFocus()
    qtbot.waitUntil(page.notes.hasFocus, timeout=LONG)
    qtbot.keyClicks(page.notes, "first line")
    qtbot.keyClick(page.notes, Qt.Key.Key_Return)
    qtbot.keyClicks(page.notes, "second line")
    page.list.setFocus()
    notes = "first line\nsecond line"
    qtbot.waitUntil(lambda: bool(page.current() and page.current().notes == notes), timeout=LONG)
    for way in ("button", "key"):
        qtbot.waitUntil(lambda: page.current() is not None and not page._reading, timeout=LONG)
        if way == "button":
            page.list.setFocus()
            qtbot.keyClick(page.list, Qt.Key.Key_Delete)
        else:
            page.search.setFocus()
            qtbot.mouseClick(page.bin_button, Qt.MouseButton.LeftButton)
        assert not path.exists() and not result.exists() and window.notice.undo.isVisible()
        qtbot.waitUntil(lambda: not page.entries, timeout=LONG)
        assert page.empty.text.text().startswith("No recording yet")
        if way == "button":
            qtbot.mouseClick(window.notice.undo, Qt.MouseButton.LeftButton)
        else:
            focused = window.focusWidget()
            assert focused is not page.search  # it would keep Ctrl+Z for its own text
            qtbot.keyClick(focused, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
        assert path.read_bytes() == before and result.exists()
        assert window.notice._text.text() == f"{path.stem} is back."  # not its file of notes
        qtbot.waitUntil(lambda: bool(page.current() and page.current().notes == notes), timeout=LONG)
    qtbot.keyClick(page.list, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert page.search.hasFocus()


def test_given_a_second_window_then_it_says_so_and_shares_the_library(
    make_window: Make, qtbot: QtBot, folders: Path
) -> None:
    write(_sine(), _library(folders) / "run.h5")
    first = make_window("recordings")
    second = make_window("recordings", begin=False)
    said: list[str] = []
    second.bench.noticed.connect(lambda notice: said.append(notice.text))
    second.begin([])
    assert any("Another window is open" in text for text in said)
    page = _page(second)
    qtbot.waitUntil(lambda: page.current() is not None, timeout=LONG)
    assert first.isVisible()


def test_given_a_table_of_a_laboratory_then_the_preview_shows_its_guesses_and_imports_what_is_chosen(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    from app.desktop.widgets.importing import ImportDialog

    paths = [tmp_path / "block1.csv", tmp_path / "block2.csv"]
    for path in paths:
        path.write_text("run 7\nclock;Weg (mm)\n" + "".join(f"{i};{i},5\n" for i in range(20)))
    window = make_window("recordings", begin=False)
    page = window.pages["recordings"]

    def answer() -> None:
        dialog = QApplication.activeModalWidget()
        assert isinstance(dialog, ImportDialog)
        qtbot.waitUntil(lambda: dialog.found is not None, timeout=LONG)
        assert dialog.found.problem  # no sample rate
        assert "“Sample rate”" in dialog.state.text() and "--" not in dialog.state.text()
        assert dialog.table.item(1, 0).text() == "clock;Weg (mm)"  # the text itself shows what to choose
        assert dialog.table.verticalHeaderItem(1).text() == "2"
        dialog.rate.setValue(10.0)
        dialog.look()
        qtbot.waitUntil(lambda: dialog.found is not None and not dialog.found.problem, timeout=LONG)
        qtbot.waitUntil(dialog.take.isEnabled, timeout=LONG)
        column = dialog.found.names.index("Weg")
        dialog.table.item(0, column).setText("x")
        dialog.table.item(1, column).setText("m")
        dialog.join.setChecked(True)
        qtbot.mouseClick(dialog.take, Qt.MouseButton.LeftButton)

    QTimer.singleShot(0, answer)
    page.import_with_preview(paths)
    made = page.folder / "block1.h5"
    qtbot.waitUntil(made.exists, timeout=LONG)
    qtbot.waitUntil(lambda: not window.bench.workers.jobs, timeout=LONG)
    record = read(made)
    assert record.channels["x"].unit == "m" and len(record) == 40
