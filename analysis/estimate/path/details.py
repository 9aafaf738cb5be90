"""How the best path of each segment follows the unknowns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.path import solver
from analysis.estimate.path.problem import PathProblem
from analysis.estimate.path.result import PathDetails
from analysis.estimate.unknowns import ABSENT

Array = NDArray[np.float64]

# Standard deviation granted to the equations over each interval, in ranges of the state: without it the
# information of the first state would be infinite
_TRIFLE = 1e-8


def segment_details(problem: PathProblem) -> tuple[PathDetails, ...]:
    """Of every segment, at the last linearisation."""
    problem.eliminate(np.zeros(problem.n))
    return tuple(_details_of(problem, i) for i in range(len(problem.segments)))


def _details_of(problem: PathProblem, number: int) -> PathDetails:
    segment, w, n, P = problem.segments[number], problem.work[number], problem.n, len(problem.unknowns)
    N, noise = w.R.shape[0], segment.noise_of_inputs[: problem.m]
    divisor = np.where(noise > 0, noise, np.inf)[:, None]
    there = np.isfinite(w.R)
    jacobian, inputs = np.zeros((problem.q, N, P)), np.zeros((problem.m, N, P))
    slope = np.zeros((n, P))
    # Without the terms that stand for the residuals themselves: a difference would lose the effect of an
    # unknown that is small in its own unit.
    M, E = w.M.copy(), w.E.copy()
    M[:, :, -1], E[:, :, -1] = 0.0, 0.0
    for place, unknown in enumerate(problem.unknowns.columns(segment.record)):
        if unknown == ABSENT:
            continue
        unit = np.zeros(len(problem.free))
        unit[place] = 1.0
        solver.backward(w.carried, w.seen, unit, w.S, M, w.K, w.s, E, w.dX, w.L)
        moved = w.dX
        own = w.D[:, :, place] + np.einsum("kij,jk->ki", w.seen, moved)
        jacobian[:, :, unknown] = np.where(there, own, 0.0).T
        inputs[:, :, unknown] = moved[n:] / divisor
        slope[:, unknown] = moved[:n, 0]
    errors = -problem.input_errors[number] / divisor
    trifle = np.concatenate([(_TRIFLE * problem.scale) ** 2, noise**2])
    information = solver.initial_information(w.carried, w.seen, w.R, trifle)[:n, :n]
    return PathDetails(jacobian, inputs, errors, slope, information)
