"""Fits of models whose slope jumps: the motion that meets the jumps, and its linearisation across them.

Equal steps across an impact or a stick-slip keep no order, and what they say of the derivatives lacks the
jump of the sensitivities. Output error locates the jumps in time (analysis/simulation/events.py); the path
does not. So a path of such a model ends as one motion where one motion follows the record, and wherever a fit
is linearised, the intervals that hold a jump are passed by the integrator that meets it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import Progress
from analysis.estimate.finish.fitted import Fitted
from analysis.model.switching import Switching, switching_of
from analysis.simulation.simulate import sensitivities

if TYPE_CHECKING:
    from analysis.estimate.finish.linearised import Linearisation
    from analysis.model import Model

Array = NDArray[np.float64]

# One motion begun where the path ended is fitted if its chi-square is below _FOLLOWS times the path's, and
# takes the path's place if it comes down to _AS_WELL times: it meets the jumps exactly, the path does not.
_FOLLOWS, _AS_WELL = 10.0, 1.1
_TOLERANCE = 1e-6  # relative error a step


def switching_in(model: Model, values: Array) -> Switching | None:
    """The surfaces at which the slope jumps for parameters ``values`` [k]; None if there are none."""
    return switching_of(model.equations, dict(zip(model.parameters, values.tolist(), strict=False)))


def as_one_motion(path: Fitted, progress: Progress, iterations: int) -> Fitted:
    """A path of a model whose slope jumps, fitted again so that the jumps are met; the path itself where no
    single motion follows the record.
    """
    from analysis.estimate.finish.shooting_engine import fit_shooting
    from analysis.estimate.shooting.build import problem_of, start_point

    experiment, start = path.experiment, path.as_start()
    if path.inputs_estimated or switching_in(experiment.model, path.values[0]) is None:
        return path
    try:
        problem = problem_of(experiment, path.sigma)
        states = [states for states in start.states if states is not None]
        point = start_point(experiment, start.values, states, start.sensors)
        problem.settle_substeps(point, 1.0)
        if not 2.0 * problem.evaluate(point, derivatives=False).cost < _FOLLOWS * path.chi2:
            return path
        found = fit_shooting(experiment, start, progress, 1, iterations)
    except (ShakedownError, np.linalg.LinAlgError):
        return path
    if not found.converged or found.chi2_at(path.sigma) > _AS_WELL * path.chi2:
        return path
    return replace(found, start=path.start, iterations=found.iterations + path.iterations)


def meet_jumps(part: Linearisation, model: Model, switching: Switching) -> None:
    """Put the derivatives across each interval that holds a jump into a linearised motion."""
    s, n, k = part.stretch, part.n, part.k
    inputs, values = s.inputs, np.ascontiguousarray(s.values[:k])
    wanted = [name for i, name in enumerate(model.parameters) if i in set(s.free.tolist())]
    for i in _passing(part, switching):
        times, state = s.times[i : i + 2], np.ascontiguousarray(s.states[:, i])
        states, by_unknown = sensitivities(
            model, times, state, values, inputs, wanted, model.states, rtol=_TOLERANCE
        )
        if np.isfinite(states).all() and np.isfinite(by_unknown).all():
            columns = by_unknown[:, :, 1]
            part.flow[i, :, :n], part.flow[i, :, n:] = columns[:, len(wanted) :], columns[:, : len(wanted)]


def _passing(part: Linearisation, switching: Switching) -> NDArray[np.int64]:
    """Intervals between samples on different sides of a surface."""
    s = part.stretch
    count, kernel = len(switching.surfaces), switching.kernels(frozenset()).out
    u = np.zeros((0, part.N)) if s.inputs is None else s.inputs.values(s.times)
    values = np.concatenate([s.values[: part.k], np.ones(count)])
    heights = np.empty((part.N, count))
    for i, t in enumerate(s.times):
        kernel(t, np.ascontiguousarray(s.states[:, i]), np.ascontiguousarray(u[:, i]), values, heights[i])
    sides = np.sign(heights)
    return np.flatnonzero((sides[1:] != sides[:-1]).any(axis=1))
