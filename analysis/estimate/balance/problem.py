"""The least-squares problem of a harmonic balance: iterated, weighted by the covariance of its rows.

That covariance follows from the noise of the sensors, taken as white. Where an orbit was measured several
times over (the periods of a steady response) it is read off the scatter of the rows between the repetitions
instead: this counts whatever noise there is, also that of a measured input, and hum that both share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.progress import Progress
from analysis.estimate.balance.rows import Flags, OrbitRows
from analysis.estimate.descent import bounded_step, minimise

if TYPE_CHECKING:
    from analysis.estimate.balance.method import HarmonicBalance
    from analysis.model import Model

Array = NDArray[np.float64]

_STEPS, _STEPS_OF_START = 30, 8  # of a descent, at most: of all rows, and of those away from the drive's line
_CLOSE = 1e-4  # step in standard errors at which it ends
_REWEIGHTINGS = 2  # of the generalised least squares; a third moves nothing by 0.002 standard errors
_TAPER_LEAK = 2.5  # bins of j: sin^4 spreads the drive's line over the neighbours up to two
_ROUNDING = 1e-12  # variance added to rows of unit variance, so that they stay apart
_TRIED_SHIFTS = 48  # of the drive's time, over one of its periods
_MOST_STARTS = 3  # descents, at most, from the best of these shifts
_AS_GOOD = 9.0  # difference of chi-square (three standard errors) below which two solutions fit alike
_REPETITIONS = 4  # of an orbit, at least, for their scatter to tell the noise
_POOLED = 9  # rows on each side over which that scatter is averaged


@dataclass(frozen=True, eq=False)
class Point:
    """All parameters of the model, the offset of each channel, and each orbit's shift of the drive's time."""

    values: Array
    offsets: Array
    shifts: Array


@dataclass(eq=False)
class Solution:
    point: Point
    information: Array  # of free parameters, then offsets, then shifts
    chi2: float
    dof: int
    iterations: int
    converged: bool
    history: list[dict[str, float]] = field(default_factory=list)
    rivals: list[Solution] = field(default_factory=list)  # others that fit as well, where a phase is unknown


@dataclass(frozen=True, eq=False)
class Weighted:
    """Weighted rows at a point, with their derivatives by all unknowns (zero: not seen, or held)."""

    point: Point
    residual: Array
    jacobian: Array

    @cached_property
    def squares(self) -> float:
        total = float(self.residual @ self.residual)
        return total if np.isfinite(total) else np.inf

    @property
    def cost(self) -> float:
        return 0.5 * self.squares

    @cached_property
    def information(self) -> Array:
        return np.asarray(self.jacobian.T @ self.jacobian)


Weighting = Callable[[int, Array], Array]  # of the rows of an orbit, or of their derivatives


@dataclass(frozen=True, eq=False)
class _Weighing:
    """The balance with given weights, as the descent takes it."""

    balance: Balance
    weigh: Weighting
    free: Flags  # unknowns that may move

    def at(self, point: Point) -> Weighted:
        rows = [
            (self.weigh(i, residual), self.weigh(i, jacobian))
            for i, (residual, jacobian) in enumerate(self.balance.pieces(point))
        ]
        jacobian = np.concatenate([by_unknowns for _, by_unknowns in rows])
        return Weighted(point, np.concatenate([residual for residual, _ in rows]), jacobian * self.free)

    def proposed(self, here: Weighted, damping: float) -> tuple[Array, float]:
        now = self.balance.unknowns(here.point)
        downhill = -here.jacobian.T @ here.residual
        step = bounded_step(here.information, downhill, now, self.balance.lower, self.balance.upper, damping)
        return step, float(downhill @ step - 0.5 * step @ here.information @ step)

    def after(self, here: Weighted, step: Array) -> Weighted:
        return self.at(self.balance.moved(here.point, step))


class Balance:
    """The least-squares problem: free parameters, then sensor offsets, then a drive shift per orbit.

    ``repetitions`` lists the rows that are measurements of one and the same orbit.
    """

    def __init__(
        self,
        model: Model,
        rows: list[OrbitRows],
        options: HarmonicBalance,
        unknown_phase: bool,
        repetitions: Sequence[list[int]] = (),
    ) -> None:
        self.model, self.rows, self.options = model, rows, options
        self.free = [model.index(name) for name in model.free]
        self.channels = list(range(len(rows[0].data))) if options.offset else []
        self.repetitions = [group for group in repetitions if len(group) >= _REPETITIONS]
        self.start = Point(model.values(), np.zeros(len(rows[0].data)), np.zeros(len(rows)))
        self.phases = unknown_phase and self._drive_is_seen()
        wide = np.full(len(self.channels) + (len(rows) if self.phases else 0), np.inf)
        self.lower = np.concatenate([[model.parameters[n].lower for n in model.free], -wide])
        self.upper = np.concatenate([[model.parameters[n].upper for n in model.free], wide])

    def solve(self, progress: Progress) -> Solution:
        """Iterated least squares; the weights follow from the second round on unless plain."""
        if not self.phases:
            return self._descended(self.start, progress)
        starts = (self._by_quiet_rows(self.start), *self._by_longest_orbit(self.start))
        found = [
            self._descended(start, progress.part(i / len(starts), (i + 1) / len(starts)))
            for i, start in enumerate(starts)
        ]
        found.sort(key=lambda solution: solution.chi2)
        best = found[0]
        as_good = best.chi2 + _AS_GOOD * max(best.chi2 / best.dof, 1.0)
        best.rivals = [one for one in found[1:] if one.chi2 < as_good and self._different(best, one)]
        return best

    def _different(self, one: Solution, other: Solution) -> bool:
        """Whether two solutions are different ones: by three standard errors in any parameter."""
        k = len(self.free)
        difference = (one.point.values - other.point.values)[self.free]
        return float(difference @ one.information[:k, :k] @ difference) > _AS_GOOD

    def _descended(self, point: Point, progress: Progress) -> Solution:
        history: list[dict[str, float]] = []
        rounds = 1 if self.options.plain else 1 + _REWEIGHTINGS
        iterations, turn = 0, 0

        def taken(now: Weighted) -> None:
            named = {n: float(now.point.values[self.model.index(n)]) for n in self.model.free}
            history.append({"iteration": float(len(history) + 1), "cost": now.squares, **named})
            progress.report(turn / rounds, "balance", cost=now.squares, **named)

        for turn in range(rounds):
            weigh = self._weighting(point) if turn > 0 else _as_they_are
            problem = _Weighing(self, weigh, self._seen(point))
            found = minimise(
                problem, problem.at(point), _CLOSE**2 / self._dof, _STEPS, first_damping=0.0, taken=taken
            )
            point = found.evaluation.point
            iterations += found.iterations
        return self._solution(found.evaluation, iterations, found.converged, history)

    def unknowns(self, point: Point) -> Array:
        parts = [point.values[self.free], point.offsets[self.channels]]
        return np.concatenate([*parts, point.shifts] if self.phases else parts)

    def moved(self, point: Point, step: Array) -> Point:
        k, c = len(self.free), len(self.channels)
        values, offsets, shifts = point.values.copy(), point.offsets.copy(), point.shifts
        values[self.free] += step[:k]
        offsets[self.channels] += step[k : k + c]
        return Point(values, offsets, shifts + step[k + c :] if self.phases else shifts)

    def pieces(self, point: Point) -> Iterator[tuple[Array, Array]]:
        """Per orbit: residual, and Jacobian over all unknowns."""
        return (self.piece(number, point) for number in range(len(self.rows)))

    def piece(self, number: int, point: Point) -> tuple[Array, Array]:
        """Residual of one orbit, and its Jacobian over all unknowns."""
        row, where = self.rows[number], (self.model, point.values, point.offsets, point.shifts[number])
        residual = row.residual(*where)
        by_p, by_offset, by_shift = row.jacobian(*where, self.free, self.channels)
        blocks = [by_p, by_offset]
        if self.phases:
            own = np.zeros((len(residual), len(self.rows)))
            own[:, number] = by_shift
            blocks.append(own)
        return residual, np.concatenate(blocks, axis=1)

    @property
    def _dof(self) -> int:
        return max(sum(len(row.equations) * len(row.tests) for row in self.rows) - len(self.lower), 1)

    def _drive_is_seen(self) -> bool:
        """Whether the model's time enters at all; it does not where every input is measured."""
        where = self.model, self.start.values, self.start.offsets, 0.0
        return any(np.any(row.jacobian(*where, [], [])[2]) for row in self.rows)

    def _weighting(self, point: Point) -> Weighting:
        """Whitens the rows of each orbit, by the inverse Cholesky factor of their covariance."""
        factors: dict[int, Array] = {}
        for group in self.repetitions:
            rows = [
                self.rows[i].residual(self.model, point.values, point.offsets, point.shifts[i]) for i in group
            ]
            deviation = np.sqrt(_pooled_variance(np.array(rows), len(self.rows[group[0]].equations)))
            factors |= dict.fromkeys(group, np.diag(1 / deviation))
        for i, (row, shift) in enumerate(zip(self.rows, point.shifts, strict=True)):
            if i not in factors:
                factors[i] = _whitening(row.covariance(self.model, point.values, point.offsets, shift))
        return lambda i, rows: factors[i] @ rows

    def _seen(self, point: Point) -> Flags:
        """Unknowns that any orbit's rows see; offsets and shifts count as seen."""
        seen = np.ones(len(self.lower), dtype=bool)
        seen[: len(self.free)] = np.any(
            [
                row.visible(self.model, point.values, point.offsets, shift, self.free)
                for row, shift in zip(self.rows, point.shifts, strict=True)
            ],
            axis=0,
        )
        return seen

    def _by_quiet_rows(self, point: Point) -> Point:
        """A start when the drive's phase is unknown: rows away from its line do not see it and give the
        parameters. Then each orbit's shift is the one, of a grid over the drive period, that balances the
        rows at the line best."""
        quiet = [np.tile(self._away(row), len(row.equations)) for row in self.rows]
        free = self._seen(point)
        free[len(self.free) :] = False
        problem = _Weighing(self, lambda i, rows: rows[quiet[i]], free)
        found = minimise(
            problem, problem.at(point), _CLOSE**2 / self._dof, _STEPS_OF_START, first_damping=0.0
        )
        point, period = found.evaluation.point, self.drive_period()
        return replace(point, shifts=np.array([self._best_shift(row, point, period) for row in self.rows]))

    def _by_longest_orbit(self, point: Point) -> list[Point]:
        """Other starts: the shifts of the longest orbit at which it balances best with the parameters free.

        An orbit of few drive periods has hardly a row away from the drive's line: what those say of the
        parameters is mere noise, and the shift found with them may belong to another minimum. Without the
        phase the drive's line fixes no more than the size of a sum that is linear in the parameters: such a
        condition may have two solutions.
        """
        longest = max(range(len(self.rows)), key=lambda i: len(self.rows[i].tests))
        weigh = _as_they_are if self.options.plain else self._weighting(point)
        free = self._seen(point)
        free[len(self.free) :] = False
        now, period = self.unknowns(point), self.drive_period()
        tried, costs = [], []
        for shift in np.arange(_TRIED_SHIFTS) / _TRIED_SHIFTS * period:
            here = replace(point, shifts=np.full(len(self.rows), shift))
            residual, jacobian = self.piece(longest, here)
            rows, slopes = weigh(longest, residual), weigh(longest, jacobian) * free
            step = bounded_step(slopes.T @ slopes, -slopes.T @ rows, now, self.lower, self.upper, 0.0)
            tried.append(self.moved(here, step))
            costs.append(float(np.sum((rows + slopes @ step) ** 2)))
        lowest = [i for i, c in enumerate(costs) if c <= min(costs[i - 1], costs[(i + 1) % _TRIED_SHIFTS])]
        lowest.sort(key=lambda i: costs[i])
        return [self._with_other_shifts(tried[i], longest, period) for i in lowest[:_MOST_STARTS]]

    def _with_other_shifts(self, point: Point, known: int, period: float) -> Point:
        """The point with the best shift, given its parameters, of every orbit but the known one."""
        shifts = [
            point.shifts[i] if i == known else self._best_shift(row, point, period)
            for i, row in enumerate(self.rows)
        ]
        return replace(point, shifts=np.array(shifts))

    def _away(self, row: OrbitRows) -> NDArray[np.bool_]:
        """Rows that the taper keeps clear of the drive's line."""
        spacing = row.tests.harmonic[row.tests.harmonic > 0].min()
        return np.asarray(np.abs(row.tests.harmonic - 1.0) > _TAPER_LEAK * spacing)

    def drive_period(self) -> float:
        tests = self.rows[0].tests
        highest = int(np.argmax(tests.harmonic))
        return float(2 * np.pi * tests.harmonic[highest] / tests.rates[highest])

    def _best_shift(self, row: OrbitRows, point: Point, period: float) -> float:
        grid = np.arange(_TRIED_SHIFTS) / _TRIED_SHIFTS * period
        costs = [float(np.sum(row.residual(self.model, point.values, point.offsets, s) ** 2)) for s in grid]
        return float(grid[int(np.argmin(costs))])

    def _solution(
        self, found: Weighted, iterations: int, converged: bool, history: list[dict[str, float]]
    ) -> Solution:
        variance = found.squares / self._dof
        if not self.options.plain:  # weighted: a misfit below what the noise explains narrows no error bar
            variance = max(variance, 1.0)
        return Solution(
            found.point,
            found.information / variance,
            found.squares,
            self._dof,
            iterations,
            converged,
            history,
        )


