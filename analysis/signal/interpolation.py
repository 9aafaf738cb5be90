"""Values of a uniformly sampled signal between its samples: six-point Lagrange interpolation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit

MARGIN = 3  # samples wanted on either side of the place


@njit(cache=True, nogil=True)
def lagrange_weights(fraction: float) -> NDArray[np.float64]:
    """Weights of the samples at -2, -1, 0, 1, 2, 3 for the value at ``fraction`` (0 to 1).

    Of a sine with m samples per cycle the error is below 0.16 (pi/m)^6 2^6/36 of its amplitude: 3e-6 at m =
    25.
    """
    weights = np.ones(6)
    for i in range(6):
        for j in range(6):
            if i != j:
                weights[i] *= (fraction + 2.0 - j) / (i - j)
    return weights


@njit(cache=True, nogil=True)
def sample_at(
    points: NDArray[np.float64], places: NDArray[np.float64], out: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Columns of ``points`` [n, N] at fractional sample ``places`` [M], written to ``out`` [n, M].

    Places closer than MARGIN to an end use the six outermost samples there.
    """
    n, total = points.shape
    for m in range(len(places)):
        base = min(max(int(np.floor(places[m])), 2), total - 4)
        weights = lagrange_weights(places[m] - base)
        for c in range(n):
            value = 0.0
            for j in range(6):
                value += weights[j] * points[c, base - 2 + j]
            out[c, m] = value
    return out
