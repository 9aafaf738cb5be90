"""Ctrl-C in the terminal of a window, or its terminal closed: the shaker to zero, all saved, then the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from drivers.formats import read
from tests.waiting import LONG_MS, wait_until

LONG = LONG_MS / 1e3
# The real start of the desktop; its recording begins when its shaker does. With a dialog, one that waits.
WINDOW = """
if __name__ == "__main__":  # the rig's process imports this again
    import sys
    from PyQt6.QtCore import QTimer
    from PyQt6.QtWidgets import QMessageBox
    from app.desktop import main

    build = main.build

    def recording(settings=None):
        window = build(settings)
        window.bench.rig.opened.connect(lambda: window.bench.rig.record("kept"))
        if sys.argv[1] == "dialog":
            QTimer.singleShot(0, lambda: QMessageBox(window).exec())
        return window

    main.build = recording
    raise SystemExit(main.start("two_well_beam_modern"))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")
@pytest.mark.parametrize(
    "name, whom, dialog", [("SIGINT", os.killpg, ""), ("SIGINT", os.kill, "dialog"), ("SIGHUP", os.kill, "")]
)
def test_given_a_window_that_drives_and_records_when_asked_to_end_then_it_stops_saves_and_ends(
    folders: Path, monkeypatch: pytest.MonkeyPatch, name: str, whom: object, dialog: str
) -> None:
    """The terminal sends Ctrl-C to every process of the program, ``kill`` sends a signal to one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folders / "state"))
    script = folders / "window.py"
    script.write_text(WINDOW)
    root = Path(__file__).parents[3]
    journal = folders / "data" / "shakedown" / "recordings" / "kept.h5.journal"
    with subprocess.Popen(
        [sys.executable, str(script), dialog or "none"],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(root)},
        cwd=folders,
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    ) as window:
        try:
            wait_until(lambda: journal.exists() and journal.stat().st_size > 60_000, seconds=LONG)
            number = signal.Signals[name]
            whom(window.pid, number)  # type: ignore[operator]
            assert window.wait(LONG) == 128 + number
        finally:
            window.kill()
    log = (folders / "state" / "shakedown" / "shakedown.log").read_text()
    stopped = [line for line in log.splitlines() if "drive stopped" in line]
    words = {"SIGINT": ("Ctrl-C was pressed", "SIGINT"), "SIGHUP": ("the terminal was closed",)}[name]
    assert stopped and any(word in stopped[0] for word in words) and "Traceback" not in log
    assert not journal.exists()
    record = read(journal.with_name("kept.h5"))
    assert not record.channels["x"].gaps
    assert np.abs(record["drive"]).max() > 1.0 and len(record) > 1500
