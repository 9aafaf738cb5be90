"""Maximum-likelihood fits of subsets of a library, on segments of the record with own initial states.

Short segments (about a period of the motion) make the likelihood smooth in the coefficients, so that poor
starts converge and one linearisation tells far; long ones hold more of the information.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import SILENT
from analysis.estimate.discovery.quadratic import Quadratic, Subset
from analysis.estimate.finish.errors import ROUNDING
from analysis.estimate.finish.evidence import NOISELESS
from analysis.estimate.finish.path_engine import segments_of
from analysis.estimate.path.iteration import iterate
from analysis.estimate.path.problem import PathProblem
from analysis.estimate.path.substeps import choose_substeps
from analysis.estimate.start import Start
from analysis.estimate.unknowns import Unknowns

if TYPE_CHECKING:
    from analysis.estimate.discovery.choice import Choice
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

_MOST_STEPS = 40  # of one fit
_FEW_STEPS = 10  # after which a set that is only tried may be given up
_ASTRAY = 1e-3  # of the states' ranges: rms error of the equations at which it then is
_HELD = 1e-5  # the same for a fit that has not converged: beyond, its path is none that the equations make


@dataclass(frozen=True, eq=False)
class Trial:
    """A subset, fitted; ``subset`` holds parameter indices of the library's model."""

    subset: Subset
    values: Array  # [records, k + 3q]
    states: tuple[Array, ...]  # [n, N] for each run
    sigma: Array  # [records, q]
    misfit: float  # -2 ln(likelihood), up to a constant of the data
    converged: bool
    steps: tuple[int, int]  # Runge-Kutta steps of a sample interval: of the derivatives, and of the flow
    errors: tuple[Array, ...] = ()  # of the inputs [m, N] for each segment
    held: bool = True  # the equations hold along the path, so that its misfit is theirs


