"""Are the residuals white? Ljung and Box (1978) over many lags, all outputs, gaps left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.signal.whiteness import autocorrelation, ljung_box

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
    found = [(ljung_box(correlation[:m], pairs[:m], samples), m) for m in sorted(counts)]
    probability, lags = min(found)
    peak = int(np.argmax(np.abs(correlation)))
    return Whiteness(
        min(1.0, len(found) * probability), lags, float(correlation[0]), float(correlation[peak]), peak + 1
    )
