"""The state at the first sample of a run: what is known of it, and between which bounds it is sought.

The numbers of a model's [initial] table are its state at t = 0. They hold for a record that says it begins
there (its drive's time is zero) and whose first samples do not contradict them; any other record begins
anywhere, and its first state is unknown.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.experiment.run import Run
from analysis.model import Model
from analysis.signal.noise import noise_bound

Array = NDArray[np.float64]

_ELSEWHERE = 6.0  # distance of the first sample from what the initial values give, in noise
_ROUNDING = 1e-6  # of an output's spread: least noise there


def initial_bounds(model: Model, run: Run) -> tuple[Array, Array, str]:
    """Lower and upper bound [n] of the state at the first sample (equal: known), and a sentence if any."""
    lower, upper = np.full(len(model.states), -np.inf), np.full(len(model.states), np.inf)
    for name, initial in model.initial.items():
        if initial.free:
            i = model.states.index(name)
            lower[i], upper[i] = initial.lower, initial.upper
    known = {name: initial.value for name, initial in model.initial.items() if not initial.free}
    if not known or run.record.drive_time != 0.0:
        return lower, upper, ""
    if _begins_elsewhere(model, run):
        words = f"The record begins at t = 0, but not at the model's initial values ({', '.join(known)})"
        return lower, upper, f"{words}: they were estimated instead."
    for name, value in known.items():
        i = model.states.index(name)
        lower[i] = upper[i] = value
    return lower, upper, ""


def _begins_elsewhere(model: Model, run: Run) -> bool:
    """Whether the first samples contradict the known initial values."""
    state = np.array([model.initial[s].value if s in model.initial else np.nan for s in model.states])
    y, u = np.empty(len(model.outputs)), np.ascontiguousarray(run.inputs.values(run.times[:1])[:, 0])
    model.kernels().out(float(run.times[0]), state, u, model.values(), y)
    for row, expected in zip(run.outputs, y, strict=True):
        if not (np.isfinite(row[0]) and np.isfinite(expected)):
            continue
        noise = max(noise_bound(row), _ROUNDING * float(np.nanstd(row)))
        if abs(row[0] - expected) > _ELSEWHERE * noise:
            return True
    return False
