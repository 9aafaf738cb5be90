"""Implicit collocation (Radau IIA) for stiff models, with forward sensitivities, compiled.

E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, 2nd ed. (1996), sections IV.5 and IV.8. The
method with s stages has order 2s - 1, is L-stable, and its collocation polynomial gives the motion between
the steps. The stage equations are solved by Newton's method with the exact Jacobian at every stage; the same
matrix at the solution gives the sensitivities, exactly those of the numbers computed. All stages are solved
as one dense system of s n unknowns, which is quick for the few states that a model of a rig has.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.polynomial import Legendre
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.model.compiled import COMPILED
from analysis.model.kernels import JAC_TYPE
from analysis.signal.inputs import input_values
from analysis.simulation.dop853 import allowed_error, allowed_errors
from analysis.simulation.integrate import (
    DIVERGED,
    FINISHED,
    PATIENCE,
    SHORTEST,
    UNFINISHED,
    before,
    breaks_until,
    copied,
    inside,
    next_break,
)
from analysis.simulation.slope import CUBE, FLOAT, INDICES, INT, MATRIX, SYSTEM_TYPE, VECTOR

Array = NDArray[np.float64]

MANY_STATES = 12  # beyond, three stages (order 5) instead of five (order 9): the dense system grows with both
NEWTON_STEPS = 8  # a step whose stages have not been found by then is halved
NEWTON_ERROR = 0.01  # of the error allowed: what may be left of the stage equations
SLOW = 0.1  # ratio of two corrections from which on the Jacobians are computed anew
LONGEST_GROWTH, SHORTEST_CUT, SAFETY = 5.0, 0.1, 0.9

# coefficients: A[s, s], nodes c[s], error weights e[s], weight of the slope at the start of the step
TABLE_TYPE = types.Tuple((MATRIX, VECTOR, VECTOR, FLOAT))
# work space: stages Z, slopes F, Jacobians J, derivatives by the columns' parameters B; the system of all
# stages with its right-hand side and row exchanges; the same for the error estimate; vectors
SPACE_TYPE = types.Tuple(
    (MATRIX, MATRIX, CUBE, CUBE, MATRIX, MATRIX, INDICES, MATRIX, MATRIX, INDICES, MATRIX)
)


class Table(NamedTuple):
    """See :data:`TABLE_TYPE`."""

    a: Array
    c: Array
    e: Array
    start: float


@lru_cache(maxsize=4)
def radau_table(stages: int) -> Table:
    """Coefficients of the Radau IIA method with an odd number of stages, from its definition."""
    s = stages
    zero = Legendre.basis(s) - Legendre.basis(s - 1)  # the nodes are its roots, moved to (0, 1]
    x: Array = np.sort(np.real(zero.roots())).astype(np.float64)
    x -= zero(x) / zero.deriv()(x)
    c = (x + 1) / 2
    c[-1] = 1.0
    powers = np.vander(c, s, increasing=True)  # c_i^(k-1)
    integrals = np.array([c**k / k for k in range(1, s + 1)]).T
    a = integrals @ np.linalg.inv(powers)
    values = np.linalg.eigvals(np.linalg.inv(a))
    start = float(1.0 / values[np.argmin(np.abs(values.imag))].real)
    moments = 1.0 / np.arange(1, s + 1) - start * (np.arange(s) == 0)
    embedded = np.linalg.solve(powers.T, moments)  # order s with the slope at the start
    e = (embedded - a[-1]) @ np.linalg.inv(a)
    return Table(np.ascontiguousarray(a), np.ascontiguousarray(c), np.ascontiguousarray(e), start)


def stages_for(states: int) -> int:
    return 5 if states <= MANY_STATES else 3


def workspace(states: int, columns: int) -> tuple[Any, ...]:
    s, n, m = stages_for(states), states, columns
    return (
        np.zeros((s, n * (1 + m))), np.zeros((s, n)), np.zeros((s, n, n)), np.zeros((s, n, m)),
        np.zeros((s * n, s * n)), np.zeros((s * n, max(m, 1))), np.zeros(s * n, dtype=np.int64),
        np.zeros((n, n)), np.zeros((n, 1 + m)), np.zeros(n, dtype=np.int64),
        np.zeros((7, max(n * (1 + m), s))),
    )  # fmt: skip


@njit(**COMPILED)
def factorise(a, rows):  # type: ignore[no-untyped-def]
    """LU factors of a in place, with row exchanges; False if it is singular or not finite."""
    n = len(rows)
    for j in range(n):
        best = j
        for i in range(j + 1, n):
            if abs(a[i, j]) > abs(a[best, j]):
                best = i
        rows[j] = best
        pivot = a[best, j]
        if not (abs(pivot) > 0.0) or not np.isfinite(pivot):
            return False
        if best != j:
            for c in range(n):
                a[j, c], a[best, c] = a[best, c], a[j, c]
        for i in range(j + 1, n):
            if a[i, j] != 0.0:
                factor = a[i, j] / pivot
                a[i, j] = factor
                for c in range(j + 1, n):
                    a[i, c] -= factor * a[j, c]
    return True


@njit(**COMPILED)
def solve_in_place(a, rows, b, columns):  # type: ignore[no-untyped-def]
    """b[n, columns] becomes the solution of the factorised system."""
    n = len(rows)
    for j in range(n):
        if rows[j] != j:
            for c in range(columns):
                b[j, c], b[rows[j], c] = b[rows[j], c], b[j, c]
    for j in range(n):  # the exchanged rows of the lower factor are in their final order
        for i in range(j + 1, n):
            factor = a[i, j]
            if factor != 0.0:
                for c in range(columns):
                    b[i, c] -= factor * b[j, c]
    for j in range(n - 1, -1, -1):
        for c in range(columns):
            b[j, c] /= a[j, j]
        for i in range(j):
            factor = a[i, j]
            if factor != 0.0:
                for c in range(columns):
                    b[i, c] -= factor * b[j, c]


@njit(**COMPILED)
def slope_and_jacobian(f, system, t, limit, x, dx):  # type: ignore[no-untyped-def]
    """Slope into dx, Jacobians into the system's own arrays (jx, jp)."""
    if system[4].shape[0] > 0:
        input_values(min(t, limit), system[2], system[3], system[4], system[5])
    f(t, x, system[5], system[0], dx, system[6], system[7])


