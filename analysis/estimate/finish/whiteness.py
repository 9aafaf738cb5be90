"""Are the residuals white? Ljung and Box (1978) over many lags, all outputs, gaps left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LAGS = 40
SAMPLES_PER_LAG = 25  # the long test looks over N/25 lags: slow wandering shows only there
_MOST_LAGS = 4000  # of a very long record


@dataclass(frozen=True)
class Whiteness:
    """Probability that white residuals would be as correlated, the lag correlation that is largest."""

    probability: float
    lags: int
    first: float  # correlation of neighbours
    largest: float
    largest_lag: int


def whiteness(rows: Sequence[Array]) -> Whiteness:
    """The worse of two tests, over 40 and over N/25 lags, of one output; nan marks missing samples."""
    samples = int(sum(np.isfinite(row).sum() for row in rows))
    longest = max((len(row) for row in rows), default=0)
    most = max(min(longest // 3, _MOST_LAGS), 1)
    counts = {min(LAGS, most), min(max(samples // SAMPLES_PER_LAG, 1), most)}
    correlation, pairs = autocorrelation(rows, max(counts))
    found = [(_probability(correlation[:m], pairs[:m], samples), m) for m in sorted(counts)]
    probability, lags = min(found)
    peak = int(np.argmax(np.abs(correlation)))
    return Whiteness(
        min(1.0, len(found) * probability), lags, float(correlation[0]), float(correlation[peak]), peak + 1
    )


def autocorrelation(rows: Sequence[Array], count: int) -> tuple[Array, Array]:
    """Correlation at lags 1 to ``count`` over all rows, and the pairs of samples it was taken from."""
    from scipy.fft import irfft, next_fast_len, rfft

    products, pairs = np.zeros(count + 1), np.zeros(count + 1)
    for row in rows:
        good = np.isfinite(row)
        length = int(next_fast_len(len(row) + count, real=True))
        for signal, total in ((np.where(good, row, 0.0), products), (good.astype(np.float64), pairs)):
            wave = rfft(signal, length)
            found = irfft((wave * wave.conj()).real, length)[: count + 1]
            total[: len(found)] += found
    pairs = np.round(pairs)
    power = products[0] / max(pairs[0], 1.0) or 1.0
    return products[1:] / power / np.maximum(pairs[0], 1.0), pairs[1:]


def _probability(correlation: Array, pairs: Array, samples: int) -> float:
    from scipy.special import chdtrc

    used = pairs > 0
    statistic = samples * (samples + 2) * float(np.sum(correlation[used] ** 2 / pairs[used]))
    return float(chdtrc(int(used.sum()), statistic))
