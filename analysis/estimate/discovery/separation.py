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

from analysis.base.words import percent

if TYPE_CHECKING:
    from analysis.estimate.discovery.scene import Scene
    from analysis.model import Model

Array = NDArray[np.float64]

_SIZES = {0.3: "a third as large", 0.5: "half as large", 2.0: "twice as large", 3.0: "three times as large"}
_HELPS = 2.0  # times the present difference in units of the rates: half the gain of four times the length
_SAMPLES = 2000
_CERTAIN = 10.0  # criterion at which odds are 150 to 1


def advice(scene: Scene, kept: Model, rival: Model, gap: float, price: float) -> str:
    """One sentence; ``gap`` is by how much the misfits of the two differ now, ``price`` that of a term."""
    here = _difference(scene, kept, rival, 1.0)
    there = {size: _difference(scene, kept, rival, size) for size in _SIZES}
    size = max(there, key=lambda s: there[s] if math.isfinite(there[s]) else 0.0)
    if here > 0 and math.isfinite(there[size]) and there[size] > _HELPS * here:
        return (
            f"A motion {_SIZES[size]} would tell: their rates then differ by {percent(there[size])} of "
            f"the spread, here by {percent(here)}."
        )
    longer = (_CERTAIN + price) / max(abs(gap), 1.0)
    return f"More of the same would tell: about {max(longer, 1.5):.2g} times this length."


def _difference(scene: Scene, a: Model, b: Model, size: float) -> float:
    """Between the rates of two models in a motion of another size, over the spread of the rates."""
    ratios = []
    for run, motion in zip(scene.experiment.runs, scene.motions(scene.experiment.model), strict=True):
        step = max(len(run.times) // _SAMPLES, 1)
        X, times = motion.smooth[:, ::step], np.ascontiguousarray(run.times[::step])
        mean = X.mean(axis=1, keepdims=True)
        X = np.ascontiguousarray(mean + size * (X - mean))
        U = size * (run.inputs.values(times) if run.inputs.count else np.zeros((0, len(times))))
        first, second = _rates(a, times, X, U), _rates(b, times, X, U)
        for one, other in zip(first, second, strict=True):
            spread = float(np.std(one))
            ratios.append(float(np.sqrt(np.mean((one - other) ** 2))) / spread if spread > 0 else 0.0)
    return max(ratios, default=0.0)


def _rates(model: Model, times: Array, X: Array, U: Array) -> Array:
    found = np.empty_like(X)
    with np.errstate(all="ignore"):
        model.kernels().rhs_many(times, X, np.ascontiguousarray(U), model.values(), found)
    return found