@njit(**COMPILED)
def _at_stages(f, system, t, h, limit, y, table, space, n, m, with_jacobians):  # type: ignore[no-untyped-def]
    """Slopes at all stages, with the Jacobians if they are wanted."""
    z, slopes, jacobians, by_parameter = space[0], space[1], space[2], space[3]
    x = space[10][5]
    columns, jx, jp = system[1], system[6], system[7]
    for s in range(len(table[1])):
        for i in range(n):
            x[i] = y[i] + z[s, i]
        slope_and_jacobian(f, system, t + table[1][s] * h, limit, x[:n], slopes[s])
        if with_jacobians:
            for i in range(n):
                for j in range(n):
                    jacobians[s, i, j] = jx[i, j]
                for c in range(m):
                    by_parameter[s, i, c] = jp[i, columns[c]] if columns[c] >= 0 else 0.0


@njit(**COMPILED)
def _factorise_stages(h, table, space, n):  # type: ignore[no-untyped-def]
    """Factors of the matrix of all stages: blocks (i, j) of delta_ij - h a_ij J_j."""
    a, jacobians, matrix = table[0], space[2], space[4]
    stages = len(table[1])
    for s in range(stages):
        for r in range(stages):
            for i in range(n):
                for j in range(n):
                    matrix[s * n + i, r * n + j] = -h * a[s, r] * jacobians[r, i, j]
        for i in range(n):
            matrix[s * n + i, s * n + i] += 1.0
    return factorise(matrix, space[6])


