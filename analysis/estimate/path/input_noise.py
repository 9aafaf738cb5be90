"""What noise and uncertainty of the measured inputs do to the unknowns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.identifiability import pseudo_inverse
from analysis.estimate.path.problem import PathProblem

Array = NDArray[np.float64]

_DRAWS = 6  # random draws of the inputs' noise by which its effect on the unknowns is judged
_MATTERS = 0.25  # rms shift of an unknown by the inputs' noise, in standard errors, that is not neglected


def input_noise_matters(problem: PathProblem) -> bool:
    """Whether the noise of the inputs moves an unknown by a good part of its standard error."""
    rng = np.random.default_rng(0)
    effects = [problem.input_effects(j) for j in range(problem.input_count)]
    total = np.zeros(len(problem.unknowns))
    for _ in range(_DRAWS):
        defects = [np.zeros_like(w.C) for w in problem.work]
        residuals = [np.zeros_like(w.R) for w in problem.work]
        for j, effect in enumerate(effects):
            for i, (flow, seen) in enumerate(effect):
                error = problem.segments[i].noise_of_inputs[j] * rng.standard_normal(len(seen))
                defects[i] += flow * error[:-1, None]
                residuals[i] -= seen * error[:, None]
        information, gradient = problem.eliminate(np.zeros(problem.n), defects, residuals)
        covariance = pseudo_inverse(information)
        errors = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
        total += (covariance @ gradient / errors) ** 2 / _DRAWS
    return bool(np.any(total > _MATTERS**2))


def covariance_from_inputs(problem: PathProblem) -> Array:
    """Covariance of the unknowns due to the uncertainty of the inputs, to first order."""
    total = np.zeros((len(problem.unknowns), len(problem.unknowns)))
    modes = {(s.record, j) for s in problem.segments for j in range(len(s.variants))}
    if not modes:
        return total
    base_C, base_R = problem.evaluate(problem.paths, problem.values, problem.steps)
    for record, j in sorted(modes):
        changed = [replace(s, inputs=s.variants[j]) if s.record == record else s for s in problem.segments]
        C, R = problem.evaluate(problem.paths, problem.values, problem.steps, changed)
        information, gradient = problem.eliminate(
            np.zeros(problem.n),
            [a - b for a, b in zip(C, base_C, strict=True)],
            [a - b for a, b in zip(R, base_R, strict=True)],
        )
        shift = pseudo_inverse(information) @ gradient
        total += np.outer(shift, shift)
    return total