class Trials:
    """Fits to one experiment on segments of about ``length`` samples (0: whole stretches).

    Numbers inside terms are unknown where a term that holds them is chosen. Where the noise of the inputs
    matters the true inputs are unknowns, too: a force with noise, taken as exact, asks for terms that are
    none.
    """

    def __init__(self, experiment: Experiment, choice: Choice, length: int) -> None:
        self.experiment, self.choice, self.length = experiment, choice, length
        self.kernels = experiment.model.kernels()
        self.k = len(experiment.model.parameters)
        items = [(u.index, u.record) for u in experiment.unknowns]
        self._others = [item for item in items if item[0] not in {*choice.candidates, *choice.shapes}]
        bounds = experiment.model.parameters.values()
        self._lower = np.array([p.lower for p in bounds])
        self._upper = np.array([p.upper for p in bounds])

    def fit(
        self, subset: Subset, values: Array, states: Sequence[Array], limit: float = math.inf
    ) -> Trial | None:
        """The subset's maximum likelihood from values [records, k + 3q] and states; None if it has none, or
        if its misfit is still above ``limit`` after a few steps. Where the equations do not come to hold
        along the path, this is only a place to search on from."""
        try:
            problem, places = self._problem(subset, subset, values, states, None)
            with np.errstate(over="ignore", invalid="ignore"):  # a wrong set may run away: it loses
                choose_substeps(problem)
                if self.choice.noisy:
                    problem.free_inputs()
                found = iterate(problem, _FEW_STEPS if limit < math.inf else _MOST_STEPS, SILENT)
                if not found.converged and limit < math.inf:
                    if _missed(problem) > _ASTRAY or self._misfit(problem, _squares(problem)) > limit:
                        return None
                    found = iterate(problem, _MOST_STEPS, SILENT)
        except (ShakedownError, np.linalg.LinAlgError):
            return None
        if not all(np.isfinite(X).all() for X in problem.paths) or not np.isfinite(problem.values).all():
            return None
        held = found.converged or _missed(problem) < _HELD
        paths = [np.array(X) for X in states]
        for (run, first, stop), X in zip(places, problem.paths, strict=True):
            paths[run][:, first:stop] = X
        sigma = problem.noise.sigma.copy()
        return Trial(
            subset, problem.values.copy(), tuple(paths), sigma, self._misfit(problem, _squares(problem)),
            found.converged, (problem.steps, problem.fine), tuple(problem.input_errors), held,
        )  # fmt: skip

    def rounding(self, trial: Trial) -> Array | None:
        """Least noise [records, q] that a choice can count with where a fit leaves none: what integration and
        rounding make of a record without noise speaks for terms that are none. None where it leaves some."""
        if np.isfinite(self.experiment.sigma).any() or self.choice.noisy:
            return None
        seen = np.any([run.measured for run in self.experiment.runs], axis=0)
        rows = np.hstack([run.outputs for run in self.experiment.runs])
        spread = np.array([np.nanstd(row) if there else 1.0 for row, there in zip(rows, seen, strict=True)])
        return ROUNDING * spread if np.all((trial.sigma < NOISELESS * spread)[:, seen]) else None

    def misfit_above(self, trial: Trial, least: Array) -> float:
        """A trial's misfit, up to a constant, if the noise of no channel is below ``least``."""
        counts = np.array([np.isfinite(run.outputs).sum(axis=1) for run in self.experiment.runs])
        part = np.minimum(trial.sigma / least, 1.0) ** 2 + 2 * np.log(np.maximum(trial.sigma, least))
        return float(np.sum(part[counts > 0] * counts[counts > 0]))

    def around(self, trial: Trial, least: Array | None = None) -> tuple[Quadratic, list[tuple[int, int]]]:
        """The misfit of all subsets near a trial, and the unknown that each of its positions stands for;
        ``least`` is a noise that no channel is better than."""
        sigma = trial.sigma if least is None else np.maximum(trial.sigma, least)
        problem, _ = self._problem(self.choice.candidates, trial.subset, trial.values, trial.states, sigma)
        problem.steps, problem.fine = trial.steps  # with fewer of the flow its path would seem to miss it
        problem.soft = False
        if self.choice.noisy:
            problem.free_inputs()
            problem.input_errors = list(trial.errors)
        with np.errstate(over="ignore", invalid="ignore"):
            problem.linearise()
            information, gradient = problem.eliminate(np.zeros(problem.n))
        items = problem.unknowns.items
        place = {index: i for i, (index, _) in enumerate(items)}
        bound = {
            place[user]: frozenset(place[shape] for shape in own if shape in place)
            for user, own in self.choice.bound.items()
        }
        open_to_choice = self.choice.unsettled
        stay = frozenset(i for i, (index, _) in enumerate(items) if index not in open_to_choice)
        return (
            Quadratic.around(problem.current, information, gradient, stay, self.choice.price, bound),
            items,
        )

    def _problem(
        self, subset: Subset, shaped: Subset, values: Array, states: Sequence[Array], sigma: Array | None
    ) -> tuple[PathProblem, list[tuple[int, int, int]]]:
        """A fit of the terms ``subset``, with the shapes of the terms ``shaped`` unknown."""
        held = values.copy()
        held[:, sorted(self.choice.candidates - subset)] = 0.0
        start = Start("select", held[:, : self.k], tuple(states))
        segments, places = segments_of(self.experiment, start, length=self.length)
        shapes = [(j, -1) for j, users in self.choice.shapes.items() if users & shaped]
        unknowns = Unknowns([*self._others, *((j, -1) for j in subset), *shapes], len(held))
        return PathProblem(
            self.kernels, segments, held[:, : self.k], unknowns, self._lower, self._upper,
            self.experiment.sigma if sigma is None else sigma, held[:, self.k :],
            self.experiment.noise_sharing,
        ), places  # fmt: skip

    def _misfit(self, problem: PathProblem, squares: Array) -> float:
        known, counts = self.experiment.sigma, problem.noise.measured
        given = np.isfinite(known)
        estimated = ~given & (counts > 0)
        total = float(np.sum(squares[given] / known[given] ** 2)) + problem.input_cost(problem.input_errors)
        own = np.where(estimated, squares, 0.0), np.where(estimated, counts, 0.0)
        variance = np.maximum(self.experiment.noise_sharing.variances(*own), problem.noise.floor**2)
        return total + float(np.sum(counts[estimated] * np.log(variance[estimated])))


def _missed(problem: PathProblem) -> float:
    """Rms error of the equations along the path, in ranges of the states."""
    return float(np.sqrt(np.mean(np.vstack([w.C for w in problem.work]) ** 2 / problem.scale**2)))


def _squares(problem: PathProblem) -> Array:
    """Sums of squared residuals [records, q]."""
    sigma = problem.noise.sigma
    squares = np.zeros_like(sigma)
    for segment, w in zip(problem.segments, problem.work, strict=True):
        squares[segment.record] += np.nansum((w.R * sigma[segment.record]) ** 2, axis=0)
    return squares