@njit(**COMPILED)
def _correct_stages(h, table, space, n, sizes):  # type: ignore[no-untyped-def]
    """One Newton correction of the stages; its size in units of the errors allowed."""
    a, z, slopes, right = table[0], space[0], space[1], space[5]
    stages = len(table[1])
    for s in range(stages):
        for i in range(n):
            total = -z[s, i]
            for r in range(stages):
                total += h * a[s, r] * slopes[r, i]
            right[s * n + i, 0] = total
    solve_in_place(space[4], space[6], right, 1)
    square = 0.0
    for s in range(stages):
        for i in range(n):
            change = right[s * n + i, 0]
            z[s, i] += change
            if sizes[i] > 0.0:
                square += (change / sizes[i]) ** 2
    return np.sqrt(square / (stages * n))


@njit(**COMPILED)
def _find_stages(f, system, t, h, limit, y, table, space, n, m, sizes, rtol):  # type: ignore[no-untyped-def]
    """Newton's method for the stages from where they stand; with sensitivities if there are columns."""
    enough = max(NEWTON_ERROR, 4e-15 / rtol)  # in units of the error allowed, not below rounding
    last = np.inf
    fresh = True
    found = False
    for _ in range(NEWTON_STEPS):
        _at_stages(f, system, t, h, limit, y, table, space, n, m, fresh)
        if fresh and not _factorise_stages(h, table, space, n):
            return False
        size = _correct_stages(h, table, space, n, sizes)
        if not np.isfinite(size) or size > 2.0 * last:
            return False
        rate = size / last if last > 0.0 and np.isfinite(last) else 0.0
        if size <= enough or (rate > 0.0 and rate < 0.9 and size * rate / (1.0 - rate) <= enough):
            found = True
            break
        fresh = rate > SLOW
        last = size
    if not found or m == 0:
        return found
    _at_stages(f, system, t, h, limit, y, table, space, n, m, True)
    if not _factorise_stages(h, table, space, n):
        return False
    _correct_stages(h, table, space, n, sizes)
    _sensitivities_of_stages(h, y, table, space, n, m)
    return True


@njit(**COMPILED)
def _sensitivities_of_stages(h, y, table, space, n, m):  # type: ignore[no-untyped-def]
    """The linear equations of the stages' sensitivities, with the matrix of the last Newton step."""
    a, z, jacobians, by_parameter, right = table[0], space[0], space[2], space[3], space[5]
    stages = len(table[1])
    for s in range(stages):
        for i in range(n):
            for c in range(m):
                right[s * n + i, c] = 0.0
    for r in range(stages):
        for i in range(n):
            for c in range(m):
                total = by_parameter[r, i, c]
                for j in range(n):
                    total += jacobians[r, i, j] * y[n + j * m + c]
                for s in range(stages):
                    right[s * n + i, c] += h * a[s, r] * total
    solve_in_place(space[4], space[6], right, m)
    for s in range(stages):
        for i in range(n):
            for c in range(m):
                z[s, n + i * m + c] = right[s * n + i, c]


@njit(**COMPILED)
def _filtered_error(h, y, first, table, space, n, m, error):  # type: ignore[no-untyped-def]
    """Difference from the embedded result of order s, stiff components damped (Hairer and Wanner, IV.8.20);
    ``first`` is the slope of all components at the start of the step."""
    z, matrix, right = space[0], space[7], space[8]
    for i in range(n):
        for c in range(1 + m):
            at = i if c == 0 else n + i * m + c - 1
            total = table[3] * h * first[at]
            for s in range(len(table[1])):
                total += table[2][s] * z[s, at]
            right[i, c] = total
    solve_in_place(matrix, space[9], right, 1 + m)
    for i in range(n):
        for c in range(1 + m):
            error[i if c == 0 else n + i * m + c - 1] = right[i, c]


