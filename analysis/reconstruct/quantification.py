"""Recurrence quantification: how much of the recurrence plot lies on lines (Marwan et al. 2007)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit

_POINTS = 2000  # of the plot, at most
_RATE = 0.02  # recurrence rate at which the radius is set, so that records can be compared
_SHORTEST = 2  # points of a line


@dataclass(frozen=True)
class RecurrenceQuantities:
    """Measures of a recurrence plot with a fixed share of recurrent points (Theiler window left out)."""

    radius: float  # in the unit of the points
    rate: float
    determinism: float  # share of the recurrent points on diagonal lines
    mean_diagonal: float  # samples
    longest_diagonal: float  # samples
    entropy: float  # of the lengths of diagonals, nats
    laminarity: float  # share on vertical lines
    trapping_time: float  # mean vertical line, samples


def recurrence_quantities(points: NDArray[np.float64], theiler: int, every: int = 1) -> RecurrenceQuantities:
    """Quantities of the first 2000 of every ``every``-th of the ``points`` [n, N]."""
    some = np.ascontiguousarray(points[:, ::every][:, :_POINTS].T)
    window = max(theiler // every, 1)
    rng = np.random.default_rng(0)  # any fixed draw: it only sets the radius
    pairs = rng.integers(0, len(some), (2, 40_000))
    apart = np.sqrt(np.sum((some[pairs[0]] - some[pairs[1]]) ** 2, axis=1))
    radius = float(np.quantile(apart[np.abs(pairs[0] - pairs[1]) > window], _RATE))
    diagonals, verticals, recurrent, compared = _lines(some, radius * radius, window)
    lengths = np.arange(len(diagonals))
    long_d, long_v = diagonals.copy(), verticals.copy()
    long_d[:_SHORTEST] = long_v[:_SHORTEST] = 0
    shares = long_d[long_d > 0] / max(long_d.sum(), 1)
    present = np.flatnonzero(diagonals)
    return RecurrenceQuantities(
        radius,
        recurrent / max(compared, 1),
        float(long_d @ lengths) / max(float(diagonals @ lengths), 1.0),
        every * float(long_d @ lengths) / max(float(long_d.sum()), 1.0),
        float(every * present.max(initial=0)),
        float(-np.sum(shares * np.log(shares))),
        float(long_v @ lengths) / max(float(verticals @ lengths), 1.0),
        every * float(long_v @ lengths) / max(float(long_v.sum()), 1.0),
    )


@njit(cache=True, nogil=True)
def _lines(points, limit, theiler):  # type: ignore[no-untyped-def]
    """Numbers of diagonal and vertical lines by length; recurrent points and points compared."""
    total, n = points.shape
    close = np.zeros((total, total), np.bool_)
    recurrent, compared = 0, 0
    for i in range(total):
        for j in range(i + theiler + 1, total):
            square = 0.0
            for c in range(n):
                square += (points[i, c] - points[j, c]) ** 2
            compared += 1
            if square <= limit:
                close[i, j] = close[j, i] = True
                recurrent += 1
    diagonals, verticals = np.zeros(total + 1, np.int64), np.zeros(total + 1, np.int64)
    for lag in range(theiler + 1, total):
        run = 0
        for i in range(total - lag):
            if close[i, i + lag]:
                run += 1
            elif run > 0:
                diagonals[run] += 1
                run = 0
        diagonals[run] += 1
    for i in range(total):
        run = 0
        for j in range(total):
            if close[i, j]:
                run += 1
            elif run > 0:
                verticals[run] += 1
                run = 0
        verticals[run] += 1
    diagonals[0] = 0
    verticals[0] = 0
    return diagonals, verticals, recurrent, compared
