"""The end of a homotopy as a start: parameters, motion, and the error bars that it gives by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Residual
from analysis.estimate.homotopy.output_error import Evaluation, Fit, OutputError, information
from analysis.estimate.homotopy.search import Search
from analysis.estimate.start import OwnEstimate, Start

if TYPE_CHECKING:
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

REFERENCE = (
    "R. Manikantan, S. Chakraborty, T. K. Uchida, C. P. Vyasarayani: Parameter identification in nonlinear "
    "mechanical systems with noisy partial state measurement using PID-controller penalty functions. "
    "Mathematics 8 (2020) 1084."
)

_MANY = 9  # segments beyond which their initial values are not listed: windows of a chaotic record


def as_start(
    search: Search, fit: Fit, motion: Fit, experiment: Experiment, warnings: list[str], converged: bool
) -> Start:
    """The parameters of ``fit`` and, as a path, the motion of another one (the coupled model's, in chaos)."""
    problem = search.problem
    search.progress.report(1.0, "done")
    return Start(
        "homotopy",
        fit.point.values,
        _paths(experiment, motion),
        converged=converged,
        iterations=search.iterations,
        evaluations=problem.evaluations,
        history=search.history,
        warnings=warnings,
        own=own_estimate(problem, fit),
        references=[REFERENCE],
        engine="shooting" if fit is motion and converged else "path",
    )


def own_estimate(problem: OutputError, fit: Fit) -> OwnEstimate:
    """Parameters and initial values with their joint information, as the output error has it."""
    model, unknowns = problem.model, problem.unknowns
    listed = [s.free_initial for s in problem.segments] if len(problem.segments) <= _MANY else []
    fitted = len(unknowns.positions) + sum(len(s.free_initial) for s in problem.segments)
    chi2, dof = 2.0 * fit.cost, problem.samples - fitted
    names, units = list(model.free), {name: model.unit(name) for name in model.free}
    values = [fit.point.values[unknowns.positions]]
    for number, (places, initial) in enumerate(zip(listed, fit.point.initials, strict=False), start=1):
        suffix = f"[{number}]" if len(problem.segments) > 1 else ""
        for place in places:
            name = f"{model.states[place]}(0){suffix}"
            names.append(name)
            units[name] = model.unit(model.states[place])
        values.append(initial[places])
    matrix = joint_information(problem, fit.evaluation) if listed else information(fit.evaluation, unknowns)
    variance = chi2 / max(dof, 1)
    residual = Residual(chi2, float(dof), _rms(problem, fit))
    return OwnEstimate(names, np.concatenate(values), matrix / max(variance, 1e-300), None, residual, units)


def joint_information(problem: OutputError, evaluation: Evaluation) -> Array:
    """Fisher information of the parameters, then of the free initial values of each segment, in own units."""
    count = len(evaluation.hessian)
    sizes = [len(h) for _, h, _ in evaluation.local]
    total = np.zeros((count + sum(sizes),) * 2)
    total[:count, :count] = evaluation.hessian
    at = count
    for size, (_, h, cross) in zip(sizes, evaluation.local, strict=True):
        total[at : at + size, at : at + size] = h
        total[:count, at : at + size] = cross
        total[at : at + size, :count] = cross.T
        at += size
    slope = np.ones(len(total))
    slope[:count] = problem.unknowns.slope(evaluation.point.values[problem.unknowns.positions])
    return total / np.outer(slope, slope)


def _paths(experiment: Experiment, fit: Fit) -> list[Array | None]:
    """The fitted motion [n, N] of each run; what lies between its segments as the data show it."""
    paths: list[Array | None] = []
    motions = iter(fit.evaluation.motions)
    values = np.tile(fit.point.values, (len(experiment.runs), 1))
    for run, path in zip(experiment.runs, experiment.start_states(values), strict=True):
        for first, stop in run.spans:
            motion = next(motions, None)
            if motion is not None and np.isfinite(motion.states).all():
                path[:, first:stop] = motion.states
        paths.append(path)
    return paths


def _rms(problem: OutputError, fit: Fit) -> dict[str, float]:
    found = {}
    pairs = list(
        zip(problem.segments, fit.evaluation.motions, strict=False)
    )  # none where the motion diverged
    for i, name in enumerate(problem.model.outputs):
        left = [(segment.outputs - run.outputs)[i] for segment, run in pairs]
        joined = np.concatenate(left) if left else np.zeros(0)
        joined = joined[np.isfinite(joined)]
        if len(joined):
            found[name] = float(np.sqrt(np.mean(joined**2)))
    return found
