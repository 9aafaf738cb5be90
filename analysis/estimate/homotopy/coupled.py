"""A model coupled to its own measurement by a PID controller, with forward sensitivities.

    x' = f(t, x, u, p) + lambda (K e + Ki w),   e = y_measured(t) - y(t, x, u, p),   w' = e  (or e^2)

This is eq. (4) of Manikantan et al. (2020) with a gain for every state and output instead of one kp and kd.
At lambda = 0 it is plain simulation. Where the measurement is missing (NaN) the controller lets go.

The loop over the steps is not that of `analysis.estimate.shooting.run`: it takes any tableau and carries the
controller's integrals, which makes a plain motion 2.3 to 2.5 times as slow and one with derivatives 1.1 to
1.6 times (Duffing and Chua, 4000 samples), and plain motions are what shooting spends its time on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numba import types
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.base.gaps import filled
from analysis.estimate.stretch import Stretch, stretch_of
from analysis.experiment import Experiment
from analysis.experiment.states import derivative_pairs
from analysis.model.compiled import COMPILED
from analysis.model.kernels import JAC_TYPE, OUT_JAC_TYPE
from analysis.signal.inputs import Inputs, input_values
from analysis.simulation.flow import piece_at, piece_values

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]

_1 = types.float64[::1]
_2 = types.float64[:, ::1]
_3 = types.float64[:, :, ::1]
_DIVERGED = 1e12  # a state beyond this (in its own unit) is not coming back


@njit(inline="always", **COMPILED)
def _cubic(coefficients, row, piece, s):  # type: ignore[no-untyped-def]  # compiled
    """A channel at time s after the first sample of a piece (a jump at its end is not seen)."""
    cubic = coefficients[row, piece, 2] + s * coefficients[row, piece, 3]
    return coefficients[row, piece, 0] + s * (coefficients[row, piece, 1] + s * cubic)


# Inlined, since passing all arrays on would cost more than a small right-hand side.
@njit(inline="always", **COMPILED)
def _rate(jac, out_jac, t, z, p, free, strength, gain, gain_integral, squared, work, dz):  # type: ignore[no-untyped-def]  # compiled
    """Rate of the augmented state z: row per state and integral, column 0 the value, then sensitivities.

    The first len(free) sensitivity columns belong to parameters, the rest to initial values. Inputs and
    measured outputs are in the work space.
    """
    u, measured, x, dx, y, jx, jp, yx, yp = work
    n, q = jx.shape[0], y.shape[0]
    rows, columns = z.shape
    for i in range(n):
        x[i] = z[i, 0]
    jac(t, x, u, p, dx, jx, jp)
    for i in range(n):
        dz[i, 0] = dx[i]
        for c in range(1, columns):
            dz[i, c] = jp[i, free[c - 1]] if c <= free.shape[0] else 0.0
        for j in range(n):
            slope = jx[i, j]
            if slope != 0.0:
                for c in range(1, columns):
                    dz[i, c] += slope * z[j, c]
    for r in range(n, rows):
        for c in range(columns):
            dz[r, c] = 0.0
    if strength != 0.0:
        out_jac(t, x, u, p, y, yx, yp)
        for r in range(q):
            error = measured[r] - y[r]
            if np.isnan(error):
                continue
            for i in range(n):
                dz[i, 0] += strength * gain[i, r] * error
            for c in range(1, columns):
                slope = yp[r, free[c - 1]] if c <= free.shape[0] else 0.0
                for j in range(n):
                    slope += yx[r, j] * z[j, c]
                for i in range(n):
                    dz[i, c] -= strength * gain[i, r] * slope
                if rows > n:
                    dz[n + r, c] = -(2.0 * error if squared else 1.0) * slope
            if rows > n:
                dz[n + r, 0] = error * error if squared else error
        for r in range(rows - n):
            for i in range(n):
                push = strength * gain_integral[i, r]
                if push != 0.0:
                    for c in range(columns):
                        dz[i, c] += push * z[n + r, c]


@dataclass(frozen=True, eq=False)
class Scheme:
    """An explicit Runge-Kutta scheme: stage weights, weights of the result, times of the stages."""

    stages: Array  # [S, S], lower triangular
    weights: Array  # [S]
    times: Array  # [S]


def _scheme(rows: list[list[float]], weights: list[float]) -> Scheme:
    stages = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        stages[i, : len(row)] = row
    return Scheme(stages, np.array(weights), stages.sum(axis=1))


_S = np.sqrt(21.0)
CLASSICAL = _scheme([[], [1 / 2], [0, 1 / 2], [0, 0, 1]], [1 / 6, 1 / 3, 1 / 3, 1 / 6])
# Order 6 in seven stages: H. A. Luther, Mathematics of Computation 22 (1968) 434.
LUTHER = _scheme(
    [
        [],
        [1.0],
        [3 / 8, 1 / 8],
        [8 / 27, 2 / 27, 8 / 27],
        [3 * (3 * _S - 7) / 392, -8 * (7 - _S) / 392, 48 * (7 - _S) / 392, -3 * (21 - _S) / 392],
        [
            -5 * (231 + 51 * _S) / 1960,
            -40 * (7 + _S) / 1960,
            -320 * _S / 1960,
            3 * (21 + 121 * _S) / 1960,
            392 * (6 + _S) / 1960,
        ],
        [
            15 * (22 + 7 * _S) / 180,
            120 / 180,
            40 * (7 * _S - 5) / 180,
            -63 * (3 * _S - 2) / 180,
            -14 * (49 + 9 * _S) / 180,
            70 * (7 - _S) / 180,
        ],
    ],
    [9 / 180, 0, 64 / 180, 0, 49 / 180, 49 / 180, 9 / 180],
)


_SCHEME = types.Tuple((_2, _1, _1))
_WORK = types.Tuple((_1, _1, _1, _1, _1, _2, _2, _2, _2))  # u, measured, x, dx, y, jx, jp, yx, yp


@njit(
    types.int64(
        JAC_TYPE, OUT_JAC_TYPE, _SCHEME, types.float64, types.float64, types.int64, _2, _1, types.int64[::1],
        types.float64, types.float64, _3, _3, types.float64, _2, _2, types.boolean, _WORK, _3, _2,
        _2, _2, _3,
    ),
    **COMPILED,
)  # fmt: skip
def _run(  # type: ignore[no-untyped-def]  # compiled
    jac, out_jac, scheme, t0, dt, substeps, z, p, free, input_t0, input_dt,
    input_coefficients, measured_coefficients, strength, gain, gain_integral, squared,
    work, k, trial, states, outputs, slopes,
):  # fmt: skip
    """Runge-Kutta over the samples; returns how many samples were reached before diverging.

    A stage at the end of a sample interval still belongs to it, so that a jump of an input there is not seen.
    """
    stages, weights, times = scheme
    u, measured, x, _, y, _, _, yx, yp = work
    rows, columns = z.shape
    n, q, samples = len(x), outputs.shape[0], outputs.shape[1]
    h = dt / substeps
    for sample in range(samples):
        t = t0 + sample * dt
        for i in range(n):
            x[i] = z[i, 0]
            if not abs(x[i]) < _DIVERGED:
                return sample
            states[i, sample] = x[i]
        input_values(t, input_t0, input_dt, input_coefficients, u)
        out_jac(t, x, u, p, y, yx, yp)
        for r in range(q):
            outputs[r, sample] = y[r]
            for c in range(1, columns):
                slope = yp[r, free[c - 1]] if c <= free.shape[0] else 0.0
                for j in range(n):
                    slope += yx[r, j] * z[j, c]
                slopes[r, c - 1, sample] = slope
        if sample == samples - 1:
            break
        piece = piece_at(t + 0.5 * dt, input_t0, input_dt, input_coefficients) if len(u) > 0 else 0
        for step in range(substeps):
            start = t + step * h
            for s in range(len(weights)):
                for i in range(rows):
                    for c in range(columns):
                        trial[i, c] = z[i, c]
                for before in range(s):
                    weight = h * stages[s, before]
                    if weight != 0.0:
                        for i in range(rows):
                            for c in range(columns):
                                trial[i, c] += weight * k[before, i, c]
                at = start + times[s] * h
                piece_values(piece, at - input_t0 - piece * input_dt, input_coefficients, u)
                if strength != 0.0:
                    for r in range(q):
                        measured[r] = _cubic(measured_coefficients, r, sample, at - t)
                _rate(jac, out_jac, at, trial, p, free, strength, gain, gain_integral, squared, work, k[s])
            for s in range(len(weights)):
                weight = h * weights[s]
                for i in range(rows):
                    for c in range(columns):
                        z[i, c] += weight * k[s, i, c]
    return samples


@njit(types.float64(_3, types.float64), cache=True, nogil=True, error_model="numpy")
def tangent_growth(jx, dt):  # type: ignore[no-untyped-def]  # compiled
    """Growth rate of a tangent vector carried along sampled Jacobians jx[n, n, N], per unit of time.

    Each interval is crossed with the mean of its two Jacobians, by the exponential series to fourth order.
    """
    n, count = jx.shape[0], jx.shape[2]
    vector, term, image = np.ones(n) / np.sqrt(n), np.empty(n), np.empty(n)
    total = 0.0
    for k in range(count - 1):
        largest = 0.0
        for i in range(n):
            row = 0.0
            for j in range(n):
                row += abs(jx[i, j, k]) + abs(jx[i, j, k + 1])
            largest = max(largest, 0.5 * row)
        parts = 1 + int(2.0 * largest * dt)
        h = dt / parts
        for _ in range(parts):
            for i in range(n):
                term[i] = vector[i]
            for order in range(1, 5):
                for i in range(n):
                    image[i] = 0.0
                    for j in range(n):
                        image[i] += 0.5 * (jx[i, j, k] + jx[i, j, k + 1]) * term[j]
                for i in range(n):
                    term[i] = image[i] * h / order
                    vector[i] += term[i]
        size = 0.0
        for i in range(n):
            size += vector[i] * vector[i]
        size = np.sqrt(size)
        if not (size > 0.0 and size < np.inf):
            return 0.0
        total += np.log(size)
        for i in range(n):
            vector[i] /= size
    return total / (dt * (count - 1))


@dataclass(frozen=True, eq=False)
class Controller:
    """Gains of the PID controller: state i is pushed by gain[i, r] e_r + integral[i, r] w_r."""

    gain: Array  # [n, q]
    integral: Array  # [n, q]
    squared: bool = False  # integrate e^2, as printed in eq. (4b), instead of e

    @classmethod
    def none(cls, model: Model) -> Controller:
        zero = np.zeros((len(model.states), len(model.outputs)))
        return cls(zero, zero)


@dataclass(frozen=True, eq=False, kw_only=True)
class CoupledStretch(Stretch):
    """A stretch that the controller follows."""

    initial: Array  # [n] state at the first sample: known, or a first guess
    measured: Array  # [q, N, 4] local cubics through the measured outputs, for the controller

    @property
    def free_initial(self) -> NDArray[np.int64]:
        """Positions of the initial values to be estimated."""
        return np.flatnonzero(self.lower < self.upper) if len(self.lower) else np.arange(len(self.initial))

    def cut(self, first: int, stop: int) -> CoupledStretch:
        """The samples first to stop; the initial state is the caller's to set."""
        return replace(super().cut(first, stop), measured=np.ascontiguousarray(self.measured[:, first:stop]))


