"""Tells how long a busy machine kept a process from running, so that delays can be judged without it."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path

import numpy as np

TICK = 0.002


class Heart:
    """Beats every 2 ms in a thread of its own and notes what the machine withheld from a process.

    What counts as the machine's doing and not the program's: pauses between beats, the time that threads of
    the process stood ready without being given a core, and the time that the host of a virtual machine took.
    The last two are known on Linux only.
    """

    def __init__(self, pid: int | None = None) -> None:
        self._tasks = Path(f"/proc/{pid or os.getpid()}/task")
        self._waits: dict[str, float] = {}  # s of each thread
        self._withheld = 0.0  # s, of all threads and the host together
        self._stolen = _stolen()
        self._beats: list[tuple[float, float]] = []
        self._note()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heart", daemon=True)

    def __enter__(self) -> Heart:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._end.wait(TICK):
            self._note()

    def _note(self) -> None:
        for thread, waited in _waits(self._tasks).items():
            self._withheld += max(0.0, waited - self._waits.get(thread, 0.0)) if self._beats else 0.0
            self._waits[thread] = waited
        stolen = _stolen()
        self._withheld += stolen - self._stolen
        self._stolen = stolen
        self._beats.append((time.monotonic(), self._withheld))

    def stalled(self, since: float, until: float) -> float:
        """Seconds between two times in which the process was kept from running."""
        beats, withheld = np.array(self._beats).T
        inside = slice(max(0, int(np.searchsorted(beats, since)) - 1), int(np.searchsorted(beats, until)) + 1)
        pauses = np.maximum(np.diff(beats[inside]) - 3 * TICK, 0).sum()
        return float(max(pauses, np.ptp(withheld[inside])))


def _waits(tasks: Path) -> dict[str, float]:
    """Seconds that each thread has waited for a core so far."""
    found = {}
    with contextlib.suppress(OSError):  # the process has ended, or this is no Linux
        for task in tasks.iterdir():
            with contextlib.suppress(OSError, IndexError):  # the thread has ended, or nothing is counted
                found[task.name] = 1e-9 * float((task / "schedstat").read_text().split()[1])
    return found


def _stolen() -> float:
    """Seconds that the host of this virtual machine gave to others so far."""
    try:
        return int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0
