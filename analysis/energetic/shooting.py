"""x'' = g(t, x, v, u) - c(t) v - H, integrated with the sensitivities in all spline coefficients.

g is the compiled model; c(t) and H(x) or H(x, v) are splines. Classical Runge-Kutta steps, differentiated
exactly; the record is cut into segments that start anew, so that chaos and poor guesses do no harm.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit, types

from analysis.energetic.splines import COMPILED, local_basis
from analysis.inputs import input_values


@njit(**COMPILED)
def _slopes(jac, p, t, z, s, u, splines, work, dz, ds):  # type: ignore[no-untyped-def]
    """dz/dt and the derivative of the sensitivities s[P, 2]; dead columns stay zero."""
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
        ds[q, 0] = j00 * s[q, 0] + j01 * s[q, 1]
        ds[q, 1] = j10 * s[q, 0] + j11 * s[q, 1]
    if count > 2:
        if len(c) > 0:
            for i in range(4):
                ds[2 + jc + i, 1] -= bc[0, i] * z[1]
        if h.shape[0] > 0:
            base = 2 + len(c)
            if nv == 1:
                for i in range(4):
                    ds[base + ix + i, 1] -= bx[0, i]
            else:
                for i in range(4):
                    for k in range(4):
                        ds[base + (ix + i) * nv + iv + k, 1] -= bx[0, i] * bv[0, k]


def _shoot(  # type: ignore[no-untyped-def]
    jac, p, times, t0, dt, coefficients, starts, initial, c_grid, c, x_grid, v_grid, h, steps, full, X, S
):
    """Fill X[2, N] and S[P + 2, 2, N] (first the two initial values of the segment); False if it ran away.

    Without ``full`` the sensitivities in the coefficients are left out.
    """
    count = S.shape[0] if full else 0
    u = np.empty(coefficients.shape[0])
    work = (
        np.empty(2),
        np.empty((2, 2)),
        np.empty((2, len(p))),
        np.empty((2, 4)),
        np.empty((2, 4)),
        np.empty((2, 4)),
    )
    splines = (t0, dt, coefficients, c_grid, c, x_grid, v_grid, h, count)
    z = np.zeros(2)
    zt = np.zeros(2)
    k = np.zeros((4, 2))
    s = np.zeros((S.shape[0], 2))
    st = np.zeros((S.shape[0], 2))
    ks = np.zeros((4, S.shape[0], 2))
    segment = 0
    for n in range(len(times)):
        if segment < len(starts) and starts[segment] == n:
            z[0] = initial[0, segment]
            z[1] = initial[1, segment]
            for q in range(count):
                s[q, 0] = 1.0 if q == 0 else 0.0
                s[q, 1] = 1.0 if q == 1 else 0.0
            segment += 1
        X[0, n] = z[0]
        X[1, n] = z[1]
        for q in range(count):
            S[q, 0, n] = s[q, 0]
            S[q, 1, n] = s[q, 1]
        if n + 1 == len(times):
            break
        step = (times[n + 1] - times[n]) / steps
        for m in range(steps):
            t = times[n] + m * step
            for stage in range(4):
                part = 0.0 if stage == 0 else (step if stage == 3 else 0.5 * step)
                for i in range(2):
                    zt[i] = z[i] + (part * k[stage - 1, i] if stage > 0 else 0.0)
                for q in range(count):
                    for i in range(2):
                        st[q, i] = s[q, i] + (part * ks[stage - 1, q, i] if stage > 0 else 0.0)
                _slopes(jac, p, t + part, zt, st, u, splines, work, k[stage], ks[stage])
            for i in range(2):
                z[i] += step / 6.0 * (k[0, i] + 2.0 * k[1, i] + 2.0 * k[2, i] + k[3, i])
            for q in range(count):
                for i in range(2):
                    s[q, i] += (
                        step / 6.0 * (ks[0, q, i] + 2.0 * ks[1, q, i] + 2.0 * ks[2, q, i] + ks[3, q, i])
                    )
        if not (abs(z[0]) < 1e9 and abs(z[1]) < 1e12):
            return False
    return True


@lru_cache(maxsize=1)
def shooter() -> Any:
    """The compiled integrator, for any model's ``jac`` kernel."""
    from analysis.kernels import JAC_TYPE

    vector, matrix, cube = types.float64[::1], types.float64[:, ::1], types.float64[:, :, ::1]
    signature = types.boolean(
        JAC_TYPE, vector, vector, types.float64, types.float64, cube, types.int64[::1], matrix,
        vector, vector, vector, vector, matrix, types.int64, types.boolean, matrix, cube,
    )  # fmt: skip
    return njit(signature, **COMPILED)(_shoot)
