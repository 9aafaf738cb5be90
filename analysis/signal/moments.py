"""Mean, spread and extremes of the newest samples of a stream, at a cost of the new samples alone."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """By channel: what a stretch of samples did. Columns with a lost sample do not count."""

    count: int
    mean: Samples
    square: Samples  # sum of the squared deviations from the mean
    low: Samples
    high: Samples

    @classmethod
    def of(cls, data: Samples) -> Moments | None:
        """Of ``data[channels, n]``; None if nothing in it counts."""
        if data.shape[1] and np.isnan(data.sum()):
            data = data[:, ~np.isnan(data).any(axis=0)]
        if data.shape[1] == 0:
            return None
        mean = data.mean(axis=1)
        away = data - mean[:, None]
        square = np.einsum("ij,ij->i", away, away)
        return cls(data.shape[1], mean, square, data.min(axis=1), data.max(axis=1))

    @property
    def spread(self) -> Samples:
        """Root mean square about the mean."""
        return np.sqrt(self.square / self.count)


class RecentMoments:
    """The moments of the last ``span`` samples, give or take the oldest block."""

    def __init__(self, span: int) -> None:
        self._span = span
        self._parts: deque[tuple[int, Moments]] = deque()  # index after the last sample, moments

    def append(self, stop: int, data: Samples) -> None:
        """Take the samples ``data[channels, n]`` that end before the index ``stop``."""
        part = Moments.of(data)
        if part is not None:
            self._parts.append((stop, part))
        while self._parts and self._parts[0][0] <= stop - self._span:
            self._parts.popleft()

    def forget(self) -> None:
        self._parts.clear()

    def now(self) -> Moments | None:
        """Of all blocks together (pairwise formula of Chan, Golub and LeVeque, 1983)."""
        if not self._parts:
            return None
        parts = [part for _, part in self._parts]
        counts = np.array([p.count for p in parts])[:, None]
        means = np.array([p.mean for p in parts])
        total = int(counts.sum())
        mean = (counts * means).sum(axis=0) / total
        square = sum(p.square for p in parts) + (counts * (means - mean) ** 2).sum(axis=0)
        low = np.min([p.low for p in parts], axis=0)
        high = np.max([p.high for p in parts], axis=0)
        return Moments(total, mean, square, low, high)
