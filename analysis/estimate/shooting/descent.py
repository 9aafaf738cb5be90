"""Levenberg-Marquardt with Marquardt's scaling, bounds by an active set, and a cap on each step.

The initial states are eliminated stretch by stretch, so the cost of a step grows with the number of stretches
only linearly. A trial whose motion is lost costs infinity: it is a rejected step, and the damping grows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.shooting.problem import Evaluation, Problem

Array = NDArray[np.float64]

LARGEST_LOG_STEP = 1.0  # a factor e: beyond it the linearisation of a positive parameter means little
LARGEST_RELATIVE_STEP = np.e - 1.0  # of a parameter of either sign, in sizes of its own
_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-2, 1e-10, 1e12
_FREE = 1.0  # damping above which a small promised gain says nothing about the distance to the minimum


@dataclass(frozen=True, eq=False)
class Descent:
    """Where a search ended."""

    evaluation: Evaluation
    converged: bool
    iterations: int
    history: tuple[float, ...] = ()  # cost after each accepted step

    @property
    def cost(self) -> float:
        return self.evaluation.cost


def minimise(
    problem: Problem,
    start: Evaluation,
    tolerance: float,
    iterations: int,
    *,
    initial_only: bool = False,
    watch: Callable[[], None] | None = None,
) -> Descent:
    """Lower the cost from an evaluated point until a step promises less than ``tolerance`` of the cost.

    ``initial_only`` moves the initial states and holds the parameters.
    """
    here, damping, growth = start, _FIRST_DAMPING, 4.0
    history = [here.cost]
    for iteration in range(1, iterations + 1):
        if not np.isfinite(here.cost):
            return Descent(here, False, iteration - 1, tuple(history))
        if watch is not None:
            watch()
        step, initial_steps = _step(problem, here, damping, initial_only)
        promised = _promised(here, step, initial_steps)
        if promised <= tolerance * here.cost and (damping <= _FREE or promised <= 1e-9 * here.cost):
            return Descent(here, True, iteration, tuple(history))
        trial = problem.evaluate(problem.moved(here.point, step, initial_steps))
        ratio = (here.cost - trial.cost) / promised if np.isfinite(trial.cost) else -1.0
        if ratio > 1e-4:
            gain = here.cost - trial.cost
            here = trial
            history.append(here.cost)
            damping = max(damping * (0.1 if ratio > 0.5 else 0.5 if ratio > 0.1 else 2.0), _LEAST_DAMPING)
            growth = 4.0
            if gain <= tolerance * here.cost and damping <= _FREE:
                return Descent(here, True, iteration, tuple(history))
        else:
            damping *= growth
            growth *= 2.0
            if damping > _MOST_DAMPING:
                return Descent(here, False, iteration, tuple(history))
    return Descent(here, False, iterations, tuple(history))


def _step(
    problem: Problem, here: Evaluation, damping: float, initial_only: bool
) -> tuple[Array, list[Array]]:
    """Damped Gauss-Newton step of the unknowns and of each initial state."""
    gradient = here.gradient.copy()
    hessian = here.hessian + damping * np.diag(np.diag(here.hessian))
    eliminated = []
    for stretch, initial, (g, h, cross) in zip(
        problem.stretches, here.point.initials, here.local, strict=True
    ):
        held = _held(initial, stretch.lower, stretch.upper, g)
        g, cross = np.where(held, 0.0, g), np.where(held, 0.0, cross)
        inner = np.where(np.outer(~held, ~held), h, 0.0)
        diagonal = np.diag(inner) * (1.0 + damping)
        np.fill_diagonal(inner, np.where(held | (diagonal <= 0), 1.0, diagonal))
        back = _solve(inner, np.column_stack([g, cross.T]))
        gradient -= cross @ back[:, 0]
        hessian -= cross @ back[:, 1:]
        eliminated.append(back)
    step = np.zeros(len(gradient)) if initial_only else _in_box(problem, here, gradient, hessian)
    return step, [b[:, 0] - b[:, 1:] @ step for b in eliminated]


def _held(value: Array, lower: Array, upper: Array, gradient: Array) -> NDArray[np.bool_]:
    """Which unknowns sit on a bound that the gradient pushes them against."""
    if not len(lower):
        return np.zeros(len(value), dtype=bool)
    return ((value <= lower) & (gradient < 0)) | ((value >= upper) & (gradient > 0))


def _in_box(problem: Problem, here: Evaluation, gradient: Array, hessian: Array) -> Array:
    """Minimiser of the quadratic model within bounds and caps; what hits a bound stays there."""
    values = problem.unknowns.current(here.point.values)
    now, (low, high) = problem.search(here.point.values), problem.search_bounds()
    logs = problem.logarithmic[problem.index]
    size = np.maximum(np.abs(values), problem.scale[problem.index])
    cap = np.where(logs, LARGEST_LOG_STEP, np.where(size > 0, LARGEST_RELATIVE_STEP * size, np.inf))
    lowest, highest = np.maximum(low - now, -cap), np.minimum(high - now, cap)
    held = ((now <= low) & (here.gradient < 0)) | ((now >= high) & (here.gradient > 0))
    held |= np.diag(here.hessian) <= 0  # no effect on the data: nowhere to go
    step = np.zeros_like(gradient)
    for _ in range(len(gradient)):
        inside = np.flatnonzero(~held)
        if not len(inside):
            break
        outside = np.flatnonzero(held)
        rest = gradient[inside] - hessian[np.ix_(inside, outside)] @ step[outside]
        wanted = _solve(hessian[np.ix_(inside, inside)], rest)
        beyond = (wanted < lowest[inside]) | (wanted > highest[inside])
        step[inside] = np.clip(wanted, lowest[inside], highest[inside])
        if not beyond.any():
            break
        held[inside[beyond]] = True
    return step


def _promised(here: Evaluation, step: Array, initial_steps: list[Array]) -> float:
    """Decrease of the cost by the quadratic model."""
    gain = here.gradient @ step - 0.5 * step @ here.hessian @ step
    for (g, h, cross), move in zip(here.local, initial_steps, strict=True):
        gain += g @ move - 0.5 * move @ h @ move - step @ cross @ move
    return float(gain)


def _solve(matrix: Array, right: Array) -> Array:
    """Solve a symmetric system whose unknowns differ by many powers of ten."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    scaled = matrix * np.outer(scale, scale)
    columns = right if right.ndim == 2 else right[:, None]
    try:
        factor = np.linalg.cholesky(scaled + 1e-14 * np.eye(len(scale)))
        solved = np.linalg.solve(factor.T, np.linalg.solve(factor, scale[:, None] * columns))
    except np.linalg.LinAlgError:
        solved = np.linalg.lstsq(scaled, scale[:, None] * columns, rcond=1e-13)[0]
    solved = scale[:, None] * solved
    return np.asarray(solved if right.ndim == 2 else solved[:, 0])
