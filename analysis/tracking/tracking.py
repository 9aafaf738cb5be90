"""The experiment: a linear test, then goal after goal along a branch, then back at half the speed.

Three branches: the backbone (phase at resonance held by the frequency, the response's amplitude goes up), the
response over the force at one frequency (amplitude and phase of the response held by the complex force:
through both folds), the response over the frequency at one force (its phase goes from one side of the
resonance to the other).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.words import percent
from analysis.experiment.curves import MeasuredCurve
from analysis.holding.dither import Dither, response
from analysis.holding.stretch import Stretch
from analysis.tracking.branch import (
    LEAST_POINTS,
    Fold,
    Pass,
    RampCheck,
    TrackedPoint,
    check_ramp,
    find_folds,
    stable_without_control,
)
from analysis.tracking.linear_test import LinearPlant, read_test, test_sequence
from analysis.tracking.measure import BranchValue, PointOnBranch, measured
from analysis.tracking.tracker import Goal, Task, Tracker

Array = NDArray[np.float64]
Kind = Literal["backbone", "force", "frequency"]
Verdict = Literal["tracked", "moved", "incomplete"]

TEST_LEVELS = (0.01, 0.04, 0.0025)  # rms of the linear test over the largest drive, as they are tried
TEST_SETTLES, TEST_REPEATS = 4, 6  # periods of its multisine
REST_TURNS = 20.0
GOOD_FIT = 0.02  # misfit at which the first level that is tried is taken
RAMP, SETTLE, AVERAGE = 15.0, 30.0, 60.0  # periods of the drive for a point
DECAYS = 7.0  # times of decay to settle where a force is held: phase control cannot hasten those
FIRST = 60.0  # periods for the loop to lock before the first
CHECKED = 4  # every so many points are visited again on the way back
AROUND_FOLD = (-0.4, 0.0, 0.4)  # of the spacing: where folds are looked at again on the way back
OFF_GOAL = 0.02  # relative amplitude, or rad: a point is not held beyond it
SWINGS = 0.02  # of the amplitude over the blocks, beyond which the loop itself swings
UNEXPLAINED = 0.05  # of the amplitude, with four times the noise
FROM_RESONANCE = (1.13, 1.36)  # rad before and behind it to which a curve is followed
FULL = 0.97  # of the bound: the drive is at its end
# Times what a goal should need; there the drive ends, as a sensor that has come off asks for ever more.
FIRST_LEEWAY = 10.0  # by the linear test, for the first goal: small motions may be held by friction
LEEWAY = 2.5  # by the points before, for the others
STIFFEST = 3.0  # power of the amplitude with which a force may grow


class TrackingRig(Protocol):
    """A rig whose drive the loop makes."""

    def install(self, controller: Any) -> None: ...

    def let_go(self, reason: str) -> None: ...

    def seconds(self, duration: float) -> Stretch:
        """Let time pass; what was seen (response, force) and sent in it."""
        ...

    def why_open(self) -> str:
        """Why the loop let go of the drive; empty while it holds."""
        ...


@dataclass(frozen=True)
class Plan:
    """A branch to be tracked."""

    kind: Kind
    goals: tuple[float, ...]  # response amplitudes, or phases in rad for ``frequency``
    at: float = 0.0  # Hz for ``force``, force amplitude for ``frequency``
    most: float = 0.0  # response amplitude at which the drive ends; 0: from the goals

    def goal(self, value: float, plant: LinearPlant) -> Goal:
        if self.kind == "backbone":
            return Goal(value, plant.lag)
        if self.kind == "force":
            return Goal(value, 0.0, self.at)
        return Goal(self.at, value)


@dataclass(frozen=True)
class TrackedBranch:
    """What was measured, and what it is worth."""

    plan: Plan
    plant: LinearPlant
    points: list[TrackedPoint]  # in the order of the experiment
    folds: list[Fold] = field(default_factory=list)
    ramp: RampCheck | None = None
    verdict: Verdict = "tracked"
    reason: str = ""
    periods: float = 0.0  # that went by, a point of the way out

    def in_order(self) -> list[TrackedPoint]:
        """Points along the branch."""
        ahead = -1.0 if self.plan.kind == "frequency" else 1.0
        return sorted(self.points, key=lambda p: ahead * p.goal)

    def parameter(self, point: TrackedPoint) -> BranchValue:
        """What the branch is drawn over: force, or frequency."""
        return point.point.force if self.plan.kind == "force" else point.point.frequency

    def stable(self, point: TrackedPoint) -> bool | None:
        """Without the loop; None where it cannot be told."""
        if self.plan.kind == "backbone" or len({p.goal for p in self.points}) < LEAST_POINTS:
            return None
        return stable_without_control(point, self.folds, rising=self.plan.kind == "force")

    def curve(self, output: str) -> MeasuredCurve:
        """The points as data for identification."""
        rows = [p.point for p in self.in_order()]
        columns = [[getattr(r, name) for r in rows] for name in ("frequency", "amplitude", "phase", "force")]
        f, a, p, u = (np.array([v.value for v in c]) for c in columns)
        ef, ea, ep, eu = (np.array([v.error for v in c]) for c in columns)
        return MeasuredCurve(f, a, p, u, ef, ea, ep, eu, output)


class Tracking:
    """One branch on one rig."""

    def __init__(
        self, rig: TrackingRig, channels: tuple[str, str], rate: float, peak: float,
        band: tuple[float, float], sees: str = "displacement",
        shown: Callable[[TrackedPoint], object] = lambda point: None,
    ) -> None:  # fmt: skip
        """``peak``: largest drive in V; ``band``: lowest and highest frequency that the rig allows."""
        self._rig, self._channels, self._rate, self._peak, self._band = rig, channels, rate, peak, band
        self._sees, self._shown = sees, shown
        self._noise = 0.0
        self._passed = 0.0  # periods
        self._needed: tuple[float, float] | None = None  # goal's amplitude and V of the largest drive so far

    def test(self, near: float) -> LinearPlant:
        """The linear test around ``near`` (Hz), at a level that is seen and does not bend the specimen."""
        still = self._rig.seconds(REST_TURNS / near).samples
        self._noise = float(np.std(still[0, still.shape[1] // 2 :]))
        best: LinearPlant | None = None
        problem: DataError | None = None
        for level in TEST_LEVELS:
            try:
                found = self._tested(near, level * self._peak)
            except DataError as error:
                problem = problem or error
                continue
            if best is None or found.misfit < best.misfit:
                best = found
            if found.misfit < GOOD_FIT:
                break
        if best is None:
            assert problem is not None
            raise problem
        return best

    def _tested(self, near: float, level: float) -> LinearPlant:
        sequence = test_sequence(near, self._rate, level)
        self._rig.install(Dither(self._channels, sequence))
        length = len(sequence) / self._rate
        self._rig.seconds(TEST_SETTLES * length)
        seen = self._rig.seconds(TEST_REPEATS * length)
        self._rig.let_go("the linear test is over")
        self._rig.seconds(REST_TURNS / near)
        return read_test(response(seen.samples, seen.command, sequence, self._rate), self._rate, self._sees)

    def track(self, plan: Plan, plant: LinearPlant, rng: np.random.Generator) -> TrackedBranch:
        """Out along the goals, back at half the speed; ends early, with the reason, where it cannot go on."""
        task = self._task(plan, plant)
        over_force = plan.kind == "force"
        points: list[TrackedPoint] = []
        before, reason = self._begin(plan, plant, task)
        frequency = plan.at if over_force else plant.frequency
        begun = self._passed
        if not reason:
            before, frequency, reason = self._walk(
                plan, plant, task, list(plan.goals), before, frequency, "out", points
            )
        spent = (self._passed - begun) / max(1, len(points))
        folds = [] if plan.kind == "backbone" else find_folds(points, over_force, rng)
        again = _goals_back(plan, points, folds)
        if not reason and again:
            before, frequency, reason = self._walk(
                plan, plant, task, again, before, frequency, "back", points
            )
            folds = [] if plan.kind == "backbone" else find_folds(points, over_force, rng)
        self._rig.let_go(reason or "the branch is tracked")
        self._rig.seconds(0.2)
        if plan.kind == "frequency":
            folds = folds[::-1]
        check = check_ramp(points, over_force) if any(p.passed == "back" for p in points) else None
        verdict: Verdict = (
            "incomplete" if reason else "moved" if check is not None and check.moved else "tracked"
        )
        if verdict == "moved" and check is not None:
            reason = f"at half the ramp the branch lies elsewhere, by up to {percent(check.largest)}"
        return TrackedBranch(plan, plant, points, folds, check, verdict, reason, spent)

    def _task(self, plan: Plan, plant: LinearPlant) -> Task:
        low, high = max(self._band[0], 0.5 * plant.frequency), min(self._band[1], 2.5 * plant.frequency)
        if plan.kind == "force" and not self._band[0] <= plan.at <= self._band[1]:
            raise DataError(f"{plan.at:g} Hz lies outside the frequency limits of the rig.")
        expected = plan.at / plant.force_gain * abs(plant.growth(plant.frequency)) / plant.decay
        most = plan.most or (max(plan.goals) if plan.kind != "frequency" else abs(expected))
        return Task(plan.kind != "force", plan.kind == "frequency", most, low, high, self._peak)

    def _begin(self, plan: Plan, plant: LinearPlant, task: Task) -> tuple[Goal, str]:
        """Lock at the resonance before the phase is led away from it."""
        if plan.kind == "force":
            return replace(plan.goal(plan.goals[0], plant), amplitude=0.0), ""
        if plan.kind == "backbone":
            first = plan.goal(plan.goals[0], plant)
            self._go(plant, task, first, replace(first, amplitude=0.0), FIRST, FIRST, plant.frequency)
            return first, self._rig.why_open()
        top = Goal(plan.at, plant.lag)
        self._go(plant, task, top, replace(top, amplitude=0.0), FIRST, FIRST, plant.frequency)
        first = plan.goal(plan.goals[0], plant)
        self._go(plant, task, first, top, 2 * FIRST, 0.0, plant.frequency)
        return first, self._rig.why_open()

    def _go(
        self,
        plant: LinearPlant,
        task: Task,
        goal: Goal,
        before: Goal,
        ramp: float,
        settle: float,
        frequency: float,
    ) -> None:
        bounded = replace(task, bound=self._bound(goal, plant, task))
        self._rig.install(Tracker(plant, bounded, self._channels, goal, before, ramp))
        self._rig.seconds((ramp + settle) / frequency)
        self._passed += ramp + settle

    def _walk(
        self, plan: Plan, plant: LinearPlant, task: Task, goals: Sequence[float], before: Goal,
        frequency: float, way: Pass, points: list[TrackedPoint],
    ) -> tuple[Goal, float, str]:  # fmt: skip
        slower = 2.0 if way == "back" else 1.0
        settle = DECAYS * plant.frequency / plant.decay if plan.kind == "frequency" else SETTLE
        for value in goals:
            goal = plan.goal(value, plant)
            self._go(plant, task, goal, before, slower * RAMP, max(SETTLE, settle) * slower, frequency)
            before = goal
            seen = self._rig.seconds(AVERAGE / frequency)
            self._passed += AVERAGE
            if reason := self._rig.why_open():
                return before, frequency, reason
            if not seen.holding.all():
                return before, frequency, f"the response ran away on the way to {value:.4g}"
            point = measured(
                seen.samples, plant, _told_frequency(seen.command, self._rate, frequency), task.by_frequency
            )
            if reason := self._doubt(point, goal, plant, task, seen.command):
                return before, frequency, reason
            self._note_drive(goal, seen.command)
            points.append(TrackedPoint(value, point, way, slower * RAMP))
            self._shown(points[-1])
            frequency = point.frequency.value
        return before, frequency, ""

    def _bound(self, goal: Goal, plant: LinearPlant, task: Task) -> float:
        """The largest drive (V) on the way to a goal."""
        if self._needed is None:
            return min(task.bound, FIRST_LEEWAY * linear_need(goal, plant, task))
        size, volts = self._needed
        return min(task.bound, LEEWAY * volts * max(1.0, goal.amplitude / size) ** STIFFEST)

    def _note_drive(self, goal: Goal, command: Array) -> None:
        volts = float(np.abs(command).max())
        if self._needed is None or volts > self._needed[1]:
            self._needed = goal.amplitude, volts

    def _doubt(self, point: PointOnBranch, goal: Goal, plant: LinearPlant, task: Task, command: Array) -> str:
        """Why this is no point of the branch; empty if it is one."""
        size, f = point.amplitude.value, point.frequency.value
        where = f"near {f:.5g} Hz, amplitude {size:.4g}"
        bound = self._bound(goal, plant, task)
        if np.abs(command).max() >= FULL * bound:
            if bound == task.bound:
                return f"the drive is at its limit of {bound:.3g} V {where}"
            known = "the linear test foretold" if self._needed is None else "the branch has needed so far"
            return (
                f"the drive rose to {bound:.3g} V {where}, far more than {known}: have the sensors come off?"
            )
        if task.by_frequency and not 1.001 * task.lowest < f < 0.999 * task.highest:
            return f"the frequency reached the end of its band {where}"
        if point.swings > SWINGS or point.unexplained > UNEXPLAINED * size + 4 * self._noise:
            return f"the motion is not periodic with the drive, or the loop swings by itself, {where}"
        held = point.force.value if task.holds_force else size
        if abs(held / goal.amplitude - 1) > OFF_GOAL:
            return f"the loop does not hold the amplitude {where}"
        if task.by_frequency and abs(np.angle(np.exp(1j * (point.phase.value - goal.phase)))) > OFF_GOAL:
            return f"the loop does not hold the phase {where}"
        return ""


def linear_need(goal: Goal, plant: LinearPlant, task: Task) -> float:
    """The drive (V) that the linear specimen would need for a goal."""
    if task.holds_force:
        return goal.amplitude / abs(plant.force_gain)
    w0 = 2 * np.pi * plant.frequency
    w = w0 if task.by_frequency else 2 * np.pi * goal.frequency
    answer = (1j * w) ** plant.order * plant.residue / (w0**2 - w**2 + 2j * plant.damping * w0 * w)
    return goal.amplitude / abs(answer)


def _told_frequency(command: Array, rate: float, near: float) -> float:
    """Frequency of the drive that went out, within a fraction of a line."""
    window = np.hanning(len(command))
    spectrum = np.abs(np.fft.rfft(command * window, 4 * len(command)))
    lines = np.fft.rfftfreq(4 * len(command), 1 / rate)
    allowed = (lines > 0.6 * near) & (lines < 1.6 * near)
    return float(lines[np.flatnonzero(allowed)[np.argmax(spectrum[allowed])]])


def _goals_back(plan: Plan, points: Sequence[TrackedPoint], folds: Sequence[Fold]) -> list[float]:
    """Where to look again on the way back: some of the points, and more about the folds."""
    if len(points) < 3:
        return []
    visited = [p.goal for p in points]
    again = set(visited[1:-1:CHECKED]) | {visited[len(visited) // 2]}
    for fold in folds:
        spacing = float(np.min(np.abs(np.diff(sorted(visited)))))
        nearest = float(np.sort(np.abs(np.array(visited) - fold.goal.value))[:2].sum())
        for share in AROUND_FOLD:
            again.add(fold.goal.value + share * max(spacing, nearest) * 0.5)
    inside = [g for g in again if min(visited) <= g <= max(visited)]
    return sorted(inside, reverse=bool(visited[-1] > visited[0]))


def phases_through(plant: LinearPlant, count: int) -> tuple[float, ...]:
    """Phases from the stiffness side of a resonance to the other, closer at both ends."""
    before, behind = FROM_RESONANCE
    sides = np.sin(0.5 * np.pi * np.linspace(1, -1, count)).tolist()
    return tuple(plant.lag + (before if side > 0 else behind) * side for side in sides)
