"""Does a record come back as a whole, long after? Motions of few frequencies do, however many their lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_NEAREST, _FARTHEST = 8, 2  # lags from an eighth to a half of the record


def far_correlation(samples: Array) -> float:
    """Largest correlation of the record with itself an eighth to a half of its length later.

    A quasi-periodic motion has almost-periods, after which the whole of it comes back nearly; the correlation
    of a mixing motion, and of noise, dies.
    """
    x = np.asarray(samples, dtype=np.float64)
    x = x - np.mean(x)
    total = len(x)
    size = 1 << (2 * total - 1).bit_length()
    product = np.fft.irfft(np.abs(np.fft.rfft(x, size)) ** 2, size)[:total]
    lags = np.arange(total // _NEAREST, total // _FARTHEST)
    energy = np.concatenate(([0.0], np.cumsum(x**2)))
    early, late = energy[total - lags], energy[-1] - energy[lags]
    return float(np.max(product[lags] / np.sqrt(np.maximum(early * late, 1e-300)), initial=-1.0))
