"""Nonlinear least squares with smoothness penalties whose weights the restricted likelihood chooses.

A huge weight leaves only what a penalty does not see (straight lines, say), which a poor guess can reach. The
weights then follow the generalised Fellner-Schall step (Wood, Fasiolo 2017), at most a factor at a time, to
the maximum of the restricted likelihood; between steps the noise levels are estimated anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from analysis.base.progress import SILENT, Progress
from analysis.estimate.descent import Descent, minimise

Array = NDArray[np.float64]
QUIET = 8  # stages in which a penalty is let go without any effect
HEAVIEST = 1e14  # weight at which the penalty of a function of size 1 has won
LIGHTEST = 1e-14  # and at which it no longer counts
_FIRST_DAMPING = 1e-3
_ROUNDED = 1e-9  # of the cost, below which a gain is none
_LIGHTER = 0.95  # of its weight: a penalty that falls below is still being let go
_SAME_FREEDOM = 0.005  # change of the degrees of freedom in a stage that counts as none
_SAME_NOISE = 0.01  # relative change of the noise levels that does
_SAME_WEIGHT = 0.05  # change of the logarithm of a penalty's weight that does


@dataclass(frozen=True)
class Misfit:
    """Weighted squares at one value of the unknowns; residuals are in units of their noise."""

    cost: float  # half the weighted squares; infinite where the unknowns are not admissible
    gradient: Array
    hessian: Array  # Gauss-Newton
    squares: list[Array]  # unweighted, by record and sensor: what the noise levels are estimated from


class Task(Protocol):
    """Something whose misfit is to be made small."""

    def misfit(self, theta: Array, derivatives: bool = True) -> Misfit: ...

    def set_noise(self, squares: Sequence[Array], spent: float) -> float:
        """New noise levels after a fit that spent so many degrees of freedom; the largest change of a log."""
        ...


@dataclass(frozen=True)
class Smooth:
    """A block of unknowns with its penalty matrices (more than one for a function of two variables)."""

    where: slice
    penalties: tuple[Array, ...]
    size: float = 1.0  # of the function, in its own unit: what is heavy or light depends on it


@dataclass(frozen=True)
class Fit:
    theta: Array
    covariance: Array  # Bayesian, of the penalised fit
    hessian: Array  # of the data alone
    weights: Array  # of the penalties, in order
    misfit: Misfit
    freedom: float  # effective degrees of freedom
    converged: bool
    iterations: int
    history: list[dict[str, float]]


def fit_penalised(
    task: Task,
    theta: Array,
    smooths: Sequence[Smooth],
    weights: Array,
    directions: Array | None = None,
    stages: int = 60,
    factor: float = 10.0,
    largest: float = np.inf,
    progress: Progress = SILENT,
) -> Fit:
    """Fit from a start. ``directions``: columns along which the unknowns may move (None: all).

    ``factor``: how much a penalty may change in one stage; ``largest``: of one step of an unknown.
    """
    current = task.misfit(theta)
    task.set_noise(current.squares, 0.0)
    current = task.misfit(theta)
    history: list[dict[str, float]] = []
    iterations, converged, freedom, quiet = 0, False, 0.0, 0
    for stage in range(stages):
        penalty = penalty_matrix(smooths, weights, len(theta))
        last = theta
        found = descend(task, theta, current, penalty, directions, largest=largest)
        theta, current = found.evaluation.theta, found.evaluation.misfit
        iterations += found.iterations
        covariance = inverted(current.hessian + penalty, directions)
        errors = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
        before, freedom = freedom, float(np.sum(covariance * current.hessian))
        new = fellner_schall(smooths, theta, weights, covariance, factor)
        drift = task.set_noise(current.squares, freedom)
        move = float(np.max(np.abs(np.log(new / weights)), initial=0.0))
        row = {"cost": current.cost, "freedom": freedom, "noise_change": drift, "weight_change": move}
        history.append({**row, "step": float(np.max(np.abs(theta - last) / errors))})
        progress.report(stage / stages, "letting the penalty go", freedom=freedom, cost=current.cost)
        let_go = bool(np.any(new < _LIGHTER * weights))
        weights = new
        current = task.misfit(theta)
        quiet = quiet + 1 if abs(freedom - before) < _SAME_FREEDOM else 0
        if (
            found.converged
            and drift < _SAME_NOISE
            and (move < _SAME_WEIGHT or quiet >= (QUIET if let_go else 2))
        ):
            converged = True
            break
    covariance = inverted(current.hessian + penalty_matrix(smooths, weights, len(theta)), directions)
    return Fit(theta, covariance, current.hessian, weights, current, freedom, converged, iterations, history)


@dataclass(frozen=True, eq=False)
class Place:
    """The misfit at one value of the unknowns, and its cost with the penalty."""

    theta: Array
    misfit: Misfit
    cost: float


def descend(
    task: Task,
    theta: Array,
    current: Misfit,
    penalty: Array,
    directions: Array | None = None,
    limit: int = 30,
    tolerance: float = 1e-4,
    largest: float = np.inf,
) -> Descent[Place]:
    """Lower the penalised misfit, to a gain below ``tolerance``."""
    problem = _Penalised(task, penalty, directions, largest)
    return minimise(
        problem,
        problem.place(theta, current),
        _ROUNDED,
        limit,
        first_damping=_FIRST_DAMPING,
        unresolved=tolerance,
    )


@dataclass(frozen=True, eq=False)
class _Penalised:
    """A task with its penalty, as the descent takes it."""

    task: Task
    penalty: Array
    directions: Array | None
    largest: float

    def place(self, theta: Array, misfit: Misfit) -> Place:
        return Place(theta, misfit, misfit.cost + 0.5 * float(theta @ self.penalty @ theta))

    def proposed(self, here: Place, damping: float) -> tuple[Array, float]:
        gradient = here.misfit.gradient + self.penalty @ here.theta
        matrix = here.misfit.hessian + self.penalty
        if self.directions is None:
            move = -_solve(_damped(matrix, damping), gradient)
        else:
            inner = _damped(self.directions.T @ matrix @ self.directions, damping)
            move = -self.directions @ _solve(inner, self.directions.T @ gradient)
        move *= min(1.0, self.largest / max(float(np.max(np.abs(move))), 1e-300))
        return move, float(-gradient @ move - 0.5 * move @ matrix @ move)

    def after(self, here: Place, step: Array) -> Place:
        theta = here.theta + step
        return self.place(theta, self.task.misfit(theta))


def heavy(smooths: Sequence[Smooth], hessian: Array) -> Array:
    """Weights so large that only what the penalties do not see is left."""
    weights = []
    for smooth in smooths:
        information = float(np.trace(hessian[smooth.where, smooth.where]))
        size = smooth.where.stop - smooth.where.start
        least = smooth.size**-2.0
        weights += [1e2 * max(information, least) / float(np.trace(p)) * size**2 for p in smooth.penalties]
    return np.array(weights)


def penalty_matrix(smooths: Sequence[Smooth], weights: Array, size: int) -> Array:
    matrix = np.zeros((size, size))
    pairs = [(s.where, p) for s in smooths for p in s.penalties]
    for (where, penalty), weight in zip(pairs, weights, strict=True):
        matrix[where, where] += weight * penalty
    return matrix


def fellner_schall(
    smooths: Sequence[Smooth], theta: Array, weights: Array, covariance: Array, factor: float
) -> Array:
    """One step of each weight towards the maximum of the restricted likelihood, at most by ``factor``."""
    new = weights.copy()
    i = 0
    for smooth in smooths:
        own = weights[i : i + len(smooth.penalties)]
        total = sum(w * p for w, p in zip(own, smooth.penalties, strict=True))
        prior = np.linalg.pinv(total, rcond=1e-11, hermitian=True)
        inner, block = theta[smooth.where], covariance[smooth.where, smooth.where]
        for penalty in smooth.penalties:
            free = weights[i] * float(np.sum(prior * penalty) - np.sum(block * penalty))
            rough = weights[i] * float(inner @ penalty @ inner)
            ratio = max(free, 1e-9) / max(rough, 1e-12)
            moved = weights[i] * float(np.clip(ratio, 1.0 / factor, factor)) * smooth.size**2
            new[i] = np.clip(moved, LIGHTEST, HEAVIEST) / smooth.size**2
            i += 1
    return new


def inverted(matrix: Array, directions: Array | None = None) -> Array:
    """Inverse of a symmetric matrix (along the directions only), unknowns of any size treated alike."""
    inner = matrix if directions is None else directions.T @ matrix @ directions
    scale = 1.0 / np.sqrt(np.maximum(np.diag(inner), 1e-300))
    result = np.linalg.pinv(inner * np.outer(scale, scale), rcond=1e-14, hermitian=True) * np.outer(
        scale, scale
    )
    return np.asarray(result if directions is None else directions @ result @ directions.T)


def _damped(matrix: Array, damping: float) -> Array:
    return matrix + damping * np.diag(np.maximum(np.diag(matrix), 1e-300))


def _solve(matrix: Array, right: Array) -> Array:
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    scaled = matrix * np.outer(scale, scale)
    scaled[np.diag_indices_from(scaled)] += 1e-14
    return np.asarray(scale * np.linalg.solve(scaled, scale * right))
