"""The scheme as published: cubic-spline stiffness, no penalty, plain Levenberg-Marquardt
(Banks, Crowley 1983).

From a flat guess it ends in a local minimum; see :mod:`analysis.estimate.functions.beam.fit` for the form
that does not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.functions.beam.fit import Problem
from analysis.estimate.functions.penalised import Fit, descend, inverted

Array = NDArray[np.float64]


def fit_plain(task: Problem, start: Array | None = None, limit: int = 200) -> Fit:
    """Minimise the sum of squares (9) over the spline coefficients; all samples weigh alike."""
    task.noise = [np.ones(len(o.names)) for o in task.observations]
    theta = task.unknowns.start if start is None else start
    none = np.zeros((len(theta), len(theta)))
    found = descend(task, theta, task.misfit(theta), none, limit=limit, tolerance=1e-14)
    theta, final = found.evaluation.theta, found.evaluation.misfit
    left = max(task.samples - len(theta), 1)
    variance = 2.0 * final.cost / left
    history = [{"cost": final.cost}]
    task.noise = [np.full(len(o.names), np.sqrt(variance)) for o in task.observations]
    return Fit(
        theta,
        variance * inverted(final.hessian),
        final.hessian / max(variance, 1e-300),
        np.zeros(0),
        final,
        float(len(theta)),
        found.converged,
        found.iterations,
        history,
    )
