"""Triggers: where a channel crosses a level, with pre-trigger, hold-off and re-arming."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis import DataError


@dataclass(frozen=True)
class Trigger:
    """Fires where ``channel`` crosses ``level`` in the direction of ``slope``.

    After firing it stays deaf for ``hold_off`` seconds and until the signal has gone back beyond the level by
    ``hysteresis``, so that noise on a slow edge fires it once.
    """

    channel: str
    level: float
    slope: str = "rising"  # or "falling"
    before: float = 0.0  # s kept from before the crossing
    hold_off: float = 0.0  # s
    hysteresis: float = 0.0  # in the channel's unit

    def __post_init__(self) -> None:
        if self.slope not in ("rising", "falling"):
            raise DataError(f"A trigger's slope is rising or falling, not '{self.slope}'.")
        if min(self.before, self.hold_off, self.hysteresis) < 0 or not np.isfinite(self.level):
            raise DataError("A trigger needs a finite level; times and hysteresis must not be negative.")

    def row(self, names: Sequence[str]) -> int:
        """The position of its channel; DataError if there is none of that name."""
        if self.channel not in names:
            raise DataError(f"No channel '{self.channel}' for the trigger: there are {', '.join(names)}.")
        return list(names).index(self.channel)


class TriggerFinder:
    """Looks for crossings in a stream of samples; remembers what it needs between blocks."""

    def __init__(self, trigger: Trigger, rate: float) -> None:
        self.trigger = trigger
        self._sign = 1.0 if trigger.slope == "rising" else -1.0
        self._hold = round(trigger.hold_off * rate)
        self._armed = False
        self._deaf_until = -1
        self._expected: int | None = None

    def find(self, samples: NDArray[np.float64], start_index: int) -> int | None:
        """Index of the first crossing at or after ``start_index``; None if there is none in these samples.

        Continue behind a crossing by passing the rest of the block.
        """
        if self._expected is not None and start_index != self._expected:
            self._armed = False  # a crossing inside a gap cannot be dated
        values = self._sign * samples
        level = self._sign * self.trigger.level
        ready = level - self.trigger.hysteresis
        at, count = max(0, min(self._deaf_until - start_index, len(values))), len(values)
        while at < count:
            if not self._armed:
                below = np.flatnonzero(values[at:] < ready)
                if len(below) == 0:
                    break
                at += int(below[0])
                self._armed = True
            above = np.flatnonzero(values[at:] >= level)
            if len(above) == 0:
                break
            index = start_index + at + int(above[0])
            self._armed = False
            self._deaf_until = index + max(1, self._hold)
            self._expected = index + 1
            return index
        self._expected = start_index + count
        return None
