"""The search for the terms: weak form, then likelihood on short, long and whole stretches of the record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import SILENT, Progress
from analysis.estimate.discovery.quadratic import Quadratic, Subset, neighbours
from analysis.estimate.discovery.trials import Trial, Trials
from analysis.estimate.discovery.weak_start import Block, weak_blocks, weak_quadratic, weak_rows

if TYPE_CHECKING:
    from analysis.estimate.discovery.scene import Scene
    from analysis.experiment import Experiment
    from analysis.model import Model

Array = NDArray[np.float64]

_FLOORS = (1e-3, 1e-5)  # of the eigenvalues of the weak form's moments: one for much noise, one for little
_KNOTS = (18.0, 9.0)  # of the test functions in a period of the motion: likewise the other way round
_STARTS = 2  # of the weak form's sets from which the search goes on
_PERIODS = 1.5  # of the motion in a short segment: beyond, chaos bends the likelihood
_LONGER = 4  # how many times longer the long segments are
_SHORTEST = 24  # samples of a segment
_ABSENT = 6  # terms that are tried beside those of a set: further away a linearisation says little
_WIDE = 25  # the same for a search from nothing or from all of them
_RISE = 0.25  # of the misfit, a sample, up to which a smaller set is tried although it looks worse
_ROUNDS = 10  # of fit and new choice
_RIVAL = 10.0  # criterion above the best at which odds are 150 to 1
_MOST_RIVALS = 4  # that are fitted


@dataclass(frozen=True)
class Choice:
    """What can be chosen, as indices of the library model's parameters, and the price of a term."""

    candidates: Subset
    always: Subset
    price: float
    shapes: Mapping[int, Subset]  # parameters inside terms, and the candidates that hold them
    samples: int
    noisy: bool = False  # the inputs have noise that matters

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        candidates: Subset,
        always: Subset,
        shapes: Mapping[int, Subset],
        noisy: bool = False,
    ) -> Choice:
        """Extended information criterion: ln(samples) + 2 ln(terms) for each term (Chen and Chen 2008), and
        the same for each number inside the terms."""
        samples = sum(int(np.isfinite(run.outputs).sum()) for run in experiment.runs)
        price = math.log(samples) + 2 * math.log(len(candidates - always))
        return cls(candidates, always, price, shapes, samples, noisy)

    def criterion(self, trial: Trial) -> float:
        inside = sum(bool(users & trial.subset) for users in self.shapes.values())
        return trial.misfit + self.price * (len(trial.subset - self.always) + inside)

    @property
    def bound(self) -> dict[int, Subset]:
        """The shapes of each candidate that has some."""
        users = frozenset(i for own in self.shapes.values() for i in own)
        return {i: frozenset(s for s, own in self.shapes.items() if i in own) for i in users}


@dataclass(eq=False)
class Stage:
    """All that was fitted on segments of one length."""

    trials: Trials
    choice: Choice
    visited: dict[Subset, Trial | None] = field(default_factory=dict)
    started: set[tuple[Subset, tuple[float, ...]]] = field(default_factory=set)

    def ranked(self) -> list[Trial]:
        """The fits, best first."""
        return sorted((t for t in self.visited.values() if t is not None), key=self.choice.criterion)

    def fit(self, subset: Subset, values: Array, states: tuple[Array, ...]) -> Trial | None:
        if subset not in self.visited:
            self.visited[subset] = self.trials.fit(subset, values, states)
        return self.visited[subset]

    def start(self, subset: Subset, values: Array, states: tuple[Array, ...]) -> None:
        """Fit a set to begin with; from other numbers inside its terms once more: the better fit stays."""
        inside = tuple(values[0, list(self.choice.shapes)].tolist())
        if (subset, inside) in self.started:
            return
        self.started.add((subset, inside))
        before = self.visited.pop(subset, None)
        found = self.fit(subset, values, states)
        if before is not None and (found is None or before.misfit < found.misfit):
            self.visited[subset] = before

    def explore(self, here: Trial | None, progress: Progress) -> None:
        """Linearise with all terms, fit what that proposes, and on from the best until nothing is better."""
        for number in range(_ROUNDS):
            if here is None:
                return
            progress.report((number + 1) / (number + 3), f"{len(here.subset)} terms fitted")
            quadratic, items = self.around(here)
            if not np.isfinite(quadratic.information).all():
                return
            present = positions(items, here.subset) - quadratic.always
            sets = quadratic.proposals(present, _ABSENT, _WIDE)
            sets += quadratic.smaller(present, _WIDE, _RISE * self.choice.samples)
            moves = [self.moved(here, quadratic, items, s) for s in sets]
            fits = [self.fit(*move) for move in moves if move[0] not in self.visited]
            better = [
                t for t in fits if t is not None and self.choice.criterion(t) < self.choice.criterion(here)
            ]
            here = min(better, key=self.choice.criterion, default=None)

    def around(self, trial: Trial) -> tuple[Quadratic, list[tuple[int, int]]]:
        return self.trials.around(trial, self.choice.always, self.choice.price)

    def moved(
        self, trial: Trial, quadratic: Quadratic, items: list[tuple[int, int]], chosen: Subset
    ) -> tuple[Subset, Array, tuple[Array, ...]]:
        """A set of positions as parameters, with the values that the quadratic gives them."""
        places, estimate, _ = quadratic.estimate(chosen)
        values = trial.values.copy()
        values[:, sorted(self.choice.candidates)] = 0.0
        for place, value in zip(places, estimate, strict=True):
            index, record = items[place]
            values[slice(None) if record < 0 else record, index] = value
        subset = frozenset(items[i][0] for i in places if items[i][0] in self.choice.candidates)
        return subset, values, trial.states


