"""The flow of a model over sample intervals, with its derivatives in the states and the parameters.

Phi(z; theta) takes the state at one sample to the next: the classical Runge-Kutta scheme of fourth order in
equal sub-steps, with the variational equations integrated alongside by the same scheme, so that the
derivatives are those of the numbers computed.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, void

from analysis.base.compiling import njit
from analysis.model.kernels import JAC_TYPE as JAC
from analysis.model.kernels import RHS_TYPE as RHS
from analysis.signal.inputs import CUBIC

_vector = float64[::1]
_matrix = float64[:, ::1]
_coefficients = float64[:, :, ::1]


@njit(cache=True, nogil=True)
def piece_values(piece, s, coefficients, u):  # type: ignore[no-untyped-def]
    """Inputs of one sample interval at time s after its first sample (a jump at its end is not seen)."""
    for i in range(coefficients.shape[0]):
        c = coefficients[i, piece]
        higher = c[3]
        if len(c) > CUBIC:
            higher = 0.0
            for power in range(len(c) - 1, 2, -1):
                higher = c[power] + s * higher
        u[i] = c[0] + s * (c[1] + s * (c[2] + s * higher))


@njit(cache=True, nogil=True)
def piece_at(t, t0, dt, coefficients):  # type: ignore[no-untyped-def]
    """The sample interval that holds time t."""
    return min(max(int(np.floor((t - t0) / dt)), 0), coefficients.shape[1] - 1)


@njit(
    void(RHS, float64, float64, int64, _vector, _vector, float64, float64, _coefficients),
    cache=True,
    nogil=True,
)
def advance(rhs, t, length, steps, z, p, t0, dt, coefficients):  # type: ignore[no-untyped-def]
    """Carry z[n] from t to t + length in place."""
    n = len(z)
    u = np.empty(coefficients.shape[0])
    k = np.empty((4, n))
    x = np.empty(n)
    h = length / steps
    for step in range(steps):
        start = t + step * h
        piece = piece_at(start + 0.5 * h, t0, dt, coefficients)
        s = start - t0 - piece * dt
        for stage in range(4):
            c = 0.0 if stage == 0 else (1.0 if stage == 3 else 0.5)
            for i in range(n):
                x[i] = z[i] if stage == 0 else z[i] + c * h * k[stage - 1, i]
            piece_values(piece, s + c * h, coefficients, u)
            rhs(start + c * h, x, u, p, k[stage])
        for i in range(n):
            z[i] += h / 6.0 * (k[0, i] + 2.0 * (k[1, i] + k[2, i]) + k[3, i])


@njit(
    void(
        JAC, float64, float64, int64, _vector, _vector, int64[::1], _matrix, float64, float64, _coefficients
    ),
    cache=True,
    nogil=True,
)
def advance_with_derivatives(  # type: ignore[no-untyped-def]
    jac, t, length, steps, z, p, wrt, V, t0, dt, coefficients
):
    """Carry z[n] from t to t + length in place and set V[n, n + len(wrt)] = dz/d(z at t, p[wrt])."""
    n, k = len(z), len(p)
    columns = V.shape[1]
    u = np.empty(coefficients.shape[0])
    x, Vx = np.empty(n), np.empty((n, columns))
    dx, dV = np.empty(n), np.empty((n, columns))
    sum_x, sum_V = np.empty(n), np.empty((n, columns))
    Jx, Jp = np.empty((n, n)), np.empty((n, k))
    h = length / steps
    V[:] = 0.0
    for i in range(n):
        V[i, i] = 1.0
    for step in range(steps):
        start = t + step * h
        piece = piece_at(start + 0.5 * h, t0, dt, coefficients)
        s = start - t0 - piece * dt
        sum_x[:] = 0.0
        sum_V[:] = 0.0
        for stage in range(4):
            c = 0.0 if stage == 0 else (1.0 if stage == 3 else 0.5)
            weight = 1.0 if stage == 0 or stage == 3 else 2.0
            a = c * h
            for i in range(n):
                x[i] = z[i] if stage == 0 else z[i] + a * dx[i]
                for j in range(columns):
                    Vx[i, j] = V[i, j] if stage == 0 else V[i, j] + a * dV[i, j]
            piece_values(piece, s + c * h, coefficients, u)
            jac(start + c * h, x, u, p, dx, Jx, Jp)
            for i in range(n):
                for j in range(n):
                    dV[i, j] = 0.0
                for j in range(len(wrt)):
                    dV[i, n + j] = Jp[i, wrt[j]]
                for m in range(n):  # most Jacobians are sparse: only what is there is multiplied
                    a = Jx[i, m]
                    if a != 0.0:
                        for j in range(columns):
                            dV[i, j] += a * Vx[m, j]
            for i in range(n):
                sum_x[i] += weight * dx[i]
                for j in range(columns):
                    sum_V[i, j] += weight * dV[i, j]
        for i in range(n):
            z[i] += h / 6.0 * sum_x[i]
            for j in range(columns):
                V[i, j] += h / 6.0 * sum_V[i, j]
