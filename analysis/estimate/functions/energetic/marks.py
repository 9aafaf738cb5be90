"""Kinks and steps of a recovered function: the average over where they may be, with the band that it has.

A penalty on a derivative rounds a kink (freeplay, a stop) or a step (a damper switched on, a preload) over a
width that the noise allows, and its band does not know. So functions with one, two or more of them are
candidates beside the smooth one. Around a fit that was made the misfit is a quadratic of the unknowns: each
candidate needs small matrices only, with its own weight of the penalty. Candidates count by their likelihood
less their degrees of freedom (Akaike weights; Burnham and Anderson 2002): where the data tell a kink it is
there, where they do not the band is as wide as the doubt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.functions.energetic.splines import Grid
from analysis.estimate.functions.energetic.unknowns import UnknownFunctions
from analysis.estimate.functions.penalised import HEAVIEST, LIGHTEST, Fit, Task

Array = NDArray[np.float64]
Marks = tuple[int, ...]  # numbers of the columns that a candidate has

_PLACES, _COARSE = 60, 4  # along a function at which a mark is tried, and every how many for pairs
_MOST = 4  # marks of a function
_DEAR = 2.0  # beyond its degrees of freedom, of each mark: smooth functions are the rule
_WORTH = 4.0  # of the score, by which a third or fourth mark must be better to be tried further
_WORSE = 10.0  # by which the misfit of the average may lie above that of the smooth function
_HIGHEST = 5.0  # functions' sizes: marks as high as that are expected (a kink: over the whole range)
_RIPPLE = 0.01  # of a mark's height: splines of 64 intervals follow it no better
_TURNS, _FACTOR = 12, 30.0  # of the penalty's weight
_SAME_WEIGHT = 0.05  # change of the logarithm of a penalty's weight with which its search ends
_FAINT = 1e-4  # probability below which a candidate does not count in the average


@dataclass(frozen=True, eq=False)
class Candidate:
    """A function with some marks: its unknowns, their covariance, and its score."""

    score: float  # twice the misfit (less a constant), and twice the degrees of freedom
    theta: Array
    covariance: Array
    freedom: float  # degrees of freedom that it spends


@dataclass(frozen=True, eq=False)
class Average:
    """A function averaged over its candidates."""

    theta: Array
    covariance: Array
    freedom: float


@dataclass(frozen=True, eq=False)
class Quadratic:
    """Twice the misfit as h'Hh - 2 b'h of one function's unknowns h, all else at its best."""

    grid: Grid
    scale: float  # size of the function
    own: NDArray[np.intp]  # its unknowns among all
    rest: NDArray[np.intp]
    pull: Array  # by which the rest follows
    matrix: Array
    right: Array
    weight: float  # of the penalty in the fit that was made
    orders: tuple[int, ...]  # 0: steps, 1: kinks

    @classmethod
    def around(cls, unknowns: UnknownFunctions, fit: Fit, number: int) -> Quadratic:
        """Of the first or second function; the other one keeps its penalty."""
        smooths = unknowns.smooths()
        where = smooths[number].where
        own = np.arange(where.start, where.stop)
        rest = np.setdiff1d(np.arange(len(fit.theta)), own)
        held = np.zeros_like(fit.hessian)
        for i, (smooth, weight) in enumerate(zip(smooths, fit.weights, strict=True)):
            if i != number:
                held[smooth.where, smooth.where] = weight * smooth.penalties[0]
        full = fit.hessian + held
        cross = full[np.ix_(own, rest)]
        pull = np.linalg.lstsq(full[np.ix_(rest, rest)], cross.T, rcond=1e-12)[0]
        matrix = fit.hessian[np.ix_(own, own)] - cross @ pull
        gradient = fit.misfit.gradient + held @ fit.theta
        right = matrix @ fit.theta[own] - (gradient[own] - pull.T @ gradient[rest])
        grid = unknowns.c if number == 0 and unknowns.c else unknowns.x
        assert grid is not None
        orders = (0,) if grid is unknowns.c else (1, 0)
        size = smooths[number].size
        matrix = 0.5 * (matrix + matrix.T)
        return cls(grid, size, own, rest, pull, matrix, right, float(fit.weights[number]), orders)

    @cached_property
    def places(self) -> Array:
        margin = 2.0 * self.grid.width
        return np.linspace(self.grid.lower + margin, self.grid.upper - margin, _PLACES)

    @cached_property
    def columns(self) -> Array:
        """Unknowns [n, orders * places] of marks of the function's size."""
        grid = self.grid
        x = np.linspace(grid.lower, grid.upper, 12 * grid.intervals + 1)
        beyond = x[:, None] - self.places
        extent = grid.upper - grid.lower
        shapes = [np.where(beyond > 0, (beyond / extent) ** order, 0.0) for order in self.orders]
        raw = np.linalg.lstsq(grid.basis(x), self.scale * np.concatenate(shapes, axis=1), rcond=None)[0]
        return np.asarray(np.linalg.solve(grid.turn(), raw))

    def candidate(self, marks: Marks) -> Candidate:
        """The function with these marks, the penalty's weight by restricted likelihood."""
        widened = np.column_stack([np.eye(len(self.own)), self.columns[:, list(marks)]])
        H, b = widened.T @ self.matrix @ widened, widened.T @ self.right
        S = np.zeros_like(H)
        S[: len(self.own), : len(self.own)] = self.grid.roughness()
        fixed = np.zeros(len(H))
        fixed[len(self.own) :] = _HIGHEST**-2.0
        seen, weight = self.grid.size - self.grid.rough, self.weight
        for _ in range(_TURNS):
            V = _inverse(H + weight * S + np.diag(fixed))
            h = V @ b
            ratio = max(seen - weight * float(np.sum(V * S)), 1e-9) / max(weight * float(h @ S @ h), 1e-12)
            new = weight * float(np.clip(ratio, 1.0 / _FACTOR, _FACTOR)) * self.scale**2
            new = float(np.clip(new, LIGHTEST, HEAVIEST)) / self.scale**2
            settled = abs(np.log(new / weight)) < _SAME_WEIGHT
            weight = new
            if settled:
                break
        if marks:  # they lie somewhere around their places: shifts of half a step either way
            shifts = h[len(self.own) :] * self._shifts(marks)
            widened = np.column_stack([widened, shifts])
            H, b = widened.T @ self.matrix @ widened, widened.T @ self.right
            fixed = np.concatenate([fixed, np.full(len(marks), 12.0)])
            S = np.pad(S, (0, len(marks)))
            V = _inverse(H + weight * S + np.diag(fixed))
            h = V @ b
        misfit = float(h @ H @ h - 2.0 * b @ h + h @ (fixed * h))
        freedom = float(np.sum(V * H))
        score = misfit + 2.0 * freedom + _DEAR * len(marks)
        covariance = widened @ V @ widened.T
        if marks:  # what splines cannot follow: the place within a step, and ripples beside it
            covariance += shifts @ shifts.T / 12.0
            steps = np.array([self.orders[m // _PLACES] == 0 for m in marks])
            heights = self.scale * h[len(self.own) : len(self.own) + len(marks)] * steps
            covariance[0, 0] += float(np.sum((_RIPPLE * heights) ** 2))
        return Candidate(score, widened @ h, covariance, freedom)

    def _shifts(self, marks: Marks) -> Array:
        """Change of each mark's column by a step to the next place."""
        last = self.columns.shape[1] - 1
        after, before = (np.clip([m + step for m in marks], 0, last) for step in (1, -1))
        return 0.5 * (self.columns[:, after] - self.columns[:, before])

    def average(self) -> Average:
        """Over all candidates; none, one and more marks are alike likely before."""
        classes = self._tried()
        scores = np.array([c.score for tried in classes for c in tried])
        prior = np.concatenate([np.full(len(tried), 1.0 / len(tried)) for tried in classes])
        weight = prior * np.exp(-0.5 * (scores - scores.min()))
        weight /= weight.sum()
        kept = [(w, c) for w, c in zip(weight, (c for t in classes for c in t), strict=True) if w > _FAINT]
        total = sum(w for w, _ in kept)
        mean = np.sum([w * c.theta for w, c in kept], axis=0) / total
        covariance = np.zeros_like(self.matrix)
        for w, c in kept:
            covariance += w * (c.covariance + np.outer(c.theta - mean, c.theta - mean))
        return Average(mean, covariance, sum(w * c.freedom for w, c in kept) / total)

    def _tried(self) -> list[list[Candidate]]:
        """Candidates without marks, with one, with two, and so on while another one is worth it."""
        count = self.columns.shape[1]
        found: dict[Marks, Candidate] = {(): self.candidate(())}
        classes = [[found[()]], [self.candidate((i,)) for i in range(count)]]
        coarse = [m for m in range(0, count, _COARSE) if m % _PLACES]
        pairs: dict[Marks, Candidate] = {
            (i, j): self.candidate((i, j)) for i, j in combinations(coarse, 2) if i // _PLACES == j // _PLACES
        }
        best = min(pairs, key=lambda m: pairs[m].score)
        for i in range(best[0] - _COARSE + 1, best[0] + _COARSE, 1):
            for j in range(best[1] - _COARSE + 1, best[1] + _COARSE, 1):
                if 0 <= i < j < count and (i, j) not in pairs:
                    pairs[i, j] = self.candidate((i, j))
        classes.append(list(pairs.values()))
        best = min(pairs, key=lambda m: pairs[m].score)
        top = pairs[best].score
        while len(best) < _MOST:
            more = {(*best, k): self.candidate((*best, k)) for k in range(0, count, 2) if k not in best}
            best = min(more, key=lambda m: more[m].score)
            if more[best].score > top - _WORTH:
                break
            top = more[best].score
            classes.append(list(more.values()))
        return classes


def _inverse(matrix: Array) -> Array:
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    inner = matrix * np.outer(scale, scale)
    inner[np.diag_indices_from(inner)] += 1e-13
    return np.asarray(np.linalg.inv(inner) * np.outer(scale, scale))


def sharpened(unknowns: UnknownFunctions, fit: Fit, task: Task) -> Fit:
    """A smooth fit with kinks and steps counted: each function becomes the average over its candidates."""
    theta, covariance, freedom = fit.theta.copy(), fit.covariance.copy(), fit.freedom
    for number in range(len(unknowns.smooths())):
        near = Quadratic.around(unknowns, fit, number)
        average = near.average()
        block = np.ix_(near.own, near.own)
        theta[near.rest] -= near.pull @ (average.theta - fit.theta[near.own])
        theta[near.own] = average.theta
        freedom += average.freedom - float(np.sum(fit.covariance[block] * near.matrix))
        covariance[block] = average.covariance
    current = task.misfit(theta)
    if not current.cost < fit.misfit.cost + _WORSE:  # the misfit was no quadratic so far away
        return fit
    return replace(
        fit, theta=theta, covariance=covariance, hessian=current.hessian, misfit=current, freedom=freedom
    )
