"""Homotopy shooting: few sensors, bad guesses, chaotic response (Manikantan et al. 2020).

The model is coupled to its measurement by a controller (strength lambda = 1), which makes the misfit nearly
convex; the parameters found there start the search with less coupling, until at lambda = 0 the model stands
alone. Without noise the right parameters have no misfit at any lambda, so the default jumps straight to
lambda = 0 and steps back only where that fails. ``plain`` is the published scheme: fixed steps of lambda, a
scalar objective, finite differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.coupled import (
    CLASSICAL,
    LUTHER,
    Controller,
    Segment,
    run_coupled,
    segments_of,
    tangent_growth,
)
from analysis.errors import DataError
from analysis.identifiability import covariance_of, undetermined_words
from analysis.identification import Estimate, Identification, estimates
from analysis.noise import HIGHEST_ORDER, colour_words, noise_level
from analysis.observer import choose_controller, uniform_controller
from analysis.output_error import Evaluation, Fit, OutputError, Point, Unknowns, information
from analysis.profile import chosen, trace_profile, with_profiles
from analysis.progress import Progress
from analysis.record import Record

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]

REFERENCE = (
    "R. Manikantan, S. Chakraborty, T. K. Uchida, C. P. Vyasarayani: Parameter identification in nonlinear "
    "mechanical systems with noisy partial state measurement using PID-controller penalty functions. "
    "Mathematics 8 (2020) 1084."
)
_SURELY_LOST = 30.0  # Lyapunov times: an error grows by 1e13, so no single trajectory can follow
_WINDOW_LYAPUNOV_TIMES = 3.0
_ROUGH = 1e-3  # integration error over the spread of the outputs while coupled
_ACCURATE = 1e-5  # integration error over the noise at the end
_MOST_SUBSTEPS = 64
_TRUSTED = 0.1  # misfit over spread at the end of a stage that counts as following the record
_HOPELESS = 0.5  # the same at its start: from here a search would end in another valley
_SMALLEST_STEP = 0.1  # of lambda, over lambda
_WEAKEST = 1e-4  # lambda from which only the step to none is left
_NOISELESS = 1e-6  # chi-square per sample below which there is no noise to weigh: the windows say it all
_PERFECT = 1e-14  # chi-square per sample below which a fit cannot become better: rounding


@dataclass(frozen=True)
class Options:
    """How to run the homotopy."""

    plain: bool = False  # the published scheme instead of the default
    gain: float | None = None  # one gain on every state, as published; None: an observer is designed
    integral_gain: float = 0.0
    squared_integral: bool = False  # integrate the squared error as printed in eq. (4b)
    delta: float = 0.2  # step of lambda of the published scheme
    finish: bool = True  # chaotic records: maximum likelihood over the whole path at the end
    tolerance: float = 1e-10  # relative decrease of the cost at which the last stage ends
    profile: tuple[str, ...] = ()  # parameters whose profile likelihood is traced; `all` for every one


@dataclass(eq=False)
class _Search:
    """What the stages share."""

    problem: OutputError
    controller: Controller
    progress: Progress
    history: list[dict[str, float]]
    iterations: int = 0

    def stage(self, start: Point, strength: float, tolerance: float, most: int, hopeful: bool = False) -> Fit:
        """Minimise at one strength; unless hopeful, not from where only another valley can be reached."""
        problem, coarse = self.problem, (self.problem.scheme, self.problem.substeps)
        if not hopeful:
            glance = problem.evaluate(start, self.controller, strength, sensitivities=False)
            if misfit(problem, glance) > _HOPELESS:
                return Fit(glance, False, 0, [])
        if strength == 0.0:
            set_accuracy(problem, start, self.controller, 0.0)
        perfect = 0.5 * _PERFECT * problem.samples
        here = problem.evaluate(start, self.controller, strength)
        fit = problem.minimise(here, self.controller, strength, tolerance, most, perfect)
        self.history += fit.history
        self.iterations += fit.iterations
        if misfit(problem, fit.evaluation) > _TRUSTED:
            problem.scheme, problem.substeps = coarse
        return fit


def identify(model: Model, records: Sequence[Record], options: Options, progress: Progress) -> Identification:
    """Identify parameters (and unknown initial values) from partly measured, noisy records."""
    chosen(options.profile, model.free)  # a wrong name is said before the work
    segments = segments_of(model, records)
    if not model.free and not any(len(s.free_initial) for s in segments):
        raise DataError("The model has nothing to identify: give a parameter as { guess = ... }.")
    unknowns = Unknowns.of(model)
    start = Point(_inside(model, unknowns), tuple(s.initial.copy() for s in segments))
    problem = OutputError(model, segments, unknowns, noise_levels(segments))
    if options.plain:
        from analysis.homotopy_plain import minimise_plain

        return minimise_plain(problem, start, options, progress)
    return _default(problem, start, options, progress)


def noise_levels(segments: Sequence[Segment]) -> Array:
    """Noise of each output from its high differences; a thousandth of its spread where none is to be seen."""
    levels = np.ones(segments[0].outputs.shape[0])
    for r in range(len(levels)):
        rows = [s.outputs[r][np.isfinite(s.outputs[r])] for s in segments]
        spread = float(np.std(np.concatenate(rows))) if any(len(row) for row in rows) else 0.0
        noise = [noise_level(row).value for row in rows if len(row) >= 20 * HIGHEST_ORDER]
        levels[r] = max(float(np.median(noise)) if noise else 0.0, 1e-3 * spread) or 1.0
    return levels


def _inside(model: Model, unknowns: Unknowns) -> Array:
    values = model.values()
    values[unknowns.positions] = np.clip(values[unknowns.positions], unknowns.lower, unknowns.upper)
    return values


def _default(problem: OutputError, start: Point, options: Options, progress: Progress) -> Identification:
    model, warnings = problem.model, []
    if options.gain is not None:
        controller = uniform_controller(model, options.gain, options.integral_gain, options.squared_integral)
    else:
        controller, error = choose_controller(model, problem.segments, start, problem.unknowns, problem.sigma)
        if error > 1.0:
            warnings.append(
                "No gain makes the model follow the record from this guess; the result is unsure."
            )
    set_accuracy(problem, start, controller, 1.0)
    search = _Search(problem, controller, progress, [])
    problem.on_iteration = lambda count, strength, point: progress.report(
        min(0.9, count / 60), f"lambda {strength:.3g}", **_named(model, point)
    )
    coupled = search.stage(start, 1.0, 1e-2, 40, hopeful=True)
    if not np.isfinite(coupled.cost):
        raise DataError(
            "From this guess the model's motion grows beyond all bounds even when coupled to the record: "
            "give guesses or bounds with which it stays."
        )
    fit, held = _let_go(search, coupled, options)
    alone = fit is not None
    if fit is None:  # a guess that was good may have been spoilt by following strong noise
        fit = search.stage(start, 0.0, options.tolerance, 100)
        alone = misfit(problem, fit.evaluation) < _TRUSTED
    if alone:
        result = _result(search, fit, options, warnings, fit.converged)
        return _profiled(search, fit, options, result)
    exponent = growth_rate(problem, held)
    if exponent * max(len(s) * s.dt for s in problem.segments) > _WINDOW_LYAPUNOV_TIMES:
        return _in_windows(search, held, exponent, options, warnings)
    warnings.append("The coupling could not be removed completely: the model does not follow the record.")
    return _result(search, held, options, warnings, False)


def _let_go(search: _Search, coupled: Fit, options: Options) -> tuple[Fit | None, Fit]:
    """Lower lambda from 1 towards 0, each time as far as the search still trusts.

    Returns the fit of the model that stands alone, if it comes to that, and the weakest coupled one.
    """
    strength, target, held = 1.0, 0.0, coupled
    longest = max(len(s) * s.dt for s in search.problem.segments)
    lost = growth_rate(search.problem, held) * longest > _SURELY_LOST
    while True:
        if target == 0.0 and lost:  # as far as can be told with these parameters
            target = 0.5 * strength
        last = target == 0.0
        fit = search.stage(held.point, target, options.tolerance if last else 1e-2, 100 if last else 12)
        if misfit(search.problem, fit.evaluation) < _TRUSTED:
            if last:
                return fit, held
            strength, target, held = target, 0.0, fit
            lost = growth_rate(search.problem, held) * longest > _SURELY_LOST
        elif strength - target < _SMALLEST_STEP * strength or strength < _WEAKEST:
            return None, held
        else:
            target = 0.5 * (strength + target)


def misfit(problem: OutputError, evaluation: Evaluation) -> float:
    """Rms of the residual over the spread of the outputs; 0 within three times the noise."""
    if not np.isfinite(evaluation.cost):
        return np.inf
    if 2.0 * evaluation.cost < 9.0 * problem.samples:
        return 0.0
    total = 0.0
    for segment, run in zip(problem.segments, evaluation.runs, strict=True):
        seen = np.isfinite(segment.outputs)
        scale = np.array(
            [np.std(row[s]) if s.any() else 1.0 for row, s in zip(segment.outputs, seen, strict=True)]
        )
        relative = (segment.outputs - run.outputs) / np.where(scale > 0, scale, 1.0)[:, None]
        total += float(np.sum(np.where(seen, relative, 0.0) ** 2))
    return float(np.sqrt(total / max(problem.samples, 1)))


def growth_rate(problem: OutputError, fit: Fit) -> float:
    """Largest Lyapunov exponent (1 / unit of time) of the uncoupled model along the fitted motion."""
    rates = [
        _growth_along(problem.model, segment, run.states, fit.point.values)
        for segment, run in zip(problem.segments, fit.evaluation.runs, strict=True)
    ]
    return float(np.average(rates, weights=[len(segment) for segment in problem.segments]))


def _growth_along(model: Model, segment: Segment, states: Array, values: Array) -> float:
    n, count = states.shape
    dx, jx, jp = np.empty((n, count)), np.empty((n, n, count)), np.empty((n, len(values), count))
    inputs = np.ascontiguousarray(segment.inputs.values(segment.times))
    model.kernels().jac_many(segment.times, np.ascontiguousarray(states), inputs, values, dx, jx, jp)
    return float(tangent_growth(jx, segment.dt))


def _why_windows(exponent: float, longest: float) -> str:
    """Said of a record of ``longest`` units of time that was fitted in windows."""
    if exponent * longest > _WINDOW_LYAPUNOV_TIMES:
        return (
            f"The motion is chaotic (largest exponent {exponent:.3g} per unit of time): no single trajectory "
            f"follows the record, so it was fitted in windows of {_WINDOW_LYAPUNOV_TIMES:g} Lyapunov times."
        )
    return (
        "No single trajectory could be made to follow the record from this guess: it was fitted in windows."
    )


def _in_windows(
    search: _Search, coupled: Fit, exponent: float, options: Options, warnings: list[str]
) -> Identification:
    """Windows of a few Lyapunov times, each with its own initial state, then the most likely path."""
    problem = search.problem
    longest = max(len(s) * s.dt for s in problem.segments)
    windows, initials = [], []
    for segment, run in zip(problem.segments, coupled.evaluation.runs, strict=True):
        length = max(20, int(_WINDOW_LYAPUNOV_TIMES / exponent / segment.dt))
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
    if not np.isfinite(fit.cost):
        warnings.append(
            "The model leaves the record within each window: these are the coupled model's values."
        )
        return _result(search, coupled, options, warnings, False)
    if options.finish and not _exact(windowed, fit):
        return _finished(search, coupled, inner, fit, options, warnings)
    warnings.append(_why_windows(growth_rate(windowed, fit), longest))
    return _profiled(inner, fit, options, _result(inner, fit, options, warnings, fit.converged))


def _exact(problem: OutputError, fit: Fit) -> bool:
    """Whether the record has no noise that could be weighed."""
    return 2.0 * fit.cost < _NOISELESS * problem.samples


def _profiled(search: _Search, fit: Fit, options: Options, result: Identification) -> Identification:
    """The result with the profile likelihood of what was asked for, at lambda = 0."""
    problem, unknowns, model = search.problem, search.problem.unknowns, search.problem.model
    names = chosen(options.profile, model.free)
    if not names or not result.converged:
        return result
    if _exact(problem, fit):
        words = (
            "The record shows no noise, so its profile likelihood would tell of rounding: none was traced."
        )
        return replace(result, warnings=[*result.warnings, words])
    variance = result.residual["chi2"] / max(result.residual["dof"], 1.0)
    before, profiles = problem.evaluations, []
    for done, name in enumerate(names):
        search.progress.report(0.9 + 0.1 * done / len(names), f"profile of {name}")
        i = model.free.index(name)
        profiles.append(
            trace_profile(
                name,
                result.parameters[name],
                problem.holding(i, variance, lambda: search.progress.report(0.95, "profile likelihood")),
                fit.point,
                2.0 * fit.cost / variance,
                (float(unknowns.lower[i]), float(unknowns.upper[i])),
                bool(unknowns.logarithmic[i]),
            )
        )
    extra = {**result.extra, "profile_evaluations": problem.evaluations - before}
    return with_profiles(replace(result, extra=extra), profiles)


def _finished(
    search: _Search, coupled: Fit, inner: _Search, windowed: Fit, options: Options, warnings: list[str]
) -> Identification:
    """The most likely path over the whole record, from the windows' parameters and the coupled motion.

    Where its motion turns out not to be chaotic, a single trajectory from its parameters ends the search.
    """
    from analysis.path import estimate_path, path_profiles
    from analysis.path_estimate import Segment as PathSegment

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
        _growth_along(model, s, states, values)
        for s, states in zip(problem.segments, found.states, strict=True)
    ]
    longest = max(len(s) * s.dt for s in problem.segments)
    if max(rates) * longest <= _WINDOW_LYAPUNOV_TIMES:
        fit = search.stage(Point(values, coupled.point.initials), 0.0, options.tolerance, 100)
        if misfit(problem, fit.evaluation) < _TRUSTED:
            problem.evaluations += inner.problem.evaluations + found.evaluations
            return _profiled(search, fit, options, _result(search, fit, options, warnings, fit.converged))
    warnings.append(_why_windows(max(rates), longest))
    result = _result(inner, windowed, options, [], found.converged)
    names = [list(model.parameters)[i] for i, _ in found.unknowns]
    units = {name: model.parameters[name].unit for name in names}
    result = replace(
        result,
        parameters=estimates(names, found.estimate, found.covariance, units),
        covariance=found.covariance.tolist(),
        iterations=result.iterations + found.iterations,
        evaluations=result.evaluations + found.evaluations,
        residual={"chi2": found.chi2, "dof": float(found.dof), "rms": _residual_rms(found.residuals)},
        undetermined=undetermined_words(found.information, found.estimate, names),
        warnings=warnings
        + colour_words(model.outputs, found.residuals)
        + _at_bounds(model, unknowns, values),
    )
    profiled = chosen(options.profile, model.free)
    return path_profiles(model, segments, found, profiled, result, search.progress) if profiled else result


def _all(model: Model) -> NDArray[np.int64]:
    return np.arange(len(model.states), dtype=np.int64)


def set_accuracy(problem: OutputError, point: Point, controller: Controller, strength: float) -> None:
    """Choose scheme and steps a sample so that doubling the steps changes nothing that matters."""
    measured = np.concatenate([s.outputs for s in problem.segments], axis=1)
    seen = np.isfinite(measured).any(axis=1)
    spread = np.array([np.std(row[np.isfinite(row)]) or 1.0 for row in measured[seen]])
    scale = _ACCURATE * problem.sigma[seen] if strength == 0.0 else _ROUGH * spread
    none = np.zeros(0, dtype=np.int64)

    def outputs(steps: int) -> Array:
        runs = [
            run_coupled(
                problem.model, s, point.values, x, none, controller, strength, steps, False, problem.scheme
            )
            for s, x in zip(problem.segments, point.initials, strict=True)
        ]
        return np.concatenate([run.outputs[seen] for run in runs], axis=1)

    for scheme, most in ((CLASSICAL, 1), (LUTHER, _MOST_SUBSTEPS)):
        problem.scheme, problem.substeps = scheme, 1
        coarse = outputs(1)
        while problem.substeps <= most:
            fine = outputs(2 * problem.substeps)
            change = np.abs(fine - coarse) / scale[:, None]
            if np.isfinite(change).all() and change.max() < 1.0:
                return
            problem.substeps, coarse = 2 * problem.substeps, fine


def _named(model: Model, point: Point) -> dict[str, float]:
    return {name: float(point.values[model.index(name)]) for name in model.free}


def _result(
    search: _Search, fit: Fit, options: Options, warnings: list[str], converged: bool
) -> Identification:
    problem = search.problem
    model, unknowns = problem.model, problem.unknowns
    count, evaluation = problem.samples, fit.evaluation
    fitted = len(unknowns.positions) + sum(len(s.free_initial) for s in problem.segments)
    chi2 = 2.0 * fit.cost
    variance = chi2 / max(count - fitted, 1)
    matrix = information(evaluation, unknowns)
    covariance = covariance_of(matrix) * variance
    units = {name: model.parameters[name].unit for name in model.free}
    parameters = estimates(list(model.free), fit.point.values[unknowns.positions], covariance, units)
    parameters |= _initial_values(problem, fit, variance)
    search.progress.report(1.0, "done")
    return Identification(
        method="homotopy",
        model=model.name,
        converged=converged,
        parameters=parameters,
        iterations=search.iterations,
        evaluations=problem.evaluations,
        residual={"chi2": chi2, "dof": float(count - fitted), "rms": _rms(problem, fit)},
        undetermined=undetermined_words(matrix / variance, fit.point.values[unknowns.positions], model.free),
        warnings=warnings + _coloured(problem, fit) + _at_bounds(model, unknowns, fit.point.values),
        covariance=covariance.tolist(),
        history=search.history,
        options=asdict(options),
        model_text=model.text,
        references=[REFERENCE],
    )


def _coloured(problem: OutputError, fit: Fit) -> list[str]:
    """What is left of a record without noise is the integrator's error, of which nothing is to be said."""
    if _exact(problem, fit):
        return []
    runs = zip(problem.segments, fit.evaluation.runs, strict=True)
    return colour_words(problem.model.outputs, [segment.outputs - run.outputs for segment, run in runs])


