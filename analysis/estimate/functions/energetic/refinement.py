"""Output error: the simulated motion is compared with the measured one, segment by segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.functions.energetic.shooting import shooter
from analysis.estimate.functions.energetic.unknowns import UnknownFunctions
from analysis.estimate.functions.energetic.whitening import Whitening
from analysis.estimate.functions.penalised import Misfit
from analysis.signal.inputs import Inputs

Array = NDArray[np.float64]
NOTHING = np.zeros(3)
_MIDDLE = 1e-5  # of the displacement's size, to which its mean is held


@dataclass(frozen=True)
class Run:
    """One record for the comparison: channels [rows, N] (nan where not measured) and its segments.

    Rows are displacement, velocity and, where some record has it, acceleration. ``drift`` [rows, N, D]: what
    the sensors may add to the motion, by unknown factors.
    """

    times: Array
    data: Array
    inputs: Inputs
    starts: NDArray[np.int64]  # first sample of each segment
    steps: int  # integration steps to a sample
    limit: Array  # displacement and velocity at which a motion has run away
    input_noise: Array = field(default_factory=lambda: np.zeros(0))  # [m] of the inputs' samples
    drift: Array = field(default_factory=lambda: np.zeros((2, 0, 0)))

    @property
    def unknowns(self) -> int:
        """Initial values of the segments, then factors of the drift."""
        return 2 * len(self.starts) + self.drift.shape[2]

    @property
    def segments(self) -> list[slice]:
        edges = [*self.starts.tolist(), len(self.times)]
        return [slice(a, b) for a, b in pairwise(edges)]


@dataclass
class OutputError:
    """Unknowns: those of the functions, then for every run two initial values of each segment and its drift.

    Where no sensor tells where the displacement is zero (``middle`` is its size then), its mean is.

    Noise of a measured force moves the specimen not at all, but the simulated motion: what is left is then
    coloured. ``filters`` make it white again, segment by segment; empty where the inputs are exact.
    """

    jac: Any
    p: Array
    unknowns: UnknownFunctions
    runs: Sequence[Run]
    noise: Array = field(default_factory=lambda: np.ones(2))
    middle: float = 0.0
    evaluations: int = 0
    filters: list[list[Whitening]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._turn = self.unknowns.turn()

    def misfit(self, theta: Array, derivatives: bool = True) -> Misfit:
        self.evaluations += 1
        size = len(theta)
        gradient, hessian, cost = np.zeros(size), np.zeros((size, size)), 0.0
        squares = np.zeros(len(self.noise))
        position = self.unknowns.size
        mean, pull = 0.0, np.zeros(size)
        for number, run in enumerate(self.runs):
            fine, X, S = self.shoot(run, theta, position, derivatives)
            if not fine:
                return Misfit(np.inf, gradient, hessian, [squares])
            weighted = self.weighted(number, X)
            squares += np.sum((weighted * self.noise[:, None]) ** 2, axis=1)
            cost += 0.5 * float(np.sum(weighted**2))
            if self.middle:
                mean += float(np.sum(X[0])) / self._samples
                if derivatives:
                    self._pull(run, S[0] / self._samples, position, pull)
            if derivatives:
                S *= (np.isfinite(run.data) / self.noise[:, None])[:, :, None]
                self._accumulate(number, S, weighted, position, gradient, hessian)
            position += run.unknowns
        if self.middle:
            scale = (_MIDDLE * self.middle) ** -2
            cost += 0.5 * scale * mean**2
            gradient += scale * mean * pull
            hessian += scale * np.outer(pull, pull)
        return Misfit(cost, gradient, hessian, [squares])

    @property
    def _samples(self) -> int:
        return sum(len(run.times) for run in self.runs)

    def _pull(self, run: Run, rows: Array, position: int, pull: Array) -> None:
        """Add the derivative of the sum of ``rows`` [N, P + 2] of a run by all unknowns."""
        pull[: self.unknowns.size] += np.sum(rows[:, 2:], axis=0) @ self._turn
        for k, part in enumerate(run.segments):
            pull[position + 2 * k : position + 2 * k + 2] += np.sum(rows[part, :2], axis=0)

    def weighted(self, number: int, X: Array) -> Array:
        """Residual [rows, N] of a run in units of the noise, its colour taken out; 0 where not measured."""
        run = self.runs[number]
        residual = np.where(np.isfinite(run.data), X - run.data, 0.0) / self.noise[:, None]
        if self.filters:
            for part, own in zip(run.segments, self.filters[number], strict=True):
                residual[:, part] = own.applied(residual[:, part, None])[:, :, 0]
        return residual

    def colour(self, theta: Array) -> None:
        """Take the noise of the inputs into account, as it acts along the motion at ``theta``.

        An error w of the force at one sample moves the velocity by its impulse, and later states by the
        transition from there, which follows from the derivatives by the initial state.
        """
        if not any(np.any(run.input_noise > 0) for run in self.runs):
            return
        position, filters = self.unknowns.size, []
        for run in self.runs:
            _, X, S = self.shoot(run, theta, position, True)
            pushes = self._pushes(run, X)
            filters.append(
                [
                    Whitening.prepare(
                        S[:, part, :2],
                        pushes[part],
                        np.isfinite(run.data[:, part]),
                        self.noise,
                        float(run.times[1] - run.times[0]),
                    )
                    for part in run.segments
                ]
            )
            position += run.unknowns
        self.filters = filters

    def _pushes(self, run: Run, X: Array) -> Array:
        """Standard deviation [N] of the velocity's change within a sample by noise of the inputs."""
        dt = float(run.times[1] - run.times[0])
        values = run.inputs.values(run.times)
        total, k = np.zeros(len(run.times)), len(self.p)
        dx, jx, jp = np.empty(2), np.empty((2, 2)), np.empty((2, k))
        for i, level in enumerate(run.input_noise):
            for n in range(len(run.times)):
                sides = []
                for side in (-level, level):
                    u = values[:, n].copy()
                    u[i] += side
                    self.jac(run.times[n], np.ascontiguousarray(X[:, n]), u, self.p, dx, jx, jp)
                    sides.append(dx[1])
                total[n] += (0.5 * (sides[1] - sides[0]) * dt) ** 2
        return np.sqrt(total)

    def shoot(self, run: Run, theta: Array, position: int, full: bool) -> tuple[bool, Array, Array]:
        """What sensors see, X[rows, N], of a run whose initial values begin at ``position``, and its
        derivatives by initial values and functions.
        """
        unknowns = self.unknowns
        c, h = unknowns.coefficients(theta)
        count, segments = len(run.times), len(run.starts)
        initial = np.ascontiguousarray(theta[position : position + 2 * segments].reshape(segments, 2).T)
        rows = len(run.data)
        X = np.empty((rows, count))
        S = np.empty((rows, count, unknowns.size + 2)) if full else np.empty((rows, 1, 2))
        grids = [g.row() if g else NOTHING for g in (unknowns.c, unknowns.x, unknowns.v)]
        fine = shooter()(
            self.jac, self.p, run.times, run.inputs.t0, run.inputs.dt, run.inputs.coefficients, run.starts,
            initial, grids[0], c, grids[1], grids[2], h, run.steps, run.limit, full, X, S,
        )  # fmt: skip
        X += run.drift @ theta[position + 2 * segments : position + run.unknowns]
        return bool(fine) and bool(np.all(np.isfinite(X))), X, S

    def _accumulate(
        self, number: int, S: Array, weighted: Array, position: int, gradient: Array, hessian: Array
    ) -> None:
        count, run = self.unknowns.size, self.runs[number]
        there = np.isfinite(run.data) / self.noise[:, None]
        for k, part in enumerate(run.segments):
            rows = np.concatenate([S[:, part], run.drift[:, part] * there[:, part, None]], axis=2)
            if self.filters:
                rows = self.filters[number][k].applied(rows)
            rows = rows.reshape(-1, rows.shape[-1])
            residual = weighted[:, part].ravel()
            first = position + 2 * k
            drifts = np.arange(position + 2 * len(run.starts), position + run.unknowns)
            own = np.concatenate([[first, first + 1], drifts])
            functions = rows[:, 2 : S.shape[2]] @ self._turn
            others = np.concatenate([rows[:, :2], rows[:, S.shape[2] :]], axis=1)
            gradient[:count] += residual @ functions
            gradient[own] += residual @ others
            hessian[:count, :count] += functions.T @ functions
            cross = functions.T @ others
            hessian[:count, own] += cross
            hessian[own, :count] += cross.T
            hessian[np.ix_(own, own)] += others.T @ others

    def set_noise(self, squares: Sequence[Array], spent: float) -> float:
        counts = sum(np.isfinite(r.data).sum(axis=1) for r in self.runs)
        left = np.maximum(counts - spent * counts / max(float(np.sum(counts)), 1.0), 1.0)
        scale = np.array(
            [
                max(np.nanmax(np.abs(r.data[i]), initial=0.0) for r in self.runs)
                for i in range(len(self.noise))
            ]
        )
        new = np.where(counts > 0, np.sqrt(squares[0] / left), 1.0)
        if self.filters:  # the covariance is known but for a common factor
            ratio = np.sqrt(np.sum(squares[0] / self.noise**2) / np.sum(np.where(counts > 0, left, 0.0)))
            new = self.noise * np.where(counts > 0, ratio, 1.0)
        new = np.maximum(new, 1e-12 * np.where(scale > 0, scale, 1.0))
        change = float(np.max(np.abs(np.log(new / self.noise))))
        self.noise = new
        return change
