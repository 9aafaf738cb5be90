"""The least-squares problem of uncoupled output error: cost, gradient and Gauss-Newton matrix at a point.

    y_i(t_k) = g_i(x(t_k - delay_i)) + offset_i + drift_i (t_k - t_0) + noise of standard deviation sigma_i

Each stretch has one motion x(t) from an unknown initial state of its own; the parameters are shared. Positive
parameters are searched on a logarithmic scale, so that a guess far off costs a few steps and none can change
its sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.estimate import evaluation
from analysis.estimate.evaluation import Point
from analysis.estimate.shooting.run import Motion, run, run_adaptive
from analysis.estimate.stretch import Stretch
from analysis.estimate.unknowns import ABSENT, Unknowns
from analysis.model.switching import switching_of

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]
Evaluation = evaluation.Evaluation[Motion]

MOST_ROUGH, MOST_SUBSTEPS = 16, 64  # of a sample interval, for models whose kinks never let them settle
ADAPTIVE, ADAPTIVE_WORK = 0, 8  # and what an adaptive step costs, in sub-steps
ROUGH, FINE = 0.1, 0.03  # change of the outputs over the noise that doubled sub-steps may make: while
# searching, and at the optimum (coarser steps leave white residuals and parameters 27 standard errors off)


@dataclass(eq=False)
class Problem:
    """A model's kernels, the stretches, what is free, and the noise of each output."""

    model: Model
    stretches: Sequence[Stretch]
    unknowns: Unknowns  # i < k a parameter, k + i the offset of output i, k + q + i its delay, then drifts
    lower: Array  # [k + 3q]
    upper: Array
    logarithmic: NDArray[np.bool_]  # [k + 3q]
    scale: Array  # [k + 3q] size of a parameter that is not logarithmic, for caps and starts; 0: unknown
    sigma: Array  # [records, q]
    substeps: int = 1  # of a sample interval; ADAPTIVE: steps of adaptive size, implicit where stiff
    evaluations: int = 0  # passes over the data with derivatives
    work: float = 0.0  # sub-steps times columns integrated

    def __post_init__(self) -> None:
        self.kernels, self.states = self.model.kernels(), len(self.model.states)
        self.outputs = self.stretches[0].outputs.shape[0]
        self.parameters = len(self.lower) - 3 * self.outputs
        self.free = self.unknowns.free
        self.index = np.array([i for i, _ in self.unknowns.items], dtype=np.int64)
        self.samples = int(sum(np.isfinite(s.outputs).sum() for s in self.stretches))

    def on(self, stretches: Sequence[Stretch]) -> Problem:
        """The same problem on other stretches."""
        return replace(self, stretches=list(stretches))

    def follow(self, part: Problem) -> None:
        """Take over how far a problem on other stretches has come."""
        self.evaluations, self.substeps, self.work = part.evaluations, part.substeps, part.work

    # search coordinates

    def search(self, values: Array) -> Array:
        """Search coordinates of the unknowns in values [records, k + 3q]."""
        now = self.unknowns.current(values)
        logs = self.logarithmic[self.index]
        return np.where(logs, np.log(np.where(logs, np.maximum(now, 1e-300), 1.0)), now)

    def search_bounds(self) -> tuple[Array, Array]:
        logs = self.logarithmic[self.index]
        ends = []
        for bound in (self.lower[self.index], self.upper[self.index]):
            with np.errstate(divide="ignore"):
                ends.append(np.where(logs, np.log(np.where(logs, np.maximum(bound, 0.0), 1.0)), bound))
        return ends[0], ends[1]

    def moved(self, point: Point, step: Array, initial_steps: Sequence[Array]) -> Point:
        """The point after a step in search coordinates, inside all bounds."""
        logs = self.logarithmic[self.index]
        target = self.search(point.values) + step
        wanted = np.where(logs, np.exp(np.where(logs, np.clip(target, -700, 700), 0.0)), target)
        wanted = np.clip(wanted, self.lower[self.index], self.upper[self.index])
        values = self.unknowns.moved(point.values, wanted - self.unknowns.current(point.values))
        initials = []
        for stretch, initial, change in zip(self.stretches, point.initials, initial_steps, strict=True):
            new = initial + change
            if len(stretch.lower):
                new = np.clip(new, stretch.lower, stretch.upper)
            initials.append(new)
        return Point(values, tuple(initials))

    # evaluation

    def evaluate(self, point: Point, derivatives: bool = True) -> Evaluation:
        """Simulate every stretch; a motion that is lost costs infinity."""
        result = Evaluation.begun(point, len(self.unknowns))
        self.evaluations += derivatives
        for stretch, initial in zip(self.stretches, point.initials, strict=True):
            motion = self.motion(stretch, point.values[stretch.record], initial, derivatives)
            if motion.diverged:
                return Evaluation(point, np.inf)
            self._add(result, stretch, motion, derivatives)
        return result.or_lost()

    def motion(
        self, stretch: Stretch, values: Array, initial: Array, derivatives: bool, substeps: int | None = None
    ) -> Motion:
        """One simulated motion with the sensors' offsets and drifts on it.

        Derivatives are by the entries of ``free`` in the parameters' own units, then by the initial state.
        """
        k, q = self.parameters, self.outputs
        inner = np.array([i for i in self.free if i < k], dtype=np.int64) if derivatives else None
        chosen = self.substeps if substeps is None else substeps
        width = 1 if inner is None else 1 + len(inner) + self.states
        self.work += len(stretch) * max(chosen, ADAPTIVE_WORK * (chosen == ADAPTIVE)) * width
        if chosen == ADAPTIVE:
            found = run_adaptive(self.model, stretch.times, stretch.inputs, values[:k], initial, inner)
        else:
            found = run(self.kernels, stretch.times, stretch.inputs, values[:k], initial, q, chosen, inner)
        sensed = any(i >= k for i in self.free) or values[k:].any()
        return self._sensed(stretch, values, found, inner) if sensed and not found.diverged else found

    def _sensed(
        self, stretch: Stretch, values: Array, found: Motion, inner: NDArray[np.int64] | None
    ) -> Motion:
        """The motion as sensors with offsets, delays and drifts show it."""
        k, q = self.parameters, self.outputs
        offset, delay, drift = values[k : k + q], values[k + q : k + 2 * q], values[k + 2 * q :]
        since = stretch.times - stretch.origin
        shifted, rate, inside = found.outputs, np.zeros_like(found.outputs), found.slopes
        if delay.any() or any(k + q <= i < k + 2 * q for i in self.free):
            shifted, rate = _delayed(stretch.times, found.outputs, delay)
        if delay.any() and inner is not None:
            inside = _delayed(stretch.times, found.slopes, delay)[0]
        outputs = shifted + offset[:, None] + drift[:, None] * since
        if inner is None:
            return replace(found, outputs=outputs)
        slopes = np.zeros((q, len(self.free) + self.states, len(since)))
        slopes[:, : len(inner)] = inside[:, : len(inner)]
        slopes[:, len(self.free) :] = inside[:, len(inner) :]
        for column, i in enumerate(self.free):
            if i >= k:
                row, kind = (i - k) % q, (i - k) // q
                slopes[row, column] = (np.ones_like(since), -rate[row], since)[kind]
        return replace(found, outputs=outputs, slopes=slopes)

    def _add(self, result: Evaluation, stretch: Stretch, motion: Motion, derivatives: bool) -> None:
        seen = np.isfinite(stretch.outputs)
        weight = np.where(seen, 1.0 / self.sigma[stretch.record][:, None], 0.0)
        residual = np.where(seen, stretch.outputs - motion.outputs, 0.0) * weight
        result.cost += 0.5 * float(np.sum(residual * residual))
        result.motions.append(motion)
        if not derivatives:
            return
        shared = len(self.free)
        columns = self.unknowns.columns(stretch.record)
        values = result.point.values[stretch.record, self.free]
        factor = np.where(self.logarithmic[self.free], values, 1.0)
        slopes = motion.slopes * weight[:, None, :]
        slopes[:, :shared] *= factor[:, None]
        flat = slopes.transpose(1, 0, 2).reshape(slopes.shape[1], -1)
        with np.errstate(over="ignore"):  # slopes of a motion that is all but lost: the step is refused
            gram, gradient = flat @ flat.T, flat @ residual.ravel()
        self.unknowns.add(
            stretch.record, result.hessian, result.gradient, gram[:shared, :shared], gradient[:shared]
        )
        cross = np.zeros((len(self.unknowns), self.states))
        there = columns != ABSENT
        cross[columns[there]] = gram[:shared, shared:][there]
        result.local.append((gradient[shared:], gram[shared:, shared:], cross))

    def residuals(self, evaluation: Evaluation) -> list[Array]:
        """Measured minus simulated outputs [q, N] of each stretch, in their own units."""
        return [s.outputs - m.outputs for s, m in zip(self.stretches, evaluation.motions, strict=True)]

    # accuracy

    def settle_substeps(self, point: Point, tolerance: float) -> None:
        """Choose sub-steps whose doubling moves no output by ``tolerance`` of its noise.

        Where the slope of the model jumps, equal steps across the jump keep no order: the cost as computed is
        rough and lacks the jump of the sensitivities (an impact: one of them was 93 % off), so that a descent
        ends far from the minimum. Steps of adaptive size, which meet the jumps exactly, take over there, and
        where the finest sub-steps are still lost and they are not (a stiff model). Where kinks keep the
        outputs from settling, the finest must do.
        """
        measured = [np.isfinite(s.outputs) for s in self.stretches]
        self.substeps = 1
        coarse = self._outputs(point, self.substeps)
        worst = np.inf
        most = MOST_SUBSTEPS if tolerance <= FINE else MOST_ROUGH
        while self.substeps < (most if np.isfinite(worst) or self.substeps < MOST_ROUGH else MOST_SUBSTEPS):
            fine = self._outputs(point, 2 * self.substeps)
            worst = 0.0
            for a, b, seen, stretch in zip(coarse, fine, measured, self.stretches, strict=True):
                with np.errstate(invalid="ignore", over="ignore"):
                    change = np.where(seen, np.abs(a - b) / self.sigma[stretch.record][:, None], 0.0)
                worst = max(worst, float(np.max(change)) if np.isfinite(change).all() else np.inf)
            if worst <= tolerance:
                return
            if self.substeps == 1 and self._jumps(point) and self._is_followed(point):
                self.substeps = ADAPTIVE
                return
            self.substeps, coarse = 2 * self.substeps, fine
        if not np.isfinite(worst) and self._is_followed(point):
            self.substeps = ADAPTIVE

    def _jumps(self, point: Point) -> bool:
        """Whether the slope of the model jumps somewhere with these values."""
        values = dict(zip(self.model.parameters, point.values[0].tolist(), strict=False))
        return switching_of(self.model.equations, values) is not None

    def _is_followed(self, point: Point) -> bool:
        """Whether steps of adaptive size reach the end; else the motion itself is lost, however it is run."""
        for stretch, initial in zip(self.stretches, point.initials, strict=True):
            if self.motion(stretch, point.values[stretch.record], initial, False, ADAPTIVE).diverged:
                return False
        return True

    def _outputs(self, point: Point, substeps: int) -> list[Array]:
        return [
            self.motion(s, point.values[s.record], x, False, substeps).outputs
            for s, x in zip(self.stretches, point.initials, strict=True)
        ]


def _delayed(times: Array, rows: Array, delay: Array) -> tuple[Array, Array]:
    """Rows [q, ..., N] a delay [q] earlier, and their rates of change, by splines through the samples."""
    from scipy.interpolate import CubicSpline

    splines = [CubicSpline(times, row, axis=-1) for row in rows]
    early = [times - d for d in delay]
    return (
        np.stack([spline(t) for spline, t in zip(splines, early, strict=True)]),
        np.stack([spline(t, 1) for spline, t in zip(splines, early, strict=True)]),
    )
