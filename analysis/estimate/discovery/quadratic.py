"""The misfit of every subset of a library, from one linearisation with all its terms free.

Around a fitted point theta0 the misfit is chi2(theta) = const + (theta - theta0)'H(theta - theta0)
- 2 g'(theta - theta0), H the information and g the gradient. With the terms outside a set T at zero its
minimum is const - b_T' H_TT^-1 b_T, b = g + H theta0: no subset has to be fitted to be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Subset = frozenset[int]

_RIDGE = 1e-10  # of the scaled information: two terms that are the same along the motion
_MOST_MOVES = 60  # of a search


@dataclass(frozen=True, eq=False)
class Quadratic:
    """Misfit of all subsets; ``always`` are the unknowns that no subset leaves out.

    ``bound`` are the unknowns that come and go with a term, such as the gap of a contact.
    """

    information: Array  # [P, P]
    linear: Array  # [P] b
    always: Subset
    price: float  # of one more unknown
    bound: Mapping[int, Subset] = field(default_factory=dict)

    @classmethod
    def around(
        cls,
        point: Array,
        information: Array,
        gradient: Array,
        always: Subset,
        price: float,
        bound: Mapping[int, Subset] | None = None,
    ) -> Quadratic:
        """From information and gradient (downhill) at a point."""
        return cls(information, gradient + information @ point, always, price, bound or {})

    @property
    def candidates(self) -> Subset:
        usable = np.flatnonzero(np.diag(self.information) > 0)
        tied = frozenset(i for own in self.bound.values() for i in own)
        return frozenset(int(i) for i in usable) - self.always - tied

    def whole(self, subset: Iterable[int]) -> list[int]:
        """A subset with what is always there and what its terms are bound to."""
        chosen = self.always | set(subset)
        return sorted(chosen.union(*(self.bound.get(i, ()) for i in chosen)))

    def criterion(self, subset: Iterable[int]) -> float:
        """Misfit and price of a subset, up to a constant."""
        chosen = self.whole(subset)
        if not chosen:
            return 0.0
        H, b, _ = self._scaled(chosen)
        return self.price * (len(chosen) - len(self.always)) - float(b @ np.linalg.solve(H, b))

    def estimate(self, subset: Iterable[int]) -> tuple[list[int], Array, Array]:
        """Unknowns of a subset, their values and their covariance."""
        chosen = self.whole(subset)
        H, b, scale = self._scaled(chosen)
        inverse = np.linalg.inv(H)
        return chosen, scale * (inverse @ b), inverse * np.outer(scale, scale)

    def _scaled(self, chosen: list[int]) -> tuple[Array, Array, Array]:
        H = self.information[np.ix_(chosen, chosen)]
        seen = np.diag(H) > 0  # of the others nothing is known: they stay at zero
        scale = np.where(seen, 1.0 / np.sqrt(np.where(seen, np.diag(H), 1.0)), 0.0)
        return H * np.outer(scale, scale) + _RIDGE * np.eye(len(chosen)), self.linear[chosen] * scale, scale

    def promising(self, subset: Subset, most: int) -> Subset:
        """The absent terms that would lower the misfit most, each by itself."""
        here = self.criterion(subset)
        gains = {j: here - self.criterion(subset | {j}) for j in self.candidates - subset}
        return frozenset(sorted(gains, key=lambda j: -gains[j])[:most])

    def best(self, subset: Subset, among: Subset) -> Subset:
        """The best subset of ``among`` that adding, dropping and exchanging single terms leads to."""
        here, lowest = frozenset(subset & among), np.inf
        for _ in range(_MOST_MOVES):
            moves = {here, *neighbours(here, among)}
            values = {m: self.criterion(m) for m in moves}
            found = min(values, key=values.__getitem__)
            if values[found] >= lowest - 1e-9:
                break
            here, lowest = found, values[found]
        return here

    def proposals(self, subset: Subset, near: int, most: int) -> list[Subset]:
        """Sets worth a fit, best first: from the present one with its ``near`` most promising terms, from
        nothing upwards, and from the ``most`` most promising terms downwards.

        Terms that are alike along the motion hide each other from any one of these ways.
        """
        wide = subset | self.promising(subset, most)
        found = {
            self.best(subset, subset | self.promising(subset, near)),
            self.best(frozenset(), wide),
            self.best(self._pruned(wide), wide),
        }
        return sorted(found, key=self.criterion)

    def smaller(self, subset: Subset, most: int, rise: float) -> list[Subset]:
        """The best sets of fewer terms whose misfit rises by less than ``rise``, among a set and its ``most``
        most promising terms.

        Far from its point a linearisation still ranks sets of one size, but says too much against small
        ones: where terms are alike along the motion, as on a closed orbit, it prefers many to the few true
        ones.
        """
        wide = subset | self.promising(subset, most)
        misfit = self._misfit(subset)
        found, down, up = [], subset, frozenset[int]()
        by_size: dict[int, set[Subset]] = {}
        while len(down) > 1:
            down = self._exchanged(min((down - {i} for i in down), key=self._misfit), wide)
            by_size.setdefault(len(down), set()).add(down)
        while len(up) + 1 < len(subset):
            up = self._exchanged(min((up | {j} for j in wide - up), key=self._misfit), wide)
            by_size.setdefault(len(up), set()).add(up)
        for sets in by_size.values():
            best = min(sets, key=self._misfit)
            if self._misfit(best) < misfit + rise:
                found.append(best)
        return found

    def _misfit(self, subset: Subset) -> float:
        return self.criterion(subset) - self.price * (len(self.whole(subset)) - len(self.always))

    def _exchanged(self, subset: Subset, among: Subset) -> Subset:
        """The best set of the same size that exchanges of single terms lead to."""
        here = subset
        for _ in range(_MOST_MOVES):
            moves = ((here - {i}) | {j} for i in here for j in among - here)
            found = min(moves, key=self._misfit, default=here)
            if self._misfit(found) >= self._misfit(here) - 1e-9:
                break
            here = found
        return here

    def _pruned(self, subset: Subset) -> Subset:
        """What is left when the least needed term goes, again and again, as long as that pays."""
        here = subset - self.always
        lowest = self.criterion(here)
        while here:
            values = {i: self.criterion(here - {i}) for i in here}
            weakest = min(values, key=values.__getitem__)
            if values[weakest] > lowest:
                break
            here, lowest = here - {weakest}, values[weakest]
        return here


def neighbours(subset: Subset, among: Subset) -> Iterator[Subset]:
    """Sets that differ by one term added, dropped or exchanged."""
    absent = among - subset
    for j in absent:
        yield subset | {j}
    for i in subset:
        yield subset - {i}
        for j in absent:
            yield (subset - {i}) | {j}
