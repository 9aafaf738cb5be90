"""Compiled integrators: fixed-step Runge-Kutta 4 and adaptive DOP853, with inputs that may jump.

Compiled once for every model: the model's kernel comes as a function-type argument. Results are written into
``out[len(y), len(times)]``. A run that leaves ``bound``, loses its numbers or would need more steps than
``most`` stops there. ``work`` has len(y) columns and ADAPTIVE_ROWS or RK4_ROWS rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from analysis.base.compiling import njit
from analysis.model.compiled import COMPILED
from analysis.model.tableau import STAGES, A
from analysis.signal.inputs import input_values
from analysis.simulation.dop853 import (
    allowed_error,
    allowed_errors,
    dense_value,
    error_norm,
    prepare_dense,
    step,
)
from analysis.simulation.slope import (
    FLOAT,
    INT,
    MATRIX,
    OVERLOAD,
    PAIR_TYPE,
    SYSTEM_TYPE,
    VECTOR,
    paired,
    slope,
)

SHORTEST = 1e-6  # of a run: its first step where the start does not tell a scale of time
ADAPTIVE_ROWS = 4 + STAGES + 7
RK4_ROWS = 6
WATCH_EVERY = 50  # steps between two looks at what limits them
STABLE = 3.5  # |h lambda| seen where stability limits the steps; accuracy keeps it below 2
MAX_STEPS = 200_000_000  # a run that would need more has diverged
PATIENCE = 10_000  # steps between two looks at the progress of an adaptive run

LOOKS = 4  # places in a step at which surfaces are looked at
NO_SURFACES = None, np.empty(0), np.empty(0)

FINISHED, DIVERGED, UNFINISHED, STIFF, EVENT = 0, 1, 2, 3, 4  # how an adaptive run ended

_ADAPTIVE = types.Tuple((INT, FLOAT, FLOAT, INT, INT))  # columns filled, time, next step, steps taken, how
_ADAPTIVE_ARGUMENTS = (
    *(VECTOR, VECTOR, SYSTEM_TYPE, FLOAT, FLOAT, INT, VECTOR, VECTOR, INT, VECTOR),
    *(FLOAT, FLOAT, VECTOR, FLOAT, INT, INT, INT, MATRIX, MATRIX),
)
_RK4 = types.Tuple((INT, FLOAT, INT))  # columns filled, time reached, steps taken
_RK4_ARGUMENTS = (SYSTEM_TYPE, VECTOR, VECTOR, INT, VECTOR, INT, FLOAT, MATRIX, MATRIX)


@njit(**COMPILED)
def _eighth_root(x):  # type: ignore[no-untyped-def]
    return np.sqrt(np.sqrt(np.sqrt(x)))


@njit(**COMPILED)
def inside(y, states, bound):  # type: ignore[no-untyped-def]
    """True while every state is a number within the bound."""
    for i in range(states):  # noqa: SIM110 (a generator costs ten times as much when compiled)
        if not (abs(y[i]) <= bound):  # written so that not-a-number fails
            return False
    return True


@njit(**COMPILED)
def breaks_until(breaks, t):  # type: ignore[no-untyped-def]
    """How many breaks lie at or before t."""
    count = 0
    while count < len(breaks) and breaks[count] <= t:
        count += 1
    return count


@njit(**COMPILED)
def next_break(breaks, passed):  # type: ignore[no-untyped-def]
    return breaks[passed] if passed < len(breaks) else np.inf


@njit(**COMPILED)
def before(limit, dt):  # type: ignore[no-untyped-def]
    """The latest time that still sees the inputs before a jump at ``limit``."""
    return limit - 1e-8 * dt


@njit(**COMPILED)
def first_step(f, system, t, limit, y, k, w, states, rtol, atol, noise, span):  # type: ignore[no-untyped-def]
    """Size of the first step from the size of the slope and of its change (Hairer et al., II.4).

    ``span``: length of the whole run, the only scale of time that is known of a motion that starts from rest.
    """
    d0 = 0.0
    d1 = 0.0
    for i in range(states):
        size = allowed_error(y[i], y[i], 0.0, rtol, atol)
        if size > 0.0:
            d0 += (y[i] / size) ** 2
            d1 += (k[0, i] / size) ** 2
    if not (np.isfinite(d0) and np.isfinite(d1)):
        return SHORTEST * span
    h = SHORTEST * span if d0 == 0.0 or d1 == 0.0 else min(0.01 * np.sqrt(d0 / d1), span)
    for i in range(len(y)):
        w[i] = y[i] + h * k[0, i]
    slope(f, system, t + h, limit, w, k[1])
    d2 = 0.0
    for i in range(states):
        size = allowed_error(y[i], w[i], 0.0, rtol, atol + h * noise[i])
        if size > 0.0:
            d2 += ((k[1, i] - k[0, i]) / size) ** 2
    curved = h * np.sqrt(d2 / states)  # what the slope's change does to the states, in errors allowed
    if not np.isfinite(curved):
        return 1e-3 * h
    return min(span, 100.0 * h if curved == 0.0 else min(100.0, _eighth_root(0.01 / curved)) * h)


@njit(**COMPILED)
def adaptive_step(f, system, t, h, end, limit, y, k, w, y_new, states, rtol, atol, noise, peak):  # type: ignore[no-untyped-def]
    """One accepted step from (t, y), never beyond ``end``: returns the time reached and the next step size.

    The time reached equals t when no acceptable step is left (divergence or a singularity). ``w`` then holds
    the errors that were allowed.
    """
    if end - t <= 1e-14 * abs(t):  # two breaks, or a break and an output time, that differ by rounding
        for i in range(len(y)):
            y_new[i] = y[i]
            k[12, i] = k[0, i]
        return end, h
    grow = 6.0
    h = min(h, system[8])
    proposed = h
    while True:
        clipped = t + 1.01 * h >= end
        if clipped:
            h = end - t
        if h <= 4e-16 * abs(t) or t + h == t:
            return t, h
        step(f, system, t, h, limit, y, k, w, y_new)
        allowed_errors(system, h, y, y_new, states, rtol, atol, noise, peak, w)
        error = error_norm(h, k, w)
        if error <= 1.0:
            factor = grow if error < 1e-12 else min(grow, 0.9 / _eighth_root(error))
            following = h * factor
            if clipped:
                following = max(following, proposed)
            return (end if clipped else t + h), following
        grow = 1.0
        h *= max(0.2, 0.9 / _eighth_root(error)) if np.isfinite(error) else 0.1
        proposed = h


@njit(**COMPILED)
def _stability(h, y, y_new, k, states, sizes):  # type: ignore[no-untyped-def]
    """h times the largest rate of change of the slope: |h lambda| where the model is stiff, from the two
    stages at the end of the step (Hairer and Wanner, Solving Ordinary Differential Equations II, IV.2)."""
    slopes = 0.0
    states_apart = 0.0
    for i in range(states):
        if sizes[i] > 0.0:
            at_stage = y[i]
            for j in range(11):
                at_stage += h * A[11, j] * k[j, i]
            slopes += ((k[12, i] - k[11, i]) / sizes[i]) ** 2
            states_apart += ((y_new[i] - at_stage) / sizes[i]) ** 2
    return h * np.sqrt(slopes / states_apart) if states_apart > 0.0 else 0.0


@njit(**COMPILED)
def begin(f, system, t, h, span, initial, breaks, states, rtol, atol, noise, work):  # type: ignore[no-untyped-def]
    """Put the initial state and its slope into the work space: the number of breaks passed and the first step
    (``h`` if it is given)."""
    y, peak, k = work[0], work[3], work[4:]
    for i in range(len(initial)):
        y[i] = initial[i]
        peak[i] = max(peak[i], abs(initial[i]))
    passed = breaks_until(breaks, t + 1e-9 * system[3])
    latest = before(next_break(breaks, passed), system[3])
    slope(f, system, t, latest, y, k[0])
    if h <= 0.0:
        h = first_step(f, system, t, latest, y, k, work[2], states, rtol, atol, noise, span)
    return passed, h


@njit(**COMPILED)
def arrive(f, system, t, breaks, passed, work):  # type: ignore[no-untyped-def]
    """Go on from the end of a step at t: the number of breaks passed. Behind one the slope is another."""
    y, y_new, peak, k = work[0], work[1], work[3], work[4:]
    for i in range(len(y)):
        y[i] = y_new[i]
        k[0, i] = k[12, i]
        peak[i] = max(peak[i], abs(y[i]))
    if t == next_break(breaks, passed):
        passed += 1
        slope(f, system, t, before(next_break(breaks, passed), system[3]), y, k[0])
    return passed


@njit(**COMPILED)
def copied(times, column, t, y, out):  # type: ignore[no-untyped-def]
    """Fill the columns up to time t with y; the next one to be filled."""
    while column < len(times) and times[column] <= t:
        for i in range(len(y)):
            out[i, column] = y[i]
        column += 1
    return column


def passes(
    surfaces: Any,
    sides: Any,
    heights: Any,
    system: Any,
    t: float,
    h: float,
    limit: float,
    y: Any,
    dense: Any,
    x: Any,
) -> bool:
    """Whether a step passes one of the surfaces, by LOOKS looks at its interpolant. For compiled code."""
    raise NotImplementedError("passes is only for compiled code")


@overload(passes, jit_options=OVERLOAD)
def _passes(surfaces, sides, heights, system, t, h, limit, y, dense, x):  # type: ignore[no-untyped-def]
    if surfaces == types.none:
        return lambda surfaces, sides, heights, system, t, h, limit, y, dense, x: False

    def looked(surfaces, sides, heights, system, t, h, limit, y, dense, x):  # type: ignore[no-untyped-def]
        for look in range(1, LOOKS + 1):
            s = look / LOOKS
            for i in range(system[6].shape[0]):
                x[i] = dense_value(y, dense, i, s)
            if system[4].shape[0] > 0:
                input_values(min(t + s * h, limit), system[2], system[3], system[4], system[5])
            surfaces(t + s * h, x, system[5], system[0], heights)
            for k in range(len(sides)):
                if heights[k] * sides[k] < 0.0:
                    return True
        return False

    return looked


def _adaptive(  # type: ignore[no-untyped-def]
    rhs,
    own,
    surfaces,
    sides,
    heights,
    system,
    start,
    h,
    column,
    times,
    initial,
    states,
    breaks,
    rtol,
    atol,
    noise,
    bound,
    most,
    budget,
    watched,
    work,
    out,
):
    """DOP853 from (start, initial); fills ``out`` from ``column`` on by dense output at ``times``.

    ``h`` is the first step (0: to be chosen). Ends when all columns are filled, when the motion diverges, or
    after ``budget`` steps, or, if it is ``watched``, when stability instead of accuracy limits the steps
    (STIFF); then the state is in work[0] and the run can be taken up again. A step that leaves one of the
    ``sides`` of the ``surfaces`` (None: there are none; ``heights`` is work space) ends it at its start, with
    its length and its interpolant (the last 7 rows of work).
    """
    f = paired(rhs, own)
    n = len(initial)
    y, y_new, w = work[0], work[1], work[2]
    k, dense = work[4 : 4 + STAGES], work[4 + STAGES :]
    t = start
    passed, h = begin(f, system, t, h, times[-1] - t, initial, breaks, states, rtol, atol, noise, work)
    column = copied(times, column, t, y, out)
    suspicion, calm = 0, 0
    steps = 0
    checked = t
    while column < len(times):
        if steps >= budget:
            return column, t, h, steps, UNFINISHED
        limit = next_break(breaks, passed)
        latest = before(limit, system[3])
        reached, following = adaptive_step(
            f, system, t, h, min(limit, times[-1]), latest, y, k, w, y_new, states, rtol, atol, noise, work[3]
        )
        steps += 1
        if steps % PATIENCE == 0:  # a motion that escapes may turn so stiff that it would never end
            if times[-1] - t > most / PATIENCE * (t - checked):
                return column, t, h, steps, DIVERGED
            checked = t
        if reached == t:
            return column, t, h, steps, DIVERGED
        size = reached - t
        if watched and (suspicion > 0 or steps % WATCH_EVERY == 0):
            if _stability(size, y, y_new, k, states, w) > STABLE:
                suspicion, calm = suspicion + 1, 0
            else:
                calm += 1
                if calm >= 6:
                    suspicion = 0
        if len(sides) > 0 or times[column] < reached:
            prepare_dense(f, system, t, size, latest, y, y_new, k, w, dense)
        if passes(surfaces, sides, heights, system, t, size, latest, y, dense, w):
            return column, t, size, steps, EVENT
        while column < len(times) and times[column] < reached:
            s = (times[column] - t) / size
            for i in range(n):
                out[i, column] = dense_value(y, dense, i, s)
            column += 1
        column = copied(times, column, reached, y_new, out)
        t, h = reached, following
        passed = arrive(f, system, t, breaks, passed, work)
        if not inside(y, states, bound):
            return column, t, h, steps, DIVERGED
        if suspicion >= 15 and column < len(times):
            return column, t, h, steps, STIFF
    return column, t, h, steps, FINISHED


@njit(**COMPILED)
def rk4_step(f, system, t, h, limit, y, k, w):  # type: ignore[no-untyped-def]
    """One classical Runge-Kutta step of y in place; a jump of the inputs at its end is not yet seen."""
    n = len(y)
    slope(f, system, t, limit, y, k[0])
    for i in range(n):
        w[i] = y[i] + 0.5 * h * k[0, i]
    slope(f, system, t + 0.5 * h, limit, w, k[1])
    for i in range(n):
        w[i] = y[i] + 0.5 * h * k[1, i]
    slope(f, system, t + 0.5 * h, limit, w, k[2])
    for i in range(n):
        w[i] = y[i] + h * k[2, i]
    slope(f, system, t + h, limit, w, k[3])
    for i in range(n):
        y[i] += h / 6.0 * (k[0, i] + 2.0 * (k[1, i] + k[2, i]) + k[3, i])


def _rk4(f, system, times, initial, states, breaks, substeps, bound, work, out):  # type: ignore[no-untyped-def]
    """Runge-Kutta 4 with ``substeps`` equal steps between consecutive times; a jump inside splits a step."""
    n = len(initial)
    y, w, k = work[0], work[1], work[2:]
    dt = system[3]
    for i in range(n):
        y[i] = initial[i]
        out[i, 0] = initial[i]
    jump = breaks_until(breaks, times[0] + 1e-9 * dt)
    steps = 0
    for column in range(1, len(times)):
        start = times[column - 1]
        h = (times[column] - start) / substeps
        for s in range(substeps):
            t = start + s * h
            end = start + (s + 1) * h
            while jump < len(breaks) and breaks[jump] < end + 1e-9 * dt:
                part = breaks[jump] - t
                rk4_step(f, system, t, part, before(breaks[jump], dt), y, k, w)
                t = breaks[jump]
                jump += 1
                steps += 1
            if end - t > 2e-9 * dt or len(breaks) == 0:
                rk4_step(f, system, t, end - t, before(next_break(breaks, jump), dt), y, k, w)
                steps += 1
        if not inside(y, states, bound):
            return column, times[column], steps
        for i in range(n):
            out[i, column] = y[i]
    return len(times), times[-1], steps


@lru_cache(maxsize=8)
def adaptive(kernel_type: types.Type, surfaces: types.Type = types.none) -> Any:
    """The adaptive integrator for RHS_TYPE, JAC_TYPE or PAIR_TYPE kernels, without surfaces or with those of
    an OUT_TYPE kernel, compiled when first needed."""
    kernels = kernel_type.types[1:] if kernel_type == PAIR_TYPE else (kernel_type, types.none)
    return njit(_ADAPTIVE(*kernels, surfaces, *_ADAPTIVE_ARGUMENTS), **COMPILED)(_adaptive)


@lru_cache(maxsize=4)
def rk4(kernel_type: types.Type) -> Any:
    """The fixed-step integrator for RHS_TYPE or JAC_TYPE kernels, compiled when first needed."""
    return njit(_RK4(kernel_type, *_RK4_ARGUMENTS), **COMPILED)(_rk4)
