"""Where a specimen with several places of rest may have been: starts for states that nothing shows.

An accelerometer on a beam in one of two wells shows nothing of the well. From the rest between them, where a
search would begin, no small step leads into either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.dynamics.equilibrium import equilibria
from analysis.estimate.evaluation import Point
from analysis.estimate.observability import shown_at_an_instant

if TYPE_CHECKING:
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

_MOST = 3  # places of rest that are tried
_WIDE = 10.0  # half the width in which they are sought, over what the start shows of a state
# Factors on that width, in turn: of a state that nothing shows not even the unit is known
_FACTORS = (1.0, 1e3, 1e-3, 1e6, 1e-6, 1e9, 1e-9)
_SOUGHT = 24  # starts of Newton's method
_SAME = 0.05  # of the width between the outermost ones: nearer to the start than this is no other place


def rests(experiment: Experiment, start: Point) -> list[Point]:
    """The start with hidden states at each stable rest of the guessed model that lies elsewhere."""
    hidden = ~shown_at_an_instant(experiment.model, experiment.runs[0])
    if not hidden.any():
        return []
    found = _stable(experiment, start, hidden)
    if not found:
        return []
    width = np.maximum(np.ptp(found, axis=0), 1e-300)
    elsewhere = [x for x in found if np.any(np.abs(x - start.initials[0])[hidden] > (_SAME * width)[hidden])]
    return [
        Point(start.values, tuple(np.where(hidden, x, initial) for initial in start.initials))
        for x in elsewhere[:_MOST]
    ]


def _stable(experiment: Experiment, start: Point, hidden: NDArray[np.bool_]) -> list[Array]:
    """The stable rests of the guessed model: at least two, or none."""
    model, run = experiment.model, experiment.runs[0]
    size = np.max(np.abs(start.initials), axis=0)
    reach = _WIDE * np.where(size > 0, size, 1.0)
    still = np.mean(run.inputs.values(run.times), axis=1)
    values = start.values[0, : len(model.parameters)]
    for factor in _FACTORS:
        box = {model.states[i]: (-factor * reach[i], factor * reach[i]) for i in np.flatnonzero(hidden)}
        everything = equilibria(model, box, values, still, float(run.times[0]), _SOUGHT)
        found = [rest.state for rest in everything if rest.stable]
        if len(found) > 1:
            return found
    return []
