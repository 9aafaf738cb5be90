"""Keeps the computer from sleeping while it drives: a generator would play on with nobody watching.

``systemd-inhibit`` holds a lock of the login manager for as long as the command it runs lives. Here that is
``cat`` on a pipe of ours, which ends with the pipe, so also when this process is killed. Where there is no
login manager, or it refuses, nothing is held: the drive is then stopped when the computer wakes up.
"""

from __future__ import annotations

import logging
import shutil
import subprocess

_log = logging.getLogger(__name__)

_LOCK = ("--what=sleep:handle-lid-switch", "--who=Shakedown", "--why=a shaker is driven", "--mode=block")


class KeepAwake:
    """``hold(True)`` while a drive runs, ``hold(False)`` afterwards; neither waits for anything."""

    def __init__(self) -> None:
        self._program = shutil.which("systemd-inhibit")
        self._holder: subprocess.Popen[bytes] | None = None
        self._released: list[subprocess.Popen[bytes]] = []
        self._refused = False

    def hold(self, wanted: bool) -> None:
        self._released = [process for process in self._released if process.poll() is None]
        if self._program is None:
            return
        if wanted and self._holder is None:
            self._holder = self._start(self._program)
        elif not wanted and self._holder is not None:
            assert self._holder.stdin is not None
            self._holder.stdin.close()
            self._released.append(self._holder)
            self._holder = None
        elif self._holder is not None and not self._refused and self._holder.poll() is not None:
            self._refused = True
            _log.warning("the computer may sleep while it drives: systemd-inhibit was refused")

    def _start(self, program: str) -> subprocess.Popen[bytes] | None:
        try:
            return subprocess.Popen(
                [program, *_LOCK, "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            _log.warning("the computer may sleep while it drives: %s", error)
            self._program = None
            return None
