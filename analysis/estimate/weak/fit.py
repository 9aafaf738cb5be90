"""Least squares on the weak form of one record or several: scaled rows first, then weighted by their
covariance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.progress import SILENT, Progress
from analysis.estimate.descent import bounded_step, minimise
from analysis.estimate.identifiability import pseudo_inverse
from analysis.estimate.unknowns import Unknowns
from analysis.estimate.weak.system import WeakSystem

Array = NDArray[np.float64]

_STEPS = 60  # of the descent on the scaled rows, at most
_CLOSE = 1e-3  # step in standard errors at which it ends
_REPEATABLE = 1e-12  # change of a row over its size that is rounding
_ROUNDS = 12  # of reweighting, at most
_SETTLED = 0.05  # step in standard errors at which it ends
_ALIKE = 0.02  # relative step of the parameters that leaves their weights as they are
_SCAN = 400  # trial points of a scan over the parameters that do not enter linearly
_SCAN_FUNCTIONS, _SCAN_KEPT = 100, 8  # test functions by which they are ranked, and how many see all of them
_WRONG_MODEL, _WRONG_SHARE = 30.0, 2e-3  # rms misfit over noise, and over the terms: the model is wrong
_POOR = 20.0  # misfit over its expectation beyond which the guess counts as astray
_NEARLY = 20  # times _SETTLED: near enough for a search that has used all its steps


@dataclass(frozen=True, eq=False)
class WeakEstimate:
    """What :func:`fit_weak` found."""

    values: Array  # [records, k]
    unknowns: list[tuple[int, int]]
    estimate: Array
    information: Array
    chi2: float
    dof: int
    misfit: float  # rms of the residuals over what the sensors' noise explains
    model_error: bool  # the equations, not the noise, limit the fit: rows were left unweighted
    converged: bool
    iterations: int
    evaluations: int
    history: list[dict[str, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Block:
    """The weak form on one stretch of one record."""

    system: WeakSystem
    record: int
    sigma: Array  # noise of the states, then of the measured inputs


def fit_weak(
    blocks: Sequence[Block],
    values: Array,
    unknowns: Unknowns,
    lower: Array,
    upper: Array,
    linear: Collection[int] = (),
    reweight: bool = True,
    progress: Progress = SILENT,
) -> WeakEstimate:
    """Levenberg-Marquardt within bounds; ``linear`` names the parameters that enter linearly, the others
    given.

    With ``reweight`` generalised least squares follows, the covariance of the rows renewed at each new
    estimate.
    """
    if not blocks:
        raise DataError("The record is too short, or too broken by lost samples, for a single test function.")
    return _Fit(list(blocks), values, unknowns, lower, upper, set(linear)).run(reweight, progress)


Rows = tuple[Array, Array]  # weighted residual and weighted derivatives, such that their squares are summed
Weighting = Callable[[int, Array, Array], Rows]


@dataclass(frozen=True, eq=False)
class _Normal:
    """Normal equations of the weighted rows at ``values`` [records, k]."""

    values: Array
    information: Array
    gradient: Array  # downhill
    squares: float  # sum of them; infinite where the rows are not finite
    step: float = np.nan  # that led here, in standard errors

    @property
    def cost(self) -> float:
        return 0.5 * self.squares


class _Fit:
    def __init__(
        self,
        blocks: list[Block],
        values: Array,
        unknowns: Unknowns,
        lower: Array,
        upper: Array,
        linear: set[int],
    ) -> None:
        self.blocks, self.linear = blocks, linear
        records = unknowns.records
        self.values = np.clip(
            np.array(np.broadcast_to(np.atleast_2d(values), (records, lower.size))), lower, upper
        )
        self.unknowns = unknowns
        self.low, self.high = self.unknowns.bounds(lower, upper)
        self.lower, self.upper = lower, upper
        self.iterations = self.evaluations = 0
        self.history: list[dict[str, float]] = []
        squares = np.concatenate([b.system.left for b in blocks], axis=1) ** 2
        size = np.sqrt(np.mean(squares, axis=1))
        self.scale = np.where(size > 0, size, 1.0)
        self.factors: list[Array] = []
        self.scanning = False  # what is unknown of the sensors is then left as it is

    # weights

    def _scaled(self, block: int, residual: Array, derivatives: Array) -> Rows:
        scale = self.scale[:, None]
        return (residual / scale).ravel(), (derivatives / scale).reshape(len(derivatives), residual.size)

    def _whitened(self, block: int, residual: Array, derivatives: Array) -> Rows:
        from scipy.linalg.lapack import dtbtrs

        both = np.concatenate([residual[None], derivatives])
        rows = np.ascontiguousarray(both.transpose(0, 2, 1)).reshape(len(both), residual.size).T
        white = dtbtrs(self.factors[block].T, rows, uplo="L", overwrite_b=True)[0].T
        return white[0], white[1:]

    # descent

    def _normal(self, weighting: Weighting, values: Array) -> _Normal:
        self.evaluations += 1
        size = len(self.unknowns)
        information, gradient, total = np.zeros((size, size)), np.zeros(size), 0.0
        k = self.blocks[0].system.parameters
        plain = weighting == self._scaled and (self.scanning or all(j < k for j in self.unknowns.free))
        for i, b in enumerate(self.blocks):
            if plain:
                H, g, squares = b.system.normal(values[b.record], self.unknowns.free, 1 / self.scale)
            else:
                r, A = weighting(i, *b.system.linearised(values[b.record], self.unknowns.free))
                H, g, squares = A @ A.T, -A @ r, float(r @ r)
            self.unknowns.add(b.record, information, gradient, H, g)
            total += squares
        if not np.isfinite(total):
            return _Normal(values, np.eye(size), np.zeros(size), np.inf)
        return _Normal(values, information, gradient, total)

    def proposed(self, here: _Normal, damping: float) -> tuple[Array, float]:
        now = self.unknowns.current(here.values)
        step = bounded_step(here.information, here.gradient, now, self.low, self.high, damping)
        return step, float(here.gradient @ step - 0.5 * step @ here.information @ step)

    def after(self, here: _Normal, step: Array) -> _Normal:
        per_row = here.squares / self._dof()
        now = self.unknowns.current(here.values)
        size = _in_errors(step, now, here.information / (per_row if per_row > 0 else 1.0))
        return replace(self._normal(self._scaled, self.unknowns.moved(here.values, step)), step=size)

    def _descend(self, progress: Progress) -> tuple[bool, _Normal]:
        """Lower the squares of the scaled rows; the first step is undamped, for rows linear in the unknowns.

        A step of s standard errors lowers the cost by s^2/dof of it.
        """

        def taken(now: _Normal) -> None:
            self.history.append({"cost": now.squares, "step": now.step})
            progress.report(len(self.history) / (len(self.history) + 10), "weak form", cost=now.squares)

        found = minimise(
            self,
            self._normal(self._scaled, self.values),
            _CLOSE**2 / self._dof(),
            _STEPS,
            first_damping=0.0,
            unresolved=0.5 * _REPEATABLE**2 * self._rows(),
            taken=taken,
        )
        self.values = found.evaluation.values
        self.iterations += found.iterations
        return found.converged, found.evaluation

    def _solved(self, step: Array, here: Array) -> bool:
        """Whether one step was exact: all unknowns enter linearly and none was stopped by a bound."""
        inside = (here + step > self.low) & (here + step < self.high)
        return bool(inside.all()) and all(j in self.linear for j in self.unknowns.free)

    def _rows(self) -> int:
        return sum(len(b.system) for b in self.blocks)

    def _dof(self) -> int:
        return max(self._rows() - len(self.unknowns), 1)

    def run(self, reweight: bool, progress: Progress) -> WeakEstimate:
        converged, found = self._descend(progress.part(0, 0.4))
        if self._astray(converged, found.squares):
            self._scan(progress.part(0.4, 0.6))
            converged, found = self._descend(progress.part(0.6, 0.7))
        information, cost, dof = found.information, found.squares, self._dof()
        bands = self._covariances() if reweight else None
        misfit = float(np.sqrt(cost / self._expected(bands)))
        wrong = misfit > _WRONG_MODEL and np.sqrt(cost / dof) > _WRONG_SHARE
        if wrong or not reweight:
            return self._estimate(self._sandwich(information), cost, dof, misfit, wrong, converged)
        information, cost, converged = self._reweighted(bands, progress.part(0.7, 1.0))
        # A misfit beyond what the noise explains widens the error bars; one below it does not narrow them.
        return self._estimate(information / max(cost / dof, 1.0), cost, dof, misfit, False, converged)

    def _sandwich(self, information: Array) -> Array:
        """Information of unweighted rows from the scatter of the score between stretches of the data.

        Rows overlap and what is left need not be white: counting rows would make the error bars too small.
        """
        scores = []
        for i, b in enumerate(self.blocks):
            residual, derivatives = b.system.linearised(self.values[b.record], self.unknowns.free)
            K = residual.shape[1]
            r, A = self._scaled(i, residual, derivatives)
            terms = (A * r).reshape(len(A), len(self.scale), K).sum(axis=1)
            for part in np.array_split(terms, min(max(K // 12, 1), 40), axis=1):
                score, none = np.zeros(len(self.unknowns)), np.zeros((len(self.unknowns),) * 2)
                self.unknowns.add(b.record, none, score, np.zeros((len(A),) * 2), part.sum(axis=1))
                scores.append(score)
        S = np.array(scores)
        spare = len(S) - len(self.unknowns)
        if spare < 1:
            return information
        meat = S.T @ S * len(S) / spare
        return np.asarray(information @ pseudo_inverse(meat) @ information)

    def _reweighted(self, bands: list[Array] | None, progress: Progress) -> tuple[Array, float, bool]:
        """Generalised least squares: one Gauss-Newton step for each renewal of the covariance.

        No descent: weights that follow the estimate leave no one cost by which a step could be refused.
        """
        information, cost, previous = np.eye(len(self.unknowns)), np.inf, np.inf
        for turn in range(_ROUNDS):
            progress.report(turn / _ROUNDS, "weak form, weighted", cost=cost)
            self.factors = [_factor(band) for band in bands or self._covariances()]
            bands = None
            rows = self._normal(self._whitened, self.values)
            information, gradient, cost = rows.information, rows.gradient, rows.squares
            here = self.unknowns.current(self.values)
            step = bounded_step(information, gradient, here, self.low, self.high, 0.0)
            relative = _in_errors(step, here, information)
            self.iterations += 1
            self.history.append({"cost": cost, "step": relative})
            self.values = self.unknowns.moved(self.values, step if cost < 2 * previous else 0.5 * step)
            near = self._solved(step, here) and bool(np.all(np.abs(step) < _ALIKE * np.abs(here)))
            if relative < _SETTLED or near:
                return information, cost - (float(gradient @ step) if near else 0.0), True
            previous = cost
        return information, cost, relative < _NEARLY * _SETTLED

    def _estimate(
        self, information: Array, cost: float, dof: int, misfit: float, wrong: bool, converged: bool
    ) -> WeakEstimate:
        return WeakEstimate(
            self.values, self.unknowns.items, self.unknowns.current(self.values), information, cost, dof,
            misfit, wrong, converged, self.iterations, self.evaluations, self.history,
        )  # fmt: skip

    # a start from anywhere: variable projection

    def _astray(self, converged: bool, cost: float) -> bool:
        """Whether the descent ended far above what the noise explains, and a scan could help."""
        curved = self._curved()
        bounded = all(np.isfinite(self.upper[j] - self.lower[j]) for j in curved)
        if not curved or len(curved) > 3 or not bounded:
            return False
        if not converged:
            return True
        return cost > _POOR * self._expected()

    def _curved(self) -> list[int]:
        """The model's free parameters that do not enter linearly; what is unknown of the sensors waits."""
        parameters = self.blocks[0].system.parameters
        return [j for j in self.unknowns.free if j not in self.linear and j < parameters]

    def _expected(self, bands: list[Array] | None = None) -> float:
        """Sum of squares of the scaled rows that the sensors' noise explains."""
        expected = 0.0
        for i, b in enumerate(self.blocks):
            if bands is None:
                variances = b.system.variances(self.values[b.record], b.sigma)
            else:
                variances = bands[i][:, 0].reshape(-1, len(self.scale)).T
            expected += float(np.sum(np.sum(variances, axis=1) / self.scale**2))
        return expected

    def _covariances(self) -> list[Array]:
        return [b.system.covariance(self.values[b.record], b.sigma) for b in self.blocks]

    def _scan(self, progress: Progress) -> None:
        """Try a grid of the curved parameters, the linear ones solved for in closed form; keep the best."""
        curved = self._curved()
        per_axis = max(int(_SCAN ** (1 / len(curved))), 3)
        axes = []
        for j in curved:
            inner = (np.arange(per_axis) + 0.5) / per_axis
            axes.append(np.append(self.lower[j] + inner * (self.upper[j] - self.lower[j]), self.values[0, j]))
        points = np.array(list(product(*axes)))
        whole, self.blocks = self.blocks, _thinned(self.blocks)
        self.scanning = True
        costs = []
        for i, point in enumerate(points):
            progress.report(i / len(points), "looking for a start")
            costs.append(self._projected(self._with_curved(curved, point))[0])
        self.blocks = whole
        kept = points[np.argsort(costs, kind="stable")[:_SCAN_KEPT]]
        found = [self._projected(self._with_curved(curved, point)) for point in kept]
        self.scanning = False
        cost, solved = min(found, key=lambda one: one[0])
        if np.isfinite(cost):
            self.values = solved

    def _with_curved(self, curved: list[int], point: Array) -> Array:
        values = self.values.copy()
        values[:, curved] = point
        return values

    def _projected(self, values: Array) -> tuple[float, Array]:
        rows = self._normal(self._scaled, values)
        information, gradient = rows.information, rows.gradient
        inside = [i for i, (j, _) in enumerate(self.unknowns.items) if j in self.linear]
        here = self.unknowns.current(values)
        step = np.zeros(len(here))
        step[inside] = bounded_step(
            information[np.ix_(inside, inside)], gradient[inside], here[inside], self.low[inside],
            self.high[inside], 1e-12,
        )  # fmt: skip
        gain = 2 * gradient @ step - step @ information @ step
        return rows.squares - float(gain), self.unknowns.moved(values, step)


def _thinned(blocks: list[Block]) -> list[Block]:
    """The same with fewer test functions, spread over the record, and only the samples they need."""
    return [
        Block(b.system.thinned(max(len(b.system.probes) // _SCAN_FUNCTIONS, 1)), b.record, b.sigma)
        for b in blocks
    ]


def _factor(band: Array) -> Array:
    """Cholesky factor of a banded covariance, element (i, j) at [j, i - j]; lifted if nearly singular."""
    from scipy.linalg.lapack import dpbtrf

    for lift in (0.0, 1e-6, 1e-5, 1e-4):
        if lift:
            band[:, 0] += lift * (band[:, 0] + np.mean(band[:, 0]))
        factor, failed = dpbtrf(band.T, lower=True)
        if not failed:
            return np.asarray(factor.T)
    raise DataError("The noise of the channels cannot be told from the data.")


def _in_errors(step: Array, here: Array, information: Array) -> float:
    """Largest step of an unknown in units of its standard error."""
    errors = np.sqrt(np.maximum(np.diag(pseudo_inverse(information)), 0.0))
    return float(np.max(np.abs(step) / (errors + 1e-12 * np.abs(here) + 1e-300), initial=0.0))