@njit(**COMPILED)
def _norm(error, allowed):  # type: ignore[no-untyped-def]
    """Root mean square of the error in units of what is allowed."""
    square = 0.0
    for i in range(len(allowed)):
        if allowed[i] > 0.0:
            square += (error[i] / allowed[i]) ** 2
    return np.sqrt(square / len(allowed))


@njit(**COMPILED)
def _start_slopes(f, system, t, limit, y, h, table, space, n, m, first):  # type: ignore[no-untyped-def]
    """Slopes of all components at the start, and the factors of 1 - h gamma J for the error estimate."""
    jx, jp, columns, matrix = system[6], system[7], system[1], space[7]
    slope_and_jacobian(f, system, t, limit, y[:n], first[:n])
    for i in range(n):
        for j in range(n):
            matrix[i, j] = -h * table[3] * jx[i, j]
        matrix[i, i] += 1.0
        for c in range(m):
            total = jp[i, columns[c]] if columns[c] >= 0 else 0.0
            for j in range(n):
                total += jx[i, j] * y[n + j * m + c]
            first[n + i * m + c] = total
    return factorise(matrix, space[9])


@njit(**COMPILED)
def collocation_value(nodes, z, i, s):  # type: ignore[no-untyped-def]
    """Change of component i since the start of the step, at the fraction s of it."""
    total = 0.0
    for a in range(len(nodes)):
        weight = s / nodes[a]
        for b in range(len(nodes)):
            if b != a:
                weight *= (s - nodes[b]) / (nodes[a] - nodes[b])
        total += weight * z[a, i]
    return total


@njit(**COMPILED)
def _extrapolate(nodes, z, n, ratio, reuse, w):  # type: ignore[no-untyped-def]
    """First guess of the stages of a step ``ratio`` times as long as the last one: its polynomial goes on."""
    for i in range(n):
        if reuse:
            end = z[len(nodes) - 1, i]
            for s in range(len(nodes)):
                w[s] = collocation_value(nodes, z, i, 1.0 + nodes[s] * ratio) - end
        for s in range(len(nodes)):
            z[s, i] = w[s] if reuse else 0.0


@njit(**COMPILED)
def implicit_step(  # type: ignore[no-untyped-def]
    f, system, t, h, last_h, end, limit, y, y_new, table, space, n, m, rtol, atol, noise, peak, guess
):
    """One accepted step, never beyond ``end``: the time reached (t: none is left) and the next step size."""
    nodes, z, vectors = table[1], space[0], space[10]
    error, first, sizes, trial = vectors[0], vectors[1], vectors[2], vectors[3]
    allowed = vectors[4, : n * (1 + m)]
    h = min(h, system[8])
    proposed = h
    growth = LONGEST_GROWTH
    for i in range(n):
        sizes[i] = allowed_error(y[i], y[i], peak[i], rtol, atol + h * noise[i])
    while True:
        clipped = t + 1.01 * h >= end
        if clipped:
            h = end - t
        if h <= 4e-16 * abs(t) or t + h == t:
            return t, h
        usable = _start_slopes(f, system, t, limit, y, h, table, space, n, m, first)
        for i in range(n):  # a motion from rest has no size yet: that of its first step counts
            if sizes[i] == 0.0:
                sizes[i] = rtol * abs(h * first[i])
        _extrapolate(nodes, z, n, h / last_h if last_h > 0.0 else 0.0, guess, vectors[4])
        guess = False  # a second attempt starts afresh
        if not usable or not _find_stages(f, system, t, h, limit, y, table, space, n, m, sizes, rtol):
            h *= 0.25
            proposed = h
            growth = 1.0
            continue
        for i in range(n * (1 + m)):
            y_new[i] = y[i] + z[len(nodes) - 1, i]
        _filtered_error(h, y, first, table, space, n, m, error)
        allowed_errors(system, h, y, y_new, n, rtol, atol, noise, peak, allowed)
        size = _norm(error, allowed)
        if size > 1.0 and m == 0:  # a second filter for a stiff transient (IV.8.21)
            for i in range(n):
                trial[i] = y[i] + error[i]
            slope_and_jacobian(f, system, t, limit, trial[:n], first[:n])
            _filtered_error(h, y, first, table, space, n, m, error)
            size = _norm(error, allowed)
        factor = growth
        if not np.isfinite(size):
            factor = SHORTEST_CUT
        elif size > 1e-12:
            factor = max(SHORTEST_CUT, min(growth, SAFETY * size ** (-1.0 / (len(nodes) + 1))))
        if size <= 1.0:
            following = max(h * factor, proposed) if clipped else h * factor
            return (end if clipped else t + h), following
        growth = 1.0
        h *= min(factor, 0.9)
        proposed = h


