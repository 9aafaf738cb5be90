"""What a benchmark measures: our time and a peer's for the same work, and whether the answers agree."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measurement:
    """One row of a table. Times are medians of processor seconds from the same run of the program."""

    work: str
    peer: str
    peer_seconds: float | None  # None: the peer cannot do it, or is not installed
    our_seconds: float
    agrees: bool | None = None  # None: there is no answer to compare
    wanted: float | None = None  # the least ratio that is asked for
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times faster we are."""
        return None if self.peer_seconds is None else self.peer_seconds / self.our_seconds

    @property
    def good(self) -> bool:
        fast = self.wanted is None or self.ratio is None or self.ratio >= self.wanted
        return fast and self.agrees is not False


def median_times(runs: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median processor time of each, taken in turns, so that a busy machine slows all alike."""
    for run in runs.values():
        run()  # compilation and caches
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            begin = time.process_time()
            run()
            taken[name].append(time.process_time() - begin)
    return {name: statistics.median(values) for name, values in taken.items()}
