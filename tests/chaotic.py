"""Accurate records of chaotic systems with known answers, independent of the program's own simulator."""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

Array = NDArray[np.float64]

_VECTOR = types.float64[::1]
_SLOPE = types.void(types.float64, _VECTOR, _VECTOR, _VECTOR)  # t, x, p, dx
_slope = njit(_SLOPE, cache=True)


@_slope
def _duffing(t, x, p, dx):
    dx[0] = x[1]
    dx[1] = -p[0] * x[1] - p[1] * x[0] - p[2] * x[0] ** 3 + p[3] * np.cos(p[4] * t)


@_slope
def _lorenz(t, x, p, dx):
    dx[0] = p[0] * (x[1] - x[0])
    dx[1] = p[1] * x[0] - x[1] - x[0] * x[2]
    dx[2] = -p[2] * x[2] + x[0] * x[1]


@_slope
def _roessler(t, x, p, dx):
    dx[0] = -x[1] - x[2]
    dx[1] = x[0] + p[0] * x[1]
    dx[2] = p[1] + x[2] * (x[0] - p[2])


# The system is a value, not a type of its own: one loop serves all, and is found on disk by every process.
@njit(
    types.float64[:, ::1](
        *(types.FunctionType(_SLOPE), _VECTOR, _VECTOR),
        *(types.float64, types.float64, types.int64, types.int64),
    ),
    cache=True,
)
def _rk4(system, x, p, t0, dt, substeps, samples):
    n = len(x)
    out = np.empty((n, samples))
    a, b, c, d = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    x, at = x.copy(), np.empty(n)
    h = dt / substeps
    for i in range(samples):
        out[:, i] = x
        for s in range(substeps):
            t = t0 + (i * substeps + s) * h
            system(t, x, p, a)
            for k in range(n):
                at[k] = x[k] + h / 2 * a[k]
            system(t + h / 2, at, p, b)
            for k in range(n):
                at[k] = x[k] + h / 2 * b[k]
            system(t + h / 2, at, p, c)
            for k in range(n):
                at[k] = x[k] + h * c[k]
            system(t + h, at, p, d)
            for k in range(n):
                x[k] = x[k] + h / 6 * (a[k] + 2 * b[k] + 2 * c[k] + d[k])
    return out


DUFFING = np.array([0.2, 1.0, 1.0, 27.0, 1.33])  # c, beta, gamma, a, omega (Yuan 1995, section 3.1)
TWO_WELLS = np.array([0.25, -1.0, 1.0, 0.3, 1.0])  # the same of two wells: a broad continuum about the line
DUFFING_PERIOD = 2 * np.pi / 1.33
TWO_WELL = np.array([0.3, -1.0, 1.0, 0.5, 1.2])


def duffing(samples: int, per_period: float = 100.0, parameters: Array = DUFFING) -> Array:
    """x and v of the forced Duffing oscillator on its attractor, the drive at phase 0 at the first sample."""
    period = 2 * np.pi / parameters[4]
    settle = _rk4(_duffing, np.array([0.5, 0.0]), parameters, 0.0, period / 100, 4, 10_001)
    substeps = int(np.ceil(400 / per_period))
    return _rk4(_duffing, settle[:, -1].copy(), parameters, 0.0, period / per_period, substeps, samples)


def lorenz(
    samples: int, dt: float = 0.01, parameters: tuple[float, float, float] = (10.0, 28.0, 8 / 3)
) -> Array:
    p = np.array(parameters)
    start = _rk4(_lorenz, np.array([1.0, 1.0, 20.0]), p, 0.0, 0.01, 4, 5001)[:, -1].copy()
    return _rk4(_lorenz, start, p, 0.0, dt, int(np.ceil(dt / 0.0025)), samples)


THESIS_LORENZ = (16.0, 45.92, 4.0)


def roessler(
    samples: int, dt: float = 0.1, parameters: tuple[float, float, float] = (0.2, 0.2, 5.7)
) -> Array:
    p = np.array(parameters)
    start = _rk4(_roessler, np.array([1.0, 1.0, 0.0]), p, 0.0, 0.05, 2, 20_001)[:, -1].copy()
    return _rk4(_roessler, start, p, 0.0, dt, int(np.ceil(dt / 0.02)), samples)


@_slope
def _coulomb(t, x, p, dx):
    dx[0] = x[1]
    dx[1] = -p[0] * x[1] - x[0] - (1.0 + 1.5 * x[0]) * np.tanh(50.0 * x[1]) + p[1] * np.cos(p[2] * t)


COULOMB = np.array([0.03, 1.9, 1.3])  # c, force, omega (Yuan 1995, section 3.2, with tanh(50 dx/dt))
COULOMB_PERIOD = 2 * np.pi / 1.3


def coulomb(samples: int, per_period: float = 100.0) -> Array:
    """x and v of the oscillator with smooth Coulomb friction on its attractor."""
    settle = _rk4(_coulomb, np.array([0.5, 0.0]), COULOMB, 0.0, COULOMB_PERIOD / 100, 20, 10_001)
    substeps = int(np.ceil(2000 / per_period))
    step = COULOMB_PERIOD / per_period
    return _rk4(_coulomb, settle[:, -1].copy(), COULOMB, 0.0, step, substeps, samples)
