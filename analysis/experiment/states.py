"""States as the outputs show them: measured, inverted or differentiated, and a first path for a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.gaps import filled
from analysis.experiment.run import Run
from analysis.model import Model
from analysis.model.multiples import multiples
from analysis.signal.smoothing import smooth

if TYPE_CHECKING:
    from analysis.model.kernels import Kernels

Array = NDArray[np.float64]

_ROUNDING = 1e-12  # of a factor that is one
_FOLLOWED = 20_000  # samples up to which nonlinear outputs are inverted one after the other
_FIRST_STEPS, _STEPS = 20, 2  # of Newton's method at the first sample, and at each of the others


def direct_states(model: Model) -> dict[int, int]:
    """Outputs that are a state and nothing else: {output: state}."""
    system = model.equations.system
    shown = multiples(system.graph, system.outputs, _known(model))
    return {
        i: model.states.index(found[0])
        for i, found in enumerate(shown)
        if found is not None and found[0] in model.states and found[1] == 1.0
    }


def derivative_pairs(model: Model) -> dict[int, int]:
    """State j is the derivative of state i, by the equations alone: {j: i}."""
    return {j: i for j, (i, factor) in scaled_derivatives(model).items() if factor == 1.0}


def scaled_derivatives(model: Model) -> dict[int, tuple[int, float]]:
    """The derivative of state i is a known factor times state j, by the equations alone: {j: (i, factor)}."""
    system = model.equations.system
    pairs: dict[int, tuple[int, float]] = {}
    for i, found in enumerate(multiples(system.graph, system.rhs, _known(model))):
        if found is not None and found[1] != 0.0 and found[0] in model.states:
            j, factor = model.states.index(found[0]), found[1]
            if i != j:
                pairs.setdefault(j, (i, 1.0 if abs(factor - 1) < _ROUNDING else factor))
    return pairs


def _known(model: Model) -> dict[str, float]:
    """The parameters that are not sought, with their values."""
    values = zip(model.parameters, model.values(), strict=True)
    return {name: float(value) for name, value in values if name not in model.free}


def rate_outputs(model: Model) -> dict[int, tuple[int, float]]:
    """Outputs that are a known factor times the rate of a state, by the equations alone, as an accelerometer
    shows the rate of a velocity: {output: (state, factor)}.
    """
    kernels = model.kernels()
    n, m, q = len(model.states), len(model.inputs), len(model.outputs)
    free = np.array([name in model.free for name in model.parameters], dtype=bool)
    rng = np.random.default_rng(2)
    ratios = []
    for _ in range(3):
        x, u, t, dx, y = (
            rng.standard_normal(n),
            rng.standard_normal(m),
            rng.random(),
            np.empty(n),
            np.empty(q),
        )
        p = model.values() + 0.01 * free * rng.standard_normal(len(free))
        kernels.rhs(t, x, u, p, dx)
        kernels.out(t, x, u, p, y)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios.append(y[:, None] / dx[None, :])
    factor = ratios[0]
    with np.errstate(invalid="ignore"):  # equations that overflow at a random state: no constant factor
        same = np.all([np.abs(r - factor) <= 1e-9 * np.abs(factor) for r in ratios[1:]], axis=0)
    found = zip(*np.nonzero(same & np.isfinite(factor) & (factor != 0)), strict=True)
    return {int(i): (int(j), float(factor[i, j])) for i, j in found}


@dataclass(frozen=True, eq=False)
class StateSamples:
    """States at the samples: those seen by the outputs, and velocities got from them by differentiation."""

    values: Array  # [n, N]
    seen: NDArray[np.bool_]  # measured, directly or through an output that can be inverted
    derived: dict[int, tuple[int, float]]  # d(state i)/dt = factor * state j gave state j: {j: (i, factor)}


def state_samples(model: Model, run: Run, values: Array, smoothed: bool) -> StateSamples:
    """States as the outputs show them, smoothed as far as their noise asks for or as they are."""
    n, N = len(model.states), len(run.times)
    X = np.zeros((n, N))
    for name, initial in model.initial.items():
        X[model.states.index(name)] = initial.value
    seen = np.zeros(n, dtype=bool)
    measured = np.flatnonzero(run.measured)
    rows = np.stack([filled(run.outputs[i]) for i in measured])
    if smoothed:
        rows = np.stack([smooth(row, run.dt)[0] for row in rows])
    direct = direct_states(model)
    if all(int(i) in direct for i in measured):
        columns = [direct[int(i)] for i in measured]
        X[columns] = rows
        seen[columns] = True
    else:
        _invert_outputs(model, run, values, measured, rows, X, seen)
    derived = {}
    for derivative, (state, factor) in scaled_derivatives(model).items():
        if seen[state] and not seen[derivative]:
            X[derivative] = smooth(X[state], run.dt)[1] / factor
            derived[derivative] = state, factor
    return StateSamples(X, seen, derived)


def _invert_outputs(
    model: Model,
    run: Run,
    values: Array,
    measured: NDArray[np.int64],
    rows: Array,
    X: Array,
    seen: NDArray[np.bool_],
) -> None:
    """States that give the measured outputs, by Newton's method at every sample."""
    n, N = X.shape
    kernels, U = model.kernels(), run.inputs.values(run.times)
    Y = np.empty((len(model.outputs), N))
    Yx = np.empty((len(model.outputs), n, N))
    Yp = np.empty((len(model.outputs), len(values), N))
    if N <= _FOLLOWED and not _linear_outputs(kernels, run, values, X, U):
        _follow(kernels, run, values, measured, rows, X, U)
    for _ in range(6):
        kernels.out_jac_many(run.times, X, U, values, Y, Yx, Yp)
        G = Yx[measured].transpose(2, 0, 1)
        seen |= np.any(G != 0, axis=(0, 1))
        if not (np.isfinite(G).all() and np.isfinite(Y[measured]).all()):
            break
        if np.all(G[:1] == G):  # linear outputs, as most are: one inverse serves all samples
            step = np.linalg.pinv(G[0]) @ (rows - Y[measured])
        else:
            step = (np.linalg.pinv(G) @ (rows - Y[measured]).T[:, :, None])[:, :, 0].T
        if not np.all(np.isfinite(step)):
            break
        X += step
        if np.all(np.abs(step).max(axis=1) <= 1e-9 * (np.ptp(X, axis=1) + 1e-300)):
            break


