"""How well neighbours in phase space foretell the motion: well if it is deterministic, badly if noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.base.errors import DataError
from analysis.reconstruct.neighbours import build_tree, nearest_some

_REFERENCES = 1000  # points whose future is foretold


def prediction_error(points: NDArray[np.float64], ahead: NDArray[np.float64], theiler: int) -> float:
    """Root mean square error of a local linear prediction of ``ahead`` [N] from ``points`` [n, N], over the
    standard deviation of ``ahead`` (Farmer and Sidorowich 1987). Neighbours within ``theiler`` samples do
    not count, nor the twentieth of the points that are foretold worst.
    """
    dimension, usable = points.shape
    if usable < 20 * dimension + 4 * theiler:
        raise DataError("The record is too short for a prediction from neighbours.")
    count = 4 * (dimension + 1)
    rows, places, _ = nearest_some(build_tree(points), count, theiler, max(usable // _REFERENCES, 1))
    error = _errors(np.ascontiguousarray(points.T), ahead, rows, places)
    # The worst are far from all others: the attractor's rim, not its law.
    error = np.sort(error**2)[: int(0.95 * len(error))]
    return float(np.sqrt(np.mean(error)) / np.std(ahead))


@njit(cache=True, nogil=True)
def _errors(points, ahead, rows, places):  # type: ignore[no-untyped-def]
    """Error of the local linear map fitted to the neighbours of each row, tricube weights."""
    count, n = places.shape[1], points.shape[1]
    errors = np.empty(len(rows))
    basis = np.empty(n + 1)
    for a in range(len(rows)):
        i = rows[a]
        reach = 1e-300
        for m in range(count):
            square = 0.0
            for c in range(n):
                square += (points[places[a, m], c] - points[i, c]) ** 2
            reach = max(reach, np.sqrt(square))
        normal, right = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
        mean = 0.0
        for m in range(count):
            mean += ahead[places[a, m]] / count
        for m in range(count):
            j = places[a, m]
            square = 0.0
            basis[0] = 1.0
            for c in range(n):
                basis[1 + c] = (points[j, c] - points[i, c]) / reach
                square += basis[1 + c] ** 2
            weight = (1.0 - 0.9 * square**1.5) ** 3
            for r in range(n + 1):
                right[r] += weight * basis[r] * (ahead[j] - mean)
                for s in range(n + 1):
                    normal[r, s] += weight * basis[r] * basis[s]
        for r in range(1, n + 1):
            normal[r, r] += 0.01 * normal[0, 0]
        solution = np.linalg.solve(normal, right)
        errors[a] = mean + solution[0] - ahead[i]
    return errors
