"""The unknowns of a fit to several records: some shared by all, some of each record to itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ABSENT = -1  # in place of a position: the parameter is no unknown of that record


class Unknowns:
    """``items[i] = (index, record)``: which parameter unknown i is, and whose (record -1: shared by all)."""

    def __init__(self, items: Sequence[tuple[int, int]], records: int) -> None:
        self.items, self.records = sorted(items), records
        self.free = sorted({index for index, _ in self.items})
        place = {item: i for i, item in enumerate(self.items)}
        self._columns = [
            np.array([place.get((j, r), place.get((j, -1), ABSENT)) for j in self.free], dtype=np.int64)
            for r in range(records)
        ]

    @classmethod
    def by_record(cls, free: Sequence[int], local: Collection[int], records: int) -> Unknowns:
        """Those of ``local`` with a value of their own in each record, the others shared."""
        items = [(j, r) for j in free for r in (range(records) if j in local else (-1,))]
        return cls(items, records)

    def __len__(self) -> int:
        return len(self.items)

    def columns(self, record: int) -> NDArray[np.int64]:
        """Positions of the unknowns that hold in a record, in the order of ``free``; ABSENT: none does."""
        return self._columns[record]

    def own(self, record: int, step: Array) -> Array:
        """A step of the unknowns as a record sees it, in the order of ``free``; zero where none holds."""
        where = self._columns[record]
        return np.where(where == ABSENT, 0.0, step[where])

    def add(
        self, record: int, information: Array, gradient: Array, own_information: Array, own_gradient: Array
    ) -> None:
        """Add what a record tells, in the order of ``free``, to information and gradient of all unknowns."""
        where = self._columns[record]
        there = np.flatnonzero(where != ABSENT)
        place = where[there]
        information[np.ix_(place, place)] += own_information[np.ix_(there, there)]
        gradient[place] += own_gradient[there]

    def current(self, values: Array) -> Array:
        """The unknowns out of values[records, parameters]."""
        return np.array([values[max(record, 0), index] for index, record in self.items])

    def moved(self, values: Array, step: Array) -> Array:
        """values[records, parameters] after a step of the unknowns."""
        changed = values.copy()
        for (index, record), change in zip(self.items, step, strict=True):
            changed[slice(None) if record < 0 else record, index] += change
        return changed

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Bounds of the unknowns from those of the parameters."""
        indices = [index for index, _ in self.items]
        return low[indices], high[indices]
