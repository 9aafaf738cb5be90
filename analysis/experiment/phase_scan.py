"""The drive's time at the first sample of a record that does not know it, as the model's guesses suggest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.experiment.run import Run
from analysis.model import Model
from analysis.simulation.simulate import simulate

Array = NDArray[np.float64]

_PHASES = 24  # of the drive that are tried
_PLACES = 30  # in the record from which each is tried
_AHEAD = 0.5  # periods that the model runs from each: longer, and wrong guesses would spoil it


def scanned_time(model: Model, run: Run, states: Array, place: int, period: float) -> float:
    """The shift of t (parameter number ``place``) with which the model leads least astray from ``states``.

    A grid over one period of the drive, centred on zero.
    """
    grid = period * (np.arange(_PHASES) / _PHASES)
    misses = [_miss(model, run, states, place, period, float(shift)) for shift in grid]
    best = float(grid[int(np.argmin(misses))])
    return best - period if best > 0.5 * period else best


def _miss(model: Model, run: Run, states: Array, place: int, period: float, shift: float) -> float:
    """How far half a period from measured states leads astray, on average."""
    length = max(round(_AHEAD * period / run.dt), 4)
    count = states.shape[1] - length - 1
    if count < 1:
        return 0.0
    scale = np.ptp(states, axis=1)
    scale[scale == 0] = 1.0
    values = model.values()
    values[place] = shift
    inputs = run.inputs if run.inputs.count else None
    total = 0.0
    for first in np.linspace(0, count, _PLACES).astype(int):
        span = run.times[[first, first + length]]
        end = simulate(model, span, states[:, first], values, inputs, rtol=1e-6).states[:, -1]
        gap = (end - states[:, first + length]) / scale
        total += min(float(np.sum(gap**2)), 1.0) if np.isfinite(gap).all() else 1.0
    return total
