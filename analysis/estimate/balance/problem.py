"""The least-squares problem of a harmonic balance: iterated, weighted by the covariance of its rows.

That covariance follows from the noise of the sensors, taken as white. Where an orbit was measured several
times over (the periods of a steady response) it is read off the scatter of the rows between the repetitions
instead: this counts whatever noise there is, also that of a measured input, and hum that both share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.progress import Progress
from analysis.estimate.balance.rows import Flags, OrbitRows
from analysis.estimate.identifiability import covariance_of

if TYPE_CHECKING:
    from analysis.estimate.balance.method import HarmonicBalance
    from analysis.model import Model

Array = NDArray[np.float64]

_REWEIGHTINGS = 2  # of the generalised least squares; a third moves nothing by 0.002 standard errors
_TAPER_LEAK = 2.5  # bins of j: sin^4 spreads the drive's line over the neighbours up to two
_REPETITIONS = 4  # of an orbit, at least, for their scatter to tell the noise
_POOLED = 9  # rows on each side over which that scatter is averaged


@dataclass(eq=False)
class Solution:
    values: Array
    offsets: Array
    shifts: Array
    covariance: Array  # of free parameters, then offsets, then shifts
    information: Array
    chi2: float
    dof: int
    iterations: int
    converged: bool
    history: list[dict[str, float]] = field(default_factory=list)


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
        self.seen = np.ones(len(self.free), dtype=bool)  # free parameters that the rows see
        self.phases = unknown_phase and self._drive_is_seen()
        self.lower = np.array([model.parameters[n].lower for n in model.free], dtype=np.float64)
        self.upper = np.array([model.parameters[n].upper for n in model.free], dtype=np.float64)

    def solve(self, progress: Progress) -> Solution:
        """Iterated least squares; the weights follow from the second iteration on unless plain."""
        values, offsets = self.model.values(), np.zeros(len(self.rows[0].data))
        shifts = np.zeros(len(self.rows))
        if self.phases:
            values, shifts = self._find_phases(values, offsets)
        weights: list[Array] | None = None
        history: list[dict[str, float]] = []
        rounds = 1 if self.options.plain else 1 + _REWEIGHTINGS
        iterations, converged = 0, True
        for turn in range(rounds):
            self.seen = self._visible(values, offsets, shifts)
            if turn > 0:
                weights = self._weights(values, offsets, shifts)
            for _ in range(30):
                iterations += 1
                step, cost, _ = self._step(values, offsets, shifts, weights)
                values, offsets, shifts, moved = self._moved(values, offsets, shifts, step, weights, cost)
                named = {n: float(values[self.model.index(n)]) for n in self.model.free}
                history.append({"iteration": float(iterations), "cost": cost, **named})
                progress.report(turn / rounds, "balance", cost=cost, **named)
                converged = moved < 1e-9
                if converged:
                    break
        return self._solution(values, offsets, shifts, weights, iterations, converged, history)

    def _pieces(self, values: Array, offsets: Array, shifts: Array) -> list[tuple[Array, Array]]:
        """Per orbit: residual, and Jacobian over all unknowns."""
        pieces = []
        for number, (row, shift) in enumerate(zip(self.rows, shifts, strict=True)):
            residual = row.residual(self.model, values, offsets, shift)
            by_p, by_offset, by_shift = row.jacobian(
                self.model, values, offsets, shift, self.free, self.channels
            )
            blocks = [by_p, by_offset]
            if self.phases:
                own = np.zeros((len(residual), len(self.rows)))
                own[:, number] = by_shift
                blocks.append(own)
            pieces.append((residual, np.concatenate(blocks, axis=1)))
        return pieces

    def _drive_is_seen(self) -> bool:
        """Whether the model's time enters at all; it does not where every input is measured."""
        values, offsets = self.model.values(), np.zeros(len(self.rows[0].data))
        return any(np.any(row.jacobian(self.model, values, offsets, 0.0, [], [])[2]) for row in self.rows)

    def _weights(self, values: Array, offsets: Array, shifts: Array) -> list[Array]:
        """Per orbit: the inverse Cholesky factor of the rows' covariance, which whitens them."""
        factors: dict[int, Array] = {}
        for group in self.repetitions:
            rows = [self.rows[i].residual(self.model, values, offsets, shifts[i]) for i in group]
            deviation = np.sqrt(_pooled_variance(np.array(rows), len(self.rows[group[0]].equations)))
            factors |= dict.fromkeys(group, np.diag(1 / deviation))
        for i, (row, shift) in enumerate(zip(self.rows, shifts, strict=True)):
            if i not in factors:
                factors[i] = _whitening(row.covariance(self.model, values, offsets, shift))
        return [factors[i] for i in range(len(self.rows))]

    def _step(
        self, values: Array, offsets: Array, shifts: Array, weights: list[Array] | None
    ) -> tuple[Array, float, Array]:
        """Gauss-Newton step over all unknowns, with columns scaled."""
        pieces = self._pieces(values, offsets, shifts)
        if weights is None:
            residual = np.concatenate([r for r, _ in pieces])
            jacobian = np.concatenate([j for _, j in pieces])
        else:
            residual = np.concatenate([w @ r for w, (r, _) in zip(weights, pieces, strict=True)])
            jacobian = np.concatenate([w @ j for w, (_, j) in zip(weights, pieces, strict=True)])
        jacobian[:, : len(self.free)] *= self.seen
        step = _scaled_step(jacobian, residual, 1e-12)
        return step, float(residual @ residual), jacobian.T @ jacobian

    def _visible(self, values: Array, offsets: Array, shifts: Array) -> Flags:
        """Free parameters that any orbit's rows see."""
        return np.any(
            [
                row.visible(self.model, values, offsets, shift, self.free)
                for row, shift in zip(self.rows, shifts, strict=True)
            ],
            axis=0,
        )

    def _cost(self, values: Array, offsets: Array, shifts: Array, weights: list[Array] | None) -> float:
        total = 0.0
        for number, row in enumerate(self.rows):
            residual = row.residual(self.model, values, offsets, shifts[number])
            if weights is not None:
                residual = weights[number] @ residual
            total += float(residual @ residual)
        return total if np.isfinite(total) else np.inf

    def _moved(
        self,
        values: Array,
        offsets: Array,
        shifts: Array,
        step: Array,
        weights: list[Array] | None,
        cost: float,
    ) -> tuple[Array, Array, Array, float]:
        """The point after the step, halved until the cost does not rise; and how far it moved, relative."""
        for halving in range(20):
            part = step * 0.5**halving
            p, o, s = self._apply(values, offsets, shifts, part)
            if self._cost(p, o, s, weights) <= cost * (1 + 1e-12):
                size = np.abs(p[self.free]) + np.abs(values[self.free]) + 1e-300
                moved = float(np.max(np.abs(p - values)[self.free] / size)) if len(self.free) else 0.0
                return p, o, s, moved
        return values, offsets, shifts, 0.0

    def _apply(self, values: Array, offsets: Array, shifts: Array, step: Array) -> tuple[Array, Array, Array]:
        k, c = len(self.free), len(self.channels)
        p, o, s = values.copy(), offsets.copy(), shifts.copy()
        p[self.free] = np.clip(p[self.free] + step[:k], self.lower, self.upper)
        o[self.channels] += step[k : k + c]
        if self.phases:
            s += step[k + c :]
        return p, o, s

    def _find_phases(self, values: Array, offsets: Array) -> tuple[Array, Array]:
        """A start when the drive's phase is unknown.

        Rows away from the drive's line do not see it: they give the other parameters. Then each orbit's shift
        is the one, of a grid over the drive period, that balances the rows at the line best.
        """
        seen = self._visible(values, offsets, np.zeros(len(self.rows)))
        quiet = [np.tile(self._away(row), len(row.equations)) for row in self.rows]
        zero = np.zeros(len(self.rows))
        for _ in range(8):
            residual, jacobian = [], []
            for row, keep in zip(self.rows, quiet, strict=True):
                by_p = row.jacobian(self.model, values, offsets, 0.0, self.free, [])[0]
                residual.append(row.residual(self.model, values, offsets, 0.0)[keep])
                jacobian.append(by_p[keep])
            matrix = np.concatenate(jacobian) * seen
            step = _scaled_step(matrix, np.concatenate(residual), 1e-10)
            values, _, _ = self._apply(values, offsets, zero, self._padded(step))
        period = self.drive_period()
        return values, np.array([self._best_shift(row, values, offsets, period) for row in self.rows])

    def _padded(self, step: Array) -> Array:
        return np.concatenate([step, np.zeros(len(self.channels) + len(self.rows))])

    def _away(self, row: OrbitRows) -> NDArray[np.bool_]:
        """Rows that the taper keeps clear of the drive's line."""
        spacing = row.tests.harmonic[row.tests.harmonic > 0].min()
        return np.asarray(np.abs(row.tests.harmonic - 1.0) > _TAPER_LEAK * spacing)

    def drive_period(self) -> float:
        row = self.rows[0]
        cycles = 1.0 / row.tests.harmonic[row.tests.harmonic > 0].min()
        length = row.times[-1] - row.times[0] + (row.times[1] - row.times[0])
        return float(length / max(round(cycles), 1))

    def _best_shift(self, row: OrbitRows, values: Array, offsets: Array, period: float) -> float:
        grid = np.arange(48) / 48 * period
        costs = [float(np.sum(row.residual(self.model, values, offsets, s) ** 2)) for s in grid]
        return float(grid[int(np.argmin(costs))])

    def _solution(
        self, values: Array, offsets: Array, shifts: Array, weights: list[Array] | None,
        iterations: int, converged: bool, history: list[dict[str, float]],
    ) -> Solution:  # fmt: skip
        _, cost, information = self._step(values, offsets, shifts, weights)
        count = sum(len(row.equations) * len(row.tests) for row in self.rows)
        unknowns = information.shape[0]
        dof = max(count - unknowns, 1)
        variance = cost / dof if weights is None else max(cost / dof, 1.0)
        return Solution(
            values, offsets, shifts, covariance_of(information) * variance, information / variance, cost, dof,
            iterations, converged, history,
        )  # fmt: skip


def _scaled_step(jacobian: Array, residual: Array, least: float) -> Array:
    """Gauss-Newton step with columns scaled to length one; zero where a column is, and along directions whose
    singular value is below ``least`` of the largest."""
    scale = np.linalg.norm(jacobian, axis=0)
    seen = scale > 0
    step = np.zeros(len(scale))
    if seen.any():
        step[seen] = -np.linalg.lstsq(jacobian[:, seen] / scale[seen], residual, rcond=least)[0] / scale[seen]
    return step


def _whitening(covariance: Array) -> Array:
    """Inverse Cholesky factor of a covariance, which is overwritten: of a long orbit it is large."""
    from scipy.linalg.lapack import dpotrf, dtrtri

    floor = 1e-12 * np.trace(covariance) / len(covariance) + 1e-300
    covariance[np.diag_indices_from(covariance)] += floor
    lower, failed = dpotrf(covariance.T, lower=1, clean=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("The covariance of the rows is not positive definite.")
    return np.asarray(dtrtri(lower, lower=1, overwrite_c=1)[0])


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
