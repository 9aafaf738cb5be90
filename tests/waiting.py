"""Waiting for what a test is about to assert, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

from drivers.base.clock import RealClock

# Only against hanging for ever: what is waited for comes much sooner.
GUARD = 60.0  # s
LONG = 600.0  # s: where equations may have to be compiled, by a process that gives way to others
GUARD_MS, LONG_MS = 60_000, 600_000


def wait_until(condition: Callable[[], object], what: str = "", seconds: float = GUARD) -> None:
    """Return as soon as the condition holds; fail if it never does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what or "did not happen"
        time.sleep(0.005)


class NotedClock(RealClock):
    """Real time, with the moments that were waited for: they show the pace of a source on a busy machine."""

    def __init__(self, speed: float = 1.0) -> None:
        super().__init__(speed)
        self.moments: list[float] = []

    def wait_until(self, moment: float) -> None:
        self.moments.append(moment)
        super().wait_until(moment)
