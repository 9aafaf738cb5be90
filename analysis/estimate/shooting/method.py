"""Method ``shooting``: the uncoupled motion nearest to the record, from poor guesses and few sensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import Progress
from analysis.estimate.evaluation import Point
from analysis.estimate.identifiability import covariance_of, undetermined_words
from analysis.estimate.shooting.build import (
    noise_from_differences,
    problem_of,
    start_point,
    stretches_of,
)
from analysis.estimate.shooting.rests import rests
from analysis.estimate.shooting.search import STARTS, Search, from_elsewhere, search
from analysis.estimate.start import OwnEstimate, Start

if TYPE_CHECKING:
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

REFERENCES = (
    "D. W. Marquardt, An algorithm for least-squares estimation of nonlinear parameters, J. SIAM 11 (1963) "
    "431-441",
)


@dataclass(frozen=True)
class Shooting:
    """Options of the search."""

    name: ClassVar[str] = "shooting"
    starts: int = STARTS  # of the Latin hypercube around the guess, if the guess itself leads nowhere
    seed: int = 0  # of that hypercube

    def start(self, experiment: Experiment, progress: Progress, alone: bool = False) -> Start:
        """The best uncoupled motion that the search found."""
        found = self.search(experiment, progress)
        if found.best is None and found.windowed is None:
            raise ShakedownError(
                "No motion of the model stays near the record from these guesses, in none of "
                f"{len(found.trials)} attempts: give other guesses or bounds."
            )
        start = start_of(experiment, found, "shooting")
        return _with_own_errors(experiment, start, progress) if alone else start

    def search(self, experiment: Experiment, progress: Progress) -> Search:
        """All that was tried; see analysis/estimate/shooting/search.py."""
        point, states = _beginning(experiment)
        noise = noise_from_differences(experiment)
        rng = np.random.default_rng(self.seed)
        return search(
            problem_of(experiment), point, states, noise, rng, _watch(progress), self.starts,
            rests(experiment, point),
        )  # fmt: skip

    def continue_search(self, experiment: Experiment, found: Search, progress: Progress) -> Search:
        """The same search with the Latin hypercube that was left out at first."""
        point, states = _beginning(experiment)
        rng = np.random.default_rng(self.seed)
        from_elsewhere(found, point, states, rng, self.starts, rests(experiment, point))
        return found


def _with_own_errors(experiment: Experiment, start: Start, progress: Progress) -> Start:
    """The start with the errors of its own least squares, for when nothing follows it."""
    from analysis.estimate.finish.assemble import with_initials
    from analysis.estimate.finish.fit import fit

    fitted = fit(experiment, replace(start, engine="shooting"), progress)
    words = undetermined_words(fitted.information, fitted.estimate, fitted.names)
    names, values, covariance, units = with_initials(
        fitted, fitted.estimate, covariance_of(fitted.information)
    )
    own = OwnEstimate(names, values, covariance=covariance, units=units)
    return replace(start, own=own, converged=fitted.converged, undetermined=[*start.undetermined, *words])


def _beginning(experiment: Experiment) -> tuple[Point, list[Array]]:
    """The guess, and what the record shows of the motion of each stretch."""
    paths = experiment.start_states()
    states = [np.ascontiguousarray(paths[i][:, a:b]) for i, a, b in stretches_of(experiment)]
    return start_point(experiment, experiment.guesses(), paths), states


def _watch(progress: Progress) -> Callable[[], None]:
    steps = count(1)

    def watch() -> None:
        done = next(steps)
        progress.report(done / (done + 60), "output error")

    return watch


def start_of(experiment: Experiment, found: Search, method: str, whole: bool | None = None) -> Start:
    """The best point of a search as a start: the whole motion, or the longest windows that follow the record
    where no single motion does."""
    if whole is None:
        good = found.judged is not None and found.judged.good
        whole = found.best is not None and (found.windowed is None or good)
    k = len(experiment.model.parameters)
    if whole and found.best is not None:
        values = found.best.evaluation.point.values
        motions = [m.states for m in found.best.evaluation.motions]
        converged = found.best.converged
    else:
        assert found.windowed is not None
        values = found.windowed.descent.evaluation.point.values
        motions, converged = found.windowed.states, found.windowed.descent.converged
    states = [np.array(path) for path in experiment.start_states(values[:, :k])]
    for (i, first, stop), motion in zip(stretches_of(experiment), motions, strict=True):
        states[i][:, first:stop] = motion
    return Start(
        method,
        values[:, :k],
        states,
        values[:, k:],
        converged=converged,
        iterations=found.iterations,
        evaluations=found.problem.evaluations,
        history=found.history,
        findings={"tried": [trial.words for trial in found.trials]},
        references=REFERENCES,
        engine="shooting" if whole else "path",
    )
