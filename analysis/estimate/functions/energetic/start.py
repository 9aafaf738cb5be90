"""The start: weak form of the equation of motion, generalised least squares, restricted likelihood.

With a test function phi that vanishes with its slope at both ends of its window,

    int phi'' x + int phi (c v + H) = int phi g(t, x, v, u)

(int phi c v = -int (phi c)' x when the velocity is not measured). The noise of x enters mainly through phi''
(phi' with a measured velocity); neighbouring windows share it, hence the generalised least squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.functions.energetic.unknowns import UnknownFunctions
from analysis.estimate.functions.penalised import Fit, Misfit, fit_penalised, heavy

Array = NDArray[np.float64]
POWER = 4  # of the test function (1 - s^2)^POWER


@dataclass(frozen=True)
class Motion:
    """One stretch of a record: measured channels and the smoothed motion. ``known`` is g along it.

    With an acceleration ``a`` the other two are its integrals where they were not measured.
    """

    times: Array
    x: Array  # measured (or integrated from the velocity)
    v: Array | None  # measured velocity
    a: Array | None  # measured acceleration, where neither of the others is
    smooth_x: Array
    smooth_v: Array
    known: Array

    def inertia(self, test: Any, slope: Any, curvature: Any) -> tuple[Array, Any]:
        """int phi x'' by the measured channel, and the matrix through which its noise enters."""
        if self.a is not None:
            return test @ self.a, test
        if self.v is not None:
            return -(slope @ self.v), slope
        return curvature @ self.x, curvature


class WeakTask:
    """The linear problem as normal equations in units of its noise."""

    def __init__(self, matrix: Array, right: Array, rest: float, count: int) -> None:
        self._matrix, self._right, self._rest, self._count = matrix, right, rest, count
        self._variance = max(rest, 1e-300) / max(count, 1)

    def misfit(self, theta: Array, derivatives: bool = True) -> Misfit:
        turned = self._matrix @ theta
        squares = max(float(theta @ turned - 2.0 * theta @ self._right + self._rest), 0.0)
        scale = 1.0 / self._variance
        return Misfit(
            0.5 * squares * scale, (turned - self._right) * scale, self._matrix * scale, [np.array([squares])]
        )

    def set_noise(self, squares: Sequence[Array], spent: float) -> float:
        new = max(
            float(squares[0][0]) / max(self._count - spent, 1.0), 1e-24 * self._rest / self._count, 1e-300
        )
        change = 0.5 * abs(np.log(new / self._variance))
        self._variance = new
        return float(change)


def weak_start(
    unknowns: UnknownFunctions, motions: Sequence[Motion], theta: Array, directions: Array | None, window: int
) -> Fit:
    """Coefficients from the weak form; ``window``: half width of the test functions in samples."""
    size = unknowns.size
    matrix, right, rest, count = np.zeros((size, size)), np.zeros(size), 0.0, 0
    for motion in motions:
        rows, values, noise = _equations(unknowns, motion, window)
        solved = _whitened(noise, np.column_stack([rows, values]))
        matrix += rows.T @ solved[:, :-1]
        right += rows.T @ solved[:, -1]
        rest += float(values @ solved[:, -1])
        count += len(values)
    matrix = 0.5 * (matrix + matrix.T)
    task = WeakTask(matrix, right, rest, count)
    smooths = unknowns.smooths()
    return fit_penalised(task, theta, smooths, heavy(smooths, task.misfit(theta).hessian), directions)


def _equations(unknowns: UnknownFunctions, motion: Motion, window: int) -> tuple[Array, Array, Any]:
    """Rows, right sides, and the sparse matrix through which the noise enters."""
    dt = float(motion.times[1] - motion.times[0])
    test, slope, curvature = _test_functions(len(motion.times), dt, window)
    columns = []
    if unknowns.c:
        basis = unknowns.c_rows(motion.times)
        if motion.v is not None or motion.a is not None:
            columns.append(test @ (basis * motion.smooth_v[:, None]))
        else:
            steep = unknowns.c_rows(motion.times, 1)
            columns.append(-(slope @ (basis * motion.x[:, None]) + test @ (steep * motion.x[:, None])))
    if unknowns.x:
        columns.append(test @ unknowns.h_rows(motion.smooth_x, motion.smooth_v))
    inertia, noise = motion.inertia(test, slope, curvature)
    return np.hstack(columns), test @ motion.known - inertia, noise


def _test_functions(count: int, dt: float, window: int) -> tuple[Any, Any, Any]:
    """Sparse rows of (1 - s^2)^4 and its two derivatives times dt, at every quarter of a window."""
    from scipy import sparse

    window = max(3, min(window, (count - 1) // 2))
    centres = np.unique(
        np.linspace(window, count - 1 - window, max(2, 1 + 4 * (count - 2 * window) // window)).round()
    )
    offsets = np.arange(-window, window + 1)
    s = offsets / window
    bell = np.polynomial.Polynomial([1, 0, -1]) ** POWER
    columns = (centres[:, None] + offsets).astype(int)
    rows = np.repeat(np.arange(len(centres)), len(offsets))
    out = []
    for order in range(3):
        values = bell.deriv(order)(s) if order else bell(s)
        data = np.tile(values * dt / (window * dt) ** order, len(centres))
        out.append(sparse.csr_matrix((data, (rows, columns.ravel())), shape=(len(centres), count)))
    return out[0], out[1], out[2]


def _whitened(noise: Any, right: Array) -> Array:
    """Solution of (noise noise') z = right; the matrix is banded."""
    from scipy.linalg import solveh_banded

    full = (noise @ noise.T).tocoo()
    width = int(np.max(full.col - full.row))
    banded = np.zeros((width + 1, full.shape[0]))
    upper = full.col >= full.row
    banded[width + full.row[upper] - full.col[upper], full.col[upper]] = full.data[upper]
    banded[width] *= 1.0 + 1e-3
    return np.asarray(solveh_banded(banded, right))


def weak_residuals(
    unknowns: UnknownFunctions, motions: Sequence[Motion], theta: Array, window: int
) -> tuple[list[Array], list[Array]]:
    """Columns of the unknowns and what is left of the weak form, in units in which its noise is white."""
    columns, left = [], []
    for motion in motions:
        rows, values, noise = _equations(unknowns, motion, window)
        white = _independent(noise, np.column_stack([rows, values]))
        columns.append(white[:, :-1])
        left.append(white[:, -1] - white[:, :-1] @ theta[: unknowns.size])
    return columns, left


def weak_columns(motion: Motion, forces: Array, window: int) -> Array:
    """Forces [K, N] along a motion as the same equations see them: [equations, K]."""
    dt = float(motion.times[1] - motion.times[0])
    test, slope, curvature = _test_functions(len(motion.times), dt, window)
    _, noise = motion.inertia(test, slope, curvature)
    return _independent(noise, np.asarray(test @ forces.T))


def _independent(noise: Any, rows: Array) -> Array:
    """Rows divided by the triangular root of (noise noise')."""
    from scipy.linalg import cholesky_banded

    full = (noise @ noise.T).tocoo()
    width = int(np.max(full.row - full.col))
    banded = np.zeros((width + 1, full.shape[0]))
    lower = full.row >= full.col
    banded[full.row[lower] - full.col[lower], full.col[lower]] = full.data[lower]
    banded[0] *= 1.0 + 1e-3
    root = cholesky_banded(banded, lower=True)
    out = np.array(rows, dtype=np.float64)
    for n in range(len(out)):
        reach = min(n, width)
        if reach:
            places = np.arange(n - reach, n)
            out[n] -= root[n - places, places] @ out[places]
        out[n] /= root[0, n]
    return out