def _linear_outputs(kernels: Kernels, run: Run, values: Array, X: Array, U: Array) -> bool:
    """Whether the outputs' slopes in the states are the same wherever the states are."""
    q, (n, N) = run.outputs.shape[0], X.shape
    slopes = []
    for states in (X, X + 1.0 + 0.1 * np.arange(n)[:, None]):
        Y, Yx, Yp = np.empty((q, N)), np.empty((q, n, N)), np.empty((q, len(values), N))
        kernels.out_jac_many(run.times, states, U, values, Y, Yx, Yp)
        slopes.append(Yx)
    return bool(np.array_equal(slopes[0], slopes[1]))


def _follow(
    kernels: Kernels, run: Run, values: Array, measured: NDArray[np.int64], rows: Array, X: Array, U: Array
) -> None:
    """States sample by sample, each from the last: an angle seen by its sine goes on beyond a turn."""
    q, (n, N) = run.outputs.shape[0], X.shape
    y, slope, by_parameter = np.empty(q), np.empty((q, n)), np.empty((q, len(values)))
    x = np.ascontiguousarray(X[:, 0])
    u = np.ascontiguousarray(U.T)
    for k in range(N):
        for _ in range(_FIRST_STEPS if k == 0 else _STEPS):
            kernels.out_jac(run.times[k], x, u[k], values, y, slope, by_parameter)
            if not (np.isfinite(slope[measured]).all() and np.isfinite(y[measured]).all()):
                break  # outputs that overflow at this state show nothing of it
            step = np.linalg.lstsq(slope[measured], rows[:, k] - y[measured], rcond=1e-3)[0]
            if not np.all(np.isfinite(step)) or np.abs(step).max() > 1.0 + np.abs(x).max():
                break
            x = x + step
        X[:, k] = x


def start_states(model: Model, run: Run, values: Array) -> Array:
    """A first path [n, N] for the maximum-likelihood finisher; what nothing shows stays as the model
    starts.
    """
    samples = state_samples(model, run, values, smoothed=True)
    X, known = samples.values, samples.seen.copy()
    known[list(samples.derived)] = True
    for derivative, (state, factor) in scaled_derivatives(model).items():
        if known[derivative] and not known[state]:
            X[state] = factor * _integral(X[derivative], run.dt)
    return X


def _integral(rate: Array, dt: float) -> Array:
    """Running integral without its straight-line part, which an offset of the sensor would make."""
    total = np.concatenate([[0.0], np.cumsum(0.5 * dt * (rate[1:] + rate[:-1]))])
    grid = np.linspace(-1, 1, len(total))
    return np.asarray(total - np.polynomial.Polynomial.fit(grid, total, 1)(grid))
