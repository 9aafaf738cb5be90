"""Bounded Newton steps shared by the least-squares methods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.identifiability import pseudo_inverse

Array = NDArray[np.float64]


def bounded_step(
    information: Array, gradient: Array, here: Array, low: Array, high: Array, damping: float
) -> Array:
    """Levenberg-Marquardt step inside the bounds: what would leave is set on its bound, the rest solved
    for.
    """
    step = np.zeros(len(here))
    active = np.zeros(len(here), dtype=bool)
    for _ in range(len(here) + 1):
        inside = ~active
        if not inside.any():
            break
        rest = gradient[inside] - information[np.ix_(inside, active)] @ step[active]
        matrix = information[np.ix_(inside, inside)]
        step[inside] = pseudo_inverse(matrix + damping * np.diag(np.diag(matrix))) @ rest
        out = inside & ((here + step < low) | (here + step > high))
        if not out.any():
            break
        step[out] = np.clip(here[out] + step[out], low[out], high[out]) - here[out]
        active |= out
    return step
