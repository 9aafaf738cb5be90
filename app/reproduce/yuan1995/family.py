"""Tables of chapter 3 whose rows take more and more powers of the restoring force."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from analysis import Model, Progress
from app.reproduce.rows import Row
from app.reproduce.yuan1995.comparison import Printed, both_methods, comparison_rows, printed_values
from app.reproduce.yuan1995.systems import forced_record


@dataclass(frozen=True)
class Family:
    """A forced system whose restoring force the thesis takes with more and more powers."""

    system: str  # as forced_record knows it
    frequency: float  # of the drive, rad per unit of time
    model: Callable[[], Model]
    names: Callable[[int], list[str]]  # the parameters up to the p-th power
    truth: Printed
    periods: tuple[int, ...]  # orbits looked for
    options: Mapping[str, Any] = field(default_factory=dict)

    def rows(self, case: str, p: int, percent: int, count: int, printed: str) -> list[Row]:
        """One printed row: ``count`` orbits, p powers, noise in per cent."""
        names = self.names(p)
        clean = forced_record(self.system, self.frequency)
        noisy = forced_record(self.system, self.frequency, percent / 100)
        plain, ours = both_methods(self.model(), names, clean, noisy, self.periods, count, **self.options)
        return comparison_rows(case, self.truth, printed_values(" ".join(names), printed), plain, ours, 1e-3)

    def without_noise(self, table: Mapping[int, str], count: int, progress: Progress) -> list[Row]:
        """A table by the number of powers."""
        rows: list[Row] = []
        for done, (p, printed) in enumerate(table.items()):
            progress.report(done / len(table), f"p = {p}")
            rows += self.rows(f"p = {p}", p, 0, count, printed)
        return rows

    def with_noise(self, table: Mapping[tuple[int, int], str], count: int, progress: Progress) -> list[Row]:
        """A table by noise in per cent and number of powers."""
        rows: list[Row] = []
        for done, ((percent, p), printed) in enumerate(table.items()):
            case = f"{percent} %, p = {p}"
            progress.report(done / len(table), case)
            rows += self.rows(case, p, percent, count, printed)
        return rows