@dataclass(frozen=True, eq=False)
class CoupledRun:
    """Outputs and states at the samples; slopes[r, c, k] is d output / d unknown c. NaN after divergence."""

    states: Array
    outputs: Array
    slopes: Array
    reached: int  # samples before the motion diverged; all of them if it did not

    @property
    def diverged(self) -> bool:
        return self.reached < self.outputs.shape[1]


def run_coupled(
    model: Model,
    segment: CoupledStretch,
    values: Array,
    initial: Array,
    free: NDArray[np.int64],
    controller: Controller,
    strength: float,
    substeps: int = 1,
    sensitivities: bool = True,
    scheme: Scheme = CLASSICAL,
) -> CoupledRun:
    """Simulate the coupled model; the unknowns are the parameters ``free`` and the free initial values."""
    kernels = model.kernels()
    n, q, samples = len(model.states), len(model.outputs), len(segment)
    free_parameters = free if sensitivities else free[:0]
    free_initial = segment.free_initial if sensitivities else segment.free_initial[:0]
    unknowns = len(free_parameters) + len(free_initial)
    integrals = q if strength != 0.0 and controller.integral.any() else 0
    z = np.zeros((n + integrals, 1 + unknowns))
    z[:n, 0] = initial
    z[free_initial, 1 + len(free_parameters) + np.arange(len(free_initial))] = 1.0
    states = np.full((n, samples), np.nan)
    outputs = np.full((q, samples), np.nan)
    slopes = np.full((q, unknowns, samples), np.nan)
    work = (
        np.zeros(segment.inputs.count), np.zeros(q), np.zeros(n), np.zeros(n), np.zeros(q),
        np.zeros((n, n)), np.zeros((n, len(values))), np.zeros((q, n)), np.zeros((q, len(values))),
    )  # fmt: skip
    reached = _run(
        kernels.jac, kernels.out_jac, (scheme.stages, scheme.weights, scheme.times),
        float(segment.times[0]), segment.dt,
        substeps, z, values, free_parameters, segment.inputs.t0, segment.inputs.dt,
        segment.inputs.coefficients,
        segment.measured, strength, controller.gain, controller.integral, controller.squared,
        work, np.zeros((len(scheme.weights), *z.shape)), np.zeros_like(z), states, outputs, slopes,
    )  # fmt: skip
    return CoupledRun(states, outputs, slopes, int(reached))


