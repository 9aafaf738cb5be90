"""The search for the terms: weak form, then likelihood on short, long and whole stretches of the record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import SILENT, Progress
from analysis.estimate.discovery.choice import Choice
from analysis.estimate.discovery.closed import period_of
from analysis.estimate.discovery.forces import Forces
from analysis.estimate.discovery.quadratic import Quadratic, Subset, neighbours
from analysis.estimate.discovery.trials import Trial, Trials
from analysis.estimate.discovery.weak_start import weak_blocks, weak_quadratic, weak_rows

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
_RISE = 0.25  # of the misfit, a sample: sets that lie higher follow the record no more
_ROUNDS = 10  # of fit and new choice
_RIVAL = 10.0  # criterion above the best at which odds are 150 to 1
_MOST_RIVALS = 4  # that are fitted
_SERIOUS, _MOST_SERIOUS = 30.0, 24  # criterion above the best, and number, of sets that are weighed


@dataclass(frozen=True)
class _Breadth:
    """How many sets of each size are fitted."""

    leaders: int  # by the linearisation
    weak_leaders: int  # by the weak form
    probes: int  # in turn that do not follow the record: after them the size is given up


_ALIKE = _Breadth(8, 4, 3)  # on a closed curve terms are alike, and sets hardly ranked
_APART = _Breadth(3, 1, 1)


@dataclass(eq=False)
class Stage:
    """All that was fitted on segments of one length."""

    trials: Trials
    visited: dict[Subset, Trial | None] = field(default_factory=dict)
    started: set[tuple[Subset, tuple[float, ...]]] = field(default_factory=set)

    @property
    def choice(self) -> Choice:
        return self.trials.choice

    def ranked(self) -> list[Trial]:
        """The fits along whose paths the equations hold, best first."""
        return sorted(
            (t for t in self.visited.values() if t is not None and t.held), key=self.choice.criterion
        )

    def begun(self) -> list[Trial]:
        """Fits to search on from, best first: a set that lacks a term may have no path, and yet be near."""
        return sorted((t for t in self.visited.values() if t is not None), key=_worth)

    def fit(
        self, subset: Subset, values: Array, states: tuple[Array, ...], limit: float = math.inf
    ) -> Trial | None:
        if subset not in self.visited:
            self.visited[subset] = self.trials.fit(subset, values, states, limit)
        return self.visited[subset]

    def start(self, subset: Subset, values: Array, states: tuple[Array, ...]) -> None:
        """Fit a set to begin with; from other numbers inside its terms once more: the better fit stays."""
        inside = tuple(values[0, list(self.choice.shapes)].tolist())
        if (subset, inside) in self.started:
            return
        self.started.add((subset, inside))
        before = self.visited.pop(subset, None)
        found = self.fit(subset, values, states)
        if before is not None and (found is None or _worth(before) < _worth(found)):
            self.visited[subset] = before

    def explore(self, here: Trial | None, progress: Progress) -> None:
        """Linearise with all terms, fit what that proposes, and on from the best until nothing is better."""
        for number in range(_ROUNDS):
            if here is None:
                return
            progress.report((number + 1) / (number + 3), f"{len(here.subset)} terms fitted")
            quadratic, items = self.trials.around(here)
            if not np.isfinite(quadratic.information).all():
                return
            present = positions(items, here.subset) - quadratic.always
            sets = quadratic.proposals(present, _ABSENT, _WIDE)
            moves = [self.moved(here, quadratic, items, s) for s in sets]
            limit = here.misfit + _RISE * self.choice.samples
            fits = [self.fit(*move, limit) for move in moves if move[0] not in self.visited]
            better = [
                t for t in fits if t is not None and self.choice.criterion(t) < self.choice.criterion(here)
            ]
            here = min(better, key=self.choice.criterion, default=None)

    def by_size(self, weak: Sequence[Quadratic], progress: Progress) -> None:
        """Fit the best sets of each size, around the best one and in the weak form, and go on from a better
        one.

        They are tried from one term more than the best set has downwards, until sets of a size no longer
        follow the record.
        """
        for _ in range(_ROUNDS):
            best = self.ranked()[0]
            quadratic, items = self.trials.around(best)
            if not np.isfinite(quadratic.information).all():
                return
            forces = Forces(self.trials.experiment, best)
            breadth = _ALIKE if self._repeats(best) else _APART
            limit = best.misfit + _RISE * self.choice.samples
            largest = len(best.subset - self.choice.always) + 1
            leading = [
                quadratic.leading(largest, breadth.leaders),
                *(q.leading(largest, breadth.weak_leaders) for q in weak),
            ]
            indices = [[index for index, _ in items], *(list(range(len(q.linear))) for q in weak)]
            for size in range(largest, 0, -1):
                progress.report(0.5, f"sets of {size} terms")
                subsets = {
                    self.choice.always | {own[i] for i in chosen}: None
                    for ranking, own in zip(leading, indices, strict=True)
                    for chosen in (ranking[size - 1] if size <= len(ranking) else ())
                }
                # of terms that are only added the quadratic is sure
                others = [s for s in subsets if not s > best.subset]
                if others and not self._any_follows(others, best, forces, limit, breadth.probes):
                    break
            if self.ranked()[0] is best:
                return
            self.explore(self.ranked()[0], progress)

    def _repeats(self, trial: Trial) -> bool:
        """Whether the motion is closed, or its pieces may not tell."""
        return self.trials.length > 0 or all(period_of(states) is not None for states in trial.states)

    def _any_follows(
        self, subsets: list[Subset], best: Trial, forces: Forces, limit: float, probes: int
    ) -> bool:
        """Fit sets until ``probes`` in turn have a misfit above a limit; whether one has not."""
        follow = lost = 0
        for subset in subsets:
            if self._follows(subset, best, forces, limit):
                follow, lost = follow + 1, 0
            else:
                lost += 1
            if lost == probes:
                break
        return follow > 0

    def _follows(self, subset: Subset, best: Trial, forces: Forces, limit: float) -> bool:
        """Whether a set, fitted from where it comes nearest to the forces of the best one, has a misfit
        below a limit."""
        values = forces.like(subset, self.choice.candidates)
        trial = self.fit(subset, values, best.states, limit)
        return trial is not None and trial.held and trial.misfit < limit

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


def _worth(trial: Trial) -> tuple[bool, float]:
    """By which fits are sorted before any choice: the lower, the better."""
    return not trial.held, trial.misfit


def positions(items: list[tuple[int, int]], subset: Subset) -> Subset:
    """Positions among the unknowns of a set of parameters."""
    return frozenset(i for i, (index, _) in enumerate(items) if index in subset)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best set, its rivals, and the misfit of all sets around each."""

    ranking: list[Trial]  # of the last stage, by evidence, the best first
    evidence: dict[Subset, float]  # -2 ln of the probability of each set in the ranking, up to a constant
    choice: Choice
    around: dict[Subset, tuple[Quadratic, list[tuple[int, int]]]]  # each of them, and its unknowns
    refuted: tuple[Subset, ...] = ()  # sets that the finish has found wrong

    @property
    def best(self) -> Trial:
        return self.ranking[0]

    @property
    def quadratic(self) -> Quadratic:
        return self.around[self.best.subset][0]

    @property
    def items(self) -> list[tuple[int, int]]:
        return self.around[self.best.subset][1]

    def without_best(self) -> SearchResult | None:
        """The same where the best set is refuted; None where no other comes near it."""
        lost, left = self.best.subset, self.ranking[1:]
        if not left or self.evidence[left[0].subset] > self.evidence[lost] + _RIVAL:
            return None
        rest = {s: cost for s, cost in self.evidence.items() if s != lost}
        return replace(self, ranking=left, evidence=rest, refuted=(*self.refuted, lost))


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
    stage = Stage(Trials(experiment, choice, min(length, longest)))
    if beside is not None:
        subset, values = beside
        model = experiment.model
        held = dict(zip(model.parameters, values[0].tolist(), strict=False))
        given = scene.motions(model.with_values({n: v for n, v in held.items() if n in model.free}))
        stage.start(subset, values, tuple(motion.smooth for motion in given))
    weak: list[Quadratic] = []
    for subset, values, states, quadratic in _weak_starts(experiment, scene, choice):
        stage.start(subset, values, states)
        weak.append(quadratic)
        progress.report(0.1, "weak form")
    for i, trial in enumerate(stage.begun()[:_STARTS]):
        stage.explore(trial, progress.part(0.1 + 0.2 * i, 0.3 + 0.2 * i))
    if not stage.ranked():
        raise ShakedownError("No set of terms of the library follows the record: other terms are needed.")
    for i, longer in enumerate((_LONGER * length, 0)):
        if longer and longer >= longest:
            continue
        stage = _longer(stage, experiment, longer, progress.part(0.5 + 0.1 * i, 0.6 + 0.1 * i))
    stage.by_size(weak[1 : 2 * len(_FLOORS) : len(_FLOORS)], progress.part(0.7, 0.85))
    return _with_rivals(stage, progress.part(0.85, 1.0))


