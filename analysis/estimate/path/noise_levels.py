"""Noise levels of the outputs: given, or estimated from the data and then from the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.path.segment import PathSegment
from analysis.experiment.noise_sharing import NoiseSharing
from analysis.signal.noise import noise_at_order

Array = NDArray[np.float64]

# Least noise that is estimated, of a channel's range: what double precision and the flow can resolve
_RESOLVED = 1e-9
_LEAST_GIVEN = 1e-300  # a given level of zero must not divide by zero
_ORDER = 6  # of the differences that give the first noise levels: they remove a smooth signal


@dataclass(eq=False)
class NoiseLevels:
    """Standard deviation of each output's noise by record, and which of them follow the residuals."""

    sigma: Array  # [records, q]
    estimated: NDArray[np.bool_]  # [records, q]
    measured: NDArray[np.int64]  # [records, q] samples that there are
    floor: Array  # [q] least estimated level
    sharing: NoiseSharing
    of_segment: list[int]  # record of each segment

    @classmethod
    def of(
        cls, segments: Sequence[PathSegment], given: Array | None, sharing: NoiseSharing | None = None
    ) -> NoiseLevels:
        """The given levels, [q] or [records, q]; where they are nan or None a first estimate from the data's
        differences, and then from the residuals, of the records together that ``sharing`` says (None: all).
        """
        records, q = max(s.record for s in segments) + 1, len(segments[0].outputs)
        sharing = sharing or NoiseSharing.whole(records, q)
        sigma = np.full((records, q), np.nan)
        if given is not None:
            sigma[:] = given
        data = np.hstack([s.outputs for s in segments])
        floor = _RESOLVED * np.array([_size(row[np.isfinite(row)]) for row in data])
        estimated = ~np.isfinite(sigma)
        for i in np.flatnonzero(estimated.any(axis=0)):
            rows = [s.outputs[i] for s in segments if estimated[s.record, i]]
            sigma[estimated[:, i], i] = noise_at_order(rows, _ORDER)
        sigma = np.maximum(sigma, np.where(estimated, floor, _LEAST_GIVEN))
        measured = np.zeros((records, q), dtype=np.int64)
        for s in segments:
            measured[s.record] += np.isfinite(s.outputs).sum(axis=1)
        return cls(sigma, estimated, measured, floor, sharing, [s.record for s in segments])

    def update(self, residuals: list[Array], freedom: Array) -> float:
        """Estimated levels from residuals over the present levels, which are rescaled in place.

        ``freedom`` [q]: degrees of freedom of each output. Returns the largest relative change.
        """
        squares = np.zeros(self.sigma.shape)
        for R, record in zip(residuals, self.of_segment, strict=True):
            squares[record] += np.nansum((R * self.sigma[record]) ** 2, axis=0)
        counted = self.estimated & (self.measured > 0)
        share = self.measured * (freedom / np.maximum(self.measured.sum(axis=0), 1))
        squares, share = np.where(counted, squares, 0.0), np.where(counted, share, 0.0)
        self.sharing = self.sharing.decided(squares, share)
        new = np.sqrt(self.sharing.variances(squares, share))
        new = np.where(counted, np.maximum(new, self.floor), self.sigma)
        for R, record in zip(residuals, self.of_segment, strict=True):
            R *= self.sigma[record] / new[record]
        change = float(np.max(np.abs(new / self.sigma - 1.0)))
        self.sigma = new
        return change


def _size(row: Array) -> float:
    """Range of the samples of a channel; of a constant one its value, and 1 where that is zero."""
    if not len(row):
        return 1.0
    return float(np.ptp(row)) or float(np.max(np.abs(row))) or 1.0
