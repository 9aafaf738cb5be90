"""One tick of the loop's clock: the specimen's state carried on, with its derivatives.

Inside a tick the correction changes once, after the fraction of a tick that the delay leaves over: d ticks
and a fraction e mean that the command of tick i acts from i + d + e to i + d + e + 1.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, void

from analysis.base.compiling import njit
from analysis.model.kernels import JAC_TYPE, JAC_U_TYPE

_vector = float64[::1]
_matrix = float64[:, ::1]
_cube = float64[:, :, ::1]

OMEGA, TICK, FRACTION, GAIN, LAG, STEPS = range(6)  # places in ``timing``


@njit(cache=True, nogil=True)
def base_force(theta, force):  # type: ignore[no-untyped-def]
    """The force of the drive itself at phase theta: offset and harmonics."""
    value = force[0]
    for k in range(1, (len(force) + 1) // 2):
        value += force[2 * k - 1] * np.cos(k * theta) + force[2 * k] * np.sin(k * theta)
    return value


@njit(cache=True, nogil=True)
def _slope(jac, jac_u, p, y, own, theta, force, modes, n, stage, x, u, dx, Jx, Jp, Ju):  # type: ignore[no-untyped-def]
    """Slopes of all columns of ``y``: the last is the state, ``own`` the forces of the others."""
    columns = y.shape[1]
    last = columns - 1
    for i in range(n):
        x[i] = y[i, last]
    u[0] = base_force(theta, force) + own[last]
    jac(0.0, x, u, p, dx, Jx, Jp)
    jac_u(0.0, x, u, p, Ju)
    for i in range(n):
        stage[i, last] = dx[i]
        for c in range(last):
            total = Ju[i, 0] * own[c]
            for k in range(n):
                total += Jx[i, k] * y[k, c]
            stage[i, c] = total
    for m in range(modes.shape[0]):
        a, b = n + 2 * m, n + 2 * m + 1
        w, z = modes[m, 0], modes[m, 1]
        for c in range(columns):
            push = u[0] if c == last else own[c]
            stage[a, c] = y[b, c]
            stage[b, c] = push - 2.0 * z * w * y[b, c] - w * w * y[a, c]


@njit(
    void(
        JAC_TYPE, JAC_U_TYPE, _vector, _matrix, _vector, float64, float64, float64, _vector, _vector, _matrix,
        int64, _cube, _vector, _vector, _vector, _matrix, _matrix, _matrix,
    ),
    cache=True, nogil=True,
)  # fmt: skip
def advance_tick(  # type: ignore[no-untyped-def]
    jac, jac_u, p, y, own, theta, before, after, timing, force, modes, n, work, x, u, dx, Jx, Jp, Ju
):
    """Carry ``y`` over a tick in place.

    y[N, N + 4]: derivatives of the N = n + 2 modes states by themselves, by the force s of corrections, by
    the command before and after the change; last the states. own[N + 4]: the force s of each column.
    Commands in volts. ``work`` [3, N, N + 4] and the rest are scratch: nothing is allocated.
    """
    size, columns = y.shape
    lag, gain = timing[LAG], timing[GAIN]
    old, new, last = columns - 3, columns - 2, columns - 1
    h_all = timing[TICK]
    first = timing[FRACTION] * h_all
    for part in range(2):
        length = first if part == 0 else h_all - first
        if length <= 1e-9 * h_all:
            continue
        begun = 0.0 if part == 0 else first
        steps = max(1, int(np.ceil(timing[STEPS] * length / h_all)))
        h = length / steps
        half = np.exp(-0.5 * h / lag) if lag > 0.0 else 0.0
        active = old if part == 0 else new
        command = before if part == 0 else after
        if lag == 0.0:  # the force is where the command wants it at once
            for c in range(columns):
                own[c] = 0.0
            own[active] = gain
            own[last] = gain * command
        for step in range(steps):
            angle = theta + timing[OMEGA] * (begun + step * h)
            for i in range(size):
                for c in range(columns):
                    work[0, i, c] = 0.0
            for stage in range(4):
                a = 0.0 if stage == 0 else (h if stage == 3 else 0.5 * h)
                weight = 1.0 if stage == 0 or stage == 3 else 2.0
                if stage == 1 or stage == 3:  # the forces move on by half a step
                    for c in range(columns):
                        goal = 0.0
                        if c == active:
                            goal = gain
                        elif c == last:
                            goal = gain * command
                        own[c] = goal + (own[c] - goal) * half
                for i in range(size):
                    for c in range(columns):
                        work[2, i, c] = y[i, c] + (a * work[1, i, c] if stage else 0.0)
                _slope(
                    jac, jac_u, p, work[2], own, angle + timing[OMEGA] * a, force, modes, n, work[1],
                    x, u, dx, Jx, Jp, Ju,
                )  # fmt: skip
                for i in range(size):
                    for c in range(columns):
                        work[0, i, c] += weight * work[1, i, c]
            for i in range(size):
                for c in range(columns):
                    y[i, c] += h / 6.0 * work[0, i, c]


@njit(cache=True, nogil=True)
def begin_tick(y, own):  # type: ignore[no-untyped-def]
    """Set the derivatives to the identity; the states (last column) and their force stay."""
    size, columns = y.shape
    for i in range(size):
        for c in range(columns - 1):
            y[i, c] = 1.0 if i == c else 0.0
    for c in range(columns - 1):
        own[c] = 1.0 if c == size else 0.0