def _initial_values(problem: OutputError, fit: Fit, variance: float) -> dict[str, Estimate]:
    """Estimated initial values, named x(0), or x(0)[2] for the second record; windows are not listed."""
    found: dict[str, Estimate] = {}
    if len(problem.segments) > 9:
        return found
    for number, (segment, initial, local) in enumerate(
        zip(problem.segments, fit.point.initials, fit.evaluation.local, strict=True), start=1
    ):
        suffix = f"[{number}]" if len(problem.segments) > 1 else ""
        spread = np.sqrt(np.diag(np.linalg.pinv(local[1], hermitian=True)) * variance)
        for position, error in zip(segment.free_initial, spread, strict=True):
            name = f"{problem.model.states[position]}(0){suffix}"
            found[name] = Estimate.normal(float(initial[position]), float(error))
    return found


def _rms(problem: OutputError, fit: Fit) -> float:
    runs = zip(problem.segments, fit.evaluation.runs, strict=False)  # none where the motion diverged
    return _residual_rms([segment.outputs - run.outputs for segment, run in runs])


def _residual_rms(residuals: Sequence[Array]) -> float:
    parts = [row[np.isfinite(row)] for row in residuals]
    return float(np.sqrt(np.mean(np.concatenate(parts) ** 2))) if parts else float("nan")


def _at_bounds(model: Model, unknowns: Unknowns, values: Array) -> list[str]:
    return [
        f"{name} ended at its bound {value:g}: widen the bound, or the data do not hold it."
        for name, value, low, high in zip(
            model.free, values[unknowns.positions], unknowns.lower, unknowns.upper, strict=True
        )
        if value <= low or value >= high
    ]
