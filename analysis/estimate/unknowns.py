"""The unknowns of a fit to several records: some shared by all, some of each record to itself."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Unknowns:
    """``items[i] = (index, record)``: which parameter unknown i is, and whose (record -1: shared by all)."""

    def __init__(self, free: list[int], local: Collection[int], records: int) -> None:
        self.free = free
        self.items = [(j, r) for j in free for r in (range(records) if j in local else (-1,))]
        place = {item: i for i, item in enumerate(self.items)}
        self._columns = [
            [place[(j, r)] if j in local else place[(j, -1)] for j in free] for r in range(records)
        ]

    def __len__(self) -> int:
        return len(self.items)

    def columns(self, record: int) -> list[int]:
        """Positions of the unknowns that hold in a record, in the order of ``free``."""
        return self._columns[record]

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
