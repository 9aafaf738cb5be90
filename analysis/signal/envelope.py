"""Minimum and maximum of a signal over bins, so that a drawing at one bin per pixel never loses a peak."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]


def envelope(data: Samples, bins: int) -> tuple[Samples, Samples]:
    """Least and greatest sample of each of ``bins`` nearly equal parts of ``data[..., N]``, N >= bins."""
    edges = np.linspace(0, data.shape[-1], bins + 1).astype(np.intp)[:-1]
    return np.minimum.reduceat(data, edges, axis=-1), np.maximum.reduceat(data, edges, axis=-1)


class RollingEnvelope:
    """The envelope of the newest ``bins * width`` samples of a stream, at a cost of the new samples alone.

    Bins lie on multiples of ``width`` counted from the stream's first sample, so that a picture which moves
    on never flickers. Samples that are not a number (lost ones) make their bin not a number.
    """

    def __init__(self, channels: int, bins: int, width: int) -> None:
        self.width = max(1, int(width))
        self._low = np.full((channels, bins), np.nan)
        self._high = np.full((channels, bins), np.nan)
        self._head = 0  # column of the bin that is filling
        self._filled = 0  # samples in it
        self.count = 0  # samples seen

    def append(self, data: Samples) -> None:
        """Take the samples ``data[channels, n]`` that follow the ones before."""
        self.count += data.shape[1]
        span = self._low.shape[1] * self.width
        if data.shape[1] > span + self.width:  # older ones would scroll out at once
            skipped = (data.shape[1] - span) // self.width * self.width
            data = data[:, skipped:]
        if self._filled:
            taken = min(self.width - self._filled, data.shape[1])
            self._merge(data[:, :taken])
            data = data[:, taken:]
        whole = data.shape[1] // self.width
        if whole:
            parts = data[:, : whole * self.width].reshape(len(data), whole, self.width)
            self._put(parts.min(axis=2), parts.max(axis=2))
        rest = data[:, whole * self.width :]
        if rest.shape[1]:
            self._merge(rest)

    def view(self) -> tuple[Samples, Samples]:
        """Least and greatest by channel and bin, oldest bin first; bins not reached yet are not a number."""
        last = self._head + 1 if self._filled else self._head
        order = slice(last, None), slice(0, last)
        low = np.concatenate([self._low[:, part] for part in order], axis=1)
        high = np.concatenate([self._high[:, part] for part in order], axis=1)
        return low, high

    def _merge(self, data: Samples) -> None:
        """Put samples into the bin that is filling."""
        column = self._head
        if data.shape[1] == 0:
            return
        low, high = data.min(axis=1), data.max(axis=1)
        if self._filled:
            low, high = np.minimum(low, self._low[:, column]), np.maximum(high, self._high[:, column])
        self._low[:, column], self._high[:, column] = low, high
        self._filled += data.shape[1]
        if self._filled == self.width:
            self._filled, self._head = 0, (column + 1) % self._low.shape[1]

    def _put(self, low: Samples, high: Samples) -> None:
        """Put whole bins."""
        bins = self._low.shape[1]
        columns = (self._head + np.arange(low.shape[1])) % bins
        self._low[:, columns[-bins:]] = low[:, -bins:]
        self._high[:, columns[-bins:]] = high[:, -bins:]
        self._head = int(columns[-1] + 1) % bins
