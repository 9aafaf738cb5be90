"""Standard error of a mean whose terms follow one another and are correlated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def correlated_mean_error(terms: NDArray[np.float64]) -> float:
    """Standard error of the mean of a sequence, its own correlation counted.

    Initial monotone sequence estimator (Geyer 1992, Statistical Science 7, 473): autocovariances are added in
    pairs, which are positive and fall, until they no longer do. Never below the error of independent terms.
    """
    count = len(terms)
    away = terms - np.mean(terms)
    covariance = np.array([away[: count - lag] @ away[lag:] for lag in range(count)]) / count
    if not covariance[0] > 0:
        return 0.0
    total, last = -covariance[0], np.inf
    for lag in range(0, count - 1, 2):
        pair = min(covariance[lag] + covariance[lag + 1], last)
        if pair <= 0:
            break
        total, last = total + 2 * pair, pair
    stretched = max(total / covariance[0], 1.0)  # terms for each independent one
    return float(np.sqrt(covariance[0] * stretched / max(count - stretched, 1.0)))
