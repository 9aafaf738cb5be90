"""Displacement and velocity from an acceleration, without the drift that integrating its noise makes.

The displacement is the one whose second differences follow the acceleration while it stays small,

    sum (D^2 x - K a)^2 / dt^4 + corner^4 sum x^2 = min,    K = (1 10 1) / 12 (Numerov),

which passes what is faster than the corner and leaves out what is slower; integration constants follow from
the minimum. Offset and drift of the sensor are the ones that leave the least displacement.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_ERROR = 0.03  # of the displacement's spread, rms, that the integrated noise may make
_CORNERS = 24  # tried, from the slowest that the record holds
_FASTEST = 0.1  # of the sampling frequency: no corner lies above


def integrated_twice(row: Array, dt: float, noise: float, drift: Array) -> tuple[Array, Array, Array]:
    """Displacement and velocity of an acceleration with ``noise`` (its standard deviation, in its unit), and
    the acceleration without its drift. ``drift`` [N, D]: courses that the zero of the sensor may take.

    The corner is the slowest one above which white noise makes up 3 % of the displacement at most.
    """
    turn = 2.0 * np.pi / dt
    corners = np.geomspace(turn / len(row), max(_FASTEST, 2.0 / len(row)) * turn, _CORNERS)
    rows = np.column_stack([row, drift])
    x: Array = np.zeros(len(row))
    factors: Array = np.zeros(drift.shape[1])
    for corner in corners:
        each = _above(rows, dt, corner)
        factors = np.asarray(np.linalg.lstsq(each[:, 1:], each[:, 0], rcond=None)[0], dtype=np.float64)
        x = each[:, 0] - each[:, 1:] @ factors
        made = noise * np.sqrt(dt / (3.0 * np.pi * corner**3))  # white noise above the corner, integrated
        if made <= _ERROR * float(np.std(x)):
            break
    freed = row - drift @ factors
    return x, _rate(x, freed, dt), freed


def _above(rows: Array, dt: float, corner: float) -> Array:
    """Displacements [N, K] without what is slower than ``corner`` [rad per unit of time]."""
    from scipy.linalg import solveh_banded

    count, weight = len(rows), (corner * dt) ** 4
    smoothed = dt**2 * (rows[:-2] + 10.0 * rows[1:-1] + rows[2:]) / 12.0
    right = np.zeros_like(rows)
    banded = np.zeros((3, count))  # of D'D + weight, upper form
    banded[2] = weight
    for offset, factor in enumerate((1.0, -2.0, 1.0)):
        right[offset : count - 2 + offset] += factor * smoothed
        banded[2, offset : count - 2 + offset] += factor**2
    banded[1, 1 : count - 1] -= 2.0
    banded[1, 2:] -= 2.0
    banded[0, 2:] = 1.0
    x = np.asarray(solveh_banded(banded, right), dtype=np.float64)
    return x - np.mean(x, axis=0)


def _rate(x: Array, acceleration: Array, dt: float) -> Array:
    """Velocity of a displacement: central differences, corrected to fourth order by the acceleration."""
    v = np.gradient(x, dt, edge_order=2)
    v[1:-1] -= dt * (acceleration[2:] - acceleration[:-2]) / 12.0
    return np.asarray(v, dtype=np.float64)