def _as_they_are(orbit: int, rows: Array) -> Array:
    return rows


def _whitening(covariance: Array) -> Array:
    """Inverse Cholesky factor of a covariance, which is overwritten: of a long orbit it is large."""
    from scipy.linalg.lapack import dpotrf, dtrtri

    # Scaled first: the variance of a row grows with the fourth power of its harmonic, and a floor that is
    # small beside the largest would swamp the lowest harmonics, which tell the most.
    scale = np.sqrt(np.diag(covariance)) + 1e-150
    covariance /= scale[:, None]
    covariance /= scale
    covariance[np.diag_indices_from(covariance)] += _ROUNDING
    lower, failed = dpotrf(covariance.T, lower=1, clean=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("The covariance of the rows is not positive definite.")
    factor = np.asarray(dtrtri(lower, lower=1, overwrite_c=1)[0])
    factor /= scale
    return factor


def _pooled_variance(rows: Array, equations: int) -> Array:
    """Variance of each row over the repetitions [repetitions, rows], averaged over neighbouring harmonics.

    The first row of an equation, its mean, stands by itself: drift of the sensors sits there.
    """
    window = np.ones(2 * _POOLED + 1)
    parts = []
    for variance in np.split(rows.var(axis=0, ddof=1), equations):
        counts = np.convolve(np.ones(len(variance) - 1), window, "same")
        parts += [variance[:1], np.convolve(variance[1:], window, "same") / counts]
    return np.concatenate(parts)
