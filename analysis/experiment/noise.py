"""Noise of an output from its samples alone, quick enough to run at every identification."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from analysis.signal.noise import HIGHEST_ORDER

Array = NDArray[np.float64]

_PIECE, _PIECES = 1024, 8  # samples of a long channel that its noise is judged by


def noise_of(row: Array) -> float:
    """Noise of a channel from its high-order differences (see :mod:`analysis.signal.noise`); 0 for want of
    samples.

    The value alone, from at most a few thousand samples: quick enough to run at every identification.
    """
    good = row[np.isfinite(row)]
    if len(good) < 20 * HIGHEST_ORDER:
        return 0.0
    pieces = [good[s : s + _PIECE] for s in np.linspace(0, max(len(good) - _PIECE, 0), _PIECES).astype(int)]
    differences = np.stack(pieces if len(good) > _PIECE * _PIECES else [good])
    levels = np.empty(HIGHEST_ORDER)
    for q in range(HIGHEST_ORDER):
        differences = np.diff(differences, axis=1)
        size = np.abs(differences).ravel()
        middle = len(size) // 2
        levels[q] = 1.4826 * np.partition(size, middle)[middle] / np.sqrt(comb(2 * q + 2, q + 1))
        if q > 1 and levels[q] > 0.98 * levels[q - 1]:
            return float(levels[: q + 1].min())
    return float(levels[-1])
