"""What was written to a converter, as far back as STOP needs it: where it stands, whether it rises."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from drivers.base.limits import STOP_RAMP, Limiter, Limits

PAST_SECONDS = 0.5  # over which the largest value is what the drive has reached
RISE = 1.01  # beyond that by more than sampling a peak at another phase explains: it rises


class WrittenSamples:
    """The samples of one task of the output, counted from its first."""

    def __init__(self, rate: float) -> None:
        self._past = round(PAST_SECONDS * rate)
        self._pieces: deque[tuple[int, NDArray[np.float64]]] = deque()  # the number of the first, the samples
        self.count = 0

    def add(self, samples: NDArray[np.float64]) -> None:
        self._pieces.append((self.count, samples))
        self.count += len(samples)

    def replace_from(self, first: int, samples: NDArray[np.float64]) -> None:
        """The samples from ``first`` on are other ones now."""
        while self._pieces and self._pieces[-1][0] >= first:
            self._pieces.pop()
        if self._pieces:
            begin, piece = self._pieces.pop()
            self._pieces.append((begin, piece[: first - begin]))
        self.count = first
        self.add(samples)

    def forget_before(self, played: int) -> None:
        """Keep what has not been played and what was played of late."""
        while len(self._pieces) > 1 and self._pieces[1][0] <= played - self._past:
            self._pieces.popleft()

    def held_after(self, played: int) -> float:
        """The value at which the converter stands after so many samples."""
        for begin, piece in reversed(self._pieces):
            if begin < played:
                return float(piece[min(played - begin, len(piece)) - 1])
        return 0.0

    def rises_after(self, played: int) -> bool:
        """Whether what has not been played goes beyond what was played of late."""
        past = to_come = 0.0
        for begin, piece in self._pieces:
            at = max(0, played - begin)
            past = max(past, float(np.abs(piece[:at]).max(initial=0.0)))
            to_come = max(to_come, float(np.abs(piece[at:]).max(initial=0.0)))
        return to_come > RISE * past


def fall_from(value: float, limits: Limits, rate: float, seconds: float = STOP_RAMP) -> NDArray[np.float64]:
    """From a value at which the output stands to zero, within ``seconds`` and the slew limit's tail."""
    count = max(1, round(seconds * rate))
    level = 1.0 - np.arange(1, count + 1) / count
    limiter = Limiter(limits, rate)
    limiter.output = value
    fall = limiter(np.concatenate([value * np.sin(0.5 * np.pi * level) ** 2, np.zeros(count + 2)]))
    sounding = np.flatnonzero(fall)
    return fall[: sounding[-1] + 3 if len(sounding) else 2]
