"""Which records have one level of noise: recordings of different days, ranges or averages need not.

A level that is shared is known better, and a record that the model misses keeps its weight; levels that
differ must not be shared, else the good record counts as little as the bad one. The samples decide before
any fit, by their differences of high order; where these show no noise, the residuals do (Bartlett's test).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.signal.noise import noise_of

Array = NDArray[np.float64]

_CHANCE = 1e-4  # that records with one level are given levels of their own
_ERROR = 2.0  # relative error of a level from differences, times the root of the samples it was read from
_READ = 2000  # samples, at most, that it is read from
_FEW = 20.0  # degrees of freedom below which a record shares a level with the other short ones
_TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class NoiseSharing:
    """By run the record that it belongs to, by output whether the records' levels differ (None: unknown)."""

    record: tuple[int, ...]
    apart: tuple[bool | None, ...]

    @classmethod
    def of(cls, outputs: Sequence[Array], known: Array) -> NoiseSharing:
        """As the outputs [q, N] of each record show it; ``known`` [records, q] levels do not count."""
        apart = tuple(
            _differ([rows[i] for rows, level in zip(outputs, known[:, i], strict=True) if np.isnan(level)])
            for i in range(known.shape[1])
        )
        return cls(tuple(range(len(outputs))), apart)

    @classmethod
    def whole(cls, records: int, outputs: int) -> NoiseSharing:
        """One level for each output."""
        return cls(tuple(range(records)), outputs * (False,))

    def of_parts(self, numbers: Sequence[int]) -> NoiseSharing:
        """For parts of these runs: all parts of one record have its level."""
        return replace(self, record=tuple(self.record[i] for i in numbers))

    def decided(self, squares: Array, freedom: Array) -> NoiseSharing:
        """The same once residuals have been seen: sums of squares and degrees of freedom [runs, q]."""
        apart = [
            a
            if a is not None or not _variances_differ(*self._by_record(squares[:, i], freedom[:, i]))
            else True
            for i, a in enumerate(self.apart)
        ]
        return replace(self, apart=tuple(apart))

    def variances(self, squares: Array, freedom: Array) -> Array:
        """Noise variance [runs, q] from sums of squares and degrees of freedom [runs, q]; nan without any."""
        found = np.full(squares.shape, np.nan)
        for i, apart in enumerate(self.apart):
            total, free = self._by_record(squares[:, i], freedom[:, i])
            short = free < _FEW if apart else np.ones(len(free), dtype=bool)
            total[short], free[short] = total[short].sum(), free[short].sum()
            with np.errstate(invalid="ignore", divide="ignore"):
                level = np.where(free > 0, total / free, np.nan)
            found[:, i] = level[np.unique(self.record, return_inverse=True)[1]]
        return found

    def _by_record(self, squares: Array, freedom: Array) -> tuple[Array, Array]:
        place = np.unique(self.record, return_inverse=True)[1]
        return np.bincount(place, squares).astype(np.float64), np.bincount(place, freedom).astype(np.float64)


def _differ(rows: Sequence[Array]) -> bool | None:
    """Whether the noise of a channel differs between records; None where their samples do not show it."""
    rows = [row for row in rows if np.isfinite(row).any()]
    if len(rows) < 2:
        return False
    levels = np.array([noise_of(row) for row in rows])
    if not np.all(levels > 0):
        return None
    from scipy.special import chdtrc

    samples = np.array([min(int(np.isfinite(row).sum()), _READ) for row in rows])
    weight = samples / _ERROR**2
    logs = np.log(levels)
    statistic = float(np.sum(weight * (logs - np.average(logs, weights=weight)) ** 2))
    return bool(chdtrc(len(rows) - 1, statistic) < _CHANCE)


def _variances_differ(squares: Array, freedom: Array) -> bool:
    """Bartlett's test of equal variances, over the records that are long enough for it."""
    from scipy.special import chdtrc

    long = freedom >= _FEW
    count = int(long.sum())
    if count < 2:
        return False
    free, variance = freedom[long], np.maximum(squares[long] / freedom[long], _TINY)
    pooled = float(np.sum(free * variance) / free.sum())
    statistic = float(free.sum() * np.log(pooled) - np.sum(free * np.log(variance)))
    correction = 1.0 + (np.sum(1.0 / free) - 1.0 / free.sum()) / (3.0 * (count - 1))
    return bool(chdtrc(count - 1, max(statistic / correction, 0.0)) < _CHANCE)
