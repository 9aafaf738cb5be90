"""The samples behind a line: what is read and copied where only the envelope of them is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]
MOST_ROWS = 1_000_000  # of a table: about what a spreadsheet takes


@dataclass(frozen=True)
class Behind:
    """Uniform samples: the i-th stands at ``origin + i * step`` on the axis.

    ``values(start, stop)`` gives them as they are drawn (of a logarithmic axis their logarithms); fewer
    where they are no longer held.
    """

    origin: float
    step: float
    count: int
    values: Callable[[int, int], Samples]

    @classmethod
    def of(cls, x: Samples, y: Samples) -> Behind:
        """Uniform places and the values there."""
        return cls(float(x[0]), float(x[1] - x[0]), len(x), lambda start, stop: y[start:stop])

    def near(self, x: float) -> tuple[float, float]:
        """Place and value of the sample nearest to a place; the value is not a number where it was lost."""
        i = int(np.clip(np.round((x - self.origin) / self.step), 0, max(self.count - 1, 0)))
        found = self.values(i, i + 1)
        return self.origin + i * self.step, float(found[0]) if len(found) else np.nan

    def span(self, left: float, right: float) -> tuple[int, int]:
        """Numbers of the samples from one place to another."""
        start, stop = (
            np.clip([np.ceil((left - self.origin) / self.step - 1e-6),
                     np.floor((right - self.origin) / self.step + 1e-6) + 1], 0, self.count)
        )  # fmt: skip
        return int(start), int(stop)

    def between(self, left: float, right: float) -> tuple[Samples, Samples]:
        """Places and values from one place to another."""
        start, stop = self.span(left, right)
        y = np.asarray(self.values(start, stop), dtype=np.float64)
        return self.origin + self.step * np.arange(stop - len(y), stop, dtype=np.float64), y


def nearest(drawn: Any, x: float) -> tuple[float, float] | None:
    """Place and value of a drawn line's datum nearest to a place; None if it has none."""
    behind: Behind | None = getattr(drawn, "behind", None)
    if behind is not None:
        return behind.near(x) if behind.count else None
    xs, ys = drawn.getData()
    if xs is None or len(xs) == 0 or not np.isfinite(xs).any():
        return None
    at = int(np.nanargmin(np.abs(np.asarray(xs) - x)))
    return float(xs[at]), float(ys[at])


def rows_shown(drawn: Any, left: float, right: float) -> int:
    """How many rows :func:`shown` gives."""
    behind: Behind | None = getattr(drawn, "behind", None)
    if behind is not None:
        start, stop = behind.span(left, right)
        return stop - start
    xs = drawn.getData()[0]
    return 0 if xs is None else len(xs)


def shown(drawn: Any, left: float, right: float) -> tuple[Samples, Samples]:
    """The data that a line stands for: of an envelope the samples between the edges of the view."""
    behind: Behind | None = getattr(drawn, "behind", None)
    if behind is not None:
        return behind.between(left, right)
    xs, ys = drawn.getData()
    return (np.empty(0), np.empty(0)) if xs is None else (np.asarray(xs), np.asarray(ys))