def _longer(stage: Stage, experiment: Experiment, length: int, progress: Progress) -> Stage:
    """The best sets again on longer segments; the stage before if none of them ends there."""
    longer = Stage(Trials(experiment, stage.choice, length))
    ranked = stage.ranked()
    limit = stage.choice.criterion(ranked[0]) + _RIVAL
    for trial in ranked[:3]:
        if stage.choice.criterion(trial) <= limit:
            begun = longer.fit(trial.subset, trial.values, trial.states)
            longer.explore(begun if begun and begun.held else None, progress)
    return longer if longer.ranked() and longer.ranked()[0].converged else stage


def _with_rivals(stage: Stage, progress: Progress) -> SearchResult:
    """Fit what the quadratic holds for nearly as good, too: a better one takes the place of the best."""
    best = stage.ranked()[0]
    for _ in range(3):
        quadratic, items = stage.trials.around(best)
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
    return _weighed(stage)


def _weighed(stage: Stage) -> SearchResult:
    """The sets that come near the best one, ranked by the probability of the data given their terms.

    The price of a term in the criterion takes all of them for known equally well. Where terms are alike, as
    on a closed orbit, some sets leave far more numbers possible than others, and these are likelier.
    Without noise the lowest misfit stays the best, and the others are weighed as its error bars are made:
    with a noise that hides what integration and rounding do.
    """
    ranked, trials = stage.ranked(), stage.trials
    if not ranked[0].subset:
        raise ShakedownError(
            "No term of the library explains anything of the motion beside the noise: is a channel that "
            "drives it missing, or one there that only repeats another?"
        )
    least = trials.rounding(ranked[0])
    lowest = stage.choice.criterion(ranked[0])
    serious = [t for t in ranked[:_MOST_SERIOUS] if stage.choice.criterion(t) < lowest + _SERIOUS]
    widths = Forces(trials.experiment, ranked[0]).widths()
    evidence: dict[Subset, float] = {}
    around: dict[Subset, tuple[Quadratic, list[tuple[int, int]]]] = {}
    for trial in serious:
        quadratic, items = trials.around(trial, least)
        if not np.isfinite(quadratic.information).all():
            continue
        own = replace(quadratic, widths=np.array([widths[index] for index, _ in items]))
        chosen = positions(items, trial.subset) - own.always
        misfit = trial.misfit
        if least is not None:  # nothing is left that another set could explain
            own, misfit = replace(own, lowest=own.misfit(chosen)), trials.misfit_above(trial, least)
        around[trial.subset] = own, items
        inside = len(own.whole(chosen)) - len(own.always | chosen)
        evidence[trial.subset] = misfit + stage.choice.price * inside + own.choice_cost(chosen)
    weighed = [t for t in serious if t.subset in evidence]
    ranking = sorted(weighed, key=lambda t: (least is not None and t is not ranked[0], evidence[t.subset]))
    return SearchResult(ranking, evidence, stage.choice, around)


