"""The slope of a system to be integrated: a model's states alone, or with their sensitivities.

The same integrators serve both. ``f`` is a model's compiled ``rhs`` (then the vector y is the states) or its
``jac`` (then y holds the states followed by S[n, columns] row by row, S' = Jx S + Jp of the column's
parameter).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from analysis.model.compiled import COMPILED
from analysis.model.kernels import JAC_TYPE, RHS_TYPE, STEP_TYPE
from analysis.signal.inputs import Inputs, input_values

FLOAT, INT = types.float64, types.int64
VECTOR = types.float64[::1]
MATRIX = types.float64[:, ::1]
CUBE = types.float64[:, :, ::1]
INDICES = types.int64[::1]

# What the slope needs besides the kernel: parameters, column parameters (-1: an initial value), inputs
# (t0, dt, coefficients), work space (u, Jx, Jp), and the longest step that sees all of the inputs.
SYSTEM_TYPE = types.Tuple((VECTOR, INDICES, FLOAT, FLOAT, CUBE, VECTOR, MATRIX, MATRIX, FLOAT))

# A right-hand side with the model's own integration step, see analysis/simulation/dop853.py.
# (A number stands first because numba takes a tuple of functions alone for a choice between them.)
PAIR_TYPE = types.Tuple((INT, RHS_TYPE, STEP_TYPE))

OVERLOAD: Any = COMPILED | {"cache": False}  # part of the caller that is cached


def system_of(
    states: int, parameters: NDArray[np.float64], inputs: Inputs, columns: NDArray[np.int64] | None = None
) -> tuple[Any, ...]:
    """The system tuple of :data:`SYSTEM_TYPE` with fresh work space."""
    if columns is None:
        columns = np.empty(0, dtype=np.int64)
    u = np.empty(inputs.count)
    jx, jp = np.empty((states, states)), np.empty((states, len(parameters)))
    return parameters, columns, inputs.t0, inputs.dt, inputs.coefficients, u, jx, jp, inputs.longest_step


def paired(kernel: Any, own_step: Any) -> Any:
    """The kernel, together with the model's own step if there is one. For compiled code."""
    raise NotImplementedError("paired is only for compiled code")


@overload(paired, jit_options=OVERLOAD)
def _paired(kernel, own_step):  # type: ignore[no-untyped-def]
    if own_step == types.none:
        return lambda kernel, own_step: kernel
    return lambda kernel, own_step: (0, kernel, own_step)


def slope(f: Any, system: Any, t: float, limit: float, y: Any, dy: Any) -> None:
    """Write dy/dt at (t, y) into dy, for compiled code. Inputs are taken no later than ``limit``, so that a
    step which ends at a jump sees the values before it."""
    raise NotImplementedError("slope is only for compiled code")


# Inlined, since passing all arrays on would cost as much as a small right-hand side.
@overload(slope, jit_options=OVERLOAD, inline="always")
def _slope_of_states(f, system, t, limit, y, dy):  # type: ignore[no-untyped-def]
    if f == PAIR_TYPE:

        def paired(f, system, t, limit, y, dy):  # type: ignore[no-untyped-def]
            f[1](t, y, system[5], system[0], dy)

        return paired
    if f != RHS_TYPE:
        return None

    def states(f, system, t, limit, y, dy):  # type: ignore[no-untyped-def]
        if system[4].shape[0] > 0:
            input_values(min(t, limit), system[2], system[3], system[4], system[5])
        f(t, y, system[5], system[0], dy)

    return states


@overload(slope, jit_options=OVERLOAD)
def _slope_with_sensitivities(f, system, t, limit, y, dy):  # type: ignore[no-untyped-def]
    if f != JAC_TYPE:
        return None

    def variational(f, system, t, limit, y, dy):  # type: ignore[no-untyped-def]
        p, columns, t0, dt, coefficients, u, jx, jp, _ = system
        if coefficients.shape[0] > 0:
            input_values(min(t, limit), t0, dt, coefficients, u)
        n, m = jx.shape[0], len(columns)
        f(t, y[:n], u, p, dy[:n], jx, jp)
        for i in range(n):
            row = n + i * m
            for c in range(m):
                dy[row + c] = jp[i, columns[c]] if columns[c] >= 0 else 0.0
            for j in range(n):
                a = jx[i, j]
                if a != 0.0:
                    other = n + j * m
                    for c in range(m):
                        dy[row + c] += a * y[other + c]

    return variational
