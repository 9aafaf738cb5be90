"""Homotopy on records that no single trajectory can follow: first windows, then the whole path."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Identification, estimates
from analysis.estimate.homotopy.output_error import Fit, Point
from analysis.estimate.homotopy.result import at_bounds, exact, make_result, profiled, residual_rms
from analysis.estimate.homotopy.search import TRUSTED, Search, growth_along, growth_rate, misfit
from analysis.estimate.identifiability import undetermined_words
from analysis.signal.noise import colour_words

if TYPE_CHECKING:
    from analysis.estimate.homotopy.method import Options
    from analysis.model import Model

WINDOW_LYAPUNOV_TIMES = 3.0


def in_windows(
    search: Search, coupled: Fit, exponent: float, options: Options, warnings: list[str]
) -> Identification:
    """Windows of a few Lyapunov times, each with its own initial state, then the most likely path."""
    problem = search.problem
    longest = max(len(s) * s.dt for s in problem.segments)
    windows, initials = [], []
    for segment, run in zip(problem.segments, coupled.evaluation.runs, strict=True):
        length = max(20, int(WINDOW_LYAPUNOV_TIMES / exponent / segment.dt))
        for first in range(0, len(segment) - 10, length):
            window = segment.cut(first, min(first + length, len(segment)))
            windows.append(
                replace(window, initial=run.states[:, first].copy(), free_initial=_all(problem.model))
            )
            initials.append(run.states[:, first].copy())
    windowed = replace(problem, segments=windows)
    inner = replace(search, problem=windowed)
    start = Point(coupled.point.values, tuple(initials))
    fit = inner.stage(start, 0.0, 1e-4 if options.finish else options.tolerance, 60, hopeful=True)
    problem.evaluations, search.iterations = windowed.evaluations, inner.iterations
    if not np.isfinite(fit.cost):
        warnings.append(
            "The model leaves the record within each window: these are the coupled model's values."
        )
        return make_result(search, coupled, options, warnings, False)
    if options.finish and not exact(windowed, fit):
        return _finished(search, coupled, inner, fit, options, warnings)
    warnings.append(_why_windows(growth_rate(windowed, fit), longest))
    return profiled(inner, fit, options, make_result(inner, fit, options, warnings, fit.converged))


def _finished(
    search: Search, coupled: Fit, inner: Search, windowed: Fit, options: Options, warnings: list[str]
) -> Identification:
    """The most likely path over the whole record, from the windows' parameters and the coupled motion.

    Where its motion turns out not to be chaotic, a single trajectory from its parameters ends the search.
    """
    from analysis.estimate.path.estimate import Segment as PathSegment
    from analysis.estimate.path.estimate import estimate_path

    problem, unknowns, model = search.problem, search.problem.unknowns, search.problem.model
    segments = [
        PathSegment(s.times, s.outputs, run.states, s.inputs)
        for s, run in zip(problem.segments, coupled.evaluation.runs, strict=True)
    ]
    found = estimate_path(
        model.kernels(),
        segments,
        windowed.point.values,
        [int(i) for i in unknowns.positions],
        lower=np.array([p.lower for p in model.parameters.values()]),
        upper=np.array([p.upper for p in model.parameters.values()]),
        progress=search.progress.part(0.8, 0.9),
    )
    values = found.values[0, : len(model.parameters)].copy()
    rates = [
        growth_along(model, s, states, values)
        for s, states in zip(problem.segments, found.states, strict=True)
    ]
    longest = max(len(s) * s.dt for s in problem.segments)
    if max(rates) * longest <= WINDOW_LYAPUNOV_TIMES:
        fit = search.stage(Point(values, coupled.point.initials), 0.0, options.tolerance, 100)
        if misfit(problem, fit.evaluation) < TRUSTED:
            problem.evaluations += found.evaluations
            return profiled(search, fit, options, make_result(search, fit, options, warnings, fit.converged))
    warnings.append(_why_windows(max(rates), longest))
    result = make_result(inner, windowed, options, [], found.converged)
    names = [list(model.parameters)[i] for i, _ in found.unknowns]
    units = {name: model.parameters[name].unit for name in names}
    return replace(
        result,
        parameters=estimates(names, found.estimate, found.covariance, units),
        covariance=found.covariance.tolist(),
        iterations=result.iterations + found.iterations,
        evaluations=result.evaluations + found.evaluations,
        residual={"chi2": found.chi2, "dof": float(found.dof), "rms": residual_rms(found.residuals)},
        undetermined=undetermined_words(found.information, found.estimate, names),
        warnings=warnings + colour_words(model.outputs, found.residuals) + at_bounds(model, unknowns, values),
    )


def _why_windows(exponent: float, longest: float) -> str:
    """Said of a record of ``longest`` units of time that was fitted in windows."""
    if exponent * longest > WINDOW_LYAPUNOV_TIMES:
        return (
            f"The motion is chaotic (largest exponent {exponent:.3g} per unit of time): no single trajectory "
            f"follows the record, so it was fitted in windows of {WINDOW_LYAPUNOV_TIMES:g} Lyapunov times."
        )
    return (
        "No single trajectory could be made to follow the record from this guess: it was fitted in windows."
    )


def _all(model: Model) -> NDArray[np.int64]:
    return np.arange(len(model.states), dtype=np.int64)
