"""Another record foretold: only its first samples tell where the motion stands, all else is the model's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.base.record import Record
from analysis.estimate.evaluation import Point
from analysis.estimate.shooting.build import problem_of, start_point
from analysis.estimate.shooting.grow import grow
from analysis.estimate.shooting.problem import FINE
from analysis.experiment import Conditions, Experiment
from analysis.model import Model
from analysis.signal.bandlimited import without_dispersion

Array = NDArray[np.float64]


def foretold(
    model: Model, record: Record, window: int, conditions: Conditions | None = None
) -> dict[str, Array]:
    """What the sensors of a record will show after its first ``window`` samples, by output that it holds.

    The model has its values; the state at the beginning is fitted to the first samples alone.
    """
    conditions = conditions or Conditions()
    whole = Experiment(model, record, conditions)
    nothing = np.full((1, len(model.outputs)), np.nan)
    experiment = whole.parts([(0, 0, len(record))], own_phases=False).with_nothing_free(nothing)
    problem = problem_of(experiment, places=[(0, 0, len(record))])
    point = start_point(experiment, experiment.guesses(), experiment.start_states())
    stretch = problem.stretches[0]
    here = Point(point.values, point.initials[:1])
    start = grow(problem.on([stretch.cut(0, window)]), here).evaluation.point
    problem.settle_substeps(start, FINE)
    motion = problem.motion(stretch, start.values[0], start.initials[0], derivatives=False)
    return {
        name: without_dispersion(row, record.dt, -conditions.dispersion)[window:]
        for name, row in zip(experiment.model.outputs, motion.outputs, strict=True)
        if name in record
    }
