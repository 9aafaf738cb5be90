"""The explicit Runge-Kutta pair of order 8(5,3) of Dormand and Prince with dense output of order 7, compiled.

E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I, 2nd ed. (1993), section II.10,
code DOP853. The step here serves every model and the sensitivities; small models can have the whole step as a
kernel of their own (analysis/model/stepping.py), which is four times faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from analysis.base.compiling import njit
from analysis.model.compiled import COMPILED
from analysis.model.tableau import E3, E5, A, C, D
from analysis.simulation.slope import OVERLOAD, PAIR_TYPE, slope

AT_ZERO = 1e-3  # of a state's largest value so far, relative to which its error is judged while it is zero


def step(f: Any, system: Any, t: float, h: float, limit: float, y: Any, k: Any, w: Any, y_new: Any) -> None:
    """One trial step from (t, y) with k[0] = slope at t, for compiled code: fills k[1..12] and y_new, k[13]
    and k[14] with the differences from the embedded results of order 5 and 3, divided by h."""
    raise NotImplementedError("step is only for compiled code")


@overload(step, jit_options=OVERLOAD)
def _step(f, system, t, h, limit, y, k, w, y_new):  # type: ignore[no-untyped-def]
    if f == PAIR_TYPE:

        def own(f, system, t, h, limit, y, k, w, y_new):  # type: ignore[no-untyped-def]
            f[2](t, h, y, system[0], k, y_new)

        return own

    def general(f, system, t, h, limit, y, k, w, y_new):  # type: ignore[no-untyped-def]
        for s in range(1, 12):
            _stage(f, system, t, h, limit, y, k, w, s)
        _stage(f, system, t, h, limit, y, k, y_new, 12)  # the result of the step, and the slope there
        for i in range(len(y)):
            k[13, i] = _mixed(E5, k, i)
            k[14, i] = _mixed(E3, k, i)

    return general


@njit(**COMPILED)
def _stage(f, system, t, h, limit, y, k, w, s):  # type: ignore[no-untyped-def]
    """The slope k[s] of stage s at the state w."""
    n = len(y)
    for i in range(n):
        w[i] = y[i]
    for j in range(s):
        a = h * A[s, j]
        if a != 0.0:
            for i in range(n):
                w[i] += a * k[j, i]
    slope(f, system, t + C[s] * h, limit, w, k[s])


@njit(**COMPILED)
def _mixed(weights, k, i):  # type: ignore[no-untyped-def]
    """Weighted sum of the slopes of component i."""
    total = 0.0
    for j in range(len(weights)):
        total += weights[j] * k[j, i]
    return total


@njit(**COMPILED)
def allowed_error(before, after, peak, rtol, atol):  # type: ignore[no-untyped-def]
    """Error that a state may make in a step from ``before`` to ``after``."""
    size = max(abs(before), abs(after))
    return atol + rtol * (size + AT_ZERO * max(peak, size))


@njit(**COMPILED)
def state_size(y_new, states, peak, i):  # type: ignore[no-untyped-def]
    """Largest value of a state so far, in which its sensitivities are measured; 0: it has none yet and counts
    only where all states rest (then 1 for each)."""
    size = max(peak[i], abs(y_new[i]))
    if size > 0.0:
        return size
    for j in range(states):
        if peak[j] > 0.0 or y_new[j] != 0.0:
            return 0.0
    return 1.0


@njit(**COMPILED)
def column_size(system, c, y_new, states, peak):  # type: ignore[no-untyped-def]
    """Largest sensitivity of column c so far, each in units of its state's size."""
    which, columns = system[1][c], len(system[1])
    largest = 1e-6 / abs(system[0][which]) if which >= 0 and system[0][which] != 0.0 else 0.0
    for i in range(states):
        size = state_size(y_new, states, peak, i)
        if size > 0.0:
            at = states + i * columns + c
            largest = max(largest, max(peak[at], abs(y_new[at])) / size)
    return largest


@njit(**COMPILED)
def allowed_errors(system, h, y, y_new, states, rtol, atol, noise, peak, sizes):  # type: ignore[no-untyped-def]
    """Error that each component may make in a step; 0: the component is exactly zero, and so is its error.

    Nothing here depends on units: a state's error counts relative to the state itself and, while it passes
    zero, to its largest value so far (``peak``); ``noise`` is the rounding error of the slopes. Entries
    beyond the states are sensitivities S[states, m]. Their units differ and they may start at zero: an error
    counts relative to the largest entry of its column so far, both in units of their states' sizes, or, if
    the whole column is rounding noise, relative to a change of one in a million by the parameter.
    """
    for i in range(states):
        sizes[i] = allowed_error(y[i], y_new[i], peak[i], rtol, atol + abs(h) * noise[i])
    columns = len(y) // states - 1
    for c in range(columns):
        largest = rtol * column_size(system, c, y_new, states, peak)
        for i in range(states):
            sizes[states + i * columns + c] = largest * state_size(y_new, states, peak, i)


@njit(**COMPILED)
def error_norm(h, k, sizes):  # type: ignore[no-untyped-def]
    """Scaled error of a step, from its differences k[13] and k[14]: accepted when at most 1."""
    sum5 = 0.0
    sum3 = 0.0
    for i in range(len(sizes)):
        if sizes[i] > 0.0:
            sum5 += (k[13, i] / sizes[i]) ** 2
            sum3 += (k[14, i] / sizes[i]) ** 2
    if sum5 == 0.0 and sum3 == 0.0:
        return 0.0
    return abs(h) * sum5 / np.sqrt((sum5 + 0.01 * sum3) * len(sizes))


@njit(**COMPILED)
def prepare_dense(f, system, t, h, limit, y, y_new, k, w, dense):  # type: ignore[no-untyped-def]
    """Coefficients dense[7, n] of the interpolant over an accepted step (three more slopes)."""
    for s in range(13, 16):
        _stage(f, system, t, h, limit, y, k, w, s)
    for i in range(len(y)):
        difference = y_new[i] - y[i]
        dense[0, i] = difference
        dense[1, i] = h * k[0, i] - difference
        dense[2, i] = 2.0 * difference - h * (k[12, i] + k[0, i])
        dense[3, i] = h * _mixed(D[0], k, i)
        dense[4, i] = h * _mixed(D[1], k, i)
        dense[5, i] = h * _mixed(D[2], k, i)
        dense[6, i] = h * _mixed(D[3], k, i)


@njit(**COMPILED)
def dense_value(y, dense, i, s):  # type: ignore[no-untyped-def]
    """Component i of the interpolant at the fraction s of the step."""
    r = 1.0 - s
    tail = dense[3, i] + s * (dense[4, i] + r * (dense[5, i] + s * dense[6, i]))
    return y[i] + s * (dense[0, i] + r * (dense[1, i] + s * (dense[2, i] + r * tail)))