def _weak_starts(
    experiment: Experiment, scene: Scene, choice: Choice
) -> Iterator[tuple[Subset, Array, tuple[Array, ...], Quadratic]]:
    """Sets to begin with, their values and states, and the misfit that they come from."""
    stay = choice.always | (frozenset(scene.linear) - choice.candidates)
    for model in scene.starts():
        given = scene.motions(model)
        stretches, rows = weak_rows(experiment, given, scene.linear)
        for knots in _KNOTS:
            spacing = max(round(scene.period / knots), 1)
            blocks = weak_blocks(model, stretches, rows, scene.linear, spacing)
            for floor in _FLOORS:
                quadratic = weak_quadratic(
                    blocks, len(model.parameters), floor, stay, choice.price, choice.bound
                )
                subset, values = _weak_choice(experiment, model, quadratic, choice)
                values[:, len(model.parameters) :] = scene.sensors
                yield subset, values, tuple(motion.smooth for motion in given), quadratic


def _weak_choice(
    experiment: Experiment, model: Model, quadratic: Quadratic, choice: Choice
) -> tuple[Subset, Array]:
    """Terms and values [records, k + 3q] to begin with."""
    chosen = quadratic.best(frozenset(), quadratic.candidates)
    places, estimate, _ = quadratic.estimate(chosen)
    values = np.hstack([experiment.guesses(), np.zeros((len(experiment.runs), 3 * len(model.outputs)))])
    values[:, places] = estimate
    shapes = list(choice.shapes)
    values[:, shapes] = model.values()[shapes]
    return frozenset(places) & choice.candidates, values
