"""One motion of a model at the samples, with its derivatives in the parameters and the initial state.

Classical Runge-Kutta in equal sub-steps of the sample interval, the variational equations alongside by the
same scheme, so that the derivatives are those of the numbers computed. A stage at the end of a sample
interval still sees the inputs of that interval: a held input that jumps there is integrated exactly.
Why homotopy has a loop of its own is said in `analysis.estimate.homotopy.coupled`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numba import types
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.model.compiled import COMPILED
from analysis.model.kernels import JAC_TYPE, OUT_JAC_TYPE, RHS_TYPE
from analysis.simulation.flow import piece_at, piece_values
from analysis.simulation.simulate import sensitivities, simulate

if TYPE_CHECKING:
    from analysis.model import Model
    from analysis.model.kernels import Kernels
    from analysis.signal.inputs import Inputs

Array = NDArray[np.float64]

_LOST = 1e30  # a state beyond this, in whatever unit, is not coming back

_ADAPTIVE = 1e-6  # relative error a step of the adaptive integrator: a hundredth of the noise of good sensors

_STEPS_A_SAMPLE = 200  # a motion that needs more is lost: equations this stiff go over to implicit steps

_1 = types.float64[::1]
_2 = types.float64[:, ::1]
_3 = types.float64[:, :, ::1]
_WORK = types.Tuple((_1, _1, _1, _1, _2, _2, _2, _2, _2, _2, _2))  # see _run


@njit(inline="always", **COMPILED)
def _slope(rhs, jac, t, z, p, columns, work, dz):  # type: ignore[no-untyped-def]  # compiled
    """dz/dt of z[n, 1 + C]: the state, then its derivatives in parameters ``columns`` (-1: initial value)."""
    u, x, dx, _, jx, jp, _, _, _, _, _ = work
    n, width = z.shape
    for i in range(n):
        x[i] = z[i, 0]
    if width == 1:
        rhs(t, x, u, p, dx)
        for i in range(n):
            dz[i, 0] = dx[i]
        return
    jac(t, x, u, p, dx, jx, jp)
    for i in range(n):
        dz[i, 0] = dx[i]
        for c in range(1, width):
            parameter = columns[c - 1]
            dz[i, c] = jp[i, parameter] if parameter >= 0 else 0.0
        for j in range(n):
            slope = jx[i, j]
            if slope != 0.0:
                for c in range(1, width):
                    dz[i, c] += slope * z[j, c]


@njit(
    types.int64(
        RHS_TYPE, JAC_TYPE, OUT_JAC_TYPE, types.float64, types.float64, types.int64, _2, _1,
        types.int64[::1], types.float64, types.float64, _3, _WORK, _2, _2, _3,
    ),
    **COMPILED,
)  # fmt: skip
def _run(  # type: ignore[no-untyped-def]  # compiled
    rhs, jac, out_jac, t0, dt, substeps, z, p, columns, input_t0, input_dt, coefficients, work,
    states, outputs, slopes,
):  # fmt: skip
    """Number of samples reached before a state was lost."""
    u, x, _, y, _, _, yx, yp, k, total, trial = work
    n, width = z.shape
    samples, q = states.shape[1], outputs.shape[0]
    h = dt / substeps
    for sample in range(samples):
        t = t0 + sample * dt
        for i in range(n):
            if not abs(z[i, 0]) < _LOST:
                return sample
            x[i] = z[i, 0]
            states[i, sample] = x[i]
        piece = piece_at(t + 0.5 * dt, input_t0, input_dt, coefficients) if len(u) > 0 else 0
        piece_values(piece, t - input_t0 - piece * input_dt, coefficients, u)
        out_jac(t, x, u, p, y, yx, yp)
        for r in range(q):
            outputs[r, sample] = y[r]
            for c in range(1, width):
                parameter = columns[c - 1]
                slope = yp[r, parameter] if parameter >= 0 else 0.0
                for j in range(n):
                    slope += yx[r, j] * z[j, c]
                slopes[r, c - 1, sample] = slope
        if sample == samples - 1:
            break
        for step in range(substeps):
            start = t + step * h
            for i in range(n):
                for c in range(width):
                    trial[i, c] = z[i, c]
                    total[i, c] = z[i, c]
            for stage in range(4):
                at = start if stage == 0 else (start + h if stage == 3 else start + 0.5 * h)
                piece_values(piece, at - input_t0 - piece * input_dt, coefficients, u)
                _slope(rhs, jac, at, trial, p, columns, work, k)
                weight = h / 6.0 if stage == 0 or stage == 3 else h / 3.0
                ahead = h if stage == 2 else 0.5 * h
                for i in range(n):
                    for c in range(width):
                        total[i, c] += weight * k[i, c]
                        trial[i, c] = z[i, c] + ahead * k[i, c]
            for i in range(n):
                for c in range(width):
                    z[i, c] = total[i, c]
    return samples


@dataclass(frozen=True, eq=False)
class Motion:
    """States [n, N] and outputs [q, N] at the samples; slopes [q, C, N], derivatives of the outputs."""

    states: Array
    outputs: Array
    slopes: Array
    reached: int  # samples before the motion left its limits; N if it did not

    @property
    def diverged(self) -> bool:
        return self.reached < self.outputs.shape[1] or not bool(np.isfinite(self.outputs).all())


def run(
    kernels: Kernels,
    times: Array,
    inputs: Inputs,
    values: Array,
    initial: Array,
    outputs: int,
    substeps: int,
    parameters: NDArray[np.int64] | None = None,
) -> Motion:
    """The motion from ``initial`` [n] over uniform ``times`` [N] and its ``outputs``.

    With ``parameters`` (positions in ``values``) also the derivatives in these and in all initial values.
    """
    n, N, k, q = len(initial), len(times), len(values), outputs
    none = np.zeros(0, dtype=np.int64)
    columns = none if parameters is None else np.concatenate([parameters, np.full(n, -1)])
    width = 1 + len(columns)
    z = np.zeros((n, width))
    z[:, 0] = initial
    if parameters is not None:
        z[:, width - n :] = np.eye(n)
    states, measured = np.full((n, N), np.nan), np.full((q, N), np.nan)
    slopes = np.full((q, width - 1, N), np.nan)
    work = (
        np.zeros(inputs.count), np.zeros(n), np.zeros(n), np.zeros(q), np.zeros((n, n)), np.zeros((n, k)),
        np.zeros((q, n)), np.zeros((q, k)), np.zeros((n, width)), np.zeros((n, width)), np.zeros((n, width)),
    )  # fmt: skip
    reached = _run(
        kernels.rhs, kernels.jac, kernels.out_jac, float(times[0]), float(times[1] - times[0]), substeps, z,
        np.ascontiguousarray(values, dtype=np.float64), np.ascontiguousarray(columns, dtype=np.int64),
        inputs.t0, inputs.dt, inputs.coefficients, work, states, measured, slopes,
    )  # fmt: skip
    return Motion(states, measured, slopes, int(reached))


def run_adaptive(
    model: Model,
    times: Array,
    inputs: Inputs,
    values: Array,
    initial: Array,
    parameters: NDArray[np.int64] | None = None,
) -> Motion:
    """The same by steps of adaptive size, implicit where the model is stiff."""
    n, N, q, k = len(initial), len(times), len(model.outputs), len(values)
    names, most = list(model.parameters), _STEPS_A_SAMPLE * N
    if parameters is None:
        states = simulate(model, times, initial, values, inputs, rtol=_ADAPTIVE, most_steps=most).states
        by_unknown = np.zeros((n, 0, N))
    else:
        wanted = [names[i] for i in parameters]
        states, by_unknown = sensitivities(
            model, times, initial, values, inputs, wanted, model.states, rtol=_ADAPTIVE, most_steps=most
        )
    reached = int(np.count_nonzero(np.isfinite(states).all(axis=0)))
    Y, Yx, Yp = np.full((q, N), np.nan), np.full((q, n, N), np.nan), np.full((q, k, N), np.nan)
    states = np.ascontiguousarray(states)
    if reached == N:
        model.kernels().out_jac_many(times, states, inputs.values(times), values, Y, Yx, Yp)
    slopes = np.einsum("qnN,ncN->qcN", Yx, by_unknown)
    if parameters is not None:
        slopes[:, : len(parameters)] += Yp[:, parameters]
    return Motion(states, Y, slopes, reached)
