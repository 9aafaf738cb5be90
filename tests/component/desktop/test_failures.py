"""What goes wrong at a rig: the window says so in words, and nothing recorded is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from app.desktop import rigdesk
from app.desktop.opening import OpenedRig
from app.desktop.window import MainWindow
from app.desktop.workbench import Notice
from app.settings import Settings
from drivers.base.protocols import Block, LinkLost, Samples
from drivers.formats import read
from drivers.virtual.counter import CounterSource, Fault
from tests.waiting import GUARD_MS as GUARD
from tests.waiting import LONG_MS as LONG
from tests.waiting import wait_until

Make = Callable[..., MainWindow]


def _open(monkeypatch: pytest.MonkeyPatch, source: CounterSource) -> None:
    """The next rig that is opened is this one."""

    def opener(name: str, *_: object, waiting: object = None) -> OpenedRig:
        return OpenedRig(name, "Counter", source, None, source.close)

    monkeypatch.setattr(rigdesk, "open_rig", opener)


class Fragile(CounterSource):
    """A counter whose cable can be pulled."""

    broken = False

    def read(self, into: Samples) -> Block:
        if self.broken:
            raise LinkLost("The device was unplugged; what was recorded so far is safe.")
        return super().read(into)


class Holed(CounterSource):
    """A counter that loses samples and goes beyond its range when it is told to."""

    failing = False

    def read(self, into: Samples) -> Block:
        if self.failing:
            self.failing = False
            self._faults = [Fault("gap", self._next + 400, 300), Fault("overload", self._next + 1000, 50)]
        return super().read(into)


def _notices(window: MainWindow) -> list[Notice]:
    heard: list[Notice] = []
    window.bench.noticed.connect(heard.append)
    return heard


def test_given_a_device_that_is_lost_while_recording_then_everything_up_to_there_is_saved(
    make_window: Make, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Fragile(2, 2000.0)
    _open(monkeypatch, source)
    window = make_window()
    heard, rig = _notices(window), window.bench.rig
    saved: list[Path] = []
    rig.recorded.connect(saved.append)
    rig.record("until it breaks")
    before = rig.status().samples
    qtbot.waitUntil(lambda: rig.status().samples > before + 2500, timeout=GUARD)
    source.broken = True
    qtbot.waitUntil(lambda: bool(saved) and any(n.level == "bad" for n in heard), timeout=GUARD)
    problem = next(n for n in heard if n.level == "bad")
    assert "unplugged" in problem.text
    assert window.notice.isVisible() and window.notice.notice == problem  # stays until dismissed
    counted = read(saved[0])["c0"]
    assert len(counted) > 1000
    assert np.array_equal(np.diff(counted), np.ones(len(counted) - 1))
    assert counted[-1] == rig.status().samples - 1  # to the last sample that arrived
    assert not rig.recording and rig.failure
    window.show_page("recordings")  # the window still works


def test_given_gaps_and_overloads_then_they_are_counted_drawn_and_stored(
    make_window: Make, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Holed(2, 2000.0)
    _open(monkeypatch, source)
    window = make_window()
    rig = window.bench.rig
    with qtbot.waitSignal(rig.recorded, timeout=GUARD) as saved:
        rig.record("holes")
        before = rig.status().samples
        qtbot.waitUntil(lambda: rig.status().samples > before + 500, timeout=GUARD)
        source.failing = True
        qtbot.waitUntil(lambda: rig.status().overloads > 0, timeout=GUARD)
        after = rig.status().samples
        qtbot.waitUntil(lambda: rig.status().samples > after + 500, timeout=GUARD)
        rig.stop_recording()
    window.status.refresh()
    assert window.status.cells["gaps"].text() == "1 gap"
    assert window.status.cells["overloads"].text() == "1 overload"
    channel = read(saved.args[0]).channels["c0"]
    assert [stop - start for start, stop in channel.gaps] == [300]
    assert [stop - start for start, stop in channel.clipped] == [50]
    qtbot.waitUntil(lambda: window.bench.feed.stats[0].overloads == 1, timeout=GUARD)


def test_given_a_disk_that_takes_nothing_when_recording_then_it_is_said_and_the_window_lives(
    window: MainWindow, qtbot: QtBot, folders: Path
) -> None:
    heard = _notices(window)
    blocked = folders / "file"
    blocked.write_text("not a folder")
    window.bench.settings.library = str(blocked / "recordings")
    panel = window.pages["acquire"].record_panel  # type: ignore[attr-defined]
    panel.toggle()
    assert any("could not be started" in n.text for n in heard)
    assert not window.bench.rig.recording
    assert not panel.button.isChecked()


def test_given_a_full_disk_while_recording_then_it_ends_loudly_with_what_fitted(
    make_window: Make, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    _open(monkeypatch, CounterSource(2, 20_000.0))
    window = make_window()
    heard = _notices(window)
    written = 0
    real = os.writev

    def small_disk(handle: int, parts: list[bytes]) -> int:
        nonlocal written
        written += sum(memoryview(part).nbytes for part in parts)
        if written > 400_000:
            raise OSError(28, "No space left on device")
        return real(handle, parts)

    monkeypatch.setattr("drivers.recording.journal.os.writev", small_disk)
    window.bench.rig.record("too long")
    qtbot.waitUntil(lambda: any(n.level == "bad" for n in heard), timeout=GUARD)
    text = next(n.text for n in heard if n.level == "bad")
    assert "space" in text.lower() or "full" in text.lower() or "disk" in text.lower()
    assert not window.bench.rig.recording
    assert window.bench.rig.running  # the stream itself goes on


def test_given_a_rig_that_does_not_exist_when_opened_then_the_window_says_which_there_are(
    make_window: Make, qtbot: QtBot
) -> None:
    window = make_window(begin=False, rig="no_such_rig")
    heard = _notices(window)
    window.begin([])
    qtbot.waitUntil(lambda: any(n.level == "bad" for n in heard), timeout=GUARD)
    assert "no_such_rig" in next(n.text for n in heard if n.level == "bad")
    assert window.bench.rig.channels == ()


def test_given_a_drive_beyond_the_limits_when_asked_for_then_it_is_refused_in_words(
    window: MainWindow, qtbot: QtBot
) -> None:
    heard = _notices(window)
    panel = window.pages["acquire"].drive_panel  # type: ignore[attr-defined]
    qtbot.waitUntil(lambda: window.bench.rig.drive().playing, timeout=GUARD)
    window.bench.rig.change(frequency=1e5)
    qtbot.waitUntil(lambda: any(n.level == "bad" for n in heard), timeout=GUARD)
    assert "Hz" in next(n.text for n in heard if n.level == "bad")
    assert panel.frequency.maximum() <= 60.0


COUNTER = (
    "from app.desktop.opening import OpenedRig\n"
    "from drivers.virtual.counter import CounterSource\n"
    "source = CounterSource(2, 2000.0)\n"
    "def opener(name, specimen, waiting):\n"
    "    return OpenedRig(name, 'Counter', source, None, source.close)\n"
    "rigdesk.open_rig = opener\n"
)
WINDOW = (
    "from PyQt6.QtWidgets import QApplication\n"
    "from app.desktop import rigdesk\n"
    "from app.desktop.main import build\n"
    "from app.settings import Settings\n"
    "if __name__ == '__main__':\n"
    "    {rig}\n"
    "    app = QApplication(['x'])\n"
    "    window = build(Settings(tour_done=True))\n"
    "    window.show()\n"
    "    window.bench.rig.opened.connect(lambda: window.bench.rig.record('killed'))\n"
    "    window.begin([])\n"
    "    app.exec()\n"
)


def _kill_while_recording(folders: Path, rig: str, size: int) -> Path:
    """Run a window that records, end it with kill -9 once the journal has this size; the journal."""
    victim = subprocess.Popen(
        [sys.executable, "-c", WINDOW.format(rig=rig.replace("\n", "\n    "))],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        cwd=Path(__file__).parents[3],
        stderr=subprocess.DEVNULL,
    )
    journal = folders / "data" / "shakedown" / "recordings" / "killed.h5.journal"
    try:
        wait_until(lambda: journal.exists() and journal.stat().st_size > size, seconds=LONG / 1e3)
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    return journal


def test_given_a_window_killed_while_recording_then_the_recorder_finishes_and_the_next_start_offers_it(
    make_window: Make, qtbot: QtBot, folders: Path
) -> None:
    journal = _kill_while_recording(folders, "pass", 200_000)
    marked = Settings.load()
    assert marked.recording == str(journal.with_suffix(""))
    window = make_window(begin=False, recording=marked.recording)
    heard = _notices(window)
    window.bench.restore_unfinished()
    qtbot.waitUntil(lambda: any("Everything recorded is saved" in n.text for n in heard), timeout=LONG)
    assert not journal.exists() and window.bench.settings.recording == ""
    record = read(journal.with_name("killed.h5"))
    assert len(record) * 32 > 150_000 and not record.channels["x"].gaps
    quiet = record["drive"][-10:]
    assert np.abs(quiet).max() < 0.01 < np.abs(record["drive"]).max()  # until the shaker stood still


def test_given_a_recording_that_was_cut_off_when_started_again_then_it_is_restored(
    make_window: Make, qtbot: QtBot, folders: Path
) -> None:
    journal = _kill_while_recording(folders, COUNTER, 30_000)
    window = make_window(begin=False)
    heard = _notices(window)
    window.bench.restore_unfinished()
    qtbot.waitUntil(lambda: any("restored" in n.text for n in heard), timeout=LONG)
    counted = read(journal.with_name("killed.h5"))["c0"]
    assert len(counted) * 16 > 20_000
    assert np.array_equal(np.diff(counted), np.ones(len(counted) - 1))
