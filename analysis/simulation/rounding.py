"""How far the slopes of a model are known, their terms being rounded: what an integrator cannot ask for."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import float64
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.model.kernels import RHS_TYPE

Array = NDArray[np.float64]

_vector = float64[::1]
_matrix = float64[:, ::1]

_RELATIVE = 1e-15  # change of states and parameters: a few units in the last place
_FACTOR = 10.0  # the error estimate of a step adds up a dozen slopes
_PROBES = 6
_STEP = 1e-3  # of the run: a step no shorter than this is allowed whatever is rounded
_DEPTH = 2  # states that follow one another, through which a rounding error is traced


def slope_noise(
    rhs: Any, t: float, states: Array, peak: Array, u: Array, parameters: Array, span: float
) -> Array:
    """Rounding errors of the slopes, per unit time: how much they change when states of the size of ``peak``
    and the parameters change in their last digits, and when the states move by what that does to them.

    A state that is zero because its terms cancel moves by this much; no step can be accurate relative to it.
    ``rhs``: a model's compiled right-hand side. ``span``: length of the run; a thousandth of it is a step
    long enough.
    """
    given = (np.ascontiguousarray(row, dtype=np.float64) for row in (states, peak, u, parameters))
    found: Array = _slope_noise(rhs, float(t), *given, float(span), *_draws(len(states), len(parameters)))
    return found


@njit(
    _vector(RHS_TYPE, float64, _vector, _vector, _vector, _vector, float64, _matrix, _matrix, _matrix),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def _slope_noise(  # type: ignore[no-untyped-def]
    rhs, t, states, peak, u, parameters, span, shares, by_parameters, by_states
):
    n = len(states)
    x, p, slope, changed = np.empty(n), np.empty(len(parameters)), np.empty(n), np.empty(n)
    worst = np.zeros(n)
    for probe in range(len(shares)):
        for i in range(n):
            # Of the states' own sign and size: a law may be absurd elsewhere (below absolute zero).
            x[i] = states[i] if probe == 0 else np.copysign(peak[i], states[i]) * shares[probe, i]
        rhs(t, x, u, parameters, slope)
        for i in range(n):
            x[i] *= by_states[probe, i]
        for i in range(len(p)):
            p[i] = parameters[i] * by_parameters[probe, i]
        rhs(t, x, u, p, changed)
        for i in range(n):
            worst[i] = np.fmax(worst[i], abs(changed[i] - slope[i]))
    rhs(t, states, u, parameters, slope)
    x[:] = states
    for _ in range(_DEPTH):
        before = worst.copy()
        for j in range(n):
            if before[j] == 0.0:
                continue
            small = 1e-6 * peak[j] if peak[j] != 0.0 else before[j] * span
            x[j] = states[j] + small
            rhs(t, x, u, parameters, changed)
            rate = abs(changed[j] - slope[j]) / small  # not a number: nothing is known of it
            x[j] = states[j] + before[j] * min(_STEP * span, 1.0 / rate if rate > 0.0 else np.inf)
            rhs(t, x, u, parameters, changed)
            x[j] = states[j]
            for i in range(n):
                worst[i] = np.fmax(worst[i], abs(changed[i] - slope[i]))
    for i in range(n):
        worst[i] = _FACTOR * worst[i] if np.isfinite(worst[i]) else 0.0
    return worst


@lru_cache(maxsize=64)
def _draws(states: int, parameters: int) -> tuple[Array, Array, Array]:
    """For each probe [row] the shares of the states' sizes, and the factors of the parameters and states."""
    rng = np.random.default_rng(0)
    shares, by_parameters, by_states = [], [], []
    for probe in range(_PROBES):
        shares.append(np.ones(states) if probe == 0 else rng.uniform(0.5, 1.0, states))
        by_parameters.append(1 + _RELATIVE * rng.uniform(-1.0, 1.0, parameters))
        by_states.append(1 + _RELATIVE * rng.uniform(-1.0, 1.0, states))
    return np.array(shares), np.array(by_parameters), np.array(by_states)
