"""The search for the best uncoupled fit: cheap ways first, until one follows the record.

Order: `grow` and `windows` from the guess; scans of parameters without effect; `grow` from other places of
rest; Latin-hypercube starts, `grow` and `windows` in turn. It ends with the first fit that is good by the
evidence, or when three starts agree and explain most of the record (agreement alone proves nothing: three
starts have agreed on a wrong valley). The point of least cost is kept, whatever was tried after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.evaluation import Point
from analysis.estimate.shooting.descent import Descent, minimise
from analysis.estimate.shooting.evidence import Evidence, evidence
from analysis.estimate.shooting.grow import STEPS_AT_LAST, TIGHT, grow
from analysis.estimate.shooting.problem import ROUGH, Problem
from analysis.estimate.shooting.starts import hypercube, scan, without_effect
from analysis.estimate.shooting.windows import Level, windows

Array = NDArray[np.float64]

STARTS = 8  # of the Latin hypercube
AGREEING, EXPLAINED = 3, 0.8  # starts that must agree, and least R² for their agreement to count
MOST_WORK = 3e8  # sub-steps times columns, some 20 s of processor, after which no further start is tried
_SAME = 1e-3  # relative difference of costs of one and the same minimum


@dataclass(frozen=True)
class Trial:
    """What one way of searching came to, in words for the result."""

    name: str
    cost: float
    evidence: Evidence | None

    @property
    def words(self) -> str:
        return f"{self.name}: {self.evidence.words if self.evidence else 'lost the motion'}"


@dataclass(eq=False)
class Search:
    """The best point so far, and all that was tried."""

    problem: Problem
    noise: Array  # [records, q] from differences
    watch: Callable[[], None] | None = None
    best: Descent | None = None
    judged: Evidence | None = None
    windowed: Level | None = None  # longest windows that follow the record, where no single motion does
    trials: list[Trial] = field(default_factory=list)
    iterations: int = 0
    history: list[dict[str, float]] = field(default_factory=list)

    def take(self, name: str, found: Descent) -> bool:
        """Keep a fit of the whole if it is the best; whether it is good."""
        self.iterations += found.iterations
        self.history += [{"cost": float(cost)} for cost in found.history]
        if not np.isfinite(found.cost) or len(found.evaluation.motions) != len(self.problem.stretches):
            self.trials.append(Trial(name, np.inf, None))
            return False
        judged = self.judge(self.problem, found)
        self.trials.append(Trial(name, found.cost, judged))
        if self.best is None or found.cost < self.best.cost:
            self.best, self.judged = found, judged
        return judged.good

    def judge(self, problem: Problem, found: Descent) -> Evidence:
        measured = [s.outputs for s in problem.stretches]
        levels = [self.noise[s.record] for s in problem.stretches]
        return evidence(measured, problem.residuals(found.evaluation), levels)

    def take_levels(self, name: str, levels: Sequence[Level]) -> bool:
        """The whole, if the windows came to it; and the longest windows that are good."""
        for level in levels:
            if self.judge(level.problem, level.descent).good and (
                self.windowed is None or level.share >= self.windowed.share
            ):
                self.windowed = level
        if levels and len(levels[-1].problem.stretches) == len(self.problem.stretches):
            return self.take(name, levels[-1].descent)
        self.trials.append(Trial(name, np.inf, None))
        return False

    @property
    def cost(self) -> float:
        """Of the best fit of the whole."""
        return self.best.cost if self.best is not None else np.inf

    @property
    def agreed(self) -> bool:
        """Whether enough trials ended at the least cost, and explain most of the record there."""
        if self.best is None or self.judged is None or self.judged.r2 < EXPLAINED:
            return False
        close = [t for t in self.trials if t.cost <= self.best.cost * (1 + _SAME)]
        return len(close) >= AGREEING


def search(
    problem: Problem,
    start: Point,
    states: Sequence[Array],
    noise: Array,
    rng: np.random.Generator,
    watch: Callable[[], None] | None = None,
    starts: int = STARTS,
    rests: Sequence[Point] = (),
) -> Search:
    """Search from a guess; ``states`` [n, N] of each stretch are what the record shows of the motion,
    ``rests`` the guess with other places of rest for what it does not show."""
    found = Search(problem, noise, watch)
    if found.take("grow", grow(problem, start, watch)):
        return found
    if found.take_levels("windows", windows(problem, start, states, watch)):
        return found
    if not _scanned(found):
        from_elsewhere(found, start, states, rng, starts, rests)
    return found


def from_elsewhere(
    found: Search,
    start: Point,
    states: Sequence[Array],
    rng: np.random.Generator,
    starts: int,
    rests: Sequence[Point] = (),
) -> None:
    """Go on from other rests, then from a Latin hypercube around the guess, until a fit is good or starts
    agree."""
    problem, watch = found.problem, found.watch
    for point in rests if starts else ():
        if found.take("rest, grow", grow(problem, point, watch)):
            return
    for i, point in enumerate(hypercube(problem, start, starts, rng)):
        if i % 2 == 0:
            good = found.take(f"start {i + 1}, grow", grow(problem, point, watch))
        else:
            good = found.take_levels(f"start {i + 1}, windows", windows(problem, point, states, watch))
        if good or _scanned(found) or found.agreed or problem.work > MOST_WORK:
            break


def _scanned(found: Search) -> bool:
    """Try other values of the parameters that have no effect where the search stands; whether one is good."""
    if found.best is None:
        return False
    problem = found.problem
    for unknown in without_effect(problem, found.best.evaluation):
        for point in scan(problem, found.best.evaluation, unknown):
            problem.settle_substeps(point, ROUGH)
            fit = minimise(problem, problem.evaluate(point), TIGHT, STEPS_AT_LAST, watch=found.watch)
            if found.take("scan", fit):
                return True
    return False
