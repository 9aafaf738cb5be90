"""x'' = g(t, x, v, u) - c(t) v - H, integrated with the sensitivities in all spline coefficients.

g is the compiled model; c(t) and H(x) or H(x, v) are splines. Classical Runge-Kutta steps, differentiated
exactly; the record is cut into segments that start anew, so that chaos and poor guesses do no harm.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import types

from analysis.base.compiling import njit
from analysis.estimate.functions.energetic.splines import COMPILED, local_basis
from analysis.signal.inputs import input_values


@njit(**COMPILED)
def _slopes(jac, p, t, z, s, u, splines, work, dz, ds):  # type: ignore[no-untyped-def]
    """dz/dt and the derivative of the sensitivities s[2, P + 2]."""
    t0, dt, coefficients, c_grid, c, x_grid, v_grid, h, count = splines
    dx, jx, jp, bc, bx, bv = work
    input_values(t, t0, dt, coefficients, u)
    jac(t, z, u, p, dx, jx, jp)
    j00, j01, j10, j11 = jx[0, 0], jx[0, 1], jx[1, 0], jx[1, 1]
    first = dx[0]
    second = dx[1]
    jc = 0
    if len(c) > 0:
        jc = local_basis(t, c_grid, bc[0], bc[1])
        value = 0.0
        for i in range(4):
            value += c[jc + i] * bc[0, i]
        second -= value * z[1]
        j11 -= value
    ix = 0
    iv = 0
    nv = h.shape[1]
    if h.shape[0] > 0:
        ix = local_basis(z[0], x_grid, bx[0], bx[1])
        if nv == 1:
            for i in range(4):
                second -= h[ix + i, 0] * bx[0, i]
                j10 -= h[ix + i, 0] * bx[1, i]
        else:
            iv = local_basis(z[1], v_grid, bv[0], bv[1])
            for i in range(4):
                for k in range(4):
                    second -= h[ix + i, iv + k] * bx[0, i] * bv[0, k]
                    j10 -= h[ix + i, iv + k] * bx[1, i] * bv[0, k]
                    j11 -= h[ix + i, iv + k] * bx[0, i] * bv[1, k]
    dz[0] = first
    dz[1] = second
    for q in range(count):
        ds[0, q] = j00 * s[0, q] + j01 * s[1, q]
        ds[1, q] = j10 * s[0, q] + j11 * s[1, q]
    if count > 2:
        if len(c) > 0:
            for i in range(4):
                ds[1, 2 + jc + i] -= bc[0, i] * z[1]
        if h.shape[0] > 0:
            base = 2 + len(c)
            if nv == 1:
                for i in range(4):
                    ds[1, base + ix + i] -= bx[0, i]
            else:
                for i in range(4):
                    for k in range(4):
                        ds[1, base + (ix + i) * nv + iv + k] -= bx[0, i] * bv[0, k]


def _shoot(  # type: ignore[no-untyped-def]
    jac, p, times, t0, dt, coefficients, starts, initial, c_grid, c, x_grid, v_grid, h, steps, limit, full,
    X, S,
):  # fmt: skip
    """Fill X[2, N] and S[2, N, P + 2] (first the two initial values of the segment); False if it ran away,
    beyond ``limit[2]``. With a third row in X and S it is the acceleration.

    Without ``full`` the sensitivities are left out.
    """
    count = S.shape[2] if full else 0
    u = np.empty(coefficients.shape[0])
    four = (np.empty((2, 4)), np.empty((2, 4)), np.empty((2, 4)))
    work = (np.empty(2), np.empty((2, 2)), np.empty((2, len(p))), four[0], four[1], four[2])
    splines = (t0, dt, coefficients, c_grid, c, x_grid, v_grid, h, count)
    z = np.zeros(2)
    zt = np.zeros(2)
    k = np.zeros((4, 2))
    s = np.zeros((2, count))
    st = np.zeros((2, count))
    ks = np.zeros((4, 2, count))
    segment = 0
    for n in range(len(times)):
        if segment < len(starts) and starts[segment] == n:
            for i in range(2):
                z[i] = initial[i, segment]
                for q in range(count):
                    s[i, q] = 1.0 if q == i else 0.0
            segment += 1
        for i in range(2):
            X[i, n] = z[i]
            for q in range(count):
                S[i, n, q] = s[i, q]
        if len(X) == 3:
            _slopes(jac, p, times[n], z, s, u, splines, work, k[0], ks[0])
            X[2, n] = k[0, 1]
            for q in range(count):
                S[2, n, q] = ks[0, 1, q]
        if n + 1 == len(times):
            break
        step = (times[n + 1] - times[n]) / steps
        for m in range(steps):
            t = times[n] + m * step
            _slopes(jac, p, t, z, s, u, splines, work, k[0], ks[0])
            for stage in range(1, 4):
                part = step if stage == 3 else 0.5 * step
                for i in range(2):
                    zt[i] = z[i] + part * k[stage - 1, i]
                    for q in range(count):
                        st[i, q] = s[i, q] + part * ks[stage - 1, i, q]
                _slopes(jac, p, t + part, zt, st, u, splines, work, k[stage], ks[stage])
            sixth = step / 6.0
            for i in range(2):
                z[i] += sixth * (k[0, i] + 2.0 * k[1, i] + 2.0 * k[2, i] + k[3, i])
                for q in range(count):
                    s[i, q] += sixth * (ks[0, i, q] + 2.0 * ks[1, i, q] + 2.0 * ks[2, i, q] + ks[3, i, q])
        if not (abs(z[0]) < limit[0] and abs(z[1]) < limit[1]):
            return False
    return True


@lru_cache(maxsize=1)
def shooter() -> Any:
    """The compiled integrator, for any model's ``jac`` kernel."""
    from analysis.model.kernels import JAC_TYPE

    vector, matrix, cube = types.float64[::1], types.float64[:, ::1], types.float64[:, :, ::1]
    signature = types.boolean(
        JAC_TYPE, vector, vector, types.float64, types.float64, cube, types.int64[::1], matrix,
        vector, vector, vector, vector, matrix, types.int64, vector, types.boolean, matrix, cube,
    )  # fmt: skip
    return njit(signature, **COMPILED)(_shoot)
