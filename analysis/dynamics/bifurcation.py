"""Brute-force bifurcation diagrams: the long-term motion over a range of any parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.progress import SILENT, Progress
from analysis.dynamics.section import poincare
from analysis.model import Model
from analysis.simulation.sets import Ensemble
from analysis.simulation.simulate import States, Values, initial_vector, parameter_vector, simulate

Array = NDArray[np.float64]

APERIODIC = 0
DIVERGED = -1
_WHAT = "bifurcation diagram"


@dataclass(frozen=True, eq=False)
class BifurcationDiagram:
    """``points[n, keep, S]`` on the section for each of the parameter's ``values[S]``.

    ``periods[S]`` in returns to the section: 1, 2, ..., 0 where none was found (chaos or a long transient),
    -1 where the motion diverged.
    """

    parameter: str
    values: Array
    points: Array
    periods: NDArray[np.int64]

    def branch(self, period: int) -> Array:
        """The parameter's values at which the motion has this period."""
        return np.asarray(self.values[self.periods == period])


def bifurcation(
    model: Model,
    parameter: str,
    values: Sequence[float] | Array,
    period: float | Sequence[float] | Array,
    transient: int = 200,
    keep: int = 100,
    direction: str = "fixed",
    steps: int = 200,
    initial: States = None,
    others: Mapping[str, float] | None = None,
    longest_period: int = 32,
    tolerance: float = 1e-3,
    progress: Progress = SILENT,
) -> BifurcationDiagram:
    """Stroboscopic diagram of a forced model; ``period`` of the drive, one for all values or one for each.

    ``direction``: ``fixed`` starts every value from ``initial`` (all at once, fast); ``up`` and ``down``
    follow an attractor, each value starting where its neighbour ended, so that hysteresis shows. ``steps`` of
    Runge-Kutta 4 in a period. A motion repeats if it does within ``tolerance`` of the attractor's size.
    """
    grid = np.ascontiguousarray(values, dtype=np.float64)
    model.index(parameter)
    if grid.ndim != 1 or len(grid) == 0 or not np.all(np.isfinite(grid)):
        raise DataError("A bifurcation diagram needs a list of finite values of the parameter.")
    periods = np.broadcast_to(np.asarray(period, dtype=np.float64), grid.shape)
    if not (np.all(periods > 0) and transient >= 0 and keep >= 2 and steps >= 1):
        raise DataError("Period, steps and the number of periods kept must be positive.")
    if direction not in ("fixed", "up", "down"):
        raise DataError(f"No direction '{direction}': choose fixed, up or down.")
    sweep = _Sweep(model, parameter, grid, periods, transient, keep, steps, initial, others or {}, progress)
    points = sweep.all_at_once() if direction == "fixed" else sweep.following(direction)
    progress.report(1.0, _WHAT)
    return BifurcationDiagram(parameter, grid, points, classify(points, longest_period, tolerance))


@dataclass(frozen=True, eq=False)
class _Sweep:
    """States once a period of the drive, ``points[n, keep, S]`` for each value of the parameter."""

    model: Model
    parameter: str
    grid: Array
    periods: Array  # one for each value
    transient: int  # periods
    keep: int
    steps: int
    initial: States
    others: Mapping[str, float]
    progress: Progress

    def all_at_once(self) -> Array:
        """Every value from the same start."""
        start = initial_vector(self.model, self.initial)
        chosen: dict[str, Any] = {**self.others, self.parameter: self.grid}
        ensemble = Ensemble.prepare(self.model, start, chosen)
        points = np.empty((len(start), self.keep, len(self.grid)))
        total = self.transient + self.keep
        for k in range(total):
            if k % 16 == 0:
                self.progress.report(k / total, _WHAT)
            ensemble.times = k * self.periods  # exactly the drive's phase: no rounding errors add up
            ensemble.advance(self.periods, self.steps)
            if k >= self.transient:
                points[:, k - self.transient] = ensemble.states
        return points

    def following(self, direction: str) -> Array:
        """Every value from where its neighbour ended."""
        state = initial_vector(self.model, self.initial)
        order = np.argsort(self.grid if direction == "up" else -self.grid)
        points = np.full((len(state), self.keep, len(self.grid)), np.nan)
        for done, index in enumerate(order):
            self.progress.report(done / len(self.grid), _WHAT)
            p = parameter_vector(self.model, {**self.others, self.parameter: float(self.grid[index])})
            times = np.arange(self.transient + self.keep + 1) * self.periods[index]
            run = simulate(self.model, times, state, p, method="rk4", substeps=self.steps)
            points[:, :, index] = run.states[:, self.transient + 1 :]
            diverged = run.diverged_at is not None
            state = initial_vector(self.model, self.initial) if diverged else run.states[:, -1]
        return points


def bifurcation_of_section(
    model: Model,
    parameter: str,
    values: Sequence[float] | Array,
    surface: str | Mapping[str, float],
    level: float = 0.0,
    crossing: int = 1,
    transient: float = 0.0,
    keep: int = 100,
    longest: float = 1e4,
    initial: States = None,
    others: Values = None,
    longest_period: int = 32,
    tolerance: float = 1e-3,
    progress: Progress = SILENT,
) -> BifurcationDiagram:
    """Diagram of an autonomous model on a Poincare section (see :func:`analysis.dynamics.section.poincare`).

    Every value has the same start. Points that were not reached within ``longest`` are not-a-number.
    """
    grid = np.ascontiguousarray(values, dtype=np.float64)
    index, base = model.index(parameter), parameter_vector(model, others)
    points = np.full((len(model.states), keep, len(grid)), np.nan)
    for s, value in enumerate(grid):
        progress.report(s / len(grid), _WHAT)
        p = base.copy()
        p[index] = value
        cut = poincare(
            model, surface, keep, level, crossing, transient, transient + longest, initial, p, rtol=1e-8
        )
        points[:, : len(cut), s] = cut.states
    progress.report(1.0, _WHAT)
    return BifurcationDiagram(parameter, grid, points, classify(points, longest_period, tolerance))


def classify(points: Array, longest_period: int = 32, tolerance: float = 1e-3) -> NDArray[np.int64]:
    """Period of each column of points[n, keep, S] in samples: the smallest shift under which it repeats."""
    keep, count = points.shape[1:]
    finite = np.all(np.isfinite(points), axis=(0, 1)) & np.all(np.abs(points) < 1e12, axis=(0, 1))
    periods = np.full(count, APERIODIC, dtype=np.int64)
    periods[~finite] = DIVERGED
    if not finite.any():
        return periods
    good = points[:, :, finite]
    size = np.maximum(np.max(np.ptp(good, axis=1), axis=1), np.sqrt(np.mean(good**2, axis=(1, 2))))
    # the state that defines a section stays put but for rounding: that must not count as motion
    size = np.maximum(size, 1e-9 * size.max() or 1.0)[:, None, None]
    found = np.full(good.shape[2], APERIODIC, dtype=np.int64)
    for shift in range(1, min(longest_period, keep - 1) + 1):
        repeats = np.max(np.abs(good[:, shift:] - good[:, :-shift]) / size, axis=(0, 1)) < tolerance
        found[(found == APERIODIC) & repeats] = shift
    periods[finite] = found
    return periods
