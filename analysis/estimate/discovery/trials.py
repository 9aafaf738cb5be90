"""Maximum-likelihood fits of subsets of a library, on segments of the record with own initial states.

Short segments (about a period of the motion) make the likelihood smooth in the coefficients, so that poor
starts converge and one linearisation tells far; long ones hold more of the information.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import SILENT
from analysis.estimate.discovery.quadratic import Quadratic, Subset
from analysis.estimate.finish.path_engine import segments_of
from analysis.estimate.path.iteration import iterate
from analysis.estimate.path.problem import PathProblem
from analysis.estimate.path.substeps import choose_substeps
from analysis.estimate.start import Start
from analysis.estimate.unknowns import Unknowns

if TYPE_CHECKING:
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

_MOST_STEPS = 40  # of one fit


@dataclass(frozen=True, eq=False)
class Trial:
    """A subset, fitted; ``subset`` holds parameter indices of the library's model."""

    subset: Subset
    values: Array  # [records, k + 3q]
    states: tuple[Array, ...]  # [n, N] for each run
    sigma: Array  # [q]
    misfit: float  # -2 ln(likelihood), up to a constant of the data
    converged: bool
    steps: int  # Runge-Kutta steps of a sample interval


class Trials:
    """Fits to one experiment on segments of about ``length`` samples (0: whole stretches)."""

    def __init__(self, experiment: Experiment, candidates: Subset, length: int) -> None:
        self.experiment, self.candidates, self.length = experiment, candidates, length
        self.kernels = experiment.model.kernels()
        self.k = len(experiment.model.parameters)
        items = [(u.index, u.record) for u in experiment.unknowns]
        self._others = [item for item in items if item[0] not in candidates]
        bounds = experiment.model.parameters.values()
        self._lower = np.array([p.lower for p in bounds])
        self._upper = np.array([p.upper for p in bounds])

    def fit(self, subset: Subset, values: Array, states: Sequence[Array]) -> Trial | None:
        """The subset's maximum likelihood from values [records, k + 3q] and states; None if it has none."""
        try:
            problem, places = self._problem(subset, values, states, None)
            with np.errstate(over="ignore", invalid="ignore"):  # a wrong set may run away: it loses
                choose_substeps(problem)
                found = iterate(problem, _MOST_STEPS, SILENT)
        except (ShakedownError, np.linalg.LinAlgError):
            return None
        if not all(np.isfinite(X).all() for X in problem.paths) or not np.isfinite(problem.values).all():
            return None
        paths = [np.array(X) for X in states]
        for (run, first, stop), X in zip(places, problem.paths, strict=True):
            paths[run][:, first:stop] = X
        sigma = problem.noise.sigma.copy()
        squares = np.sum([np.nansum((w.R * sigma) ** 2, axis=0) for w in problem.work], axis=0)
        return Trial(
            subset, problem.values.copy(), tuple(paths), sigma, self._misfit(problem, squares),
            found.converged, problem.steps,
        )  # fmt: skip

    def around(self, trial: Trial, always: Subset, price: float) -> tuple[Quadratic, list[tuple[int, int]]]:
        """The misfit of all subsets near a trial, and the unknown that each of its positions stands for."""
        problem, _ = self._problem(self.candidates, trial.values, trial.states, trial.sigma)
        problem.steps = problem.fine = trial.steps
        problem.soft = False
        with np.errstate(over="ignore", invalid="ignore"):
            problem.linearise()
            information, gradient = problem.eliminate(np.zeros(problem.n))
        items = problem.unknowns.items
        stay = {i for i, (index, _) in enumerate(items) if index not in self.candidates or index in always}
        return Quadratic.around(problem.current, information, gradient, frozenset(stay), price), items

    def _problem(
        self, subset: Subset, values: Array, states: Sequence[Array], sigma: Array | None
    ) -> tuple[PathProblem, list[tuple[int, int, int]]]:
        held = values.copy()
        held[:, sorted(self.candidates - subset)] = 0.0
        start = Start("select", held[:, : self.k], tuple(states))
        segments, places = segments_of(self.experiment, start, length=self.length)
        unknowns = Unknowns([*self._others, *((j, -1) for j in subset)], len(held))
        return PathProblem(
            self.kernels, segments, held[:, : self.k], unknowns, self._lower, self._upper,
            self.experiment.sigma if sigma is None else sigma, held[:, self.k :],
        ), places  # fmt: skip

    def _misfit(self, problem: PathProblem, squares: Array) -> float:
        known, counts = self.experiment.sigma, problem.noise.measured
        total = 0.0
        for s, n, given, floor in zip(squares, counts, known, problem.noise.floor, strict=True):
            if n:
                total += s / given**2 if np.isfinite(given) else n * np.log(max(s / n, floor**2))
        return float(total)
