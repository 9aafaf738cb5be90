"""Path and parameters together as a least-squares problem under the equations of motion.

Minimise the noise-weighted distance between measurements y_k and outputs g(z_k, p) subject to
z_{k+1} = Phi(z_k; p), Phi the model's flow over one sample interval. :class:`PathProblem` holds the point
that was reached, evaluates and linearises it, and solves the linearised problem by the sweeps of solver.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.estimate.path import solver
from analysis.estimate.path.noise_levels import NoiseLevels
from analysis.estimate.path.segment import PathSegment
from analysis.estimate.path.workspace import Workspace
from analysis.estimate.unknowns import Unknowns
from analysis.experiment.noise_sharing import NoiseSharing

Array = NDArray[np.float64]
Evaluated = tuple[list[Array], list[Array]]  # defects [N-1, n] and residuals over the noise [N, q] by segment

_DIFFUSE = 30.0  # standard deviation of the first state's prior, in its ranges: so wide that it says nothing
# Least part of an output's samples that counts as degrees of freedom, however much noisy inputs explain
_LEAST_SHARE = 0.1


class PathProblem:
    """The data, what is unknown, and the point that was reached: path, parameters, errors of the inputs."""

    def __init__(
        self,
        kernels: Any,
        segments: list[PathSegment],
        values: Array,
        unknowns: Unknowns,
        lower: Array | None,
        upper: Array | None,
        sigma: Array | None,
        sensors: Array | None,
        sharing: NoiseSharing | None = None,
    ) -> None:
        if not segments:
            raise DataError("There is no data to fit.")
        self.kernels, self.segments, self.unknowns = kernels, segments, unknowns
        self.n, self.q = segments[0].states.shape[0], segments[0].outputs.shape[0]
        for segment in segments:
            self._check(segment)
        rows = np.atleast_2d(np.asarray(values, dtype=np.float64))
        self.k = rows.shape[1]
        self.values = _with_sensors(rows, sensors, self.q, max(s.record for s in segments) + 1)
        self.free = np.array(unknowns.free, dtype=np.int64)
        self.low, self.high = self._bounds(lower, upper)
        self.paths = [np.ascontiguousarray(s.states, dtype=np.float64).copy() for s in segments]
        self.scale = _state_ranges(self.paths)
        self.noise = NoiseLevels.of(segments, sigma, sharing)
        self._first_sigma = self.noise.sigma.copy()
        self._first_size = np.abs(unknowns.current(self.values))
        self.m = 0  # inputs whose errors are unknowns
        self.input_errors = [np.zeros((0, s.states.shape[1])) for s in segments]  # [m, N]
        self.input_count = segments[0].input_count
        self._allocate()
        self.penalty = np.zeros((0, 0))  # [unknowns, unknowns] of their squares; empty: none
        self.steps = self.fine = 1  # sub-steps of an interval for derivatives, and for the flow itself
        self.soft = True  # whether the equations may still be missed: a rough flow will do
        self.accepted: Evaluated | None = None  # at the point that was reached, with the flow's own steps
        self.evaluations = 0

    def _check(self, segment: PathSegment) -> None:
        N = len(segment.times)
        if N < 2 or segment.outputs.shape != (self.q, N) or segment.states.shape != (self.n, N):
            raise DataError("A segment needs two samples or more, with outputs and states at each of them.")

    def _bounds(self, lower: Array | None, upper: Array | None) -> tuple[Array, Array]:
        """Bounds of the unknowns; what is unknown of the sensors has none."""
        sides = []
        for bound, none in ((lower, -np.inf), (upper, np.inf)):
            own = np.full(self.k, none) if bound is None else np.asarray(bound, dtype=np.float64)
            sides.append(np.concatenate([own, np.full(3 * self.q, none)]))
        return self.unknowns.bounds(sides[0], sides[1])

    def _allocate(self) -> None:
        a = int(np.sum(self.free < self.k))
        self.work = [
            Workspace.allocate(self.n, self.m, self.q, s.states.shape[1], a, len(self.free))
            for s in self.segments
        ]

    def free_inputs(self) -> None:
        """From now on the true inputs at all samples are unknowns; the path starts from the data again."""
        self.m = self.input_count
        self.paths = [s.states.copy() for s in self.segments]
        self.noise.sigma = self._first_sigma.copy()
        self.input_errors = [np.zeros((self.m, s.states.shape[1])) for s in self.segments]
        self._allocate()

    # where the unknowns stand

    @property
    def current(self) -> Array:
        return self.unknowns.current(self.values)

    @property
    def sizes(self) -> Array:
        """Magnitude of each unknown, now or at the start, by which rounding is judged; 0: it has none yet."""
        return np.maximum(np.abs(self.current), self._first_size)

    # one pass over the data

    @property
    def flow_steps(self) -> int:
        return self.steps if self.soft else self.fine

    def linearise(self) -> None:
        """Defects, residuals and all derivatives at the point that was reached, into the workspaces."""
        self.evaluations += 1
        for i, (segment, X, w) in enumerate(zip(self.segments, self.paths, self.work, strict=True)):
            solver.linearise(
                self.kernels.jac, self.kernels.out_jac, segment.times, X, segment.outputs,
                self.noise.sigma[segment.record], self.values[segment.record], self.free, self.steps,
                *segment.shifted_inputs(self.input_errors[i]), w.V, w.C, w.R, w.G, w.D,
            )  # fmt: skip
        if self.flow_steps != self.steps:
            defects, residuals = self.accepted or self.evaluate(self.paths, self.values, self.fine)
            for w, C, R in zip(self.work, defects, residuals, strict=True):
                w.C, w.R = C, R
        if self.m:
            self._append_inputs()

    def evaluate(
        self,
        paths: list[Array],
        values: Array,
        steps: int,
        segments: list[PathSegment] | None = None,
        errors: list[Array] | None = None,
    ) -> Evaluated:
        """Defects and weighted residuals of other states and parameters, or of segments with other inputs."""
        self.evaluations += 1
        defects, residuals = [], []
        errors = self.input_errors if errors is None else errors
        for segment, X, e in zip(segments or self.segments, paths, errors, strict=True):
            C, R = np.empty((X.shape[1] - 1, self.n)), np.empty((X.shape[1], self.q))
            solver.evaluate(
                self.kernels.rhs, self.kernels.out, segment.times, X, segment.outputs,
                self.noise.sigma[segment.record], values[segment.record], steps,
                *segment.shifted_inputs(e), C, R,
            )  # fmt: skip
            defects.append(C)
            residuals.append(R)
        return defects, residuals

    def _append_inputs(self) -> None:
        """The errors of the inputs behind the states: what they do to the flow and to the outputs."""
        n, m = self.n, self.m
        for w in self.work:
            w.carried[:, :n, :n] = w.V[:, :, :n]
            w.carried[:, :n, n + m :] = w.V[:, :, n:]
            w.seen[:, :, :n] = w.G
        for j in range(m):
            for w, (flow, seen) in zip(self.work, self.input_effects(j), strict=True):
                w.carried[:, :n, n + j] = flow
                w.seen[:, :, n + j] = seen

    def input_effects(self, j: int) -> list[tuple[Array, Array]]:
        """Derivatives of the flow [N-1, n] and of the weighted outputs [N, q] in the errors of input j."""
        noise = [float(s.noise_of_inputs[j]) or 1.0 for s in self.segments]
        C, R = self.evaluate(self.paths, self.values, self.steps)
        moved = [e.copy() if len(e) else np.zeros((self.input_count, e.shape[1])) for e in self.input_errors]
        for e, size in zip(moved, noise, strict=True):
            e[j] += size
        changed_C, changed_R = self.evaluate(self.paths, self.values, self.steps, errors=moved)
        return [
            ((changed_C[i] - C[i]) / size, np.nan_to_num(R[i] - changed_R[i]) / size)
            for i, size in enumerate(noise)
        ]

    # the linearised problem

    def eliminate(
        self,
        slack: Array,
        defects: list[Array] | None = None,
        residuals: list[Array] | None = None,
        penalised: bool = False,
    ) -> tuple[Array, Array]:
        """Information and gradient of the unknowns; with ``defects`` given, of those (and ``residuals``)
        alone. ``slack`` [n]: how far the equations may be missed; ``penalised``: with the penalty.
        """
        size, p = len(self.unknowns), len(self.free)
        information, gradient = np.zeros((size, size)), np.zeros(size)
        for i, (segment, X, w) in enumerate(zip(self.segments, self.paths, self.work, strict=True)):
            H, g = np.zeros((p, p)), np.zeros(p)
            start, spread = segment.prior(X, _DIFFUSE * self.scale)
            C, R, errors = w.C, w.R, self.input_errors[i]
            if defects is not None:
                C, start, errors = defects[i], np.zeros(self.n), np.zeros_like(errors)
                R = np.where(np.isnan(w.R), np.nan, 0.0 if residuals is None else residuals[i])
            noise = segment.noise_of_inputs[: self.m]
            free = np.concatenate([slack, noise])
            roots = np.ascontiguousarray(np.diag(free)[:, free > 0])
            if self.m:
                C = np.ascontiguousarray(np.hstack([C, -errors[:, 1:].T]))
                start, spread = np.concatenate([start, -errors[:, 0]]), np.concatenate([spread, noise])
            solver.forward(w.carried, C, R, w.seen, w.D, start, spread, roots, w.S, w.M, w.K, w.s, w.E, H, g)
            self.unknowns.add(segment.record, information, gradient, H, g)
        if len(self.penalty) and penalised:
            information += self.penalty
            gradient -= self.penalty @ self.current
        return information, gradient

    def step_path(self, step: Array) -> float:
        """States' step for the unknowns' step; returns the largest multiplier in units of 1/range."""
        largest = 0.0
        for segment, w in zip(self.segments, self.work, strict=True):
            own = self.unknowns.own(segment.record, step)
            solver.backward(w.carried, w.seen, own, w.S, w.M, w.K, w.s, w.E, w.dX, w.L)
            if len(w.L) > 1:
                largest = max(largest, float(np.max(np.abs(w.L[1:, : self.n]) * self.scale)))
        return largest

    # what it costs

    def cost(self, residuals: list[Array], errors: list[Array]) -> float:
        """Half the sum of squares of the residuals and of the errors of the inputs, over their noise."""
        total = sum(float(np.nansum(R * R)) for R in residuals)
        return 0.5 * (total + self.input_cost(errors))

    def penalty_cost(self, values: Array) -> float:
        """Half the penalised squares of unknowns."""
        if not len(self.penalty):
            return 0.0
        there = self.unknowns.current(values)
        return 0.5 * float(there @ self.penalty @ there)

    def input_cost(self, errors: list[Array]) -> float:
        total = 0.0
        for segment, e in zip(self.segments, errors, strict=True):
            noise = segment.noise_of_inputs[: len(e)]
            noisy = noise > 0
            total += float(np.sum((e[noisy] / noise[noisy, None]) ** 2))
        return total

    def miss(self, defects: list[Array]) -> float:
        """Sum of the misses of the equations, in ranges of the states."""
        return float(sum(np.sum(np.abs(C) / self.scale) for C in defects))

    @property
    def dof(self) -> int:
        known = sum(s.known_initials for s in self.segments)
        return int(self.noise.measured.sum()) - len(self.unknowns) - self.n * len(self.segments) + known

    def update_noise(self, residuals: list[Array]) -> float:
        """Noise levels from the residuals where they are not given; returns the largest relative change."""
        return self.noise.update(residuals, self._shares()) if self.noise.estimated.any() else 0.0

    def _shares(self) -> Array:
        """Degrees of freedom of each output: its samples less what the unknowns take up of them.

        The errors of the inputs take up their own cost; from which outputs is read off the forward sweep,
        which knows how much of each sample came as no news.
        """
        measured = self.noise.measured.sum(axis=0).astype(np.float64)
        if not self.m:
            return np.maximum(measured * self.dof / measured.sum(), 1.0)
        known = np.zeros(self.q)
        for w in self.work:
            used = w.s > 0
            known += np.sum(np.where(used, 1.0 - 1.0 / np.where(used, w.s, 1.0), 0.0), axis=0)
        taken = measured.sum() - self.dof + self.input_cost(self.input_errors)
        least = _LEAST_SHARE * measured + np.finfo(float).tiny
        return np.maximum(measured - known * taken / max(known.sum(), np.finfo(float).tiny), least)


def _with_sensors(rows: Array, sensors: Array | None, outputs: int, records: int) -> Array:
    """Values [records, k + 3q]: parameters, then offsets, delays and drifts of the outputs."""
    rows = np.repeat(rows, records, axis=0) if len(rows) == 1 else rows
    chain = np.zeros((records, 3 * outputs))
    if sensors is not None:
        given = np.atleast_2d(np.asarray(sensors, dtype=np.float64))
        chain[:, : given.shape[1]] = given
    return np.ascontiguousarray(np.hstack([rows, chain]))


def _state_ranges(paths: list[Array]) -> Array:
    """Range of each state [n]; of one that rests its value, and 1 where that is zero."""
    joined = np.hstack(paths)
    if not np.all(np.isfinite(joined)):
        raise DataError("The path to start from has missing or infinite states.")
    ranges = np.ptp(joined, axis=1)
    ranges = np.where(ranges > 0, ranges, np.max(np.abs(joined), axis=1))
    return np.where(ranges > 0, ranges, 1.0)
