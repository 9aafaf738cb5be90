"""Autocorrelation of stretches with gaps, and the test for white noise of Ljung and Box (1978)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def autocorrelation(rows: Sequence[Array], count: int) -> tuple[Array, Array]:
    """Correlation at lags 1 to ``count`` over all rows, and the pairs of samples it was taken from.

    nan marks missing samples; pairs with one are left out.
    """
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


def ljung_box(correlation: Array, pairs: Array, samples: int) -> float:
    """Probability that white noise is correlated as much at these lags.

    Q = N (N + 2) sum rho_k^2 / (N - k), chi-square with as many degrees of freedom as there are lags.
    """
    from scipy.special import chdtrc

    used = pairs > 0
    statistic = samples * (samples + 2) * float(np.sum(correlation[used] ** 2 / pairs[used]))
    return float(chdtrc(int(used.sum()), statistic))
