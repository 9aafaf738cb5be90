"""The end of a homotopy as an identification: error bars, words on what the data do not hold, profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Estimate, Identification, estimates
from analysis.estimate.homotopy.output_error import Fit, OutputError, Unknowns, information
from analysis.estimate.homotopy.search import Search
from analysis.estimate.identifiability import covariance_of, undetermined_words
from analysis.estimate.profile import chosen, trace_profile, with_profiles
from analysis.signal.noise import colour_words

if TYPE_CHECKING:
    from analysis.estimate.homotopy.method import Options
    from analysis.model import Model

Array = NDArray[np.float64]

REFERENCE = (
    "R. Manikantan, S. Chakraborty, T. K. Uchida, C. P. Vyasarayani: Parameter identification in nonlinear "
    "mechanical systems with noisy partial state measurement using PID-controller penalty functions. "
    "Mathematics 8 (2020) 1084."
)

_NOISELESS = 1e-6  # chi-square per sample below which there is no noise to weigh: the windows say it all


def make_result(
    search: Search, fit: Fit, options: Options, warnings: list[str], converged: bool
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
        warnings=warnings + _coloured(problem, fit) + at_bounds(model, unknowns, fit.point.values),
        covariance=covariance.tolist(),
        history=search.history,
        options=asdict(options),
        model_text=model.text,
        references=[REFERENCE],
    )


def exact(problem: OutputError, fit: Fit) -> bool:
    """Whether the record has no noise that could be weighed."""
    return 2.0 * fit.cost < _NOISELESS * problem.samples


def _coloured(problem: OutputError, fit: Fit) -> list[str]:
    """What is left of a record without noise is the integrator's error, of which nothing is to be said."""
    if exact(problem, fit):
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
    return residual_rms([segment.outputs - run.outputs for segment, run in runs])


def residual_rms(residuals: Sequence[Array]) -> float:
    parts = [row[np.isfinite(row)] for row in residuals]
    return float(np.sqrt(np.mean(np.concatenate(parts) ** 2))) if parts else float("nan")


def at_bounds(model: Model, unknowns: Unknowns, values: Array) -> list[str]:
    return [
        f"{name} ended at its bound {value:g}: widen the bound, or the data do not hold it."
        for name, value, low, high in zip(
            model.free, values[unknowns.positions], unknowns.lower, unknowns.upper, strict=True
        )
        if value <= low or value >= high
    ]


def profiled(search: Search, fit: Fit, options: Options, result: Identification) -> Identification:
    """The result with the profile likelihood of what was asked for, at lambda = 0."""
    problem, unknowns, model = search.problem, search.problem.unknowns, search.problem.model
    names = chosen(options.profile, model.free)
    if not names or not result.converged:
        return result
    if exact(problem, fit):
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
