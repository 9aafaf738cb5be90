"""A real window with fresh settings, on the display or off screen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "" if os.environ.get("DISPLAY") else "offscreen")

from PyQt6.QtCore import QEvent
from PyQt6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.desktop import opening, worker
from app.desktop.main import build
from app.desktop.window import MainWindow
from app.settings import Settings
from tests.waiting import GUARD_MS as GUARD
from tests.waiting import LONG_MS as LONG


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings and recordings in a folder of the test's own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture(autouse=True)
def patient_rig(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may keep the window from beating; what follows then is tested with the rig's process."""
    monkeypatch.setattr(opening, "PATIENCE", 120.0)


@pytest.fixture(autouse=True)
def eager_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that gives way to everything else on a busy machine would be waited for without end."""
    monkeypatch.setattr(worker, "NICENESS", 0)


@pytest.fixture
def make_window(qtbot: QtBot, folders: Path) -> Iterator[Callable[..., MainWindow]]:
    """Builds windows and closes them, whatever became of the test."""
    made: list[MainWindow] = []

    def make(page: str = "acquire", begin: bool = True, **settings: object) -> MainWindow:
        known = {"tour_done": True, "theme": "light", "new_specimens": False}
        window = build(Settings(**{**known, **settings}))  # type: ignore[arg-type]
        made.append(window)
        window.resize(1280, 720)
        window.show_page(page)
        window.show()
        with qtbot.waitExposed(window, timeout=GUARD):
            window.activateWindow()  # without a window manager nobody else does
        if begin:
            window.begin([])
            qtbot.waitUntil(lambda: window.bench.rig.running, timeout=LONG)
        return window

    yield make
    for window in made:
        window.bench.close()  # no questions asked
        window.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)  # before the next one is styled


@pytest.fixture
def window(make_window: Callable[..., MainWindow]) -> MainWindow:
    """A window on the virtual two-well beam, shaking."""
    return make_window()
