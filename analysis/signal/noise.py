"""Noise level of a sampled smooth signal, from its high-order differences.

A difference of order q raises white noise of variance s^2 to C(2q, q) s^2 and wipes out what is smooth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, sqrt

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError

HIGHEST_ORDER = 12
FEWEST_SAMPLES = 20 * HIGHEST_ORDER  # samples, for the median of the highest differences to mean something
_FEW_ORDERS = 3  # of the differences of a channel however short
_BLOCKS = 8  # sub-records whose spread gives the standard error
_PIECE = 5000  # samples of each sub-record of a long record
_QUICK_PIECE = 1024  # the same where the value alone is wanted
_NO_LONGER_FALLS = 0.98  # level over that of the order below from which on only noise is left
_NORMAL = 1.4826022185056018  # standard deviation over median absolute value of a normal variable
_ROBUST = 1.25  # standard error of ``robust_deviation`` over that of an rms: from draws of normal numbers
_SETTLED = 1.02  # the level counts as settled within this factor of the lowest ...
_CHANCE = 3.0  # ... or this over the root of the samples above 1: by so much the levels differ by chance


def median_deviation(values: NDArray[np.float64]) -> float:
    """Standard deviation from the median absolute value: outliers do not count."""
    return _NORMAL * float(np.median(np.abs(values)))


def robust_deviation(values: NDArray[np.float64]) -> float:
    """Standard deviation in spite of outliers: from the median absolute value, but at most the root mean
    square, which is the smaller one for uniform noise such as that of quantisation.
    """
    return min(median_deviation(values), float(np.sqrt(np.mean(values**2))))


def robust_error(count: int) -> float:
    """Relative standard error of ``robust_deviation`` of so many normal numbers."""
    return _ROBUST / sqrt(2 * max(count, 1))


def _level(differences: NDArray[np.float64], order: int) -> float:
    """Noise that the differences of one order show; the median stands for the rms, so that impacts, steps
    and stick-slip (a few large differences) do not count as noise.
    """
    return median_deviation(differences) / sqrt(comb(2 * order, order))


def noise_at_order(rows: Sequence[NDArray[np.float64]], order: int) -> float:
    """Noise from the differences of one order, over several rows (nan: missing); 0 for want of samples.

    An upper bound where the signal still shows in them; short rows have nothing better.
    """
    joined = np.concatenate([np.zeros(0), *(np.diff(row, order) for row in rows if len(row) > order)])
    joined = joined[np.isfinite(joined)]
    return _level(joined, order) if len(joined) else 0.0


def noise_of(row: NDArray[np.float64]) -> float:
    """Noise of a channel, the value alone; 0 for want of samples.

    The orders go up only until the level no longer falls, and a few thousand samples of a long channel do:
    for what runs at every identification (0.3 ms against 6 ms of :func:`noise_level` at 3000 samples).
    """
    good = row[np.isfinite(row)]
    if len(good) < FEWEST_SAMPLES:
        return 0.0
    starts = np.linspace(0, max(len(good) - _QUICK_PIECE, 0), _BLOCKS).astype(int)
    pieces = [good[s : s + _QUICK_PIECE] for s in starts]
    differences = np.stack(pieces if len(good) > _QUICK_PIECE * _BLOCKS else [good])
    levels: list[float] = []
    for order in range(1, HIGHEST_ORDER + 1):
        differences = np.diff(differences, axis=1)
        levels.append(_level(differences, order))
        if order > 2 and levels[-1] > _NO_LONGER_FALLS * levels[-2]:
            return min(levels)
    return levels[-1]


def noise_bound(row: NDArray[np.float64]) -> float:
    """Noise of a channel as :func:`noise_of`; of a short one from its low orders, which bound it from above.

    Where a noise of zero would be an assertion: a wrong one makes every model miss the data.
    """
    good = row[np.isfinite(row)]
    if len(good) >= FEWEST_SAMPLES:
        return noise_of(good)
    orders = range(1, min(max(len(good) // 20, _FEW_ORDERS), len(good) - 1) + 1)
    return min((noise_at_order([good], order) for order in orders), default=float("inf"))


@dataclass(frozen=True, eq=False)
class NoiseLevel:
    """Standard deviation of the noise on a channel, with the curve over the order of the difference.

    ``settled`` is False when the level still falls at the highest order: then ``value`` is an upper bound.
    ``message`` says so in words, and is empty when there is nothing to say.
    """

    value: float  # in the channel's unit
    stderr: float
    order: int
    levels: NDArray[np.float64]  # estimate by order 1..HIGHEST_ORDER
    settled: bool
    message: str = ""


def noise_level(samples: NDArray[np.float64]) -> NoiseLevel:
    """Noise standard deviation of one channel.

    The level that the differences show falls with their order until only noise is left.
    """
    x = np.asarray(samples, dtype=np.float64)
    x = _enough(x[np.isfinite(x)])
    if len(x) < FEWEST_SAMPLES:
        raise DataError(f"The noise level needs {FEWEST_SAMPLES} samples; there are {len(x)}.")
    spread = float(np.std(x))
    if spread == 0:
        return NoiseLevel(0.0, 0.0, 1, np.zeros(HIGHEST_ORDER), True)
    levels, blocks = np.empty(HIGHEST_ORDER), np.empty((HIGHEST_ORDER, _BLOCKS))
    difference = x
    for q in range(1, HIGHEST_ORDER + 1):
        difference = np.diff(difference)
        levels[q - 1] = _level(difference, q)
        blocks[q - 1] = [_level(part, q) for part in np.array_split(difference, _BLOCKS)]
    order = _settled_order(levels, len(x))
    settled = order < HIGHEST_ORDER - 1
    value = float(levels[order - 1])
    stderr = float(np.std(blocks[order - 1], ddof=1) / sqrt(_BLOCKS))
    # Rounding of the arithmetic is the floor below which nothing can be said.
    message = "" if settled or value < 1e-9 * spread else _unsettled(value)
    return NoiseLevel(value, stderr, order, levels, settled, message)


def _enough(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pieces of a long record, together long enough for a standard error of one per cent."""
    pieces = max(len(x) // _PIECE, 1)
    if pieces <= _BLOCKS:
        return x
    starts = np.linspace(0, len(x) - _PIECE, _BLOCKS).astype(int)
    return np.concatenate([x[s : s + _PIECE] for s in starts])


def noise_of_records(rows: Iterable[NDArray[np.float64]]) -> tuple[float, float]:
    """Noise of one channel over its records and its standard error; nan where none shows it."""
    levels = []
    for row in rows:
        try:
            level = noise_level(row)
        except DataError:
            continue
        if level.settled and level.value > 0:
            levels.append(level)
    if not levels:
        return float("nan"), float("nan")
    value = float(np.sqrt(np.mean([level.value**2 for level in levels])))
    return value, float(np.sqrt(np.mean([level.stderr**2 for level in levels]) / len(levels)))


def noise_levels(channels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Noise standard deviation of each row."""
    return np.array([noise_level(row).value for row in np.atleast_2d(channels)])


def _settled_order(levels: NDArray[np.float64], samples: int) -> int:
    """Lowest order that already reaches the lowest level but for its statistical error."""
    tolerance = max(_SETTLED, 1 + _CHANCE / sqrt(samples))
    return int(np.argmax(levels <= tolerance * levels.min())) + 1


def _unsettled(value: float) -> str:
    return (
        f"The differences still shrink at order {HIGHEST_ORDER}, so {value:.3g} is only an upper bound of "
        "the noise: it is not white, or the signal is sampled too coarsely to tell them apart."
    )
