"""What else than steps may be behind a series: a drift, a quantity that it follows, a level that wanders.

A step is an event that somebody goes and looks for: it must be clearly better than the others, which are
compared by Schwarz's criterion, -2 ln L + ln n for each unknown, with the noise of the steps (weights
known, scale unknown); a place of a step costs 2 ln n (Zhang & Siegmund, Biometrics 63, 2007, 22). The
wandering level is a process of Ornstein and Uhlenbeck, corr(i, j) = phi^|i-j|, under white noise: what
weather, wear and handling do to recordings that are made one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve_banded, cholesky_banded

Array = NDArray[np.float64]

DRIFT, WANDERING = "drift", "wandering"
CLEARLY = 6.0  # -2 ln of a likelihood ratio of 20
_PHI = 1.0 - np.geomspace(0.7, 0.003, 12)  # correlation of neighbours
_RATIO = np.geomspace(0.03, 3e4, 19)  # variance of the level over that of the noise


def rival(y: Array, w: Array, steps: Sequence[int], others: Mapping[str, Array]) -> str:
    """What describes a series with weights about as well as steps after the places ``steps``, or better: the
    name of one of ``others`` [n] that it follows, :data:`DRIFT`, :data:`WANDERING`, or nothing."""
    n = len(y)
    w = w / np.exp(np.mean(np.log(w)))  # so that the determinant of the noise is one
    scores = {"": _score(_levels_left(y, w, steps), n) + _price(steps, n) + CLEARLY}
    lines = {DRIFT: np.arange(n, dtype=np.float64), **others}
    for name, x in lines.items():
        if np.all(np.isfinite(x)) and np.ptp(x) > 0:
            scores[name] = _score(_line_left(y, w, x), n) + 2 * math.log(n)
    scores[WANDERING] = _wandering(y, w) + 3 * math.log(n)
    return min(scores, key=lambda name: scores[name])


def _score(left: float, n: int) -> float:
    """-2 ln L of white noise whose weighted squares are these, less a constant of the weights."""
    return n * math.log(max(left, 1e-300) / n)


def _price(steps: Sequence[int], n: int) -> float:
    edges = [0, *steps, n]
    return float(np.sum(np.log(np.diff(edges)))) + 2 * len(steps) * math.log(n)


def _levels_left(y: Array, w: Array, steps: Sequence[int]) -> float:
    left = 0.0
    for a, b in zip([0, *steps], [*steps, len(y)], strict=True):
        part, weight = y[a:b], w[a:b]
        left += float(np.sum(weight * (part - np.sum(weight * part) / weight.sum()) ** 2))
    return left


def _line_left(y: Array, w: Array, x: Array) -> float:
    """Weighted squares that a straight line over x leaves."""
    x = x - np.sum(w * x) / w.sum()
    z = y - np.sum(w * y) / w.sum()
    return float(np.sum(w * z**2) - np.sum(w * x * z) ** 2 / np.sum(w * x**2))


def _wandering(y: Array, w: Array) -> float:
    """-2 ln L of a wandering level under white noise at its best, less the same constant."""
    n = len(y)
    unit = float(np.sum(w * (y - y.mean()) ** 2))
    if not unit > 0:
        return math.inf
    columns = np.stack([(y - y.mean()) * math.sqrt(n / unit), np.ones(n)], axis=1)
    scale = n * math.log(unit / n)
    return min(_deviance(columns, w, phi, ratio) for phi in _PHI for ratio in _RATIO) + scale


def _deviance(columns: Array, w: Array, phi: float, ratio: float) -> float:
    """n ln(q/n) + ln det V, V = 1/w + ratio R(phi), by the tridiagonal inverse of R."""
    n = len(w)
    spare = 1.0 - phi * phi
    band = np.empty((2, n))
    band[0] = -phi / spare
    band[1] = (1.0 + phi * phi) / spare
    band[1, [0, -1]] = 1.0 / spare
    band[1] += ratio * w
    factor = cholesky_banded(band)
    weighted = w[:, None] * columns
    inverse = weighted - ratio * w[:, None] * cho_solve_banded((factor, False), weighted)
    yy, y1, one = (
        columns[:, 0] @ inverse[:, 0], columns[:, 0] @ inverse[:, 1], columns[:, 1] @ inverse[:, 1]
    )  # fmt: skip
    q = max(float(yy - y1 * y1 / one), 1e-300)
    return n * math.log(q / n) + (n - 1) * math.log(spare) + 2 * float(np.sum(np.log(factor[1])))
