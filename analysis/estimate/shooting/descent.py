"""The descent of a shooting fit: shared unknowns in search coordinates, an initial state for each stretch.

A trial whose motion is lost costs infinity: it is a rejected step, and the damping grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.estimate import descent
from analysis.estimate.descent import bordered_step, promised_decrease
from analysis.estimate.shooting.problem import Evaluation, Problem

Array = NDArray[np.float64]
Step = tuple[Array, list[Array]]  # of the unknowns, and of each stretch's initial state

LARGEST_LOG_STEP = 1.0  # a factor e: beyond it the linearisation of a positive parameter means little
LARGEST_RELATIVE_STEP = math.e - 1.0  # of a parameter of either sign, in sizes of its own

Descent = descent.Descent[Evaluation]


def minimise(
    problem: Problem,
    start: Evaluation,
    tolerance: float,
    iterations: int,
    *,
    initial_only: bool = False,
    enough: float = -np.inf,
    watch: Callable[[], None] | None = None,
) -> Descent:
    """Lower the cost from an evaluated point until a step promises less than ``tolerance`` of the cost, or
    until the cost is ``enough``.

    ``initial_only`` moves the initial states and holds the parameters.
    """
    steps = _Steps(problem, initial_only)
    return descent.minimise(steps, start, tolerance, iterations, enough=enough, watch=watch)


@dataclass(frozen=True, eq=False)
class _Steps:
    """The problem as the descent takes it."""

    problem: Problem
    initial_only: bool

    def proposed(self, here: Evaluation, damping: float) -> tuple[Step, float]:
        lowest, highest = self._reach(here)
        held = [
            _held(initial, stretch.lower, stretch.upper, g)
            for stretch, initial, (g, _, _) in zip(
                self.problem.stretches, here.point.initials, here.local, strict=True
            )
        ]
        step, own = bordered_step(here, lowest, highest, damping, held)
        return (step, own), promised_decrease(here, step, own)

    def after(self, here: Evaluation, step: Step) -> Evaluation:
        return self.problem.evaluate(self.problem.moved(here.point, *step))

    def _reach(self, here: Evaluation) -> tuple[Array, Array]:
        """How far each unknown may move in one step: to its bounds, and not beyond its cap."""
        problem = self.problem
        if self.initial_only:
            none = np.zeros(len(problem.unknowns))
            return none, none
        values = problem.unknowns.current(here.point.values)
        now, (low, high) = problem.search(here.point.values), problem.search_bounds()
        logs = problem.logarithmic[problem.index]
        size = np.maximum(np.abs(values), problem.scale[problem.index])
        cap = np.where(logs, LARGEST_LOG_STEP, np.where(size > 0, LARGEST_RELATIVE_STEP * size, np.inf))
        return np.maximum(low - now, -cap), np.minimum(high - now, cap)


def _held(value: Array, lower: Array, upper: Array, gradient: Array) -> NDArray[np.bool_]:
    """Which initial values sit on a bound that the gradient pushes them against."""
    if not len(lower):
        return np.zeros(len(value), dtype=bool)
    return ((value <= lower) & (gradient < 0)) | ((value >= upper) & (gradient > 0))
