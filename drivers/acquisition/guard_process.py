"""Starts the second guard beside a rig, and starts it again if somebody ends it.

Where systemd runs, the guard is moved to a scope of its own. Otherwise whatever ends all processes of a
window at once (systemd-oomd when memory runs short, ``systemctl stop``) ends the guard with them, and a
generator plays on. The guard works from the beginning; if systemd refuses it stays where it is.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from drivers.acquisition.second_guard import MARK
from drivers.base import system
from drivers.base.drive_page import DrivePage, process_state

_ROOT = Path(__file__).parents[2]
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from drivers.acquisition.second_guard import main; main(sys.argv[2])"
)
AGAIN_SECONDS = 1.0  # between two attempts to start it
READY_SECONDS = 5.0  # for it to look at the page for the first time
BOOTED = Path("/run/systemd/system")  # is there where systemd runs (sd_booted(3))

_log = logging.getLogger(__name__)


class GuardProcess:
    """The guard of one page. Its end of a pipe tells it at once when this process is gone."""

    def __init__(self, page: DrivePage) -> None:
        self._page = page
        self._tried = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._moving: subprocess.Popen[bytes] | None = None
        self.keep_alive()
        deadline = time.monotonic() + READY_SECONDS
        while not self.watches and time.monotonic() < deadline:
            time.sleep(0.005)

    @property
    def watches(self) -> bool:
        """Whether it has looked at the page at least once."""
        return self._page.guard_beat > 0.0

    def keep_alive(self) -> None:
        """Start it if it does not run. A suspended one is ended first: it would see nothing."""
        if self._moving is not None and self._moving.poll() is not None:
            if self._moving.returncode:
                _log.info("the second guard stays in the control group of this process")
            self._moving = None
        now = time.monotonic()
        if now - self._tried < AGAIN_SECONDS:
            return
        self._tried = now
        if self._process is not None and self._process.poll() is None:
            if process_state(self._process.pid) == "T":
                self._process.kill()
            return
        if self._process is not None and self._process.stdin is not None:
            _log.warning("the second guard ended (code %s): another is started", self._process.returncode)
            self._process.stdin.close()
        command = [sys.executable, "-I", "-S", "-c", _BOOT, str(_ROOT), str(self._page.path), MARK]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd="/" if sys.platform != "win32" else None, **system.own_session(),
        )  # fmt: skip
        self._moving = _move_to_own_scope(self._process.pid)


def _move_to_own_scope(pid: int) -> subprocess.Popen[bytes] | None:
    """Ask systemd for it (StartTransientUnit of org.freedesktop.systemd1), without waiting for the answer."""
    program = shutil.which("busctl")
    if program is None or not BOOTED.is_dir() or sys.platform == "win32":
        return None
    manager = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"]
    scope = [f"shakedown-guard-{pid}.scope", "fail", "1", "PIDs", "au", "1", str(pid), "0"]
    whose = "--system" if os.getuid() == 0 else "--user"
    try:
        return subprocess.Popen(
            [program, whose, "call", *manager, "StartTransientUnit", "ssa(sv)a(sa(sv))", *scope],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
    except OSError:
        return None
