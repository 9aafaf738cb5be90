"""Which further record would tell two equations apart that this one hardly does.

Along the motion of this record two rivals have nearly the same rates. Where they differ is looked for in
motions like it, smaller and larger about the same mean; where that helps little, more of the same does: the
misfit between two equations grows in proportion to time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from analysis.base.words import percent
from analysis.experiment.states import direct_states

if TYPE_CHECKING:
    from analysis.estimate.discovery.scene import Scene
    from analysis.model import Model

Array = NDArray[np.float64]

_SIZES = {0.3: "a third as large", 0.5: "half as large", 2.0: "twice as large", 3.0: "three times as large"}
_HELPS = 2.0  # times the present difference in units of the rates: half the gain of four times the length
_SAMPLES = 2000
_SHIFTS = 41  # of a zero that are tried
_ALIKE = 0.2  # of the present difference, below which another zero is all of it
_CERTAIN = 10.0  # criterion at which odds are 150 to 1


def advice(scene: Scene, kept: Model, rival: Model, gap: float, price: float) -> str:
    """One sentence; ``gap`` is by how much the misfits of the two differ now, ``price`` that of a term."""
    here = _difference(scene, kept, rival, 1.0)
    for name, place in _without_zero(scene):
        if _least_difference(scene, kept, rival, place) < _ALIKE * here:
            return (
                f"The two may be one equation with another zero of {name}, which no channel shows here: a "
                f"recording of {name} would tell, no other motion."
            )
    there = {size: _difference(scene, kept, rival, size) for size in _SIZES}
    size = max(there, key=lambda s: there[s] if math.isfinite(there[s]) else 0.0)
    if here > 0 and math.isfinite(there[size]) and there[size] > _HELPS * here:
        return (
            f"A motion {_SIZES[size]} would tell: their rates then differ by {percent(there[size])} of "
            f"the spread, here by {percent(here)}."
        )
    longer = (_CERTAIN + price) / max(abs(gap), 1.0)
    return f"More of the same would tell: about {max(longer, 1.5):.2g} times this length."


def _without_zero(scene: Scene) -> list[tuple[str, int]]:
    """States that some run shows only by their rates, by name and place: their zeros are free."""
    model = scene.experiment.model
    shown = {s for o, s in direct_states(model).items() if all(r.measured[o] for r in scene.experiment.runs)}
    return [(name, i) for i, name in enumerate(model.states) if i not in shown]


def _least_difference(scene: Scene, a: Model, b: Model, place: int) -> float:
    """Between the rates of two models if the second one counts a state from another zero."""
    motions = scene.motions(scene.experiment.model)
    spread = max(float(np.ptp(motion.smooth[place])) for motion in motions)

    def apart(shift: float) -> float:
        found = _difference(scene, a, b, 1.0, (place, shift * spread))
        return found if math.isfinite(found) else np.finfo(float).max

    shifts = np.linspace(-1.0, 1.0, _SHIFTS)
    near = shifts[int(np.argmin([apart(float(s)) for s in shifts]))]
    step = 2.0 / (_SHIFTS - 1)
    return float(minimize_scalar(apart, bounds=(near - step, near + step), method="bounded").fun)


def _difference(
    scene: Scene, a: Model, b: Model, size: float, shifted: tuple[int, float] | None = None
) -> float:
    """Between the rates of two models in a motion of another size, over the spread of the rates; ``shifted``
    is a state, and what the second model counts it by more."""
    ratios = []
    for run, motion in zip(scene.experiment.runs, scene.motions(scene.experiment.model), strict=True):
        step = max(len(run.times) // _SAMPLES, 1)
        X, times = motion.smooth[:, ::step], np.ascontiguousarray(run.times[::step])
        mean = X.mean(axis=1, keepdims=True)
        X = np.ascontiguousarray(mean + size * (X - mean))
        U = size * (run.inputs.values(times) if run.inputs.count else np.zeros((0, len(times))))
        Y = X.copy()
        if shifted is not None:
            Y[shifted[0]] += shifted[1]
        first, second = _rates(a, times, X, U), _rates(b, times, Y, U)
        for one, other in zip(first, second, strict=True):
            spread = float(np.std(one))
            ratios.append(float(np.sqrt(np.mean((one - other) ** 2))) / spread if spread > 0 else 0.0)
    return max(ratios, default=0.0)


def _rates(model: Model, times: Array, X: Array, U: Array) -> Array:
    found = np.empty_like(X)
    with np.errstate(all="ignore"):
        model.kernels().rhs_many(times, X, np.ascontiguousarray(U), model.values(), found)
    return found
