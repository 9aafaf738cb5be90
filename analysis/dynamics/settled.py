"""A periodic motion to begin a branch with: where the model settles, or near rest."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.dynamics.continuation import PeriodRule
from analysis.dynamics.shooting import PeriodicOrbit, periodic_orbit
from analysis.model import Model
from analysis.simulation.simulate import States, initial_vector, simulate

Array = NDArray[np.float64]

_SETTLING = 300  # periods of the motion
_CLOSE = 0.3  # of the motion's size: a return worth Newton's method
_LOOKED_AT = 64  # samples a period in which an autonomous motion's return is looked for


def settled_orbit(
    model: Model, rule: PeriodRule | None, over: str, at: float, initial: States, period: float | None
) -> PeriodicOrbit:
    """A periodic motion at ``over`` = ``at``: the one the model settles to, else one near the start or rest.

    Autonomous models (no ``rule``): ``period`` is a guess within a factor of two.
    """
    known = model.with_values({over: at})
    duration = rule(at) if rule is not None else float(period or 0.0)
    if rule is None and period is None:
        raise DataError(f"{model.name} has no drive: give a guess of the motion's period.")
    if not (np.isfinite(duration) and duration > 0):
        raise DataError("The guess of the motion's period must be a positive number.")
    for state, guess in _guesses(known, duration, initial, rule is None):
        for segments in (1, 4):
            orbit = periodic_orbit(known, state, guess, free_period=rule is None, segments=segments)
            if orbit.converged and not (rule is None and _is_at_rest(known, orbit)):
                return orbit
    raise DataError(
        f"No periodic motion was found at {over} = {at:g}: give initial values near one, begin elsewhere, or "
        "let it repeat after more periods of the drive."
    )


def _guesses(model: Model, duration: float, initial: States, free: bool) -> Iterator[tuple[Array, float]]:
    start = initial_vector(model, initial) if model.initial or initial else np.zeros(len(model.states))
    times: Array = duration * np.arange(_SETTLING + 1, dtype=np.float64)
    run = simulate(model, times, start, rtol=1e-9)
    end = run.states[:, -1]
    if np.isfinite(end).all():
        yield end, _return_time(model, end, _SETTLING * duration, duration) if free else duration
    yield start, duration
    yield np.zeros(len(start)), duration


def _return_time(model: Model, state: Array, time: float, guess: float) -> float:
    """When the motion first comes back close to ``state``, after it has left: up to twice the guess."""
    times = time + guess * np.arange(2 * _LOOKED_AT + 1) / _LOOKED_AT
    path = simulate(model, times, state, rtol=1e-9).states
    size = np.ptp(path, axis=1)
    away = np.linalg.norm((path - state[:, None]) / np.where(size > 0, size, 1.0)[:, None], axis=0)
    left = int(np.argmax(away > 0.5 * np.nanmax(away)))
    later = away[left:]
    lowest = (later[1:-1] <= later[:-2]) & (later[1:-1] <= later[2:]) & (later[1:-1] < _CLOSE)
    back = 1 + int(np.argmax(lowest)) if lowest.any() else int(np.nanargmin(later))
    return float(times[left + back] - time)


def _is_at_rest(model: Model, orbit: PeriodicOrbit) -> bool:
    """Whether Newton's method ended in an equilibrium, which closes after any time."""
    slope = np.empty(len(orbit.state))
    model.kernels().rhs(0.0, orbit.state.copy(), np.empty(0), model.values(), slope)
    return bool(
        np.max(np.abs(slope)) * orbit.period <= 1e-6 * max(float(np.max(np.abs(orbit.state))), 1e-300)
    )
