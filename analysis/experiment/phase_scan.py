"""The drive's time at the first sample of a record that does not know it, from a model with known values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analysis.model import Model
from analysis.simulate.simulation import simulate

Array = NDArray[np.float64]

_PHASES = 24  # of the drive that are tried
_PLACES = 30  # from which each is tried


def scanned_time(
    model: Model, states: Array, dt: float, period: float, candidates: Sequence[float] = ()
) -> float:
    """The time from which half a period of the model's motion leads least astray from ``states`` [n, N].

    Tried are ``candidates`` and a grid over one period of the drive.
    """
    grid = [*candidates, *(period * np.arange(_PHASES) / _PHASES).tolist()]
    return float(min(grid, key=lambda origin: _miss(model, states, dt, period, origin)))


def _miss(model: Model, states: Array, dt: float, period: float, origin: float) -> float:
    """How far half a period from measured states leads astray, on average."""
    length = max(round(0.5 * period / dt), 4)
    count = states.shape[1] - length - 1
    if count < 1:
        return 0.0
    scale = np.ptp(states, axis=1)
    scale[scale == 0] = 1.0
    total = 0.0
    for start in np.linspace(0, count, _PLACES).astype(int):
        t = origin + start * dt + np.array([0.0, length * dt])
        end = simulate(model, t, states[:, start], rtol=1e-6).states[:, -1]
        gap = (end - states[:, start + length]) / scale
        total += min(float(np.sum(gap**2)), 1.0) if np.isfinite(gap).all() else 1.0
    return total
