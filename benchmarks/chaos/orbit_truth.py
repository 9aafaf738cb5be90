"""The periodic orbits of the equations beside those extracted from a record, by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from analysis.base.errors import ShakedownError
from analysis.dynamics.shooting import periodic_orbit
from analysis.orbits.orbit import PeriodicOrbit
from analysis.signal.interpolation import sample_at
from analysis.simulation.simulate import simulate
from benchmarks.chaos.systems import Array, Flow

NEAR = 0.05  # rms distance from the segment's curve, of the span of each state, of the same orbit
_PIECES = (6, 8, 24)  # of shooting in a turn: Newton's method from one start may end nowhere or elsewhere


@dataclass(frozen=True, eq=False)
class TrueOrbit:
    """An orbit of the equations and its multiplier of largest size (that of the flow, one, left out)."""

    period: float  # samples
    multiplier: complex
    distance: float  # rms from the segment, of the span


def true_orbit(flow: Flow, states: Array, orbit: PeriodicOrbit, turn: float) -> TrueOrbit | None:
    """The orbit of ``flow`` that the segment of the clean ``states`` [n, N] follows; None if there is none.

    ``turn`` is the mean time of a turn in samples.
    """
    tried = (_shot(flow, states, orbit, max(3, round(count * orbit.period / turn))) for count in _PIECES)
    return next((found for found in tried if found is not None), None)


def _shot(flow: Flow, states: Array, orbit: PeriodicOrbit, pieces: int) -> TrueOrbit | None:
    """The orbit that Newton's method with so many pieces finds next to the segment."""
    places = orbit.start + orbit.period * np.arange(pieces) / pieces
    if orbit.start < 3 or places[-1] > states.shape[1] - 5:
        return None
    along = sample_at(states, places, np.empty((len(states), pieces)))
    start = orbit.start * flow.dt
    try:
        closed = periodic_orbit(
            flow.model, along[:, 0], orbit.period * flow.dt, start=start, free_period=flow.period is None,
            segments=pieces, along=along, tolerance=1e-8, iterations=25, rtol=1e-9,
        )  # fmt: skip
    except (ShakedownError, np.linalg.LinAlgError):
        return None
    if not closed.converged or abs(closed.period / (orbit.period * flow.dt) - 1) > 0.05:
        return None
    parts = 8 * pieces
    times = start + closed.period * np.arange(parts) / parts
    run = simulate(flow.model, times, closed.state, rtol=1e-10).states
    segment = sample_at(
        states, orbit.start + orbit.period * np.arange(parts) / parts, np.empty((len(states), parts))
    )
    span = np.ptp(states, axis=1)[:, None]
    apart = np.linalg.norm((run - segment) / span, axis=0)
    if flow.period is None:  # without a drive in space alone: a segment runs ahead here and behind there
        apart, _ = cKDTree((segment / span).T).query((run / span).T)
    distance = float(np.sqrt(np.mean(apart**2) / len(states)))
    if not distance < NEAR:
        return None
    multipliers = closed.multipliers
    if flow.period is None:
        multipliers = np.delete(multipliers, int(np.argmin(np.abs(multipliers - 1))))
    return TrueOrbit(closed.period / flow.dt, complex(multipliers[0]), distance)
