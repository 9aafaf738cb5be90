"""Runge-Kutta sub-steps of a sample interval: few for the derivatives, more for the flow itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.estimate.identifiability import pseudo_inverse
from analysis.estimate.path.problem import PathProblem

Array = NDArray[np.float64]

# Error of the flow over one interval, of the state's movement in it. Derivatives only steer the search; the
# flow itself, which costs little without them, begins finer and is refined at the end.
_DERIVATIVES, _FLOW = 2e-3, 1e-5
_ROUNDING = 1e-12  # of a state's range, or of an unknown's magnitude: what the arithmetic itself may move
_BIAS = 0.1  # shift of an unknown by the flow's error, in standard errors, that is not worth finer steps
_ORDER = 4  # of Runge and Kutta's scheme
_FINEST = 256  # sub-steps of an interval beyond which a model counts as too stiff for this method


def choose_substeps(problem: PathProblem, known: int = 0) -> None:
    """Sub-steps to begin with, from the path and the parameters of the start.

    ``known``: of the flow, from a fit close by (0: none); they are looked at again when the search has ended.
    """
    problem.steps = _settled(problem, 1, _DERIVATIVES)
    problem.fine = max(known, problem.steps) if known else _settled(problem, problem.steps, _FLOW)


def _settled(problem: PathProblem, steps: int, tolerance: float) -> int:
    """Least sub-steps whose doubling changes the flow by less than a fraction of its movement."""
    moved = np.sqrt(np.mean(np.hstack([np.diff(X) for X in problem.paths]) ** 2, axis=1))
    coarse, _ = problem.evaluate(problem.paths, problem.values, steps)
    while steps <= _FINEST:
        finer, _ = problem.evaluate(problem.paths, problem.values, 2 * steps)
        with np.errstate(over="ignore"):  # a flow that runs away has not settled
            error = np.sqrt(np.mean((np.vstack(finer) - np.vstack(coarse)) ** 2, axis=0))
        if np.all(error <= tolerance * moved + _ROUNDING * problem.scale):
            return steps
        steps, coarse = 2 * steps, finer
    raise ShakedownError("The model is too stiff for its sample interval: the flow does not settle.")


def refine_substeps(problem: PathProblem) -> bool:
    """More sub-steps of the flow if its error moves an unknown beside its standard error; whether it did.

    The error falls by the fourth power of the step, so that one look tells whether to double once or twice.
    """
    if problem.fine >= _FINEST:
        return False
    coarse, _ = problem.accepted or problem.evaluate(problem.paths, problem.values, problem.fine)
    finer, _ = problem.evaluate(problem.paths, problem.values, 2 * problem.fine)
    errors = [f - c for f, c in zip(finer, coarse, strict=True)]
    information, gradient = problem.eliminate(np.zeros(problem.n), errors)
    covariance = pseudo_inverse(information)
    bias = np.abs(covariance @ gradient)
    allowed = _BIAS * np.sqrt(np.maximum(np.diag(covariance), 0.0)) + _ROUNDING * problem.sizes
    if np.all(bias <= allowed):
        return False
    twice = np.any(bias > 2**_ORDER * allowed)
    problem.fine, problem.accepted = min((4 if twice else 2) * problem.fine, _FINEST), None
    return True
