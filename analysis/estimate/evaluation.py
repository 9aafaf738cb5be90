"""Where a search over simulated motions stands: values, first states, and what it costs to be there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.descent import Own

Array = NDArray[np.float64]
Simulated = TypeVar("Simulated")  # one stretch as it was simulated


@dataclass(frozen=True, eq=False)
class Point:
    """Values of everything that may be free, and the initial state of each stretch.

    ``values``: the parameters [k], or by record with offsets, delays and drifts of the sensors behind them
    [records, k + 3q].
    """

    values: Array
    initials: tuple[Array, ...]


@dataclass(eq=False)
class Evaluation(Generic[Simulated]):
    """Half the weighted sum of squares at a point, and its Gauss-Newton model bordered by stretch."""

    point: Point
    cost: float  # infinite where a motion is lost
    motions: list[Simulated] = field(default_factory=list)  # by stretch
    gradient: Array = field(default_factory=lambda: np.zeros(0))  # downhill: J'r
    hessian: Array = field(default_factory=lambda: np.zeros((0, 0)))
    local: list[Own] = field(default_factory=list)  # of each stretch's initial state

    @staticmethod
    def begun(point: Point, unknowns: int) -> Evaluation[Simulated]:
        """Before the first stretch is added."""
        return Evaluation(point, 0.0, [], np.zeros(unknowns), np.zeros((unknowns, unknowns)))

    def or_lost(self) -> Evaluation[Simulated]:
        """This; where the cost is no number, a point that costs infinity and of which no more is known."""
        return self if np.isfinite(self.cost) else Evaluation(self.point, np.inf)
