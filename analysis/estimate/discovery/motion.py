"""States along a record for the search: measured, differentiated, integrated, or followed by their equations.

Of a state that no channel shows, such as the one of a hysteresis, the equation is integrated with all other
states as the record shows them. Integrals of a rate drift with its offset and noise: their slow course,
slower than several periods of the motion, is taken out. This is where a search starts, not what it ends on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types
from numpy.typing import NDArray
from scipy.interpolate import make_lsq_spline

from analysis.base.compiling import njit
from analysis.base.errors import DataError
from analysis.base.gaps import filled
from analysis.experiment.states import scaled_derivatives, state_samples
from analysis.model.kernels import RHS_TYPE
from analysis.signal.noise import noise_of
from analysis.signal.timescale import mean_period

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from analysis.experiment import Experiment
    from analysis.experiment.run import Run
    from analysis.model import Model

Array = NDArray[np.float64]

_SLOW = 4.0  # periods of the motion between the knots of what is taken for drift
_SUBSTEPS = 4  # Runge-Kutta steps of a sample interval for a state that nothing shows
_1, _2 = types.float64[::1], types.float64[:, ::1]


@dataclass(frozen=True, eq=False)
class Motion:
    """States along one run.

    smooth   [n, N] without noise as far as that goes: where a fit starts
    values   [n, N] for the weak form: raw where all that can be seen is measured, otherwise smooth
    noise    [n] of the values, 0 where they are smooth
    derived  d(state i)/dt = factor*state j gave state j: {j: (i, factor)}
    hidden   states that no channel shows, not even as rate or integral
    """

    smooth: Array
    values: Array
    noise: Array
    derived: dict[int, tuple[int, float]]
    hidden: tuple[int, ...]


def motions(experiment: Experiment, rates: Mapping[str, str], unknown: Collection[str]) -> list[Motion]:
    """The states of every run; ``rates`` are outputs that show the rate of a state, ``unknown`` the states
    whose equations are sought: these have to be seen."""
    return [_motion(experiment.model, run, rates, unknown) for run in experiment.runs]


def _motion(model: Model, run: Run, rates: Mapping[str, str], unknown: Collection[str]) -> Motion:
    names, count = list(model.states), len(run.times)
    raw, derived = np.zeros((len(names), count)), {}
    X, known = raw.copy(), np.zeros(len(names), dtype=bool)
    if any(run.measured[model.outputs.index(o)] for o in model.outputs if o not in rates):
        samples = state_samples(model, run, model.values(), smoothed=True)
        X, known, derived = samples.values, samples.seen.copy(), samples.derived
        raw = state_samples(model, run, model.values(), smoothed=False).values
    measured = known.copy()
    known[list(derived)] = True
    for output, state in rates.items():
        place, i = model.outputs.index(output), names.index(state)
        if run.measured[place] and not known[i]:
            X[i], known[i] = _integral(filled(run.outputs[place]), run.dt), True
    for derivative, (i, factor) in scaled_derivatives(model).items():
        if known[derivative] and not known[i]:
            X[i], known[i] = factor * _integral(X[derivative], run.dt), True
    hidden = tuple(int(i) for i in np.flatnonzero(~known))
    lost = [names[i] for i in hidden if names[i] in unknown]
    if lost:
        raise DataError(
            f"No channel shows {lost[0]}: the search needs every state with a `?` measured, or as the rate "
            "or integral of a measured one."
        )
    X[list(hidden)] = 0.0
    if (measured | ~known).all():
        noise = np.array([noise_of(row) if m else 0.0 for row, m in zip(raw, measured, strict=True)])
        return Motion(X, np.where(measured[:, None], raw, X), noise, derived, hidden)
    return Motion(X, X, np.zeros(len(names)), derived, hidden)


def earlier(motion: Motion, samples: float) -> Motion:
    """The motion that sensors show which are late by so many samples; at the end it stands still."""
    at = np.arange(motion.smooth.shape[1], dtype=float)
    smooth, values = (
        np.stack([np.interp(at + samples, at, row) for row in rows])
        for rows in (motion.smooth, motion.values)
    )
    return replace(motion, smooth=smooth, values=values)


def followed(model: Model, run: Run, motion: Motion) -> Motion:
    """The same motion with its hidden states integrated from zero along the others."""
    if not motion.hidden:
        return motion
    inputs = run.inputs.values(run.times) if run.inputs.count else np.zeros((0, len(run.times)))
    path, hidden = np.ascontiguousarray(motion.smooth).copy(), list(motion.hidden)
    with np.errstate(all="ignore"):
        _compiled()(
            model.kernels().rhs, run.times, path, np.ascontiguousarray(inputs), model.values(),
            np.array(hidden), _SUBSTEPS,
        )  # fmt: skip
    values = motion.values.copy()
    values[hidden] = path[hidden]
    return replace(motion, smooth=path, values=values)


def _integral(rate: Array, dt: float) -> Array:
    """Running integral without what is slower than a few periods of the motion."""
    total = np.concatenate([[0.0], np.cumsum(0.5 * dt * (rate[1:] + rate[:-1]))])
    if np.ptp(rate) == 0 or len(rate) < 16:
        return np.asarray(total - total.mean())
    pieces = max(int(len(rate) / (_SLOW * mean_period(rate))), 1)
    grid = np.arange(len(total), dtype=float)
    inner = np.linspace(0, grid[-1], pieces + 1)
    knots = np.concatenate([[0.0] * 3, inner, [grid[-1]] * 3])
    return np.asarray(total - make_lsq_spline(grid, total, knots)(grid))


def _follow(rhs, times, X, U, p, hidden, substeps):  # type: ignore[no-untyped-def]  # compiled
    """Runge-Kutta steps of the states ``hidden`` of X[n, N], all others straight between their samples."""
    n, N = X.shape
    m = U.shape[0]
    x, u = np.empty(n), np.empty(m)
    slope = np.zeros((4, n))
    z = np.zeros(n)
    for k in range(N - 1):
        h = (times[k + 1] - times[k]) / substeps
        for i in hidden:
            z[i] = X[i, k]
        for step in range(substeps):
            for stage in range(4):
                back = 0.0 if stage == 0 else (1.0 if stage == 3 else 0.5)
                share = (step + back) / substeps
                for i in range(n):
                    x[i] = X[i, k] + share * (X[i, k + 1] - X[i, k])
                for i in range(m):
                    u[i] = U[i, k] + share * (U[i, k + 1] - U[i, k])
                for i in hidden:
                    x[i] = z[i] + (back * h * slope[stage - 1, i] if stage > 0 else 0.0)
                rhs(times[k] + (step + back) * h, x, u, p, slope[stage])
            for i in hidden:
                z[i] += h / 6 * (slope[0, i] + 2 * slope[1, i] + 2 * slope[2, i] + slope[3, i])
        for i in hidden:
            X[i, k + 1] = z[i]


@lru_cache(maxsize=1)
def _compiled() -> Any:
    signature = types.void(RHS_TYPE, _1, _2, _2, _1, types.int64[::1], types.int64)
    return njit(signature, cache=True, nogil=True, error_model="numpy")(_follow)
