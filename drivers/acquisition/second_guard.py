"""The second guard: a tiny process that zeroes the output when the rig's process cannot.

It has a session of its own, loads nothing but the standard library (about 9 MB), outlives rig and window, and
does one thing. When the rig's process is gone, or drives and gives no sign of life for half a second (frozen,
suspended), or does not take a STOP, or its output does not fall after one, or nobody knows what it does, it
takes the output over: it marks the page, so that no driver raises the output again even if the process wakes
up, and sets each output to zero (:mod:`drivers.base.zeroing`).

What it cannot do: a machine that has lost its power or a dead kernel needs a hardware watchdog or interlock.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

from drivers.base import system
from drivers.base.drive_page import SILENT_SECONDS, DrivePage, process_state
from drivers.base.logs import begin_log
from drivers.base.zeroing import ZeroingFailed, zero_output

LOOK_SECONDS = 0.02  # between two looks at the page
STOP_SECONDS = 0.06  # that a STOP may stand in the page before the rig's process is taken for unable
FALL_SECONDS = 1.0  # that an output may take to fall after STOP: ramps take less than a tenth of it
UNKNOWN_SECONDS = 2.0  # without a word about a drive that played: its driver is stuck
KILL_SECONDS = 1.0  # in vain: then a frozen process that may hold the instrument is killed
AGAIN_SECONDS = 0.2  # between attempts to reach an output
GIVE_UP_SECONDS = 3600.0  # of an instrument that cannot be reached, after the rig's process has gone
MARK = "shakedown-guard"  # last argument of the process: by it other users' drives are seen

_log = logging.getLogger(__name__)  # written by a thread of its own: never waited for here


class SecondGuard:
    """Watches one rig through its page."""

    def __init__(self, page: DrivePage) -> None:
        self._page = page
        self._rig_gone = threading.Event()
        threading.Thread(target=self._await_end_of_rig, name="end of the rig", daemon=True).start()
        self._stop_since: float | None = None
        self._latched_since: float | None = None
        self._looked = time.monotonic()

    def run(self) -> None:
        """Until the rig has closed with its drive at zero, or has gone and its outputs are zero."""
        while not self._page.closed:
            self._wait()
            now = time.monotonic()
            self._page.guard_beat = now
            reason = self._reason(now)
            self._looked = now
            if reason and not self._page.closed and self._take_over(reason):
                return

    def _await_end_of_rig(self) -> None:
        """The pipe from the rig's process has an end as soon as that process is gone."""
        while os.read(0, 64):
            pass
        self._rig_gone.set()

    def _wait(self) -> None:
        if self._rig_gone.wait(LOOK_SECONDS) and self._page.guard_acted:
            time.sleep(LOOK_SECONDS)

    def _reason(self, now: float) -> str:
        """Why the output must be zeroed from here; empty while all is well."""
        page = self._page
        if self._rig_gone.is_set():
            return "the rig's process has ended without closing its drive"
        if not page.served:
            return ""
        if not page.stop_requested:
            self._stop_since = None
        elif self._stop_since is None:
            self._stop_since = now
        status = page.status
        driving = page.output > 0 or status.driving
        if not (driving and status.latched):
            self._latched_since = None
        elif self._latched_since is None:
            self._latched_since = now
        if not driving or page.guard_acted:
            return ""
        late = now - self._looked > 5 * LOOK_SECONDS  # this process was held up itself: look once more
        if now - page.rig_beat > SILENT_SECONDS and not late:
            return f"the rig's process gave no sign of life for {SILENT_SECONDS:g} s"
        if self._stop_since is not None and now - self._stop_since > STOP_SECONDS:
            return f"{page.stop_word or 'STOP'}; the rig's process did not take it"
        if self._latched_since is not None and now - self._latched_since > FALL_SECONDS:
            return f"{status.reason.rstrip('.') or 'STOP'}; the output did not fall"
        if now - status.at > UNKNOWN_SECONDS and not late:
            return f"the driver did not tell the state of its drive for {UNKNOWN_SECONDS:g} s"
        return ""

    def _take_over(self, reason: str) -> bool:
        """Zero every output until it has worked; True when there is nothing left to watch."""
        page, begin = self._page, time.monotonic()
        page.take_over(reason)
        page.request_stop(reason)
        _log.warning("took the output over: %s", reason)
        while not self._zero(reason):
            page.guard_beat = time.monotonic()
            waited = page.guard_beat - begin
            if waited > KILL_SECONDS and process_state(page.rig_pid) == "T":
                with contextlib.suppress(OSError):  # it may hold the only connection to the instrument
                    system.kill(page.rig_pid)
            if waited > GIVE_UP_SECONDS and not page.rig_lives():
                return True
            time.sleep(AGAIN_SECONDS)
        if self._rig_gone.is_set() or not page.rig_lives():
            page.closed = True
            page.remove()
            return True
        self._await_rig()
        return False

    def _zero(self, reason: str) -> bool:
        problems = []
        for how in self._page.outputs:
            try:
                zero_output(how)
            except ZeroingFailed as error:
                problems.append(str(error))
        if problems:
            self._page.take_over(f"{reason}; the output could not be reached: {'; '.join(problems)}")
        else:
            self._page.take_over(f"{reason}; the second guard set the output to zero", zeroed=True)
            _log.warning("set the output to zero")
        return not problems

    def _await_rig(self) -> None:
        """Until the rig's process lives again and has taken the STOP; what it sent in waking up is undone."""
        page = self._page
        while not self._rig_gone.is_set() and page.stop_requested:
            self._wait()
            page.guard_beat = time.monotonic()
        if page.guard_acted:  # else a person has armed the drive already
            for how in page.outputs:
                with contextlib.suppress(ZeroingFailed):
                    zero_output(how)
        self._looked = time.monotonic()


def main(path: str) -> None:
    """Run as ``python -I -S`` by :mod:`drivers.acquisition.guard_process`; ``path`` is the rig's page."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP", "SIGTTIN", "SIGTTOU"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    system.set_priority(-10)
    try:
        page = DrivePage.open(Path(path), os.getuid() if hasattr(os, "getuid") else None)
        page.hold_open()
    except (OSError, ValueError) as error:
        sys.exit(f"shakedown: the second guard cannot open {path}: {error}")
    page.guard_pid = os.getpid()
    page.guard_beat = time.monotonic()
    begin_log("second guard")
    SecondGuard(page).run()
