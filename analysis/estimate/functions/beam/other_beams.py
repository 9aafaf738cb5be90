"""Other beams with the same frequencies: springs and a tip mass can stand for one another.

A uniform cantilever on a rotational spring k with a mass m at its tip has the frequencies of one with a
spring 1/m and a mass 1/k (in units of EI, rho and L): the equation of the bending moment is that of the
displacement with the ends exchanged. A search ends in one of them; its intervals do not know of the other.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.functions.beam.fit import Problem, fit_from
from analysis.estimate.functions.penalised import Fit

Array = NDArray[np.float64]

_AWAY = np.log(10.0)  # a start has each number ten times smaller, as found, or ten times larger
_MOST = 27  # starts
_AS_GOOD = 6.0  # twice the difference of the logarithm of the likelihood up to which another answer counts
_APART = 4.0  # standard errors of either answer


def other_beams(task: Problem, fit: Fit) -> list[str]:
    """A sentence for a beam with other springs and tip mass that the frequencies tell no better."""
    numbers = [b for b in task.unknowns.blocks if b.key in task.system.beam.scalars]
    if task.observations or task.system.beam.responses or not numbers:
        return []
    for away in list(product((-_AWAY, 0.0, _AWAY), repeat=len(numbers)))[:_MOST]:
        theta = fit.theta.copy()
        for block, step in zip(numbers, away, strict=True):
            theta[block.where] += step
        found = fit_from(task, theta)
        if found.converged and 2 * (found.misfit.cost - fit.misfit.cost) < _AS_GOOD:
            errors = np.sqrt(np.maximum(np.diag(fit.covariance), np.diag(found.covariance)))
            if any(abs(found.theta - fit.theta)[b.where][0] > _APART * errors[b.where][0] for b in numbers):
                return [_words(task, found.theta)]
    return []


def _words(task: Problem, theta: Array) -> str:
    single = [b for b in task.unknowns.blocks if b.size == 1 and not b.prior]
    values = ", ".join(f"{b.symbol} = {np.exp(theta[b.where][0]):.3g}" for b in single)
    return (
        f"Another beam has the same frequencies: {values}. Fix one of them, or measure mode shapes or a "
        "motion."
    )
