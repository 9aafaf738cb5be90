"""The published homotopy (Manikantan et al. 2020, section 2.1): fixed steps of lambda, a scalar objective.

Each step minimises eq. (5), J = 1/2 int (y_measured - y)^2 dt, by sequential quadratic programming with
finite differences, as the authors did with fmincon; the counts are those of their tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Residual
from analysis.base.progress import Progress
from analysis.estimate.evaluation import Point
from analysis.estimate.homotopy.coupled import Controller, run_coupled
from analysis.estimate.homotopy.observer import uniform_controller
from analysis.estimate.homotopy.output_error import OutputError
from analysis.estimate.start import OwnEstimate, Start

if TYPE_CHECKING:
    from analysis.estimate.homotopy.method import Homotopy

Array = NDArray[np.float64]

_PUBLISHED_GAIN = 10.0  # kp = kd of section 3.1 and k1 of section 3.2
_HUGE = 1e10  # objective of a motion that diverged


def objective(problem: OutputError, point: Point, controller: Controller, strength: float) -> float:
    """J of eq. (5), by the trapezoidal rule."""
    none = np.zeros(0, dtype=np.int64)
    total = 0.0
    for segment, initial in zip(problem.segments, point.initials, strict=True):
        run = run_coupled(
            problem.model, segment, point.values, initial, none, controller, strength, problem.substeps, False
        )
        if run.diverged:
            return _HUGE
        squares = np.nan_to_num((segment.outputs - run.outputs) ** 2).sum(axis=0)
        total += 0.5 * float(np.trapezoid(squares, dx=segment.dt))
    return total


def minimise_plain(problem: OutputError, start: Point, options: Homotopy, progress: Progress) -> Start:
    """Lower lambda from 1 to 0 in steps of delta, each time from the last solution."""
    from scipy.optimize import Bounds, minimize

    from analysis.estimate.homotopy.result import REFERENCE

    model, unknowns = problem.model, problem.unknowns
    gain = _PUBLISHED_GAIN if options.gain is None else options.gain
    controller = uniform_controller(model, gain, options.integral_gain, options.squared_integral)
    low, high = unknowns.search_bounds
    search = unknowns.to_search(start.values[unknowns.positions])
    evaluations = iterations = 0
    history: list[dict[str, float]] = []
    converged, cost = True, np.inf

    def at(search: Array) -> Point:
        values = start.values.copy()
        values[unknowns.positions] = unknowns.to_values(search)
        return Point(values, start.initials)

    steps = max(1, round(1.0 / options.delta))
    for step in range(steps + 1):
        strength = max(0.0, 1.0 - step * options.delta)

        def cost_at(search: Array, strength: float = strength) -> float:
            return objective(problem, at(search), controller, strength)

        found = minimize(
            cost_at, search, method="SLSQP", bounds=Bounds(low, high), options={"ftol": 1e-14, "maxiter": 300}
        )
        search, cost, converged = found.x, float(found.fun), bool(found.success)
        evaluations += int(found.nfev)
        iterations += int(found.nit)
        values = at(search).values[unknowns.positions]
        named = dict(zip(model.free, map(float, values), strict=True))
        history.append({"lambda": strength, "cost": cost, "evaluation": float(evaluations), **named})
        progress.report((step + 1) / (steps + 1), f"lambda {strength:.2g}", cost=cost, **named)
    best = at(search).values
    names = list(model.free)
    own = OwnEstimate(
        names,
        best[unknowns.positions],
        None,
        residual=Residual(other={"J": cost}),
        units={name: model.unit(name) for name in names},
    )
    return Start(
        "homotopy",
        best,
        converged=converged,
        iterations=iterations,
        evaluations=evaluations,
        history=history,
        warnings=["The published scheme gives no error bars; run the default for them."],
        own=own,
        finishable=False,
        references=[REFERENCE],
    )
