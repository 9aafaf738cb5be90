"""Starts the second guard beside a rig, and starts it again if somebody ends it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from drivers.acquisition.second_guard import MARK
from drivers.base.drive_page import DrivePage

_ROOT = Path(__file__).parents[2]
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from drivers.acquisition.second_guard import main; main(sys.argv[2])"
)
AGAIN_SECONDS = 1.0  # between two attempts to start it
READY_SECONDS = 5.0  # for it to look at the page for the first time


class GuardProcess:
    """The guard of one page. Its end of a pipe tells it at once when this process is gone."""

    def __init__(self, page: DrivePage) -> None:
        self._page = page
        self._tried = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self.keep_alive()
        deadline = time.monotonic() + READY_SECONDS
        while page.guard_beat == 0.0 and time.monotonic() < deadline:
            time.sleep(0.005)

    def keep_alive(self) -> None:
        """Start it if it does not run."""
        now = time.monotonic()
        if now - self._tried < AGAIN_SECONDS or (self._process is not None and self._process.poll() is None):
            return
        self._tried = now
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        command = [sys.executable, "-I", "-S", "-c", _BOOT, str(_ROOT), str(self._page.path), MARK]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, cwd="/" if sys.platform != "win32" else None,
        )  # fmt: skip
