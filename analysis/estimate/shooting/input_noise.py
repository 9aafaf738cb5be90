"""Whether the noise that a measured input seems to carry is real, and whether it matters.

The noise of a channel is read from its roughness, and an excitation may be rough by nature (a white force
held by a converter). The motion decides: noise of that size on the input would move the outputs by a certain
amount. If the outputs are followed far more closely than that with the input taken as exact, it is no noise.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.shooting.problem import Problem
from analysis.estimate.shooting.search import Search
from analysis.signal.inputs import Inputs

if TYPE_CHECKING:
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

REFUTED = 2.0  # effect of the supposed noise over the residual: so close a fit would be impossible
NEGLIGIBLE = 0.05  # the same ratio below which the outputs' own noise hides it (a shift of a few per cent of
# a standard error for each parameter)


class InputNoise(Enum):
    """What the motion says about the supposed noise of the inputs."""

    NONE = "none is supposed"
    REFUTED = "the outputs are followed too closely for it"
    NEGLIGIBLE = "it moves the outputs by less than their own noise"
    MATTERS = "it moves the outputs beyond their own noise"


def input_noise(experiment: Experiment, found: Search) -> InputNoise:
    """Judge the inputs' noise by the best motion found, or by the windows that follow the record."""
    if not any(run.input_noise.any() for run in experiment.runs):
        return InputNoise.NONE
    good = found.judged is not None and found.judged.good
    if found.windowed is not None and not good:
        problem, descent = found.windowed.problem, found.windowed.descent
    elif found.best is not None:
        problem, descent = found.problem, found.best
    else:
        return InputNoise.MATTERS
    point = descent.evaluation.point
    noisy = _with_noisy_inputs(experiment, problem, np.random.default_rng(0))
    moved = noisy.evaluate(point, derivatives=False)
    if not np.isfinite(moved.cost):
        return InputNoise.MATTERS
    effect = [a.outputs - b.outputs for a, b in zip(moved.motions, descent.evaluation.motions, strict=True)]
    ratio = _largest_ratio(effect, problem.residuals(descent.evaluation))
    if ratio > REFUTED:
        return InputNoise.REFUTED
    return InputNoise.MATTERS if ratio > NEGLIGIBLE else InputNoise.NEGLIGIBLE


def _largest_ratio(effect: list[Array], residuals: list[Array]) -> float:
    moved, left = np.concatenate(effect, axis=1), np.concatenate(residuals, axis=1)
    ratios = [0.0]
    for i in range(len(left)):
        seen = np.isfinite(left[i])
        if seen.any():
            size = float(np.sqrt(np.mean(left[i, seen] ** 2)))
            ratios.append(float(np.sqrt(np.mean(moved[i, seen] ** 2))) / max(size, 1e-300))
    return max(ratios)


def _with_noisy_inputs(experiment: Experiment, problem: Problem, rng: np.random.Generator) -> Problem:
    """The problem with a draw of the supposed noise on the inputs, held over each sample interval."""
    inputs = []
    for run in experiment.runs:
        given = run.inputs
        changed = given.coefficients.copy()
        changed[:, :, 0] += run.input_noise[:, None] * rng.standard_normal(changed.shape[:2])
        inputs.append(Inputs(given.t0, given.dt, changed, given.breaks))
    return problem.on([replace(s, inputs=inputs[s.record]) for s in problem.stretches])
