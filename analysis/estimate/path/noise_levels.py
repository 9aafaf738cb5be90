"""Noise levels of the outputs: given, or estimated from the data and then from the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.path.segment import Segment
from analysis.signal.noise import noise_at_order

Array = NDArray[np.float64]

# Least noise that is estimated, of a channel's range: what double precision and the flow can resolve
_RESOLVED = 1e-9
_LEAST_GIVEN = 1e-300  # a given level of zero must not divide by zero
_ORDER = 6  # of the differences that the first levels are read from: a smooth signal is gone by then


@dataclass(eq=False)
class NoiseLevels:
    """Standard deviation of each output's noise, and which of them follow the residuals."""

    sigma: Array  # [q]
    estimated: NDArray[np.bool_]  # [q]
    measured: NDArray[np.int64]  # [q] samples that there are
    floor: Array  # [q] least estimated level

    @classmethod
    def of(cls, segments: Sequence[Segment], given: Array | None) -> NoiseLevels:
        """The given levels; where they are nan or None a first estimate from the data's differences."""
        data = np.hstack([s.outputs for s in segments])
        sigma = np.full(len(data), np.nan) if given is None else np.array(given, dtype=np.float64)
        floor = _RESOLVED * np.array([_size(row[np.isfinite(row)]) for row in data])
        estimated = ~np.isfinite(sigma)
        for i in np.flatnonzero(estimated):
            sigma[i] = noise_at_order([s.outputs[i] for s in segments], _ORDER)
        sigma = np.maximum(sigma, np.where(estimated, floor, _LEAST_GIVEN))
        return cls(sigma, estimated, np.isfinite(data).sum(axis=1), floor)

    def update(self, residuals: list[Array], freedom: Array) -> float:
        """Estimated levels from residuals over the present levels, which are rescaled in place.

        ``freedom`` [q]: degrees of freedom of each output. Returns the largest relative change.
        """
        change = 0.0
        for i in np.flatnonzero(self.estimated & (self.measured > 0)):
            squares = sum(np.nansum((R[:, i] * self.sigma[i]) ** 2) for R in residuals)
            new = max(float(np.sqrt(squares / freedom[i])), self.floor[i])
            change = max(change, abs(new / self.sigma[i] - 1))
            for R in residuals:
                R[:, i] *= self.sigma[i] / new
            self.sigma[i] = new
        return change


def _size(row: Array) -> float:
    """Range of the samples of a channel; of a constant one its value, and 1 where that is zero."""
    if not len(row):
        return 1.0
    return float(np.ptp(row)) or float(np.max(np.abs(row))) or 1.0
