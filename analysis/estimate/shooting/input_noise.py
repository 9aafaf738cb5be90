"""Whether the noise that a measured input seems to carry is real, and whether it matters.

The noise of a channel is read from its roughness, and an excitation may be rough by nature (a white force
held by a converter). The motion decides: noise of that size on the input would move the outputs by a certain
amount. If the outputs are followed far more closely than that with the input taken as exact, it is no noise.
What the free parameters and the initial state can imitate of that amount a fit takes up by moving them: it
counts for whether the noise matters, not against it (where motions run apart, that is nearly all of it).
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

# Effect of the supposed noise that no unknown can imitate, over the residual, beyond which it is refuted: no
# fit could be so close.
REFUTED = 2.0
# The same ratio of the whole effect below which the outputs' own noise hides it (a shift of a few per cent of
# a standard error for each parameter).
NEGLIGIBLE = 0.05
# Of the supposed noise, so that its effect is linear: a larger draw can change a motion's course.
_SMALL = 1e-3


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
    moved, here = noisy.evaluate(point, derivatives=False), problem.evaluate(point)
    if not (np.isfinite(moved.cost) and np.isfinite(here.cost)):
        return InputNoise.MATTERS
    residuals = problem.residuals(here)
    effect = [(a.outputs - b.outputs) / _SMALL for a, b in zip(moved.motions, here.motions, strict=True)]
    alone = [_not_imitated(e, m.slopes, r) for e, m, r in zip(effect, here.motions, residuals, strict=True)]
    if _largest_ratio(alone, residuals) > REFUTED:
        return InputNoise.REFUTED
    whole = _largest_ratio(effect, residuals)
    return InputNoise.MATTERS if whole > NEGLIGIBLE else InputNoise.NEGLIGIBLE


def _not_imitated(effect: Array, slopes: Array, residuals: Array) -> Array:
    """What is left of an effect [q, N] after the best changes of the unknowns with these slopes [q, P, N],
    where something was measured; outputs count by their residuals' size."""
    seen = np.isfinite(residuals)
    size = [
        float(np.sqrt(np.mean(r[s] ** 2))) if s.any() else 1.0 for r, s in zip(residuals, seen, strict=True)
    ]
    weight = np.where(seen, 1.0 / np.maximum(size, 1e-300)[:, None], 0.0)
    columns = (slopes * weight[:, None]).transpose(0, 2, 1).reshape(-1, slopes.shape[1])
    lengths = np.linalg.norm(columns, axis=0)
    columns = columns[:, lengths > 0] / lengths[lengths > 0]
    target = (effect * weight).ravel()
    left = target - columns @ np.linalg.lstsq(columns, target, rcond=None)[0]
    return np.asarray(left.reshape(effect.shape) / np.where(weight > 0, weight, 1.0))


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
    """The problem with ``_SMALL`` of a draw of the supposed noise on the inputs, held over each interval."""
    inputs = []
    for run in experiment.runs:
        given = run.inputs
        changed = given.coefficients.copy()
        drawn = rng.standard_normal(changed.shape[:2])
        changed[:, :, 0] += _SMALL * run.input_noise[:, None] * drawn
        inputs.append(Inputs(given.t0, given.dt, changed, given.breaks))
    return problem.on([replace(s, inputs=inputs[s.record]) for s in problem.stretches])
