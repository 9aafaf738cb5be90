"""How far the slopes of a model are known, their terms being rounded: what an integrator cannot ask for."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

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
    n = len(states)

    def slope(x: Array, p: Array) -> Array:
        found = np.empty(n)
        rhs(t, np.ascontiguousarray(x), u, p, found)
        return found

    worst = np.zeros(n)
    # Of the states' own sign and size: a law may be absurd elsewhere (below absolute zero).
    signed = np.copysign(peak, states)
    for probe, (share, by_parameters, by_states) in enumerate(_draws(n, len(parameters))):
        x = states if probe == 0 else signed * share
        changed = slope(x * by_states, parameters * by_parameters)
        worst = np.fmax(worst, np.abs(changed - slope(x, parameters)))
    here = slope(states, parameters)
    for _ in range(_DEPTH):
        before = worst.copy()
        for j in np.flatnonzero(before):
            unit = np.arange(n) == j
            small = 1e-6 * peak[j] or before[j] * span
            with np.errstate(invalid="ignore"):  # no slope there: nothing is known of its rate
                rate = abs(slope(states + small * unit, parameters)[j] - here[j]) / small
            moved = before[j] * min(_STEP * span, 1 / rate if rate > 0 else np.inf)
            worst = np.fmax(worst, np.abs(slope(states + moved * unit, parameters) - here))
    return np.where(np.isfinite(worst), _FACTOR * worst, 0.0)


@lru_cache(maxsize=64)
def _draws(states: int, parameters: int) -> list[tuple[Array, Array, Array]]:
    """For each probe the shares of the states' sizes, then the factors of the parameters and the states."""
    rng = np.random.default_rng(0)
    found = []
    for probe in range(_PROBES):
        share = np.ones(states) if probe == 0 else rng.uniform(0.5, 1.0, states)
        by_parameters = 1 + _RELATIVE * rng.uniform(-1.0, 1.0, parameters)
        found.append((share, by_parameters, 1 + _RELATIVE * rng.uniform(-1.0, 1.0, states)))
    return found
