"""Is a number of the record one of those that records of the model's own motion scatter over?

A short record of a chaotic motion gives an exponent or a dimension that differs from that of the next record
of the same motion by far more than their stated errors. So before a model is doubted for such a number, the
model gives several records of its own, and the number is held against their scatter (Student 1908).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.validation.check import Status

Array = NDArray[np.float64]

CHANCE = 0.01  # probability of a number as far out as this: below it, it is not one of them
_FEWEST = 5  # numbers that tell how they scatter


def probability_among(value: float, others: Array) -> float:
    """Two-sided probability that one more draw of what gave ``others`` lies as far out as ``value``."""
    from scipy.special import stdtr

    count = len(others)
    scatter = float(np.std(others, ddof=1)) * np.sqrt(1 + 1 / count)
    away = abs(value - float(np.mean(others)))
    if scatter <= 0:
        return 1.0 if away == 0 else 0.0
    return float(2 * stdtr(count - 1, -away / scatter))


def judged_among(value: float, others: Array, status: Status, verdict: str) -> tuple[Status, str]:
    """Status and words as they are, unless the value is one of many."""
    if len(others) < _FEWEST:
        return "doubtful", f"{verdict}, but too few runs of the model stay for it to be told"
    if probability_among(value, others) > CHANCE:
        return "passed", f"they agree as well as {len(others)} records of the model's motion do"
    return status, verdict
