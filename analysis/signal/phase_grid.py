"""A forced record resampled to a whole number of samples per drive period, so that the phase is an index."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.signal.interpolation import MARGIN, sample_at

_PER_PERIOD = 20  # enough to follow an orbit from section to section


@dataclass(frozen=True, eq=False)
class PhaseGrid:
    """``points`` [n, M], column g at g * period / per_period samples; its phase is g modulo per_period."""

    points: NDArray[np.float64]
    per_period: int
    period: float  # of the drive, in samples of the record

    def column_from(self, sample: int) -> int:
        """First column at or after a sample."""
        return int(np.ceil(sample * self.per_period / self.period - 1e-9))

    def section(self, phase: int) -> NDArray[np.float64]:
        """Stroboscopic points at one phase, [n, periods]."""
        return self.points[:, phase % self.per_period :: self.per_period]


def phase_grid(points: NDArray[np.float64], period: float) -> PhaseGrid:
    """Resample ``points`` [n, N]; an integer period with a suitable divisor takes samples as they are."""
    per_period = _sections(period)
    stride = period / per_period
    if stride == round(stride):
        return PhaseGrid(np.ascontiguousarray(points[:, :: round(stride)]), per_period, period)
    places = np.arange(int((points.shape[1] - MARGIN - 1) / stride) + 1, dtype=np.float64) * stride
    return PhaseGrid(sample_at(points, places, np.empty((points.shape[0], len(places)))), per_period, period)


def _sections(period: float) -> int:
    if period == round(period):
        divisors = [q for q in range(_PER_PERIOD // 2, 2 * _PER_PERIOD) if round(period) % q == 0]
        if divisors:
            return min(divisors, key=lambda q: abs(q - _PER_PERIOD))
    return max(4, min(_PER_PERIOD, int(period)))