def segments_of(experiment: Experiment) -> list[CoupledStretch]:
    """The runs of an experiment as segments, cut where an input is not known.

    Initial values that are not known, or that lie behind a cut, start from what the record tells, or from the
    model's guess.
    """
    model, segments = experiment.model, []
    said = np.array([model.initial[s].value if s in model.initial else 0.0 for s in model.states])
    unsaid = np.array([s not in model.initial or not model.initial[s].free for s in model.states])
    for number, run in enumerate(experiment.runs):
        for first, stop in run.spans:
            stretch = stretch_of(experiment, (number, first, stop))
            segment = CoupledStretch(
                **vars(stretch), initial=said, measured=_cubics(stretch.times[0], stretch.dt, stretch.outputs)
            )
            initial = rough_states(model, segment)[:, 0]
            if first == 0:
                initial = np.where(unsaid & ~run.initial_known, initial, said)
                initial = np.clip(initial, run.initial_lower, run.initial_upper)
            segments.append(replace(segment, initial=initial))
    return segments


def kinematic_states(model: Model) -> dict[int, int]:
    """States whose rate is just another state: position -> velocity, as in x' = v."""
    return {position: velocity for velocity, position in derivative_pairs(model).items()}


def rough_states(model: Model, segment: CoupledStretch) -> Array:
    """States as far as they can be read off: measured, differentiated, or the initial value."""
    states = np.repeat(segment.initial[:, None], len(segment), axis=1)
    known = set()
    for i, name in enumerate(model.states):
        if name in model.outputs:
            measured = segment.outputs[model.outputs.index(name)]
            if np.isfinite(measured).sum() > 3:
                states[i] = filled(measured)
                known.add(i)
    for position, velocity in kinematic_states(model).items():
        if position in known and velocity not in known:
            states[velocity] = np.gradient(states[position], segment.dt)
    return states


def _cubics(t0: float, dt: float, outputs: Array) -> Array:
    """Local cubics through the samples [q, N, 4]; NaN in intervals that touch a missing sample."""
    bridged = np.stack([filled(row) if np.isfinite(row).any() else np.zeros_like(row) for row in outputs])
    coefficients = Inputs.from_samples(t0, dt, bridged).coefficients.copy()
    lost = ~np.isfinite(outputs)
    touched = lost.copy()
    touched[:, :-1] |= lost[:, 1:]
    coefficients[touched] = np.nan
    return coefficients
