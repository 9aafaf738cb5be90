"""Uniform cubic B-splines: evaluation in compiled loops and as matrices, roughness, known values.

Outside its range a spline goes on as a straight line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.base.errors import DataError

Array = NDArray[np.float64]
COMPILED: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
}  # of every compiled function here


@dataclass(frozen=True)
class Grid:
    """Knots of a spline: ``intervals`` equal ones from ``lower`` to ``upper``; intervals + 3 coefficients."""

    lower: float
    upper: float
    intervals: int
    rough: int = 3  # the derivative that the penalty sees: below it, polynomials are free

    @property
    def width(self) -> float:
        return (self.upper - self.lower) / self.intervals

    @property
    def size(self) -> int:
        return self.intervals + 3

    def row(self) -> Array:
        """As compiled code takes it: lower, width, intervals."""
        return np.array([self.lower, self.width, float(self.intervals)])

    def basis(self, x: Array, derivative: int = 0) -> Array:
        """Values or first derivatives of all splines at the points: [len(x), size]."""
        out = np.zeros((len(x), self.size))
        _basis_rows(np.ascontiguousarray(x, dtype=np.float64), self.row(), derivative, out)
        return out

    def turn(self) -> Array:
        """Coefficients from unknowns that keep apart what the penalty does not see and what it sees.

        The first unknowns make a polynomial, the others are differences of the coefficients: a smooth
        function then comes out without rounding, however heavy the penalty.
        """
        return _turn(self.size, self.rough)

    def roughness(self) -> Array:
        """Integral of the squared derivative over the range, taken as of unit length."""
        seen = np.ones(self.size)
        seen[: self.rough] = 0.0
        return np.diag(self.intervals ** (2.0 * self.rough - 1.0) * seen)

    def overlap(self) -> Array:
        """Integral of the product of two unknowns' functions over the range, taken as of unit length."""
        nodes, weights = np.polynomial.legendre.leggauss(4)
        middles = (np.arange(self.intervals) + 0.5) / self.intervals
        s = (middles[:, None] + 0.5 * nodes / self.intervals).ravel()
        rows = self.basis(self.lower + s * (self.upper - self.lower))
        weight = np.tile(0.5 * weights / self.intervals, self.intervals)
        rows = rows @ self.turn()
        return np.asarray((rows * weight[:, None]).T @ rows)


@lru_cache(maxsize=32)
def _turn(size: int, rough: int) -> Array:
    polynomial = np.linspace(-1.0, 1.0, size)[:, None] ** np.arange(rough)
    difference = np.diff(np.eye(size), rough, axis=0)
    return np.hstack([polynomial, np.linalg.pinv(difference)])


@dataclass(frozen=True)
class KnownValue:
    """A value (derivative 0) or slope (derivative 1) of a function that is known at a place."""

    at: float
    derivative: int
    value: float


def known_rows(grid: Grid, known: tuple[KnownValue, ...]) -> tuple[Array, Array]:
    """Rows and right sides of the equations that known values put on the unknowns."""
    rows, values = np.zeros((len(known), grid.size)), np.zeros(len(known))
    for i, item in enumerate(known):
        if item.derivative not in (0, 1):
            raise DataError("A value (0) or a slope (1) of a function can be known, no higher derivative.")
        rows[i] = grid.basis(np.array([item.at]), item.derivative)[0] @ grid.turn()
        values[i] = item.value
    return rows, values


@njit(**COMPILED)
def local_basis(x, grid, b, db):  # type: ignore[no-untyped-def]
    """The four splines at x and their slopes; returns the first one's index. Straight lines outside."""
    lower, width, count = grid[0], grid[1], int(grid[2])
    s = (x - lower) / width
    inside = min(max(s, 0.0), float(count))
    j = min(int(inside), count - 1)
    u = inside - j
    w = 1.0 - u
    b[0] = w * w * w / 6.0
    b[1] = (3.0 * u * u * u - 6.0 * u * u + 4.0) / 6.0
    b[2] = (3.0 * w * w * w - 6.0 * w * w + 4.0) / 6.0
    b[3] = u * u * u / 6.0
    db[0] = -0.5 * w * w
    db[1] = 1.5 * u * u - 2.0 * u
    db[2] = 2.0 * w - 1.5 * w * w
    db[3] = 0.5 * u * u
    beyond = s - inside
    for i in range(4):
        b[i] += beyond * db[i]
        db[i] /= width
    return j


@njit(**COMPILED)
def _basis_rows(x, grid, derivative, out):  # type: ignore[no-untyped-def]
    b = np.empty(4)
    db = np.empty(4)
    for k in range(len(x)):
        j = local_basis(x[k], grid, b, db)
        for i in range(4):
            out[k, j + i] = b[i] if derivative == 0 else db[i]
