"""Clocks that can be exchanged, so that a simulated instrument runs in real time or as fast as possible."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Time in seconds from an arbitrary zero, and waiting for it."""

    @property
    def waits(self) -> bool:
        """True if time stands still until somebody asks for more of it."""
        ...

    def now(self) -> float: ...

    def wait_until(self, moment: float) -> None: ...


class RealClock:
    """The machine's steady clock, whatever is done to the time of day. ``speed`` 2 runs twice as fast."""

    waits = False

    def __init__(self, speed: float = 1.0) -> None:
        self._speed = speed

    def now(self) -> float:
        return time.monotonic() * self._speed

    def wait_until(self, moment: float) -> None:
        delay = (moment - self.now()) / self._speed
        if delay > 0:
            time.sleep(delay)


class InstantClock:
    """Time that jumps to whatever is waited for: simulations and tests never sleep."""

    waits = True

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def wait_until(self, moment: float) -> None:
        self._now = max(self._now, moment)
