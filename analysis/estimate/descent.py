"""The descent of the least-squares fits: Gauss-Newton steps within bounds, damped by Levenberg-Marquardt.

A problem says what a damped step would be and what it costs to be there; :func:`minimise` decides which steps
are taken and when it ends. Many problems have unknowns of their own in each stretch of the data (initial
states) beside those that all stretches share: :func:`bordered_step` eliminates them stretch by stretch, so
that a step costs time linear in their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.identifiability import pseudo_inverse

Array = NDArray[np.float64]

FIRST_DAMPING = 1e-2  # of the diagonal: a start of which nothing is known
LEAST_DAMPING, MOST_DAMPING = 1e-10, 1e12  # below: Gauss-Newton; above: no direction leads down
_AFTER_REJECTION = 1e-2  # least damping then: smaller ones would be tried in vain one after the other
_FREE = 1.0  # damping above which a small gain says nothing about the distance to the minimum ...
_NO_GAIN = 1e-9  # ... unless it is as small as this, of the cost
_TAKEN = 1e-4  # gain over the promised one from which a step is taken
_GOOD, _FAIR = 0.5, 0.1  # the same from which the damping may fall much, or a little


class Evaluated(Protocol):
    """A point with its cost, half the weighted sum of squares; infinite where it has none."""

    @property
    def cost(self) -> float: ...


Here = TypeVar("Here", bound=Evaluated)


class LeastSquares(Protocol[Here]):
    """What can be minimised."""

    def proposed(self, here: Here, damping: float) -> tuple[Any, float]:
        """A damped step inside all bounds, and the decrease of the cost that its quadratic model promises."""
        ...

    def after(self, here: Here, step: Any) -> Here:
        """The point that a step leads to, evaluated."""
        ...


@dataclass(frozen=True, eq=False)
class Descent(Generic[Here]):
    """Where a descent ended."""

    evaluation: Here
    converged: bool
    iterations: int
    history: tuple[float, ...] = ()  # cost at the start and after each step taken

    @property
    def cost(self) -> float:
        return self.evaluation.cost


def minimise(
    problem: LeastSquares[Here],
    start: Here,
    tolerance: float,
    iterations: int,
    *,
    first_damping: float = FIRST_DAMPING,
    unresolved: float = 0.0,
    enough: float = -np.inf,
    watch: Callable[[], None] | None = None,
    taken: Callable[[Here], None] | None = None,
) -> Descent[Here]:
    """Lower the cost from an evaluated point until a step promises less than ``tolerance`` of the cost, or
    less than ``unresolved``, or until the cost is ``enough``.

    ``watch`` is called before each step, ``taken`` after each one that was taken.
    """
    here, damping, growth = start, first_damping, 4.0
    history = [here.cost]
    for iteration in range(1, iterations + 1):
        if not np.isfinite(here.cost):
            return Descent(here, False, iteration - 1, tuple(history))
        if here.cost <= enough:
            return Descent(here, True, iteration - 1, tuple(history))
        if watch is not None:
            watch()
        step, promised = problem.proposed(here, damping)
        least = tolerance if damping <= _FREE else min(tolerance, _NO_GAIN)
        if promised <= max(least * here.cost, unresolved):
            return Descent(here, True, iteration, tuple(history))
        trial = problem.after(here, step)
        gain = here.cost - trial.cost if np.isfinite(trial.cost) else -np.inf
        if gain > _TAKEN * promised:
            here, growth = trial, 4.0
            history.append(here.cost)
            if taken is not None:
                taken(here)
            factor = 0.1 if gain > _GOOD * promised else 0.5 if gain > _FAIR * promised else 2.0
            damping = max(damping * factor, LEAST_DAMPING)
            if gain <= max(tolerance * here.cost, unresolved) and damping <= _FREE:
                return Descent(here, True, iteration, tuple(history))
        else:
            damping = max(damping * growth, _AFTER_REJECTION)
            growth *= 2.0
            if damping > MOST_DAMPING:
                return Descent(here, False, iteration, tuple(history))
    return Descent(here, False, iterations, tuple(history))


def bounded_step(
    information: Array, gradient: Array, here: Array, low: Array, high: Array, damping: float
) -> Array:
    """Levenberg-Marquardt step inside the bounds: what would leave is set on its bound, the rest solved
    for.
    """
    step = np.zeros(len(here))
    active = np.zeros(len(here), dtype=bool)
    for _ in range(len(here) + 1):
        inside = ~active
        if not inside.any():
            break
        rest = gradient[inside] - information[np.ix_(inside, active)] @ step[active]
        matrix = information[np.ix_(inside, inside)]
        step[inside] = pseudo_inverse(matrix + damping * np.diag(np.diag(matrix))) @ rest
        out = inside & ((here + step < low) | (here + step > high))
        if not out.any():
            break
        step[out] = np.clip(here[out] + step[out], low[out], high[out]) - here[out]
        active |= out
    return step


Own = tuple[Array, Array, Array]  # gradient [m], matrix [m, m] and cross [shared, m] of a stretch's unknowns


class Bordered(Protocol):
    """A Gauss-Newton model: downhill gradient and matrix of the shared unknowns, and each stretch's own."""

    gradient: Array
    hessian: Array
    local: list[Own]


def bordered_step(
    here: Bordered,
    lowest: Array,
    highest: Array,
    damping: float,
    held: Sequence[NDArray[np.bool_]] | None = None,
) -> tuple[Array, list[Array]]:
    """Damped step of the shared unknowns, between ``lowest`` and ``highest``, and of each stretch's own.

    ``held``: which of the latter stay where they are.
    """
    gradient = here.gradient.copy()
    hessian = here.hessian + damping * np.diag(np.diag(here.hessian))
    eliminated = []
    for i, (g, h, cross) in enumerate(here.local):
        free = np.ones(len(g), dtype=bool) if held is None else ~held[i]
        g, cross = np.where(free, g, 0.0), np.where(free, cross, 0.0)
        inner = np.where(np.outer(free, free), h, 0.0)
        back = pseudo_inverse(inner + damping * np.diag(np.diag(inner))) @ np.column_stack([g, cross.T])
        gradient -= cross @ back[:, 0]
        hessian -= cross @ back[:, 1:]
        eliminated.append(back)
    step = bounded_step(hessian, gradient, np.zeros(len(gradient)), lowest, highest, 0.0)
    return step, [back[:, 0] - back[:, 1:] @ step for back in eliminated]


def promised_decrease(here: Bordered, step: Array, own_steps: Sequence[Array]) -> float:
    """Decrease of the cost by the quadratic model."""
    gain = here.gradient @ step - 0.5 * step @ here.hessian @ step
    for (g, h, cross), move in zip(here.local, own_steps, strict=True):
        gain += g @ move - 0.5 * move @ h @ move - step @ cross @ move
    return float(gain)
