"""Which terms of a library the data support, the probability of each, and error bars that know the choice.

The weak form gives a first set of terms; sets are fitted by maximum likelihood and compared by the extended
Bayesian information criterion -2 ln L + (ln N + 2 ln P) k (Schwarz 1978; Chen and Chen 2008). Those that come
near the best are ranked by the evidence (MacKay 1992), and the first is finished and judged like any other
identification. Sets that differ from it by one or two terms, and all that were fitted, have weights
exp(-evidence/2), which give the probability of each term and what the choice adds to the error bars.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from analysis.base.identification import Z95, Estimate, Identification
from analysis.base.progress import SILENT, Progress
from analysis.base.record import Record
from analysis.base.words import percent
from analysis.estimate.discovery.choice import Choice
from analysis.estimate.discovery.closed import ClosedCurve, closed_curve
from analysis.estimate.discovery.library import Library
from analysis.estimate.discovery.quadratic import Quadratic, Subset
from analysis.estimate.discovery.scene import Scene
from analysis.estimate.discovery.search import SearchResult, positions, search
from analysis.estimate.discovery.separation import advice
from analysis.estimate.discovery.soundness import check_channels, check_rates, check_terms
from analysis.estimate.finish import finish
from analysis.estimate.start import Start
from analysis.experiment import Conditions, Experiment
from analysis.model import Model

Array = NDArray[np.float64]

_RIVAL = 10.0  # criterion above the best up to which a set is named as a rival
_LARGER = 3  # sizes above that of the best set whose best sets are listed
_FAR = 10.0  # standard errors between search and finish that other motion or sensors do not explain
_LEVEL = 0.95
_CLOSED = 0.5  # sharpness of the weights on a closed curve, where thousands of sets come close by chance
_COIN = 0.5  # weight of the best set on a closed curve below which another one is as likely
_KINDS = ("offset", "delay", "drift")  # of what a sensor may have
_SECOND_TRIES = 3  # of other sets where the best one misses the data
_EXCHANGED = 40  # absent terms that sets with two changes are made of
_FAINT = 1e-4  # probability below which a set does not count in an interval


@dataclass(frozen=True)
class Ranked:
    """A set of terms that was compared."""

    terms: tuple[str, ...]  # coefficients
    criterion: float  # above that of the kept set
    advice: str = ""  # which further record would tell it from the kept one
    model: Model | None = None  # of its terms, with the fitted values, where it was fitted


@dataclass(frozen=True, eq=False)
class Selection:
    """The terms that are kept, the fit of the equation that they make, and what else came close."""

    library: Library
    kept: tuple[str, ...]  # coefficients
    model: Model  # of the kept terms, its guesses the fitted values
    result: Identification  # judged; its error bars include the choice
    probability: dict[str, float]  # of each candidate if the library holds the equation: see ``caveat``
    rivals: tuple[Ranked, ...]  # sets that the data hardly tell from the kept one, best first
    sizes: tuple[Ranked, ...]  # the best set of each size near the kept one
    weight: float = 1.0  # of the kept set among all
    closed: ClosedCurve | None = None  # where the motion is one

    @property
    def caveat(self) -> str:
        """Why the probabilities are only shares among the sets of this library; empty where they hold."""
        if not self.result.converged:
            return "The search did not end, so no term has a probability."
        if self.result.verdict == "fits":
            return ""
        if self.result.verdict == "cannot tell":
            return (
                "The record does not tell which of many sets of these terms is the equation, so no term has "
                "a probability."
            )
        return (
            "No set of these terms is the equation, so no term has a probability: some may stand in for one "
            "that the library lacks."
        )

    def difference(self, other: Ranked) -> str:
        """What a set has more and less than the kept one, such as `with x**2 in dv/dt, without ...`."""
        words = [f"with {self.library.candidates[n]}" for n in other.terms if n not in self.kept]
        words += [f"without {self.library.candidates[n]}" for n in self.kept if n not in other.terms]
        return ", ".join(words) or "the same terms"


def select_terms(
    library: Library,
    records: Record | Sequence[Record],
    progress: Progress = SILENT,
    conditions: Conditions | None = None,
) -> Selection:
    """The smallest equation of the library that the records support, judged and with error bars.

    Where the fit finds a sensor late or off its zero, the terms are chosen anew with that counted.
    """
    conditions = conditions or Conditions()
    found, scene = _selected(library, records, progress, conditions, {})
    noisy = "input noise" in found.result.extra
    if noisy:  # the finish has found that it matters, and the search took the inputs as exact
        found, scene = _selected(library, records, progress, conditions, {}, noisy)
    faults = _sensor_faults(found.result, conditions)
    if not faults and found.result.verdict != "fits" and not conditions.delays:
        late = scene.likely_delay()
        measured = np.any([run.measured for run in scene.experiment.runs], axis=0)
        seen = [o for o, m in zip(scene.experiment.model.outputs, measured, strict=True) if m]
        faults = {f"delay {output}": late for output in seen if late > 0}
    if not faults:
        return _told(_on_closed_curve(found))
    again, _ = _selected(library, records, progress, _with_sensors(conditions, faults), faults, noisy)
    better = again if again.result.usable or not found.result.usable else found
    return _told(_on_closed_curve(better))


def _sensor_faults(result: Identification, said: Conditions) -> dict[str, float]:
    """Offsets, delays and drifts that the fit found beside those that were asked for."""
    known = {f"{kind} {output}" for kind, output in _sensors(said)}
    return {
        name: e.value
        for name, e in result.parameters.items()
        if name.partition(" ")[0] in _KINDS and "[" not in name and name not in known
    }


def _with_sensors(said: Conditions, faults: dict[str, float]) -> Conditions:
    """What was said of the records, and more sensors with unknown offsets, delays and drifts."""
    split = [name.partition(" ") for name in faults]
    more = {kind: tuple(output for k, _, output in split if k == kind) for kind in _KINDS}
    return replace(
        said,
        offsets=(*said.offsets, *more["offset"]),
        delays=(*said.delays, *more["delay"]),
        drifts=(*said.drifts, *more["drift"]),
    )


def _sensors(said: Conditions) -> Iterator[tuple[str, str]]:
    for kind, outputs in (("offset", said.offsets), ("delay", said.delays), ("drift", said.drifts)):
        for output in outputs:
            yield kind, output


def _selected(
    library: Library,
    records: Record | Sequence[Record],
    progress: Progress,
    conditions: Conditions,
    sensors: dict[str, float],
    noisy: bool = False,
) -> tuple[Selection, Scene]:
    experiment = Experiment(library.model(), records, conditions)
    check_channels(experiment)
    check_rates(experiment)
    scene = Scene(experiment, library, sensors)
    if library.shapes:  # the records have told their ranges
        library = scene.library
        experiment = Experiment(library.model(), records, conditions)
        scene = scene.within(experiment)
    warnings = check_terms(experiment, scene)
    model = experiment.model
    index = {name: model.index(name) for name in library.candidates}
    shapes = {model.index(s): frozenset(index[n] for n in library.users(s)) for s in library.shapes}
    always = frozenset(index[name] for name in library.always)
    choice = Choice.of(experiment, frozenset(index.values()), always, shapes, noisy)
    found, result, fitted = _searched(scene, choice, conditions, progress)
    names = {place: name for name, place in index.items()}
    kept = _kept(scene, found)
    closed = closed_curve(experiment, found.best)
    odds = _Odds.of(found, _CLOSED if closed else 1.0)
    probability = {name: odds.probability(index[name]) for name in library.candidates}
    probability |= dict.fromkeys(library.always, 1.0)
    inside = [n for n in library.shapes if n in fitted.parameters]
    spread = odds.sharpened(1.0)
    result = _widened(result, {n: spread.widening(model.index(n)) for n in (*kept, *inside)})
    selection = Selection(
        library, kept, fitted, result, probability, _rivals(scene, found, names), _sizes(found, names),
        spread.kept, closed,
    )  # fmt: skip
    if found.refuted:
        warnings.append(
            f"Likelier by their misfit alone, but their fit misses the data: {len(found.refuted)} other sets."
        )
    return replace(selection, result=replace(result, warnings=[*warnings, *result.warnings])), scene


def _told(found: Selection) -> Selection:
    """The same with what is kept of it in a file of results."""
    candidates = found.library.candidates
    sure: dict[str, Any] = {"probability": found.probability}
    if found.caveat:
        sure = {"shares": found.probability, "caveat": found.caveat}
    extra = {
        "kept": {n: str(candidates[n]) for n in found.kept},
        **sure,
        "rivals": [
            {"terms": list(r.terms), "criterion": r.criterion, "advice": r.advice} for r in found.rivals
        ],
    }
    return replace(found, result=replace(found.result, extra={**found.result.extra, **extra}))


def _on_closed_curve(found: Selection) -> Selection:
    """What a closed curve leaves open, as a warning, or as the verdict where that is everything."""
    closed, result = found.closed, found.result
    if closed is None:
        return found
    unknowns = len(found.model.free)
    if result.verdict != "fits" or (found.weight >= _COIN and closed.decides(unknowns)):
        return replace(found, result=replace(result, warnings=[*result.warnings, closed.words]))
    if closed.decides(unknowns):
        against = f"Other sets of terms are as likely as this one (its share is {percent(found.weight)})."
    else:
        against = f"This equation has {unknowns} unknown numbers: nothing is left to test it by."
    reasons = [closed.words, against, *result.reasons]
    return replace(found, result=replace(result, verdict="cannot tell", reasons=reasons))


def _searched(
    scene: Scene, choice: Choice, conditions: Conditions, progress: Progress
) -> tuple[SearchResult, Identification, Model]:
    """The best set and its finish. Where the finish ends elsewhere than the search, which had lost its way
    then, the search is made once more from there."""
    model = scene.experiment.model
    found = search(scene.experiment, choice, scene, progress.part(0.0, 0.7))
    found, result, fitted = _accepted(scene, found, conditions, progress.part(0.7, 1.0))
    if not _elsewhere(result, fitted, model, found):
        return found, result, fitted
    values = found.best.values.copy()
    for name in (n for n in fitted.parameters if n in result.parameters and n in model.parameters):
        values[:, model.index(name)] = result.parameters[name].value
    again = search(scene.experiment, choice, scene, progress.part(0.0, 0.7), (found.best.subset, values))
    return _accepted(scene, again, conditions, progress.part(0.7, 1.0))


def _accepted(
    scene: Scene, found: SearchResult, conditions: Conditions, progress: Progress
) -> tuple[SearchResult, Identification, Model]:
    """The best set with its finish; where that misses the data, the next one of those near it that fits.

    What the finish knows beside the likelihood, such as that the motion would not stay where it was
    measured, refutes a set as well.
    """
    first = found, *_finished(scene, found, conditions, progress)
    here: SearchResult | None = found
    if first[1].verdict != "misses":
        return first
    for _ in range(_SECOND_TRIES):
        here = here.without_best() if here else None
        if here is None:
            break
        result, fitted = _finished(scene, here, conditions, progress)
        if result.verdict == "fits":
            return here, result, fitted
    return first


def _kept(scene: Scene, found: SearchResult) -> tuple[str, ...]:
    """Coefficients of the best set."""
    model, chosen = scene.experiment.model, found.best.subset | found.choice.always
    return tuple(name for name in scene.library.candidates if model.index(name) in chosen)


def _elsewhere(result: Identification, fitted: Model, model: Model, found: SearchResult) -> bool:
    """Whether a number of the finish lies far from where the search had it."""
    if not result.usable:
        return False
    shared = [n for n in fitted.free if n in result.parameters and n in model.parameters]
    pairs = [(result.parameters[n], found.best.values[0, model.index(n)]) for n in shared]
    return any(abs(e.value - value) > _FAR * e.stderr > 0 for e, value in pairs)


def _finished(
    scene: Scene, found: SearchResult, conditions: Conditions | None, progress: Progress
) -> tuple[Identification, Model]:
    """The equation of the best set, fitted to the whole record and judged."""
    values, whole = found.best.values, scene.experiment.model
    first = {n: float(values[0, i]) for i, n in enumerate(whole.parameters)}
    model = scene.library.model(_kept(scene, found), first, scene.hidden)
    own = Experiment(model, scene.experiment.records, conditions)
    columns = [whole.index(name) for name in own.model.parameters]
    outputs = [whole.outputs.index(name) for name in own.model.outputs]
    k, q = len(whole.parameters), len(whole.outputs)
    sensors = np.hstack([values[:, k + i * q : k + (i + 1) * q][:, outputs] for i in range(3)])
    rows = [whole.states.index(name) for name in own.model.states]
    states = [np.ascontiguousarray(X[rows]) for X in found.best.states]
    start = Start("select", values[:, columns], states, sensors)
    result = finish(own, start, progress)
    named = {n: v for n, v in result.values().items() if n in model.parameters}
    return result, model.with_values(named)


@dataclass(frozen=True, eq=False)
class _Odds:
    """Sets around the best one with their weights."""

    quadratic: Quadratic
    items: list[tuple[int, int]]
    best: Subset  # positions
    sets: list[Subset]
    evidence: Array  # of each set, -2 ln of its probability
    sharpness: float  # below one where chance has more to say than the evidence

    @classmethod
    def of(cls, found: SearchResult, sharpness: float) -> _Odds:
        quadratic, items = found.quadratic, found.items
        best = positions(items, found.best.subset) - quadratic.always
        near = best | quadratic.promising(best, _EXCHANGED)
        lost = {positions(items, s) - quadratic.always for s in found.refuted}
        costs = {s: quadratic.evidence(s) for s in (best, *_changed(best, near)) if s not in lost}
        fitted = found.evidence[found.best.subset] - costs[best]
        for subset, cost in found.evidence.items():  # a fit says more than a linearisation
            costs[positions(items, subset) - quadratic.always] = cost - fitted
        return cls(quadratic, items, best, list(costs), np.array(list(costs.values())), sharpness)

    def sharpened(self, sharpness: float) -> _Odds:
        return replace(self, sharpness=sharpness)

    @cached_property
    def weights(self) -> Array:
        shares = np.exp(-0.5 * self.sharpness * (self.evidence - self.evidence.min()))
        return np.asarray(shares / shares.sum())

    @property
    def kept(self) -> float:
        """Weight of the best set."""
        return float(self.weights[self.sets.index(self.best)])

    def probability(self, index: int) -> float:
        (place,) = positions(self.items, frozenset({index}))
        return float(sum(w for s, w in zip(self.sets, self.weights, strict=True) if place in s))

    def widening(self, index: int) -> float:
        """Half the 95 % interval about the value in the best set with the choice over that without."""
        (place,) = positions(self.items, frozenset({index}))
        value, variance = self._of(self.best, place)
        if not variance > 0:
            return 1.0
        parts = [
            (w, *self._of(chosen, place))
            for chosen, w in zip(self.sets, self.weights, strict=True)
            if w > _FAINT and place in self.quadratic.whole(chosen)
        ]
        weights, others, variances = np.array(parts).T
        return max(_reach(weights, others - value, np.sqrt(variances)) / (Z95 * math.sqrt(variance)), 1.0)

    def _of(self, chosen: Subset, place: int) -> tuple[float, float]:
        places, estimate, covariance = self.quadratic.estimate(chosen)
        at = places.index(place)
        return float(estimate[at]), float(covariance[at, at])


def _reach(weights: Array, shifts: Array, errors: Array) -> float:
    """Half the interval about zero that holds 95 % of a mixture of normal distributions."""

    def inside(reach: float) -> float:
        shares = ndtr((reach - shifts) / errors) - ndtr((-reach - shifts) / errors)
        return float(weights @ shares / weights.sum()) - _LEVEL

    return float(brentq(inside, 0.0, float(np.max(np.abs(shifts) + 5 * errors))))


def _changed(subset: Subset, among: Subset) -> Iterator[Subset]:
    """Sets with one or two terms added, dropped or both."""
    for i in among:
        yield subset ^ {i}
    for i, j in combinations(sorted(among), 2):
        yield subset ^ {i, j}


def _rivals(scene: Scene, found: SearchResult, names: dict[int, str]) -> tuple[Ranked, ...]:
    """Fitted sets within odds of 150 to 1 of the best."""
    choice, whole, best = found.choice, scene.experiment.model, found.best
    parameters = list(whole.parameters)
    ranked = []
    for trial in found.ranking:
        above = found.evidence[trial.subset] - found.evidence[best.subset]
        if trial is best or above >= _RIVAL:
            continue
        kept = whole.with_values(dict(zip(parameters, best.values[0].tolist(), strict=False)))
        values = dict(zip(parameters, trial.values[0].tolist(), strict=False))
        gap = trial.misfit - best.misfit
        said = advice(scene, kept, whole.with_values(values), gap, choice.price)
        terms = _named(trial.subset | choice.always, names)
        own = scene.library.model(terms, values, scene.hidden)
        ranked.append(Ranked(terms, above, said, own))
    return tuple(ranked)


def _sizes(found: SearchResult, names: dict[int, str]) -> tuple[Ranked, ...]:
    """The best set of each size that dropping or adding single terms leads to."""
    quadratic = found.quadratic
    best = positions(found.items, found.best.subset) - quadratic.always
    lowest = quadratic.evidence(best)
    sets = [best]
    while sets[0]:
        sets.insert(0, min((sets[0] - {i} for i in sets[0]), key=quadratic.evidence))
    for _ in range(_LARGER):
        absent = quadratic.candidates - sets[-1]
        if absent:
            sets.append(min((sets[-1] | {i} for i in absent), key=quadratic.evidence))
    stay = found.choice.always
    return tuple(
        Ranked(_named(stay | {found.items[i][0] for i in s}, names), quadratic.evidence(s) - lowest)
        for s in sets
    )


def _named(subset: Subset | set[int], names: dict[int, str]) -> tuple[str, ...]:
    return tuple(names[i] for i in sorted(subset) if i in names)


def _widened(result: Identification, factors: dict[str, float]) -> Identification:
    """Error bars times what the choice adds."""
    parameters: dict[str, Estimate] = {}
    for name, e in result.parameters.items():
        f = factors.get(name, 1.0)
        parameters[name] = replace(
            e,
            stderr=f * e.stderr,
            lower=e.value - f * (e.value - e.lower),
            upper=e.value + f * (e.upper - e.value),
        )
    covariance: Any = result.covariance
    if len(covariance) == len(parameters):
        scale = np.array([factors.get(n, 1.0) for n in parameters])
        covariance = (np.array(covariance) * np.outer(scale, scale)).tolist()
    return replace(result, parameters=parameters, covariance=covariance)
