"""The 0-1 test for chaos: 0 for regular motion, 1 for chaos or noise (Gottwald and Melbourne 2004, 2009)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit

_FREQUENCIES = 100
_DAMPING = 1.0  # of the oscillating term, so that a little noise does not make regular motion look chaotic


def zero_one(values: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Median growth rate K of the walk that ``values`` (sampled about four times a turn, or once a drive
    period) drive, over 100 frequencies. Samples much denser than that look regular whatever they are.
    """
    x = np.asarray(values, dtype=np.float64)
    x = (x - x.mean()) / max(float(np.std(x)), 1e-300)
    angles = rng.uniform(np.pi / 5, 4 * np.pi / 5, _FREQUENCIES)
    return float(np.median(_growth(x, angles, len(x) // 10)))


@njit(cache=True, nogil=True)
def _growth(x, angles, longest):  # type: ignore[no-untyped-def]
    """Correlation of the walk's mean square displacement with time, for every frequency."""
    total = len(x)
    results = np.empty(len(angles))
    steps = np.arange(1.0, longest + 1.0)
    p, q = np.empty(total), np.empty(total)
    square = 0.0
    for i in range(total):
        square += x[i] * x[i] / total
    mean = 0.0
    for i in range(total):
        mean += x[i] / total
    for a in range(len(angles)):
        c = angles[a]
        left, right = 0.0, 0.0
        for i in range(total):
            left += x[i] * np.cos(c * (i + 1))
            right += x[i] * np.sin(c * (i + 1))
            p[i], q[i] = left, right
        moved = np.empty(longest)
        for n in range(1, longest + 1):
            distance = 0.0
            for i in range(total - longest):
                distance += (p[i + n] - p[i]) ** 2 + (q[i + n] - q[i]) ** 2
            distance /= total - longest
            swing = mean**2 * (1.0 - np.cos(n * c)) / (1.0 - np.cos(c))
            moved[n - 1] = distance - swing - _DAMPING * square * np.sin(np.sqrt(2.0) * n)
        centred, ahead = moved - moved.mean(), steps - steps.mean()
        size = np.sqrt(np.sum(centred**2) * np.sum(ahead**2))
        results[a] = np.sum(centred * ahead) / size if size > 0.0 else 0.0
    return results
