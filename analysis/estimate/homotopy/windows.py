"""Homotopy on records that no single trajectory can follow: windows, each with its own initial state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from analysis.estimate.evaluation import Point
from analysis.estimate.homotopy.output_error import Fit
from analysis.estimate.homotopy.result import as_start
from analysis.estimate.homotopy.search import Search, growth_rate
from analysis.estimate.start import Start

if TYPE_CHECKING:
    from analysis.estimate.homotopy.method import Homotopy
    from analysis.experiment import Experiment

WINDOW_LYAPUNOV_TIMES = 3.0
_SHORTEST = 20  # samples of a window, at least
_REST = 10  # samples at the end of a record that are too few for a window
_ROUGH = 1e-4  # relative decrease of the cost at which the windows end when maximum likelihood follows


def in_windows(
    search: Search,
    coupled: Fit,
    exponent: float,
    options: Homotopy,
    experiment: Experiment,
    warnings: list[str],
    alone: bool,
) -> Start:
    """Parameters from windows of a few Lyapunov times; as a path, the motion of the coupled model."""
    problem = search.problem
    longest = max(len(s) * s.dt for s in problem.segments)
    windows, initials = [], []
    for segment, run in zip(problem.segments, coupled.evaluation.motions, strict=True):
        length = max(_SHORTEST, int(WINDOW_LYAPUNOV_TIMES / exponent / segment.dt))
        for first in range(0, len(segment) - _REST, length):
            window = segment.cut(first, min(first + length, len(segment)))
            begin = run.states[:, first].copy()
            windows.append(replace(window.unbounded(), initial=begin))
            initials.append(begin)
    windowed = replace(problem, segments=windows)
    inner = replace(search, problem=windowed)
    start = Point(coupled.point.values, tuple(initials))
    fit = inner.stage(start, 0.0, options.tolerance if alone else _ROUGH, 60, hopeful=True)
    problem.evaluations, search.iterations = windowed.evaluations, inner.iterations
    if not np.isfinite(fit.cost):
        warnings.append(
            "The model leaves the record within each window: these are the coupled model's values."
        )
        return as_start(search, coupled, coupled, experiment, warnings, False)
    warnings.append(_why_windows(growth_rate(windowed, fit), longest))
    return as_start(inner, fit, coupled, experiment, warnings, fit.converged)


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
