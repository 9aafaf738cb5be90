"""Maximum likelihood over the segments of a harmonic balance, started from its solution."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from analysis.base.identification import Identification, estimates
from analysis.base.progress import Progress
from analysis.estimate.balance.problem import Balance, Solution
from analysis.estimate.balance.setting import Setting


def finish(
    problem: Balance, solution: Solution, start: Identification, settings: list[Setting], progress: Progress
) -> Identification:
    """Maximum likelihood over the orbit segments; the balance itself if that does not settle."""
    from analysis.estimate.path.estimate import estimate_path

    model, k, q = problem.model, len(solution.values), len(problem.model.outputs)
    segments = [_segment(problem, solution, number) for number in range(len(problem.rows))]
    measured = [model.outputs.index(c) for c in settings[0].channels]
    free = [*problem.free, *(k + i for i in measured if problem.channels)]
    delays = [k + q + i for i in measured] if problem.phases else []
    lower, upper = np.full(k, -np.inf), np.full(k, np.inf)
    lower[problem.free], upper[problem.free] = problem.lower, problem.upper
    sensors = np.zeros(2 * q)
    sensors[measured] = solution.offsets
    values = np.tile(solution.values, (len(segments), 1)) if delays else solution.values
    found = estimate_path(
        model.kernels(), segments, values, [*free, *delays], local=delays, lower=lower, upper=upper,
        sensors=sensors, progress=progress,
    )  # fmt: skip
    ratio = found.chi2 / max(found.dof, 1)
    if not found.converged:
        note = "The maximum-likelihood stage did not settle; these are the balance's own numbers."
        return replace(start, warnings=[*start.warnings, note])
    shared = [i for i, (index, _) in enumerate(found.unknowns) if index in free]
    indices = [found.unknowns[i][0] for i in shared]
    parameter = dict(zip(problem.free, model.free, strict=True))
    names = [parameter[i] if i < k else f"offset {model.outputs[i - k]}" for i in indices]
    covariance = found.covariance[np.ix_(shared, shared)]
    units = {name: model.parameters[name].unit for name in model.free}
    return replace(
        start,
        parameters=estimates(names, found.estimate[shared], covariance, units),
        covariance=covariance.tolist(),
        iterations=start.iterations + found.iterations,
        evaluations=start.evaluations + found.evaluations,
        residual={"chi2": found.chi2, "dof": float(found.dof), "chi2 per dof": ratio},
        extra={**start.extra, "balance": start.values()},
    )


def _segment(problem: Balance, solution: Solution, number: int) -> Any:
    """An orbit segment for the finisher: its samples, the smoothed states as a start."""
    from analysis.estimate.path.estimate import Segment
    from analysis.signal.inputs import Inputs

    row, model = problem.rows[number], problem.model
    times = row.times + solution.shifts[number]
    outputs = np.full((len(model.outputs), len(times)), np.nan)
    for channel, state in enumerate(row.measured):
        samples = row.data[channel][row.first : row.first + len(times)]
        outputs[model.outputs.index(model.states[state])] = samples
    step = float(times[1] - times[0])
    inputs = Inputs.from_samples(float(times[0]), step, row.inputs) if len(row.inputs) else None
    return Segment(times, outputs, row.states(solution.offsets), inputs, record=number)
