"""Maximum likelihood over the whole path: the states at all samples and the parameters, estimated together.

Minimise the noise-weighted distance between measurements y_k and outputs g(z_k, p) subject to the equations
of motion z_{k+1} = Phi(z_k; p), Phi the model's flow over one sample interval: multiple shooting with every
sample a node. Errors in all variables are thereby accounted for, chaos is no obstacle (the path is free and
every interval short), and the inverse Hessian is the Cramer-Rao bound of the parameters for white noise.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ShakedownError
from analysis.base.progress import SILENT, Progress
from analysis.estimate.descent import bounded_step
from analysis.estimate.identifiability import pseudo_inverse
from analysis.estimate.path import solver as path_solver
from analysis.estimate.unknowns import ABSENT, Unknowns
from analysis.signal.inputs import Inputs

Array = NDArray[np.float64]

_DIFFUSE = 30.0  # prior spread of a step of the first state, in ranges of that state: no prior to speak of
_ROUGH, _FINE = 2e-3, 1e-5  # relative accuracy of the flow for its derivatives, and for itself
_PATIENCE = 5  # steps without headway (kinks) after which half a standard error counts as converged
_SETTLED = 1e-6  # mean miss of the equations, of the span, at which a path without unknowns has settled
_FINEST = 256  # sub-steps in a sample interval beyond which a model counts as too stiff for this method
_DRAWS = 6  # random draws of the inputs' noise by which its effect on the parameters is judged
_MATTERS = 0.25  # shift of a parameter by the inputs' noise, over its standard error, that is not neglected
_TRIFLE = 1e-8  # miss of the equations in each interval, of a state's range, that keeps information finite
_LEAST_SHARE = 0.1  # of an output's samples that count as free, however much the inputs explain
_TINY = (
    1e-9  # least noise, as a fraction of a channel's range: what double precision and the flow can resolve
)


@dataclass(frozen=True, eq=False)
class Segment:
    """An unbroken stretch of samples with a path of its own: a record, a part of one, or an orbit segment."""

    times: Array  # [N], as the model's t
    outputs: Array  # measurements [q, N]; nan: missing sample, or a channel that was not measured
    states: Array  # [n, N], the path to start from
    inputs: Inputs | None = None  # over these times; None for a model without measured inputs
    record: int = 0  # which record's own parameters hold here
    origin: float | None = None  # time of the record's first sample, from which drifts count; None: own first
    initial: Array | None = None  # [n] known state at the first sample (nan: unknown) ...
    initial_spread: Array | None = None  # ... and its standard deviation
    variants: tuple[
        Inputs, ...
    ] = ()  # the inputs changed by one standard deviation of what is unknown of them
    input_noise: Array | None = None  # [m] standard deviation of white noise on the inputs' samples


@dataclass(frozen=True, eq=False)
class PathEstimate:
    """What :func:`estimate_path` found.

    ``unknowns`` says which entry of ``values`` each row of ``covariance`` is: (index, record), record -1 when
    it is shared by all records.
    """

    values: Array  # [records, k + 3q]: model parameters, then offsets, delays and drifts of the outputs
    unknowns: list[tuple[int, int]]
    estimate: Array  # of the unknowns
    covariance: Array  # of the unknowns; directions the data do not determine are left out
    information: Array  # its inverse, singular when something is undetermined
    input_covariance: Array  # what the unknown of the inputs adds to the covariance
    states: list[Array]  # smoothed [n, N] per segment
    residuals: list[Array]  # measurement minus model output [q, N] per segment
    sigma: Array  # noise standard deviation per output, given or estimated
    chi2: float
    dof: int
    converged: bool
    iterations: int
    evaluations: int  # passes over the data
    steps: int  # Runge-Kutta steps per sample interval
    defect: float  # largest violation of the equations, in ranges of the state
    history: list[dict[str, float]] = field(default_factory=list)
    message: str = ""
    inputs_estimated: bool = False  # the inputs' noise mattered: their samples were unknowns too
    details: tuple[SegmentDetails, ...] = ()  # one for each segment, if asked for


@dataclass(frozen=True, eq=False)
class SegmentDetails:
    """How the best path of a segment follows the unknowns (P of them, all records' together)."""

    jacobian: (
        Array  # [q, N, P] d output / d unknown along the best path, over the noise; 0 at missing samples
    )
    input_jacobian: Array  # [m, N, P] the same of the inputs' errors, once these are unknowns
    input_residuals: Array  # [m, N] minus the inputs' errors, over their noise
    initial_slope: Array  # [n, P] d first state / d unknown
    initial_information: Array  # [n, n] of the first state, the unknowns given


def estimate_path(
    kernels: Any,
    segments: Sequence[Segment],
    values: Array,
    free: Sequence[int],
    *,
    local: Sequence[int] = (),
    absent: Collection[tuple[int, int]] = (),
    lower: Array | None = None,
    upper: Array | None = None,
    sigma: Array | None = None,
    sensors: Array | None = None,
    max_iterations: int = 60,
    details: bool = False,
    progress: Progress = SILENT,
) -> PathEstimate:
    """States at all samples and the free parameters by maximum likelihood; cost linear in the samples.

    kernels         ``rhs``, ``jac``, ``out``, ``out_jac`` of the model (n states, k parameters, q outputs)
    segments        stretches of data, each with a start for its states (measured, smoothed or simulated)
    values          parameters to start from: [k], or [records, k]
    free            what to estimate: i < k a parameter, k + i the offset of output i, k + q + i its delay,
                    k + 2q + i its drift, in y_i(t) = g_i(x(t - delay_i)) + offset_i + drift_i t
    local           those of ``free`` that differ from record to record
    absent          (index, record) of those that are known in that record all the same
    lower, upper    bounds of the k parameters (default none)
    sigma           noise standard deviation of each output; nan or None: estimated from the residuals
    sensors         offsets, delays and drifts of the outputs to start from, [2q] or [3q], or by record
                    (default none)
    details         also how the path follows the unknowns (:class:`SegmentDetails`)

    Noise of the inputs' samples (``Segment.input_noise``) is first left aside. If it then turns out to move a
    parameter beside its standard error, the true inputs at all samples become unknowns, too, with their
    measured samples as data.

    At first the equations may be missed as much as the start misses them; they are let bind harder from step
    to step until they hold exactly. So a poor start (parameters 50 % off, raw noisy samples as states) will
    do.
    """
    records = max((segment.record for segment in segments), default=0) + 1
    shared = Unknowns.by_record([int(j) for j in free], set(local), records)
    unknowns = Unknowns([item for item in shared.items if item not in set(absent)], records)
    problem = _Problem(kernels, list(segments), values, unknowns, lower, upper, sigma, sensors)
    return problem.solve(max_iterations, progress, details)


@dataclass
class _Work:
    """Arrays of one segment that are overwritten in each iteration.

    The sweeps carry n states and, once the inputs are unknown, the m errors of the inputs behind them.
    """

    V: Array
    C: Array
    R: Array
    G: Array
    D: Array
    S: Array
    M: Array
    K: Array
    s: Array
    E: Array
    dX: Array
    L: Array
    carried: Array  # V and G as the sweeps see them
    seen: Array

    @classmethod
    def allocate(cls, n: int, m: int, q: int, N: int, a: int, p: int) -> _Work:
        V, G, size = np.empty((N - 1, n, n + a)), np.empty((N, q, n)), n + m
        return cls(
            V, np.empty((N - 1, n)), np.empty((N, q)), G, np.empty((N, q, p)), np.empty((N, size, size)),
            np.empty((N, size, p + 1)), np.empty((N, q, size)), np.empty((N, q)), np.empty((N, q, p + 1)),
            np.empty((size, N)), np.empty((N, size)),
            np.zeros((N - 1, size, size + a)) if m else V, np.zeros((N, q, size)) if m else G,
        )  # fmt: skip


@dataclass(frozen=True)
class _Outcome:
    information: Array
    converged: bool
    message: str


class _Problem:
    """The state of the iteration."""

    def __init__(
        self,
        kernels: Any,
        segments: list[Segment],
        values: Array,
        unknowns: Unknowns,
        lower: Array | None,
        upper: Array | None,
        sigma: Array | None,
        sensors: Array | None,
    ) -> None:
        if not segments:
            raise DataError("There is no data to fit.")
        self.kernels, self.segments = kernels, segments
        self.n, self.q = segments[0].states.shape[0], segments[0].outputs.shape[0]
        for segment in segments:
            self._check(segment)
        self.records = max(segment.record for segment in segments) + 1
        rows = np.atleast_2d(np.asarray(values, dtype=np.float64))
        rows = np.repeat(rows, self.records, axis=0) if len(rows) == 1 else rows
        self.k = rows.shape[1]
        chain = np.zeros((self.records, 3 * self.q))
        if sensors is not None:
            given = np.atleast_2d(np.asarray(sensors, dtype=np.float64))
            chain[:, : given.shape[1]] = given
        self.values = np.ascontiguousarray(np.hstack([rows, chain]))
        self.unknowns = unknowns
        self.free = np.array(unknowns.free, dtype=np.int64)
        pad = np.full(3 * self.q, np.inf)
        low = np.full(self.k, -np.inf) if lower is None else np.asarray(lower, dtype=np.float64)
        high = np.full(self.k, np.inf) if upper is None else np.asarray(upper, dtype=np.float64)
        low, high = np.concatenate([low, -pad]), np.concatenate([high, pad])
        self.low, self.high = self.unknowns.bounds(low, high)
        self.paths = [np.ascontiguousarray(s.states, dtype=np.float64).copy() for s in segments]
        joined = np.hstack(self.paths)
        if not np.all(np.isfinite(joined)):
            raise DataError("The path to start from has missing or infinite states.")
        self.scale = np.ptp(joined, axis=1)
        self.scale[self.scale == 0] = 1.0
        self._set_sigma(sigma)
        self.input_errors = [np.zeros((0, s.states.shape[1])) for s in segments]  # [m, N] once unknown
        self.m = 0  # inputs that are unknowns
        self._allocate()
        self.steps = self.fine = 1
        self.soft = True  # whether the equations may still be missed
        self._accepted: tuple[list[Array], list[Array]] | None = (
            None  # defects and residuals of the last step
        )
        self.evaluations = self.iterations = 0
        self.history: list[dict[str, float]] = []

    def _allocate(self) -> None:
        a = int(np.sum(self.free < self.k))
        self.work = [
            _Work.allocate(self.n, self.m, self.q, s.states.shape[1], a, len(self.free))
            for s in self.segments
        ]

    def _check(self, segment: Segment) -> None:
        N = len(segment.times)
        if N < 2 or segment.outputs.shape != (self.q, N) or segment.states.shape != (self.n, N):
            raise DataError("A segment needs two samples or more, with outputs and states at each of them.")

    def _set_sigma(self, sigma: Array | None) -> None:
        given = np.full(self.q, np.nan) if sigma is None else np.array(sigma, dtype=np.float64)
        data = np.hstack([s.outputs for s in self.segments])
        self.measured = np.isfinite(data).sum(axis=1)
        with np.errstate(invalid="ignore"):
            ranges = np.array(
                [np.ptp(row[np.isfinite(row)]) if np.isfinite(row).any() else 1.0 for row in data]
            )
        ranges[ranges == 0] = 1.0
        self.floor = _TINY * ranges
        self.estimated = ~np.isfinite(given)
        self.sigma = given
        for i in np.flatnonzero(self.estimated):
            self.sigma[i] = max(_difference_noise([s.outputs[i] for s in self.segments]), self.floor[i])
        self.sigma = np.maximum(self.sigma, np.where(self.estimated, self.floor, 1e-300))
        self.first_sigma = self.sigma.copy()

    # one pass over the data

    def _inputs(self, segment: Segment, errors: Array) -> tuple[float, float, Array]:
        """Inputs as the kernels take them, each sample interval shifted by the error of its first sample."""
        if segment.inputs is None:
            first = float(segment.times[0])
            origin = first if segment.origin is None else segment.origin
            return origin, float(segment.times[1]) - first, np.zeros((0, 1, 4))
        given = segment.inputs
        if not errors.any():
            return given.t0, given.dt, given.coefficients
        first = round((float(segment.times[0]) - given.t0) / given.dt)
        moved = given.coefficients.copy()
        moved[:, first : first + errors.shape[1], 0] += errors
        return given.t0, given.dt, moved

    def _linearise(self) -> None:
        self.evaluations += 1
        for i, (segment, X, w) in enumerate(zip(self.segments, self.paths, self.work, strict=True)):
            path_solver.linearise(
                self.kernels.jac, self.kernels.out_jac, segment.times, X, segment.outputs, self.sigma,
                self.values[segment.record], self.free, self.steps,
                *self._inputs(segment, self.input_errors[i]), w.V, w.C, w.R, w.G, w.D,
            )  # fmt: skip
        if self._flow_steps() != self.steps:
            defects, residuals = self._accepted or self._evaluate(self.paths, self.values, self.fine)
            for w, C, R in zip(self.work, defects, residuals, strict=True):
                w.C, w.R = C, R
        if self.m:
            self._append_inputs()

    def _flow_steps(self) -> int:
        """While the equations may still be missed a rough flow will do."""
        return self.steps if self.soft else self.fine

    def _append_inputs(self) -> None:
        """The errors of the inputs behind the states: what they do to the flow and to the outputs."""
        n, m = self.n, self.m
        for w in self.work:
            w.carried[:, :n, :n] = w.V[:, :, :n]
            w.carried[:, :n, n + m :] = w.V[:, :, n:]
            w.seen[:, :, :n] = w.G
        for j in range(m):
            for w, (flow, seen) in zip(self.work, self._input_effects(j), strict=True):
                w.carried[:, :n, n + j] = flow
                w.seen[:, :, n + j] = seen

    def _input_effects(self, j: int) -> list[tuple[Array, Array]]:
        """Derivatives of the flow [N-1, n] and of the weighted outputs [N, q] in the errors of input j."""
        noise = [float(self._noise_of_inputs(s)[j]) or 1.0 for s in self.segments]
        C, R = self._evaluate(self.paths, self.values, self.steps)
        moved = [e if len(e) else np.zeros((self._inputs_count(), e.shape[1])) for e in self.input_errors]
        moved = [e.copy() for e in moved]
        for e, size in zip(moved, noise, strict=True):
            e[j] += size
        changed_C, changed_R = self._evaluate(self.paths, self.values, self.steps, errors=moved)
        return [
            ((changed_C[i] - C[i]) / size, np.nan_to_num(R[i] - changed_R[i]) / size)
            for i, size in enumerate(noise)
        ]

    def _inputs_count(self) -> int:
        inputs = self.segments[0].inputs
        return 0 if inputs is None else inputs.count

    def _noise_of_inputs(self, segment: Segment) -> Array:
        return np.zeros(self._inputs_count()) if segment.input_noise is None else segment.input_noise

    def _evaluate(
        self,
        paths: list[Array],
        values: Array,
        steps: int,
        segments: list[Segment] | None = None,
        errors: list[Array] | None = None,
    ) -> tuple[list[Array], list[Array]]:
        """Defects and weighted residuals of other states and parameters (or of segments with other
        inputs).
        """
        self.evaluations += 1
        defects, residuals = [], []
        errors = self.input_errors if errors is None else errors
        for segment, X, e in zip(segments or self.segments, paths, errors, strict=True):
            C, R = np.empty((X.shape[1] - 1, self.n)), np.empty((X.shape[1], self.q))
            path_solver.evaluate(
                self.kernels.rhs, self.kernels.out, segment.times, X, segment.outputs, self.sigma,
                values[segment.record], steps, *self._inputs(segment, e), C, R,
            )  # fmt: skip
            defects.append(C)
            residuals.append(R)
        return defects, residuals

    def _eliminate(
        self, slack: Array, defects: list[Array] | None = None, residuals: list[Array] | None = None
    ) -> tuple[Array, Array]:
        """Information and gradient of the unknowns; with ``defects`` given, of those (and ``residuals``)
        alone. ``slack`` [n]: how far the equations may be missed.
        """
        size = len(self.unknowns)
        information, gradient = np.zeros((size, size)), np.zeros(size)
        p = len(self.free)
        for i, (segment, X, w) in enumerate(zip(self.segments, self.paths, self.work, strict=True)):
            H, g = np.zeros((p, p)), np.zeros(p)
            start, spread = self._prior(segment, X)
            C, R, errors = w.C, w.R, self.input_errors[i]
            if defects is not None:
                C, start, errors = defects[i], np.zeros(self.n), np.zeros_like(errors)
                R = np.where(np.isnan(w.R), np.nan, 0.0 if residuals is None else residuals[i])
            noise = self._noise_of_inputs(segment)[: self.m]
            free = np.concatenate([slack, noise])
            roots = np.ascontiguousarray(np.diag(free)[:, free > 0])
            if self.m:
                C = np.ascontiguousarray(np.hstack([C, -errors[:, 1:].T]))
                start, spread = np.concatenate([start, -errors[:, 0]]), np.concatenate([spread, noise])
            path_solver.forward(
                w.carried, C, R, w.seen, w.D, start, spread, roots, w.S, w.M, w.K, w.s, w.E, H, g
            )
            self.unknowns.add(segment.record, information, gradient, H, g)
        return information, gradient

    def _prior(self, segment: Segment, X: Array) -> tuple[Array, Array]:
        start, spread = np.zeros(self.n), _DIFFUSE * self.scale
        if segment.initial is not None and segment.initial_spread is not None:
            known = np.isfinite(segment.initial)
            start[known] = segment.initial[known] - X[known, 0]
            spread = np.where(known, segment.initial_spread, spread)
        return start, spread

    def _path_step(self, step: Array) -> float:
        """States' step for the unknowns' step; returns the largest multiplier in units of 1/range."""
        largest = 0.0
        for segment, w in zip(self.segments, self.work, strict=True):
            own = self.unknowns.own(segment.record, step)
            path_solver.backward(w.carried, w.seen, own, w.S, w.M, w.K, w.s, w.E, w.dX, w.L)
            if len(w.L) > 1:
                largest = max(largest, float(np.max(np.abs(w.L[1:, : self.n]) * self.scale)))
        return largest

    # the iteration

    def solve(self, max_iterations: int, progress: Progress, details: bool) -> PathEstimate:
        self._choose_steps()
        noisy = any(self._noise_of_inputs(s).any() for s in self.segments)
        found = self._iterate(max_iterations, progress.part(0.0, 0.5 if noisy else 1.0))
        if noisy and (not found.converged or self._inputs_matter()):
            self._free_inputs()
            found = self._iterate(max_iterations, progress.part(0.5, 1.0))
        return self._result(found, details)

    def _iterate(self, max_iterations: int, progress: Progress) -> _Outcome:
        """Gauss-Newton from the present path and parameters."""
        self.soft, self._accepted = True, None
        self._linearise()
        slack = self._first_slack()
        penalty, damping, previous, slow = 0.0, 0.0, np.inf, 0
        converged, message = False, ""
        recent: list[float] = []
        for iteration in range(1, max_iterations + 1):
            self.iterations += 1
            soft = self.soft = bool(slack.any())
            information, gradient = self._eliminate(slack)
            step = bounded_step(
                information, gradient, self.unknowns.current(self.values), self.low, self.high, damping
            )
            largest = self._path_step(step)
            penalty = max(penalty, 2.0 * largest)
            misfit = self._cost([w.R for w in self.work], self.input_errors)
            miss = self._miss([w.C for w in self.work])
            errors = np.sqrt(np.maximum(np.diag(pseudo_inverse(information)), 0.0))
            relative = float(np.max(np.abs(step) / np.maximum(errors, 1e-13), initial=0.0))
            if not len(self.unknowns):  # a path alone has settled when the equations hold
                relative = miss / (_SETTLED * sum(w.C.size for w in self.work))
            weight = _Merit(slack, self.scale, penalty)
            here = misfit + weight([w.C for w in self.work])
            recent = [here] if soft else [*recent[-2:], here]
            longest = 0.5 if not soft and 0.5 * previous < relative < 0.5 else 1.0
            taken, residuals = self._search(step, weight, max(recent), longest)
            self.history.append(
                {"cost": misfit, "defect": miss, "step": relative, "length": taken, "slack": float(slack[0])}
            )
            progress.report(iteration / (iteration + 8), "maximum likelihood", cost=misfit, step=relative)
            if taken == 0.0:
                if not soft and slow and relative < 1.0:
                    converged = True  # a kink of the equations: nothing is left to gain beside the noise
                    break
                if damping > 1e6:
                    message = "No step lowers the misfit."
                    break
                damping = max(10 * damping, 1e-3)
                continue
            damping = damping / 10 if damping > 1e-9 else 0.0
            change = 0.0
            if soft:
                slack = self._tighter(slack, taken)
                self.soft = bool(slack.any())
                self._accepted = self._accepted if self.soft else None
            else:
                change = self._update_sigma(residuals) if taken > 0.4 else 1.0
                recent = recent if change < 0.05 else []
                if relative > 0.5 * previous:  # kinks: the rough derivatives may be what holds it up
                    slow += 1
                    self.steps = min(2 * self.steps, self.fine)
                previous = relative
            close = relative < (0.5 if slow >= _PATIENCE else 0.1)
            if not soft and close and change < 0.02 and not self._refine():
                converged = True
                break
            self._linearise()
        if converged and len(self.unknowns):
            self._linearise()  # at the point that is reported
            information, _ = self._eliminate(slack)
        return _Outcome(information, converged, message)

    def _first_slack(self) -> Array:
        """Standard deviation by which the equations may be missed at first: what the start misses them by."""
        defects = np.vstack([w.C for w in self.work])
        return np.sqrt(np.mean(defects**2, axis=0))

    def _tighter(self, slack: Array, taken: float) -> Array:
        """Let the equations bind harder; once slack no longer matters beside the noise they hold exactly."""
        rows = slice(self.n)
        spread = np.sqrt(
            np.mean([np.mean(np.sum(w.S[:, rows] ** 2, axis=2), axis=0) for w in self.work], axis=0)
        )
        slack = slack * (0.1 if taken == 1.0 else 0.5)
        return np.zeros(self.n) if np.all(slack < 0.01 * spread) else slack

    def _choose_steps(self) -> None:
        """Sub-steps: few for the derivatives, many for the flow itself (which costs little without them)."""
        self.steps = self._settled(1, _ROUGH)
        self.fine = self._settled(self.steps, _FINE)

    def _settled(self, steps: int, tolerance: float) -> int:
        """Least sub-steps whose doubling changes the flow by less than a fraction of its movement."""
        moved = np.sqrt(np.mean(np.hstack([np.diff(X) for X in self.paths]) ** 2, axis=1))
        coarse, _ = self._evaluate(self.paths, self.values, steps)
        while steps <= _FINEST:
            finer, _ = self._evaluate(self.paths, self.values, 2 * steps)
            error = np.sqrt(np.mean((np.vstack(finer) - np.vstack(coarse)) ** 2, axis=0))
            if np.all(error <= tolerance * moved + 1e-12 * self.scale):
                return steps
            steps, coarse = 2 * steps, finer
        raise ShakedownError("The model is too stiff for its sample interval: the flow does not settle.")

    def _refine(self) -> bool:
        """Double the sub-steps if the error of the flow moves a parameter by a tenth of its standard
        error.
        """
        if self.fine >= _FINEST:
            return False
        coarse, _ = self._accepted or self._evaluate(self.paths, self.values, self.fine)
        finer, _ = self._evaluate(self.paths, self.values, 2 * self.fine)
        information, gradient = self._eliminate(
            np.zeros(self.n), [f - c for f, c in zip(finer, coarse, strict=True)]
        )
        covariance = pseudo_inverse(information)
        bias = np.abs(covariance @ gradient)
        if np.all(bias <= 0.1 * np.sqrt(np.maximum(np.diag(covariance), 0.0)) + 1e-12):
            return False
        self.fine, self._accepted = 2 * self.fine, None
        return True

    def _input_covariance(self) -> Array:
        """Covariance of the unknowns that comes from what is unknown of the inputs, to first order."""
        total = np.zeros((len(self.unknowns), len(self.unknowns)))
        modes = {(s.record, j) for s in self.segments for j in range(len(s.variants))}
        if not modes:
            return total
        base_C, base_R = self._evaluate(self.paths, self.values, self.steps)
        for record, j in sorted(modes):
            changed = [replace(s, inputs=s.variants[j]) if s.record == record else s for s in self.segments]
            C, R = self._evaluate(self.paths, self.values, self.steps, changed)
            information, gradient = self._eliminate(
                np.zeros(self.n),
                [a - b for a, b in zip(C, base_C, strict=True)],
                [a - b for a, b in zip(R, base_R, strict=True)],
            )
            shift = pseudo_inverse(information) @ gradient
            total += np.outer(shift, shift)
        return total

    # noise of the inputs

    def _inputs_matter(self) -> bool:
        """Whether the noise of the inputs moves a parameter by a good part of its standard error."""
        noise = [self._noise_of_inputs(s) for s in self.segments]
        rng = np.random.default_rng(0)
        effects = [self._input_effects(j) for j in range(self._inputs_count())]
        total = np.zeros(len(self.unknowns))
        for _ in range(_DRAWS):
            defects = [np.zeros_like(w.C) for w in self.work]
            residuals = [np.zeros_like(w.R) for w in self.work]
            for j, effect in enumerate(effects):
                for i, (flow, seen) in enumerate(effect):
                    error = noise[i][j] * rng.standard_normal(len(seen))
                    defects[i] += flow * error[:-1, None]
                    residuals[i] -= seen * error[:, None]
            information, gradient = self._eliminate(np.zeros(self.n), defects, residuals)
            covariance = pseudo_inverse(information)
            errors = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
            total += (covariance @ gradient / errors) ** 2 / _DRAWS
        return bool(np.any(total > _MATTERS**2))

    def _free_inputs(self) -> None:
        """From now on the true inputs at all samples are unknowns; the path starts from the data again."""
        self.m = self._inputs_count()
        self.paths = [s.states.copy() for s in self.segments]
        self.sigma = self.first_sigma.copy()
        self.input_errors = [np.zeros((self.m, s.states.shape[1])) for s in self.segments]
        self._allocate()

    def _cost(self, residuals: list[Array], errors: list[Array]) -> float:
        """Half the sum of squares of the residuals and of the errors of the inputs, over their noise."""
        total = sum(float(np.nansum(R * R)) for R in residuals)
        return 0.5 * (total + self._input_cost(errors))

    def _input_cost(self, errors: list[Array]) -> float:
        total = 0.0
        for segment, e in zip(self.segments, errors, strict=True):
            noise = self._noise_of_inputs(segment)[: len(e)]
            noisy = noise > 0
            total += float(np.sum((e[noisy] / noise[noisy, None]) ** 2))
        return total

    def _miss(self, defects: list[Array]) -> float:
        return float(sum(np.sum(np.abs(C) / self.scale) for C in defects))

    def _search(self, step: Array, merit: _Merit, bar: float, longest: float) -> tuple[float, list[Array]]:
        """Longest of 1, 1/2, ... of the step that lowers the merit; 0 if none does."""
        length = longest
        while length > 1e-4:
            n = self.n
            paths = [X + length * w.dX[:n] for X, w in zip(self.paths, self.work, strict=True)]
            errors = [e + length * w.dX[n:] for e, w in zip(self.input_errors, self.work, strict=True)]
            values = self.unknowns.moved(self.values, length * step)
            defects, residuals = self._evaluate(paths, values, self._flow_steps(), errors=errors)
            if self._cost(residuals, errors) + merit(defects) <= bar * (1 + 1e-9) + 1e-9:
                self.paths, self.values, self.input_errors = paths, values, errors
                self._accepted = defects, residuals
                return length, residuals
            length *= 0.5
        return 0.0, [w.R for w in self.work]

    def _update_sigma(self, residuals: list[Array]) -> float:
        """Noise levels from the residuals where they are not given; returns the largest relative change."""
        if not self.estimated.any():
            return 0.0
        shares = self._shares()
        change = 0.0
        for i in np.flatnonzero(self.estimated & (self.measured > 0)):
            squares = sum(np.nansum((R[:, i] * self.sigma[i]) ** 2) for R in residuals)
            new = max(float(np.sqrt(squares / shares[i])), self.floor[i])
            change = max(change, abs(new / self.sigma[i] - 1))
            for R in residuals:  # they are kept in units of the noise
                R[:, i] *= self.sigma[i] / new
            self.sigma[i] = new
        return change

    def _shares(self) -> Array:
        """Degrees of freedom of each output: its samples less what the unknowns take up of them.

        The errors of the inputs take up their own cost; from which outputs is read off the forward sweep,
        which knows how much of each sample came as no news.
        """
        measured = self.measured.astype(np.float64)
        if not self.m:
            return np.maximum(measured * self._dof() / measured.sum(), 1.0)
        known = np.zeros(self.q)
        for w in self.work:
            used = w.s > 0
            known += np.sum(np.where(used, 1.0 - 1.0 / np.where(used, w.s, 1.0), 0.0), axis=0)
        taken = measured.sum() - self._dof() + self._input_cost(self.input_errors)
        return np.maximum(
            measured - known * taken / max(known.sum(), 1e-300), _LEAST_SHARE * measured + 1e-300
        )

    def _dof(self) -> int:
        known = sum(int(np.isfinite(s.initial).sum()) for s in self.segments if s.initial is not None)
        return int(self.measured.sum()) - len(self.unknowns) - self.n * len(self.segments) + known

    def _details(self) -> tuple[SegmentDetails, ...]:
        """How the best path of each segment follows the unknowns, at the last linearisation."""
        self._eliminate(np.zeros(self.n))
        return tuple(self._details_of(i) for i in range(len(self.segments)))

    def _details_of(self, number: int) -> SegmentDetails:
        segment, w, n, P = self.segments[number], self.work[number], self.n, len(self.unknowns)
        N, noise = w.R.shape[0], self._noise_of_inputs(segment)[: self.m]
        there = np.isfinite(w.R)
        jacobian, inputs = np.zeros((self.q, N, P)), np.zeros((self.m, N, P))
        slope = np.zeros((n, P))
        rest = self._path_for(number, np.zeros(len(self.free)))
        for place, unknown in enumerate(self.unknowns.columns(segment.record)):
            if unknown == ABSENT:
                continue
            unit = np.zeros(len(self.free))
            unit[place] = 1.0
            moved = self._path_for(number, unit) - rest
            own = w.D[:, :, place] + np.einsum("kij,jk->ki", w.seen, moved)
            jacobian[:, :, unknown] = np.where(there, own, 0.0).T
            inputs[:, :, unknown] = moved[n:] / np.where(noise > 0, noise, np.inf)[:, None]
            slope[:, unknown] = moved[:n, 0]
        errors = -self.input_errors[number] / np.where(noise > 0, noise, np.inf)[:, None]
        trifle = np.concatenate([(_TRIFLE * self.scale) ** 2, noise**2])
        information = path_solver.initial_information(w.carried, w.seen, w.R, trifle)[:n, :n]
        return SegmentDetails(jacobian, inputs, errors, slope, information)

    def _path_for(self, number: int, step: Array) -> Array:
        w = self.work[number]
        path_solver.backward(w.carried, w.seen, step, w.S, w.M, w.K, w.s, w.E, w.dX, w.L)
        return w.dX.copy()

    def _result(self, found: _Outcome, details: bool) -> PathEstimate:
        residuals = [np.ascontiguousarray((w.R * self.sigma).T) for w in self.work]
        defect = max(float(np.max(np.abs(w.C) / self.scale)) for w in self.work)
        return PathEstimate(
            values=self.values,
            unknowns=self.unknowns.items,
            estimate=self.unknowns.current(self.values),
            covariance=pseudo_inverse(found.information),
            information=found.information,
            input_covariance=self._input_covariance(),
            states=self.paths,
            residuals=residuals,
            sigma=self.sigma,
            chi2=2 * self._cost([w.R for w in self.work], self.input_errors),
            dof=self._dof(),
            converged=found.converged,
            iterations=self.iterations,
            evaluations=self.evaluations,
            steps=self.fine,
            defect=defect,
            history=self.history,
            message=found.message,
            inputs_estimated=self.m > 0,
            details=self._details() if details else (),
        )


@dataclass(frozen=True)
class _Merit:
    """What a step must lower beside the misfit: squared defects over the slack; without slack, their sum."""

    slack: Array
    scale: Array
    penalty: float

    def __call__(self, defects: list[Array]) -> float:
        if self.slack.any():
            return 0.5 * float(sum(np.sum((C / self.slack) ** 2) for C in defects))
        return self.penalty * float(sum(np.sum(np.abs(C) / self.scale) for C in defects))


def _difference_noise(rows: list[Array]) -> float:
    """Noise of a smooth signal from its sixth differences (robust to jumps); 0 for want of samples."""
    sizes = [np.abs(np.diff(row, 6)) for row in rows if len(row) > 6]
    joined = np.concatenate(sizes) if sizes else np.zeros(0)
    joined = joined[np.isfinite(joined)]
    return float(1.4826 * np.median(joined) / np.sqrt(924.0)) if len(joined) else 0.0