def positions(items: list[tuple[int, int]], subset: Subset) -> Subset:
    """Positions among the unknowns of a set of parameters."""
    return frozenset(i for i, (index, _) in enumerate(items) if index in subset)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best set, its rivals, and the misfit of all sets around it."""

    best: Trial
    ranking: list[Trial]  # best first, of the last stage
    choice: Choice
    quadratic: Quadratic
    items: list[tuple[int, int]]
    short: Trial | None  # the best set on short segments
    whole: bool  # whether the last stage took whole stretches


def search(
    experiment: Experiment,
    choice: Choice,
    scene: Scene,
    progress: Progress = SILENT,
    beside: tuple[Subset, Array] | None = None,
) -> SearchResult:
    """Find the set of terms with the lowest criterion; ``beside`` is a set with values [records, k + 3q] from
    which to begin beside those of the weak form."""
    period = scene.period
    length = max(round(_PERIODS * period), _SHORTEST)
    longest = max(stop - first for run in experiment.runs for first, stop in run.spans)
    stage = Stage(
        Trials(experiment, choice.candidates, min(length, longest), choice.shapes, choice.noisy), choice
    )
    if beside is not None:
        subset, values = beside
        model = experiment.model
        held = dict(zip(model.parameters, values[0].tolist(), strict=False))
        given = scene.motions(model.with_values({n: v for n, v in held.items() if n in model.free}))
        stage.start(subset, values, tuple(motion.smooth for motion in given))
    for subset, values, states in _weak_starts(experiment, scene, choice):
        stage.start(subset, values, states)
        progress.report(0.1, "weak form")
    for i, trial in enumerate(stage.ranked()[:_STARTS]):
        stage.explore(trial, progress.part(0.1 + 0.2 * i, 0.3 + 0.2 * i))
    short = next(iter(stage.ranked()), None)
    if short is None:
        raise ShakedownError("No set of terms of the library follows the record: other terms are needed.")
    for i, longer in enumerate((_LONGER * length, 0)):
        if longer and longer >= longest:
            continue
        stage = _longer(stage, experiment, longer, progress.part(0.55 + 0.15 * i, 0.7 + 0.15 * i))
    return _with_rivals(stage, short, progress.part(0.85, 1.0))


def _longer(stage: Stage, experiment: Experiment, length: int, progress: Progress) -> Stage:
    """The best sets again on longer segments; the stage before if none of them ends there."""
    choice = stage.choice
    longer = Stage(Trials(experiment, choice.candidates, length, choice.shapes, choice.noisy), choice)
    ranked = stage.ranked()
    limit = stage.choice.criterion(ranked[0]) + _RIVAL
    for trial in ranked[:3]:
        if stage.choice.criterion(trial) <= limit:
            longer.explore(longer.fit(trial.subset, trial.values, trial.states), progress)
    return longer if longer.ranked() and longer.ranked()[0].converged else stage


def _with_rivals(stage: Stage, short: Trial, progress: Progress) -> SearchResult:
    """Fit what the quadratic holds for nearly as good, too: a better one takes the place of the best."""
    best = stage.ranked()[0]
    for _ in range(3):
        quadratic, items = stage.around(best)
        if not np.isfinite(quadratic.information).all():
            raise ShakedownError("The best set of terms runs away from the record: other terms are needed.")
        here = positions(items, best.subset)
        lowest = quadratic.criterion(here)
        near = {s: quadratic.criterion(s) for s in neighbours(here - quadratic.always, quadratic.candidates)}
        close = sorted((s for s in near if near[s] < lowest + _RIVAL), key=near.__getitem__)[:_MOST_RIVALS]
        for rival in close:
            stage.fit(*stage.moved(best, quadratic, items, rival))
        progress.report(0.5, "rivals")
        if stage.ranked()[0] is best:
            break
        best = stage.ranked()[0]
    whole = stage.trials.length == 0
    return SearchResult(best, stage.ranked(), stage.choice, quadratic, items, short, whole)


def _weak_starts(
    experiment: Experiment, scene: Scene, choice: Choice
) -> Iterator[tuple[Subset, Array, tuple[Array, ...]]]:
    """Sets to begin with, their values and states."""
    for model in scene.starts():
        given = scene.motions(model)
        stretches, rows = weak_rows(experiment, given, scene.linear)
        for knots in _KNOTS:
            spacing = max(round(scene.period / knots), 1)
            blocks = weak_blocks(model, stretches, rows, scene.linear, spacing)
            for floor in _FLOORS:
                subset, values = _weak_choice(experiment, model, blocks, scene.linear, floor, choice)
                values[:, len(model.parameters) :] = scene.sensors
                yield subset, values, tuple(motion.smooth for motion in given)


def _weak_choice(
    experiment: Experiment,
    model: Model,
    blocks: list[Block],
    linear: Sequence[int],
    floor: float,
    choice: Choice,
) -> tuple[Subset, Array]:
    """Terms and values [records, k + 3q] to begin with."""
    k, q = len(model.parameters), len(model.outputs)
    stay = choice.always | (frozenset(linear) - choice.candidates)
    quadratic = weak_quadratic(blocks, k, floor, stay, choice.price, choice.bound)
    chosen = quadratic.best(frozenset(), quadratic.candidates)
    places, estimate, _ = quadratic.estimate(chosen)
    values = np.hstack([experiment.guesses(), np.zeros((len(experiment.runs), 3 * q))])
    values[:, places] = estimate
    shapes = list(choice.shapes)
    values[:, shapes] = model.values()[shapes]
    return frozenset(places) & choice.candidates, values