def _implicit(  # type: ignore[no-untyped-def]
    f,
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
    table,
    space,
    peak,
    out,
):
    """From (start, initial); fills ``out`` from ``column`` on at ``times``. Arguments and result are those of
    the explicit integrator (`integrate.py`); the state reached is written to ``initial``.

    A loop of its own: the first step, the step, the interpolant, and what a jump of the inputs puts an end to
    are different ones, and a function for each that suits both would be longer than the loop.
    """
    n, m, size = states, len(system[1]), len(initial)
    nodes, z, y_new, y = table[1], space[0], space[10][6, :size], initial
    for i in range(size):
        peak[i] = max(peak[i], abs(y[i]))
    dt = system[3]
    t = start
    column = copied(times, column, t, y, out)
    passed = breaks_until(breaks, t + 1e-9 * dt)
    if h <= 0.0:
        h = SHORTEST * (times[-1] - t)
    last_h = 0.0
    steps = 0
    checked = t
    while column < len(times):
        if steps >= budget:
            return column, t, h, steps, UNFINISHED
        limit = next_break(breaks, passed)
        reached, following = implicit_step(
            f,
            system,
            t,
            h,
            last_h,
            min(limit, times[-1]),
            before(limit, dt),
            y,
            y_new,
            table,
            space,
            n,
            m,
            rtol,
            atol,
            noise,
            peak,
            last_h > 0.0,
        )
        steps += 1
        if steps % PATIENCE == 0:
            if times[-1] - t > most / PATIENCE * (t - checked):
                return column, t, h, steps, DIVERGED
            checked = t
        if reached == t:
            return column, t, h, steps, DIVERGED
        last_h = reached - t
        while column < len(times) and times[column] < reached:
            s = (times[column] - t) / last_h
            for i in range(size):
                out[i, column] = y[i] + collocation_value(nodes, z, i, s)
            column += 1
        column = copied(times, column, reached, y_new, out)
        t, h = reached, following
        for i in range(size):
            y[i] = y_new[i]
            peak[i] = max(peak[i], abs(y[i]))
        if not inside(y, states, bound):
            return column, t, h, steps, DIVERGED
        if reached == limit:
            passed += 1
            last_h = 0.0  # the polynomial of the last step knows nothing of the jump
    return column, t, h, steps, FINISHED


_RESULT = types.Tuple((INT, FLOAT, FLOAT, INT, INT))
_ARGUMENTS = (
    *(JAC_TYPE, SYSTEM_TYPE, FLOAT, FLOAT, INT, VECTOR, VECTOR, INT, VECTOR),
    *(FLOAT, FLOAT, VECTOR, FLOAT, INT, INT, TABLE_TYPE, SPACE_TYPE, VECTOR, MATRIX),
)


@lru_cache(maxsize=1)
def implicit() -> Any:
    """The implicit integrator, compiled when first needed."""
    return njit(_RESULT(*_ARGUMENTS), **COMPILED)(_implicit)
