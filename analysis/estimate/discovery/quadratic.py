"""The misfit of every subset of a library, from one linearisation with all its terms free.

Around a fitted point theta0 the misfit is chi2(theta) = const + (theta - theta0)'H(theta - theta0)
- 2 g'(theta - theta0), H the information and g the gradient. With the terms outside a set T at zero its
minimum is const - b_T' H_TT^-1 b_T, b = g + H theta0: no subset has to be fitted to be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Subset = frozenset[int]

_RIDGE = 1e-10  # of the scaled information: two terms that are the same along the motion
_MOST_MOVES = 60  # of a search
_BEAM = 200  # sets of one size that the sets of the next size are made of


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
    widths: Array = field(default_factory=lambda: np.zeros(0))  # [P] of what is expected of the coefficients
    lowest: float = -math.inf  # misfit below which none can be, whatever a linearisation of chaos promises

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

    def evidence(self, subset: Subset) -> float:
        """-2 ln of the probability of the data given the terms of a subset and of the subset itself, up to
        a constant, its shapes at the price of a term each."""
        inside = len(self.whole(subset)) - len(self.always | subset)
        misfit = max(self.misfit(subset), self.lowest)
        return misfit + self.price * inside + self.choice_cost(subset)

    def misfit(self, subset: Subset) -> float:
        """Of a subset, up to a constant."""
        return self.criterion(subset) - self.price * (len(self.whole(subset)) - len(self.always))

    def choice_cost(self, subset: Subset) -> float:
        """What the terms of a subset cost, by Laplace's approximation (MacKay 2003, chapter 28).

        Coefficients are expected to follow Cauchy distributions of the given widths, and all subsets of one
        size to be alike; a coefficient costs the more, the narrower the data make it.
        """
        own, total = sorted(subset), len(self.candidates)
        size = len(own)
        ways = math.lgamma(total + 1) - math.lgamma(size + 1) - math.lgamma(total - size + 1)
        if not own:
            return 0.0
        places, estimate, covariance = self.estimate(subset)
        at = [places.index(i) for i in own]
        width = self.widths[own]
        scaled = covariance[np.ix_(at, at)] / np.outer(width, width)
        known = -float(np.sum(np.log(np.clip(np.linalg.eigvalsh(scaled), 1e-300, 1.0))))
        far = 2 * float(np.sum(np.log1p((estimate[at] / width) ** 2)))
        return known + far + size * math.log(math.pi / 2) + 2 * ways

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

    def leading(self, largest: int, most: int) -> list[list[Subset]]:
        """The ``most`` sets of lowest misfit of each size from one to ``largest``.

        Far from its point a linearisation still ranks sets of one size, but says too much against small
        ones: where terms are alike along the motion, as on a closed orbit, it prefers many to the few true
        ones.
        """
        names = sorted(self.candidates)
        groups = [sorted(set(self.whole({i})) - self.always) for i in names]
        G, g = self._without_always()
        beam, found = [frozenset[int]()], list[list[Subset]]()
        for _ in range(min(largest, len(names))):
            sets = list({s | {j} for s in beam for j in range(len(names)) if j not in s})
            rows = [sorted({i for j in s for i in groups[j]}) for s in sets]
            order = np.argsort(-_gains(G, g, rows), kind="stable")[:_BEAM]
            beam = [sets[i] for i in order]
            found.append([frozenset(names[j] for j in s) for s in beam[:most]])
        return found

    def _without_always(self) -> tuple[Array, Array]:
        """Scaled information and linear part of all unknowns where those that always stay are at their best;
        one more unknown, of which nothing is known, fills up rows."""
        H, b, _ = self._scaled(list(range(len(self.linear))))
        stay = sorted(self.always)
        G, g = np.eye(len(b) + 1), np.zeros(len(b) + 1)
        solved = np.linalg.solve(H[np.ix_(stay, stay)], np.column_stack([H[stay], b[stay]]))
        G[:-1, :-1] = H - H[:, stay] @ solved[:, :-1]
        g[:-1] = b - H[:, stay] @ solved[:, -1]
        return G, g

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


def _gains(G: Array, g: Array, rows: Sequence[Sequence[int]]) -> Array:
    """By how much each set of unknowns lowers the misfit; the last unknown stands for none."""
    widest = max(len(row) for row in rows)
    filled = np.array([[*row, *[len(g) - 1] * (widest - len(row))] for row in rows])
    H, b = G[filled[:, :, None], filled[:, None, :]], g[filled]
    none = filled == len(g) - 1
    H[none[:, :, None] | none[:, None, :]] = 0.0
    H += np.where(none, 1.0, _RIDGE)[:, :, None] * np.eye(widest)
    return np.asarray(np.einsum("ij,ij->i", b, np.linalg.solve(H, b[:, :, None])[:, :, 0]))
