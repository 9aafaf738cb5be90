"""Samples that one motion has to follow: what shooting and homotopy fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from analysis.signal.inputs import Inputs

if TYPE_CHECKING:
    from analysis.experiment import Experiment, Run

Array = NDArray[np.float64]
Place = tuple[int, int, int]  # run, first sample, the one after the last


@dataclass(frozen=True, eq=False)
class Stretch:
    """Samples that one motion has to follow. Outputs [q, N] are nan where nothing was measured."""

    times: Array  # [N] uniform, the model's t
    outputs: Array
    inputs: Inputs
    record: int = 0
    origin: float = 0.0  # time from which drifts count: the record's first sample
    # Bounds [n] of the initial state, equal where it is known; empty: none.
    lower: Array = field(default_factory=lambda: np.zeros(0))
    upper: Array = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.times)

    @property
    def dt(self) -> float:
        return float(self.times[1] - self.times[0])

    def cut(self, first: int, stop: int) -> Self:
        """Samples first to stop; bounds of the initial state hold only where it is still the first."""
        part = replace(self, times=self.times[first:stop], outputs=self.outputs[:, first:stop])
        return part if first == 0 else part.unbounded()

    def unbounded(self) -> Self:
        """The same with an initial state of which nothing is known."""
        return replace(self, lower=np.zeros(0), upper=np.zeros(0))


def stretch_of(experiment: Experiment, place: Place) -> Stretch:
    number, first, stop = place
    run: Run = experiment.runs[number]
    lower, upper = bounds_at(run, first)
    return Stretch(
        np.ascontiguousarray(run.times[first:stop]),
        np.ascontiguousarray(run.outputs[:, first:stop]),
        run.inputs,
        number,
        float(run.times[0]),
        lower,
        upper,
    )


def bounds_at(run: Run, first: int) -> tuple[Array, Array]:
    """Bounds of the state at a sample, equal where it is known: at the run's first, else none."""
    nothing = not (np.isfinite(run.initial_lower) | np.isfinite(run.initial_upper)).any()
    if first > 0 or nothing:
        return np.zeros(0), np.zeros(0)
    return run.initial_lower, run.initial_upper
