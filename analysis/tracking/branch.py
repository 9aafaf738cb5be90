"""What a tracked branch says: its folds, which motions are stable without the loop, whether it moved.

Along a branch that is followed by its response the force F = |U(A)| goes up to the first fold, back to the
second and up again. The complex force U is smooth where F is not, so folds are found on a spline through U;
coarse steps cut the corner of F itself. One multiplier leaves and enters the unit circle at +1 there, so that
motions between the two folds are unstable without control.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.tracking.measure import BranchValue, PointOnBranch

Array = NDArray[np.float64]
Pass = Literal["out", "back"]

GRID = 60  # places between two points at which the spline is looked at
DRAWS = 200
SEEN = 4.0  # errors by which two folds must be apart to be believed
NEAR = 2.0  # errors of a fold's place within which a point's stability is not told
LEAST_POINTS = 5


@dataclass(frozen=True)
class TrackedPoint:
    """A point with its goal and the pass in which it was visited."""

    goal: float  # response amplitude, or phase in rad
    point: PointOnBranch
    passed: Pass
    ramp: float  # periods in which the goal was moved there


@dataclass(frozen=True)
class Fold:
    """Where the force (or the frequency) turns back along the branch."""

    parameter: BranchValue  # force, or frequency in Hz
    goal: BranchValue  # response amplitude, or phase in rad


@dataclass(frozen=True)
class RampCheck:
    """The branch with the ramp halved, beside itself."""

    compared: int  # points visited twice
    largest: float  # difference, relative
    p_value: float  # of the largest t value, Bonferroni
    moved: bool


MOVED_SHARE = 0.005  # a smaller difference is called none, however well it is known
MOVED_P = 0.01


def complex_force(point: PointOnBranch) -> complex:
    """Force in the frame of the response: U with the response at phase zero."""
    return complex(point.force.value * np.exp(-1j * point.phase.value))


class _Curve:
    """A parameter over the goals: the size of a spline through values that may be complex."""

    def __init__(self, goals: Array, values: NDArray[np.complex128]) -> None:
        from scipy.interpolate import CubicSpline

        self.goals = goals
        self._spline = CubicSpline(goals, values)
        self._real = not np.iscomplexobj(values)

    def folds(self) -> list[tuple[float, float]]:
        """(goal, parameter) of every turn."""
        fine = np.unique(
            np.concatenate(
                [np.linspace(a, b, GRID) for a, b in zip(self.goals[:-1], self.goals[1:], strict=True)]
            )
        )
        size = self._size(fine)
        turns = np.flatnonzero(np.diff(np.sign(np.diff(size))) != 0) + 1
        return [self._refined(fine[i - 1 : i + 2], size[i - 1 : i + 2]) for i in turns]

    def _size(self, goals: Array) -> Array:
        values = self._spline(goals)
        return np.asarray(values if self._real else np.abs(values))

    @staticmethod
    def _refined(at: Array, size: Array) -> tuple[float, float]:
        a, b, c = np.polyfit(at - at[1], size, 2)
        place = float(np.clip(-b / (2 * a), at[0] - at[1], at[2] - at[1])) if a else 0.0
        return float(at[1] + place), float(np.polyval([a, b, c], place))


def find_folds(points: Sequence[TrackedPoint], over_force: bool, rng: np.random.Generator) -> list[Fold]:
    """Folds with errors: those of the points, and of the spline between them."""
    goals, values, errors = _merged(points, over_force)
    if len(goals) < LEAST_POINTS:
        return []
    best = _Curve(goals, values).folds()
    coarse = _Curve(goals[::2], values[::2]).folds() if len(goals) >= 2 * LEAST_POINTS else best
    drawn = []
    for _ in range(DRAWS):
        noise = rng.standard_normal(len(goals)) * errors[0]
        if over_force:
            noise = noise + 1j * rng.standard_normal(len(goals)) * errors[1]
        drawn.append(_Curve(goals, values + noise).folds())
    found = [_with_errors(fold, drawn, coarse) for fold in best]
    return _believed(found)


def _merged(points: Sequence[TrackedPoint], over_force: bool) -> tuple[Array, NDArray[np.complex128], Array]:
    """Goals in order, values and their errors (real and imaginary); what was visited twice is averaged.

    The response is where the goal is but for a small miss, which the response itself tells: its own amplitude
    is used in the place of the goal.
    """
    rounded: dict[float, list[TrackedPoint]] = {}
    for one in points:
        rounded.setdefault(float(np.round(one.goal, 12)), []).append(one)
    goals: list[float] = []
    values: list[complex] = []
    errors: list[tuple[float, float]] = []
    for goal in sorted(rounded):
        group = [one.point for one in rounded[goal]]
        if over_force:
            goals.append(float(np.mean([p.amplitude.value for p in group])))
            values.append(complex(np.mean([complex_force(p) for p in group])))
            re, im = zip(*(_force_errors(p) for p in group), strict=True)
        else:
            goals.append(goal)
            values.append(float(np.mean([p.frequency.value for p in group])))
            re = im = tuple(p.frequency.error for p in group)
        size = len(group)
        errors.append((float(np.linalg.norm(re)) / size, float(np.linalg.norm(im)) / size))
    return np.array(goals), np.array(values), np.array(errors).T


def _force_errors(p: PointOnBranch) -> tuple[float, float]:
    """Standard errors of the real and the imaginary part of the complex force."""
    c, s, across = np.cos(p.phase.value), np.sin(p.phase.value), p.force.value * p.phase.error
    return float(np.hypot(c * p.force.error, s * across)), float(np.hypot(s * p.force.error, c * across))


def _with_errors(
    fold: tuple[float, float], drawn: list[list[tuple[float, float]]], coarse: list[tuple[float, float]]
) -> Fold:
    near = [min(d, key=lambda one: abs(one[0] - fold[0])) for d in drawn if d]
    spread = np.std(near, axis=0, ddof=1) if len(near) > 2 else np.array([np.inf, np.inf])
    # half as many points: what the steps between them cost, a quarter of it at the most with all of them
    half = min(coarse, key=lambda one: abs(one[0] - fold[0])) if coarse else fold
    steps = 0.25 * np.abs(np.array(half) - np.array(fold))
    error = np.hypot(spread, steps)
    return Fold(BranchValue(fold[1], float(error[1])), BranchValue(fold[0], float(error[0])))


def _believed(folds: list[Fold]) -> list[Fold]:
    """Without pairs that noise alone makes."""
    kept = list(folds)
    while len(kept) >= 2:
        apart = [
            abs(a.parameter.value - b.parameter.value) / np.hypot(a.parameter.error, b.parameter.error)
            for a, b in pairwise(kept)
        ]
        least = int(np.argmin(apart))
        if apart[least] >= SEEN:
            break
        del kept[least : least + 2]
    return kept


def stable_without_control(point: TrackedPoint, folds: Sequence[Fold], rising: bool) -> bool | None:
    """Whether the motion would stay without the loop; None too near to a fold to tell.

    The branch begins stable; ``rising``: at its lowest goal.
    """
    here = point.goal
    if any(abs(here - fold.goal.value) < NEAR * fold.goal.error for fold in folds):
        return None
    return sum((fold.goal.value < here) == rising for fold in folds) % 2 == 0


def check_ramp(points: Sequence[TrackedPoint], over_force: bool) -> RampCheck:
    """Halving the ramp must not move the branch (Raze et al. 2024)."""
    from scipy.stats import t as student

    out = {float(np.round(p.goal, 12)): p.point for p in points if p.passed == "out"}
    back = {float(np.round(p.goal, 12)): p.point for p in points if p.passed == "back"}
    largest, probabilities = 0.0, []
    shared = [goal for goal in out if goal in back]
    for goal in shared:
        for name in ("force", "phase") if over_force else ("frequency", "force", "amplitude"):
            a, b = getattr(out[goal], name), getattr(back[goal], name)
            off = abs(a.value - b.value)
            if name == "phase":
                off = abs(np.angle(np.exp(1j * (a.value - b.value))))
            size = 1.0 if name == "phase" else abs(a.value)
            largest = max(largest, float(off / size))
            spread = max(float(np.hypot(a.error, b.error)), 1e-300)
            if off > MOVED_SHARE * size:
                probabilities.append(2 * float(student.sf(off / spread, 7)))
    tests = max(1, len(shared) * 3)
    p = min(1.0, min(probabilities, default=1.0) * tests)
    return RampCheck(len(shared), largest, p, p < MOVED_P)
