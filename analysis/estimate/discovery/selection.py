"""Which terms of a library the data support, the probability of each, and error bars that know the choice.

The weak form gives a first set of terms; sets are fitted by maximum likelihood and compared by the extended
Bayesian information criterion -2 ln L + (ln N + 2 ln P) k (Schwarz 1978; Chen and Chen 2008); the best one is
finished and judged like any other identification. Sets that differ from it by one or two terms have weights
exp(-criterion/2), which give the probability of each term and what the choice adds to the error bars.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Estimate, Identification
from analysis.base.progress import SILENT, Progress
from analysis.base.record import Record
from analysis.estimate.discovery.library import Library
from analysis.estimate.discovery.quadratic import Quadratic, Subset
from analysis.estimate.discovery.search import Choice, SearchResult, positions, search
from analysis.estimate.discovery.soundness import check_channels, check_terms
from analysis.estimate.finish import finish
from analysis.estimate.start import Start
from analysis.experiment import Conditions, Experiment
from analysis.model import Model

Array = NDArray[np.float64]

_RIVAL = 10.0  # criterion above the best up to which a set is named as a rival
_LARGER = 3  # sizes above that of the best set whose best sets are listed
_EXCHANGED = 40  # absent terms that sets with two changes are made of


@dataclass(frozen=True)
class Ranked:
    """A set of terms that was compared."""

    terms: tuple[str, ...]  # coefficients
    criterion: float  # above that of the kept set


@dataclass(frozen=True, eq=False)
class Selection:
    """The terms that are kept, the fit of the equation that they make, and what else came close."""

    library: Library
    kept: tuple[str, ...]  # coefficients
    model: Model  # of the kept terms, its guesses the fitted values
    result: Identification  # judged; its error bars include the choice
    probability: dict[str, float]  # of each candidate
    rivals: tuple[Ranked, ...]  # sets that the data hardly tell from the kept one, best first
    sizes: tuple[Ranked, ...]  # the best set of each size near the kept one

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
    """The smallest equation of the library that the records support, judged and with error bars."""
    whole = library.model()
    experiment = Experiment(whole, records, conditions)
    check_channels(experiment)
    warnings = check_terms(experiment, library)
    model = experiment.model
    index = {name: model.index(name) for name in library.candidates}
    choice = Choice.of(
        experiment, frozenset(index.values()), frozenset(index[name] for name in library.always)
    )
    found = search(experiment, choice, progress.part(0.0, 0.7))
    names = {place: name for name, place in index.items()}
    kept = tuple(name for name in library.candidates if index[name] in found.best.subset | choice.always)
    result, fitted = _finished(library, kept, experiment, found, conditions, progress.part(0.7, 1.0))
    odds = _Odds.of(found)
    probability = {name: odds.probability(index[name]) for name in library.candidates}
    probability |= dict.fromkeys(library.always, 1.0)
    result = _widened(result, {n: odds.widening(index[n]) for n in kept})
    selection = Selection(
        library, kept, fitted, result, probability, _rivals(found, names), _sizes(found, names)
    )
    extra = {
        "kept": {n: str(library.candidates[n]) for n in kept},
        "probability": probability,
        "rivals": [asdict(r) for r in selection.rivals],
    }
    return replace(
        selection,
        result=replace(result, extra={**result.extra, **extra}, warnings=[*warnings, *result.warnings]),
    )


def _finished(
    library: Library,
    kept: Sequence[str],
    experiment: Experiment,
    found: SearchResult,
    conditions: Conditions | None,
    progress: Progress,
) -> tuple[Identification, Model]:
    """The equation of the kept terms, fitted to the whole record and judged."""
    values = found.best.values
    first = {n: float(values[0, i]) for i, n in enumerate(experiment.model.parameters)}
    model = library.model(kept, first)
    own = Experiment(model, experiment.records, conditions)
    columns = [experiment.model.index(name) for name in own.model.parameters]
    sensors = values[:, len(experiment.model.parameters) :]
    start = Start("select", values[:, columns], found.best.states, sensors)
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
    weights: Array

    @classmethod
    def of(cls, found: SearchResult) -> _Odds:
        quadratic, items = found.quadratic, found.items
        best = positions(items, found.best.subset) - quadratic.always
        near = best | quadratic.promising(best, _EXCHANGED)
        sets = [best, *_changed(best, near)]
        criteria = np.array([quadratic.criterion(s) for s in sets])
        weights = np.exp(-0.5 * (criteria - criteria.min()))
        return cls(quadratic, items, best, sets, weights / weights.sum())

    def probability(self, index: int) -> float:
        (place,) = positions(self.items, frozenset({index}))
        return float(sum(w for s, w in zip(self.sets, self.weights, strict=True) if place in s))

    def widening(self, index: int) -> float:
        """Standard error with the choice over that without, of a parameter of the best set."""
        (place,) = positions(self.items, frozenset({index}))
        value, variance = self._of(self.best, place)
        total = weight = 0.0
        for chosen, w in zip(self.sets, self.weights, strict=True):
            if w > 1e-6 and (place in chosen or place in self.quadratic.always):
                other, own = self._of(chosen, place)
                total += w * (own + (other - value) ** 2)
                weight += w
        return float(np.sqrt(max(total / (weight * variance), 1.0))) if weight > 0 < variance else 1.0

    def _of(self, chosen: Subset, place: int) -> tuple[float, float]:
        places, estimate, covariance = self.quadratic.estimate(chosen)
        at = places.index(place)
        return float(estimate[at]), float(covariance[at, at])


def _changed(subset: Subset, among: Subset) -> Iterator[Subset]:
    """Sets with one or two terms added, dropped or both."""
    for i in among:
        yield subset ^ {i}
    for i, j in combinations(sorted(among), 2):
        yield subset ^ {i, j}


def _rivals(found: SearchResult, names: dict[int, str]) -> tuple[Ranked, ...]:
    """Fitted sets within odds of 150 to 1 of the best."""
    lowest = found.choice.criterion(found.ranking[0])
    ranked = [
        Ranked(_named(t.subset, names), found.choice.criterion(t) - lowest)
        for t in found.ranking
        if t is not found.best
    ]
    return tuple(r for r in ranked if r.criterion < _RIVAL)


def _sizes(found: SearchResult, names: dict[int, str]) -> tuple[Ranked, ...]:
    """The best set of each size that dropping or adding single terms leads to."""
    quadratic = found.quadratic
    best = positions(found.items, found.best.subset) - quadratic.always
    lowest = quadratic.criterion(best)
    sets = [best]
    while sets[0]:
        sets.insert(0, min((sets[0] - {i} for i in sets[0]), key=quadratic.criterion))
    for _ in range(_LARGER):
        absent = quadratic.candidates - sets[-1]
        if absent:
            sets.append(min((sets[-1] | {i} for i in absent), key=quadratic.criterion))
    stay = found.choice.always
    return tuple(
        Ranked(_named(stay | {found.items[i][0] for i in s}, names), quadratic.criterion(s) - lowest)
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
