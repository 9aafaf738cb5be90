"""What the stages of a homotopy share: one search at one strength of the coupling, and how it is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.progress import Progress
from analysis.estimate.evaluation import Point
from analysis.estimate.homotopy.coupled import (
    CLASSICAL,
    LUTHER,
    Controller,
    CoupledStretch,
    run_coupled,
    tangent_growth,
)
from analysis.estimate.homotopy.output_error import Evaluation, Fit, OutputError
from analysis.signal.noise import FEWEST_SAMPLES, noise_level

if TYPE_CHECKING:
    from analysis.experiment.noise_sharing import NoiseSharing
    from analysis.model import Model

Array = NDArray[np.float64]

TRUSTED = 0.1  # misfit over spread at the end of a stage that counts as following the record
_HOPELESS = 0.5  # the same ratio at its start, beyond which a search would end in another minimum
_PERFECT = 1e-14  # chi-square per sample below which a fit cannot become better: rounding
_ROUGH = 1e-3  # integration error over the spread of the outputs while coupled
_ACCURATE = 1e-5  # integration error over the noise at the end
_MOST_SUBSTEPS = 64
_SETTLED = 1e-4  # relative decrease of the cost at which a motion that does not follow the record is given up
_WITHIN_NOISE = 3.0  # times the noise, rms, up to which a motion follows the record as well as can be told


@dataclass(eq=False)
class Search:
    """What the stages share."""

    problem: OutputError
    controller: Controller
    progress: Progress
    history: list[dict[str, float]]
    iterations: int = 0

    def stage(self, start: Point, strength: float, tolerance: float, most: int, hopeful: bool = False) -> Fit:
        """Minimise at one strength; unless hopeful, not from where only another valley can be reached, and no
        further than to where it is plain that the uncoupled model does not follow the record.
        """
        problem, coarse = self.problem, (self.problem.scheme, self.problem.substeps)
        if not hopeful:
            glance = problem.evaluate(start, self.controller, strength, sensitivities=False)
            if misfit(problem, glance) > _HOPELESS:
                return Fit(glance, False, 0, [])
        if strength == 0.0:
            set_accuracy(problem, start, self.controller, 0.0)
        perfect = 0.5 * _PERFECT * problem.samples
        settled = 0.0 if hopeful or strength > 0.0 else _SETTLED
        here = problem.evaluate(start, self.controller, strength)
        fit = problem.minimise(here, self.controller, strength, max(tolerance, settled), most, perfect)
        if settled > tolerance and misfit(problem, fit.evaluation) < TRUSTED:
            left = most - fit.iterations
            last = problem.minimise(fit.evaluation, self.controller, strength, tolerance, left, perfect)
            fit = replace(
                last,
                iterations=fit.iterations + last.iterations,
                history=fit.history[:-1] + last.history,
            )
        elif settled > tolerance:
            fit = replace(fit, converged=False)
        self.history += fit.history
        self.iterations += fit.iterations
        if misfit(problem, fit.evaluation) > TRUSTED:
            problem.scheme, problem.substeps = coarse
        return fit


def noise_levels(
    segments: Sequence[CoupledStretch], known: Array | None = None, sharing: NoiseSharing | None = None
) -> Array:
    """Noise [records, q] of the outputs from their high differences; a thousandth of the spread where none is
    to be seen. Of records that ``sharing`` does not hold apart (None: of all) the median.

    ``known`` [records, q]: levels that were given; nan where they were not.
    """
    records, q = max(s.record for s in segments) + 1, segments[0].outputs.shape[0]
    levels = np.full((records, q), np.nan) if known is None else known.copy()
    for i in range(q):
        unknown = np.flatnonzero(np.isnan(levels[:, i]))
        apart = sharing is not None and sharing.apart[i]
        for group in [[r] for r in unknown] if apart else [list(unknown)]:
            rows = [s.outputs[i][np.isfinite(s.outputs[i])] for s in segments if s.record in group]
            spread = float(np.std(np.concatenate(rows))) if any(len(row) for row in rows) else 0.0
            noise = [noise_level(row).value for row in rows if len(row) >= FEWEST_SAMPLES]
            levels[group, i] = max(float(np.median(noise)) if noise else 0.0, 1e-3 * spread) or 1.0
    return levels


def misfit(problem: OutputError, evaluation: Evaluation) -> float:
    """Rms of the residual over the spread of the outputs; 0 within three times the noise."""
    if not np.isfinite(evaluation.cost):
        return np.inf
    if 2.0 * evaluation.cost < _WITHIN_NOISE**2 * problem.samples:
        return 0.0
    total = 0.0
    for segment, run in zip(problem.segments, evaluation.motions, strict=True):
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
        growth_along(problem.model, segment, run.states, fit.point.values)
        for segment, run in zip(problem.segments, fit.evaluation.motions, strict=True)
    ]
    return float(np.average(rates, weights=[len(segment) for segment in problem.segments]))


def growth_along(model: Model, segment: CoupledStretch, states: Array, values: Array) -> float:
    n, count = states.shape
    dx, jx, jp = np.empty((n, count)), np.empty((n, n, count)), np.empty((n, len(values), count))
    inputs = np.ascontiguousarray(segment.inputs.values(segment.times))
    model.kernels().jac_many(segment.times, np.ascontiguousarray(states), inputs, values, dx, jx, jp)
    return float(tangent_growth(jx, segment.dt))


def set_accuracy(problem: OutputError, point: Point, controller: Controller, strength: float) -> None:
    """Choose scheme and steps a sample so that doubling the steps changes nothing that matters."""
    measured = np.concatenate([s.outputs for s in problem.segments], axis=1)
    seen = np.isfinite(measured).any(axis=1)
    spread = np.array([np.std(row[np.isfinite(row)]) or 1.0 for row in measured[seen]])
    scale = _ACCURATE * problem.sigma.min(axis=0)[seen] if strength == 0.0 else _ROUGH * spread
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
