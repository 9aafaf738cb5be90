"""Permutation entropy: how evenly the orders of neighbouring samples occur (Bandt and Pompe 2002)."""

from __future__ import annotations

from math import factorial, log

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError


def permutation_entropy(samples: NDArray[np.float64], order: int = 4, delay: int = 1) -> float:
    """Entropy of the ordinal patterns of ``order`` samples ``delay`` apart, over that of white noise."""
    x = np.asarray(samples, dtype=np.float64)
    count = len(x) - (order - 1) * delay
    if not 2 <= order <= 8 or delay < 1 or count < 2:
        raise DataError(
            "Permutation entropy needs an order between 2 and 8, a delay of at least one sample and a record "
            "longer than one pattern."
        )
    code = np.zeros(count, dtype=np.int64)
    for a in range(order):
        for b in range(a + 1, order):
            later = x[b * delay : b * delay + count] < x[a * delay : a * delay + count]
            code = 2 * code + later
    frequencies = np.unique(code, return_counts=True)[1] / count
    return float(-np.sum(frequencies * np.log(frequencies)) / log(factorial(order)))
