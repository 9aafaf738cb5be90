"""What systems do differently: priorities, sessions, locks, the end of a process, files, timers, names.

Each is one method of :class:`Posix` and of its twin :class:`Windows`; the rest of the program calls the
functions below and does not ask where it runs. Both are held to one contract by
tests/component/test_platform.py; there the twin runs on stand-ins for Windows' own functions, so it is proven
in its logic and not on Windows itself.
Standard library only: the second guard and ``shakedown stop`` start with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

LOCKED_BYTE = 1 << 43  # far behind the end of any file: a lock there hinders no reader
TRY_AGAIN_SECONDS = 2.0  # for a file that a virus scanner or a viewer has open for a moment
LONGEST_NAME = 120  # characters of a file name made from words of the user
LONGEST_PLAIN = 240  # characters of a path without the prefix for long ones; 260 less some for endings
_RESERVED = {"con", "prn", "aux", "nul", *(f"{p}{n}" for p in ("com", "lpt") for n in range(1, 10))}
_ABOVE_NORMAL, _NORMAL, _BELOW_NORMAL = 0x8000, 0x20, 0x4000  # priority classes
_NEW_PROCESS_GROUP, _NO_WINDOW = 0x200, 0x08000000  # of CreateProcess


class System(Protocol):
    """What differs."""

    def set_priority(self, steps: int) -> None:
        """Go before other processes (steps < 0), behind them (> 0) or among them (0), where it is allowed."""

    def lead_session(self) -> None:
        """Leave the terminal: its end and its keys are another process's affair."""

    def own_session(self) -> dict[str, Any]:
        """The same for a process that is started: arguments of ``subprocess.Popen``."""

    def lock(self, handle: int) -> bool:
        """Mark an open file as ours until it is closed or we die; False if another process has done so."""

    def kill(self, pid: int) -> None:
        """End a process at once."""

    def replace(self, source: Path, target: Path) -> None:
        """Put a file in the place of another, in one step."""

    def remove(self, path: Path, handle: int) -> None:
        """Remove a file that we hold open and locked, and let go of it."""

    def fine_timers(self) -> None:
        """Have waits end on the millisecond."""

    def seconds_asleep(self) -> tuple[float, float]:
        """At least and at most: for how long the computer has slept since it was started."""

    def long_path(self, path: Path) -> Path:
        """The path in the form in which it may be long."""


class Posix:
    """Linux and macOS."""

    def set_priority(self, steps: int) -> None:
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, 0, steps)

    def lead_session(self) -> None:
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                os.setsid()

    def own_session(self) -> dict[str, Any]:
        return {"start_new_session": True}

    def lock(self, handle: int) -> bool:
        if sys.platform != "win32":
            import fcntl

            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:
                return True  # a file system without locks (some network drives): better than nothing
        return True

    def kill(self, pid: int) -> None:
        if sys.platform != "win32":
            os.kill(pid, signal.SIGKILL)

    def replace(self, source: Path, target: Path) -> None:
        source.replace(target)

    def remove(self, path: Path, handle: int) -> None:
        path.unlink()  # first: nobody can take it in between
        os.close(handle)

    def fine_timers(self) -> None:
        """They are."""

    def seconds_asleep(self) -> tuple[float, float]:
        """``time.monotonic`` stands still in sleep; this other clock of the system (Linux, macOS) goes on."""
        if sys.platform == "win32":
            return 0.0, 0.0
        clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        before, total, after = time.monotonic(), time.clock_gettime(clock), time.monotonic()
        return total - after, total - before

    def long_path(self, path: Path) -> Path:
        return path


class Windows:
    """Windows; its functions can be given from outside, for tests on other systems."""

    def __init__(
        self, locking: Callable[[int, int, int], None] | None = None, dll: Callable[[str], Any] | None = None
    ) -> None:
        self._locking, self._dll = locking, dll or _windows_dll

    def set_priority(self, steps: int) -> None:
        kernel = self._dll("kernel32")
        kind = _ABOVE_NORMAL if steps < 0 else _BELOW_NORMAL if steps > 0 else _NORMAL
        kernel.SetPriorityClass(kernel.GetCurrentProcess(), kind)

    def lead_session(self) -> None:
        self._dll("kernel32").FreeConsole()  # whoever closes a console ends the processes that share it

    def own_session(self) -> dict[str, Any]:
        return {"creationflags": _NEW_PROCESS_GROUP | _NO_WINDOW}

    def lock(self, handle: int) -> bool:
        locking = self._locking or _windows_locking()
        position = os.lseek(handle, 0, os.SEEK_CUR)
        try:
            os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
            locking(handle, 2, 1)  # LK_NBLCK: one byte, without waiting
        except PermissionError:
            return False
        except OSError:
            return True
        finally:
            os.lseek(handle, position, os.SEEK_SET)
        return True

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGTERM)  # TerminateProcess: nothing of the process is asked

    def replace(self, source: Path, target: Path) -> None:
        _again_and_again(lambda: source.replace(target))

    def remove(self, path: Path, handle: int) -> None:
        os.close(handle)  # first: an open file cannot be removed here
        _again_and_again(path.unlink)

    def fine_timers(self) -> None:
        self._dll("winmm").timeBeginPeriod(1)  # ms; without it a wait ends on a grid of 16 ms

    def seconds_asleep(self) -> tuple[float, float]:
        """``time.monotonic`` goes on in sleep: signs of life are late then, which is seen by itself."""
        return 0.0, 0.0

    def long_path(self, path: Path) -> Path:
        text = str(path)
        if len(text) <= LONGEST_PLAIN or text.startswith("\\\\?\\"):
            return path
        return Path(f"\\\\?\\UNC{text[1:]}" if text.startswith("\\\\") else f"\\\\?\\{text}")


def _again_and_again(action: Callable[[], object]) -> None:
    """A file that somebody has open cannot be touched on Windows; most let go of it within moments."""
    deadline = time.monotonic() + TRY_AGAIN_SECONDS
    while True:
        try:
            action()
            return
        except PermissionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _windows_dll(name: str) -> Any:
    import ctypes

    return getattr(ctypes, "windll")[name]  # noqa: B009 (it is there on Windows only)


def _windows_locking() -> Callable[[int, int, int], None]:
    import msvcrt

    locking: Callable[[int, int, int], None] = getattr(msvcrt, "locking")  # noqa: B009
    return locking


_here: System = Windows() if sys.platform == "win32" else Posix()

set_priority = _here.set_priority
lead_session = _here.lead_session
own_session = _here.own_session
lock = _here.lock
kill = _here.kill
replace = _here.replace
remove = _here.remove
fine_timers = _here.fine_timers
seconds_asleep = _here.seconds_asleep
long_path = _here.long_path


def safe_stem(words: str) -> str:
    """A file name without ending that every system takes: no reserved name, no dot or blank at its end."""
    stem = words[:LONGEST_NAME].rstrip(". ")
    first, dot, rest = stem.partition(".")
    return f"{first}_{dot}{rest}" if first.lower() in _RESERVED else stem


def user_name(number: int) -> str:
    """The name of a user by number; the number itself where nobody knows."""
    if sys.platform == "win32":
        return str(number)
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
