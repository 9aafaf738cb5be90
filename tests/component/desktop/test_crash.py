"""A failure in the window that nobody expected: it goes on, the drive stops, the log has the traceback."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest
from PyQt6.QtCore import QTimer
from PyQt6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from analysis import __version__
from app.desktop.about import About, parts
from app.desktop.crash import CrashDesk
from app.desktop.window import MainWindow
from app.desktop.workbench import Notice
from drivers.base.logs import flush_log, log_path
from tests.waiting import LONG_MS as LONG

Make = Callable[..., MainWindow]


@pytest.fixture
def shaking(
    make_window: Make, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[MainWindow, list[Notice]]]:
    """A window whose virtual shaker runs, with a log of its own; and what it says."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    window = make_window()
    said: list[Notice] = []
    window.bench.noticed.connect(said.append)
    crashes = CrashDesk(window.bench)
    qtbot.waitUntil(lambda: window.bench.rig.drive_status().waveform != "", timeout=LONG)
    yield window, said
    crashes.end()


def _fail() -> None:
    raise ZeroDivisionError("in a slot")


@pytest.mark.qt_no_exception_capture
def test_given_a_slot_that_fails_then_a_word_the_drive_stopped_and_the_log(
    shaking: tuple[MainWindow, list[Notice]], qtbot: QtBot
) -> None:
    window, said = shaking
    QTimer.singleShot(0, _fail)
    QTimer.singleShot(5, _fail)  # the same again is not said again, nor written with its traceback
    qtbot.waitUntil(lambda: window.bench.rig.drive_status().latched, timeout=LONG)
    assert window.isVisible()
    assert "ZeroDivisionError" in window.bench.rig.drive_status().reason
    qtbot.wait(50)
    words = [n.text for n in said if "ZeroDivisionError" in n.text]
    assert len(words) == 1 and str(log_path()) in words[0]
    text = window.notice._text
    assert window.stack.rect().contains(window.notice.geometry())  # also beside the bar of the stopped drive
    assert text.heightForWidth(text.width()) <= text.height() < 2 * text.heightForWidth(text.width())
    flush_log()
    assert log_path().read_text().count("ZeroDivisionError: in a slot") == 1
    _fail_in_a_thread(qtbot, said)


def _fail_in_a_thread(qtbot: QtBot, said: list[Notice]) -> None:
    def work() -> None:
        raise KeyError("in a thread")

    threading.Thread(target=work).start()
    qtbot.waitUntil(lambda: any("KeyError" in n.text for n in said), timeout=LONG)


def test_given_the_about_box_then_it_names_the_version_and_copies_the_doctors_page(
    make_window: Make, qtbot: QtBot
) -> None:
    window = make_window(begin=False)
    about = About(window.bench, window)
    qtbot.addWidget(about)
    assert __version__ in about.version.text()
    stated = {name: (number, licence) for name, number, licence in parts()}
    assert stated["PyQt6"] == (metadata.version("PyQt6"), "GPL-3.0-only")
    assert stated["scipy"][1] == "BSD License"  # its metadata holds the text of the licence, not its name
    assert all(number and licence and "\n" not in licence for number, licence in stated.values())
    about.copy_report()
    clipboard = QApplication.clipboard()
    assert clipboard is not None
    qtbot.waitUntil(lambda: "Shakedown: " in clipboard.text(), timeout=LONG)
