"""Homotopy shooting: few sensors, bad guesses, chaotic response (Manikantan et al. 2020).

The model is coupled to its measurement by a controller (strength lambda = 1), which makes the misfit nearly
convex; the parameters found there start the search with less coupling, until at lambda = 0 the model stands
alone. Without noise the right parameters have no misfit at any lambda, so the default jumps straight to
lambda = 0 and steps back only where that fails. ``plain`` is the published scheme: fixed steps of lambda, a
scalar objective, finite differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.progress import Progress
from analysis.estimate.evaluation import Point
from analysis.estimate.homotopy.coupled import segments_of
from analysis.estimate.homotopy.observer import choose_controller, uniform_controller
from analysis.estimate.homotopy.output_error import Evaluation, Fit, OutputError, SearchCoordinates
from analysis.estimate.homotopy.result import as_start
from analysis.estimate.homotopy.search import TRUSTED, Search, growth_rate, misfit, noise_levels, set_accuracy
from analysis.estimate.homotopy.windows import WINDOW_LYAPUNOV_TIMES, in_windows
from analysis.estimate.start import Start
from analysis.experiment import Experiment

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]

_SURELY_LOST = 30.0  # Lyapunov times: an error grows by 1e13, so no single trajectory can follow
_SMALLEST_STEP = 0.1  # relative step of lambda below which it is lowered no further
_WEAKEST = 1e-4  # lambda below which no weaker coupling is tried
_MOST_IN_VAIN = 200  # iterations without coupling that end off the record, before no more are spent


@dataclass(frozen=True)
class Homotopy:
    """How to run the homotopy."""

    name: ClassVar[str] = "homotopy"

    plain: bool = False  # the published scheme instead of the default
    gain: float | None = None  # one gain on every state, as published; None: an observer is designed
    integral_gain: float = 0.0
    squared_integral: bool = False  # integrate the squared error as printed in eq. (4b)
    delta: float = 0.2  # step of lambda of the published scheme
    tolerance: float = 1e-10  # relative decrease of the cost at which the last stage ends

    def start(self, experiment: Experiment, progress: Progress, alone: bool = False) -> Start:
        """Parameters (and unknown initial values) from partly measured, noisy records."""
        segments = segments_of(experiment)
        model = experiment.model
        if not model.free and not any(len(s.free_initial) for s in segments):
            raise DataError("The model has nothing to identify: give a parameter as { guess = ... }.")
        if len(experiment.runs) > 1 and any(
            u.record >= 0 for u in experiment.unknowns if u.index < len(model.parameters)
        ):
            raise DataError(
                "Homotopy fits parameters that all records share: leave per_record out, record the drive's "
                "phase, or use method path."
            )
        unknowns = SearchCoordinates.of(model)
        start = Point(_inside(model, unknowns), tuple(s.initial.copy() for s in segments))
        noise = noise_levels(segments, experiment.sigma, experiment.noise_sharing)
        problem = OutputError(model, segments, unknowns, noise)
        if self.plain:
            from analysis.estimate.homotopy.plain import minimise_plain

            return minimise_plain(problem, start, self, progress)
        return _default(problem, start, self, experiment, progress, alone)


def _inside(model: Model, unknowns: SearchCoordinates) -> Array:
    values = model.values()
    values[unknowns.positions] = np.clip(values[unknowns.positions], unknowns.lower, unknowns.upper)
    return values


def _default(
    problem: OutputError,
    start: Point,
    options: Homotopy,
    experiment: Experiment,
    progress: Progress,
    alone: bool,
) -> Start:
    model = problem.model
    warnings: list[str] = []
    if options.gain is not None:
        controller = uniform_controller(model, options.gain, options.integral_gain, options.squared_integral)
    else:
        noise = problem.sigma[problem.segments[0].record]
        controller, error = choose_controller(model, problem.segments, start, problem.unknowns, noise)
        if error > 1.0:
            warnings.append(
                "No gain makes the model follow the record from this guess; the result is unsure."
            )
    set_accuracy(problem, start, controller, 1.0)
    search = Search(problem, controller, progress, [])
    problem.on_iteration = lambda evaluation, strength: _tell(problem, evaluation, strength, progress)
    coupled = search.stage(start, 1.0, 1e-2, 40, hopeful=True)
    if not np.isfinite(coupled.cost):
        raise DataError(
            "From this guess the model's motion grows beyond all bounds even when coupled to the record: "
            "give guesses or bounds with which it stays."
        )
    fit, held = _let_go(search, coupled, options)
    stands = fit is not None
    if fit is None:  # a guess that was good may have been spoilt by following strong noise
        fit = search.stage(start, 0.0, options.tolerance, 100)
        stands = misfit(problem, fit.evaluation) < TRUSTED
    if stands:
        return as_start(search, fit, fit, experiment, warnings, fit.converged)
    exponent = growth_rate(problem, held)
    if exponent * max(len(s) * s.dt for s in problem.segments) > WINDOW_LYAPUNOV_TIMES:
        return in_windows(search, held, exponent, options, experiment, warnings, alone)
    warnings.append("The coupling could not be removed completely: the model does not follow the record.")
    return as_start(search, held, held, experiment, warnings, False)


def _tell(problem: OutputError, evaluation: Evaluation, strength: float, progress: Progress) -> None:
    """Progress with lambda, cost and parameters."""
    named = {name: float(evaluation.point.values[problem.model.index(name)]) for name in problem.model.free}
    values = {"lambda": strength, "cost": evaluation.cost, **named}
    progress.report(min(0.9, problem.evaluations / 60), f"lambda {strength:.3g}", **values)


def _let_go(search: Search, coupled: Fit, options: Homotopy) -> tuple[Fit | None, Fit]:
    """Lower lambda from 1 towards 0, each time as far as the search still trusts.

    Returns the fit of the model that stands alone, if it comes to that, and the weakest coupled one.
    """
    strength, target, held, in_vain = 1.0, 0.0, coupled, 0
    longest = max(len(s) * s.dt for s in search.problem.segments)
    lost = growth_rate(search.problem, held) * longest > _SURELY_LOST
    while True:
        if target == 0.0 and lost:  # as far as can be told with these parameters
            target = 0.5 * strength
        last = target == 0.0
        fit = search.stage(held.point, target, options.tolerance if last else 1e-2, 100 if last else 12)
        if misfit(search.problem, fit.evaluation) < TRUSTED:
            if last:
                return fit, held
            strength, target, held = target, 0.0, fit
            lost = growth_rate(search.problem, held) * longest > _SURELY_LOST
            continue
        in_vain += fit.iterations if last else 0
        stuck = strength - target < _SMALLEST_STEP * strength or strength < _WEAKEST
        if stuck or in_vain >= _MOST_IN_VAIN:
            return None, held
        target = 0.5 * (strength + target)
