"""Backbone and response curves tracked on a Duffing oscillator that is integrated here, with noise and delay.

The truth is harmonic balance with many harmonics of the same equation (Fourier collocation, checked against
closed forms in tests/unit/dynamics/test_imposed.py).
"""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.dynamics.imposed import ImposedMotions
from analysis.holding.dither import Dither, Response
from analysis.holding.stretch import Stretch
from analysis.model import Model
from analysis.tracking import step as s
from analysis.tracking.branch import TrackedPoint, check_ramp, find_folds
from analysis.tracking.linear_test import LinearPlant, read_test
from analysis.tracking.measure import BranchValue, PointOnBranch, measured
from analysis.tracking.tracker import Goal, Task, Tracker
from analysis.tracking.tracking import Kind, Plan, TrackedBranch, Tracking, phases_through

Array = NDArray[np.float64]

RATE, DELAY, STEPS = 60.0, 3, 2  # samples a second, samples, integration steps a sample
DAMPING, CUBIC = 0.02, 1.0
SPRING = (2 * np.pi) ** 2  # 1 Hz
MODEL = f"""
name = "Duffing"
[states]
x = "v"
v = "-c*v - k1*x - k3*x**3 + f"
[inputs]
f = "measured"
[parameters]
c = {2 * DAMPING * 2 * np.pi}
k1 = {SPRING}
k3 = {CUBIC * SPRING}
"""


@njit(cache=False)
def _run(  # type: ignore[no-untyped-def]
    kind,
    sequence,
    place,
    rules,
    goal,
    memory,
    response,
    force,
    state,
    pending,
    noise,
    out,
    gain,
    c,
    k1,
    k3,
    seen,
):
    """Samples of response and force, the drive decided at each acting DELAY samples later, held."""
    samples = np.empty(2)
    for i in range(out.shape[1]):
        f = gain * pending[0]
        samples[0], samples[1] = seen * state[0] + noise[0, i], f + noise[1, i]
        if kind == 0:
            u = 0.0
        elif kind == 1:
            u = sequence[(place + i) % len(sequence)]
        else:
            u = s.track(samples, rules, goal, memory, response, force)
        out[0, i], out[1, i], out[2, i] = samples[0], samples[1], u
        h = 1.0 / 60.0 / 2
        for _ in range(2):
            x, v = state[0], state[1]
            a1 = f - c * v - k1 * x - k3 * x**3
            x2, v2 = x + 0.5 * h * v, v + 0.5 * h * a1
            a2 = f - c * v2 - k1 * x2 - k3 * x2**3
            x3, v3 = x + 0.5 * h * v2, v + 0.5 * h * a2
            a3 = f - c * v3 - k1 * x3 - k3 * x3**3
            x4, v4 = x + h * v3, v + h * a3
            a4 = f - c * v4 - k1 * x4 - k3 * x4**3
            state[0] = x + h / 6 * (v + 2 * v2 + 2 * v3 + v4)
            state[1] = v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        for j in range(len(pending) - 1):
            pending[j] = pending[j + 1]
        pending[-1] = u
    return place + out.shape[1]


class Specimen:
    """A Duffing oscillator behind a loop (see analysis.tracking.tracking.TrackingRig)."""

    def __init__(self, seed: int, noise: float = 2e-4, ageing: float = 0.0) -> None:
        self._rng, self._noise, self._ageing = np.random.default_rng(seed), noise, ageing
        self._state, self._pending = np.zeros(2), np.zeros(DELAY)
        self._controller: Tracker | Dither | None = None
        self._place, self.passed = 0, 0.0
        self.comes_off = np.inf  # s after which the response's sensor sees nothing
        self.drives: list[tuple[float, float]] = []  # time and largest drive of each stretch

    def install(self, controller: Tracker | Dither) -> None:
        if self._controller is not None:
            controller.adopt(self._controller)
        self._controller, self._place = controller, 0

    def let_go(self, reason: str) -> None:
        self._controller = None

    def why_open(self) -> str:
        return ""

    def seconds(self, duration: float) -> Stretch:
        count = round(duration * RATE)
        noise = self._noise * self._rng.standard_normal((2, count)) * np.array([[1.0], [SPRING * 0.1]])
        out, c = np.empty((3, count)), self._controller
        tracker = c if isinstance(c, Tracker) else _tracker()
        sequence = c._sequence if isinstance(c, Dither) else np.zeros(1)
        kind = 2 if isinstance(c, Tracker) else 1 if isinstance(c, Dither) else 0
        k1 = SPRING * (1 - self._ageing * self.passed)
        self._place = _run(
            kind, sequence, self._place, tracker._rules, tracker._goal, tracker.memory, tracker._response,
            tracker._force, self._state, self._pending, noise, out, 10.0, 4 * np.pi * DAMPING,
            k1, CUBIC * SPRING, 1.0 if self.passed < self.comes_off else 0.0,
        )  # fmt: skip
        self.passed += duration
        self.drives.append((self.passed, float(np.abs(out[2]).max())))
        holding = np.full(count, tracker.holding)
        return Stretch(out[:2], np.zeros(count), out[2], holding)


def _tracker(goal: float = 0.1) -> Tracker:
    plant = LinearPlant(RATE, 1.0, DAMPING, 10.0, 0, DELAY / RATE, 0.0, 10.0)
    return Tracker(
        plant, Task(True, False, 1.0, 0.5, 2.5, 5.0), ("x", "f"), Goal(goal, plant.lag), Goal(0.0), 5.0
    )


def _tracked(kind: str, seed: int, ageing: float = 0.0) -> TrackedBranch:
    tracking = Tracking(Specimen(seed, ageing=ageing), ("x", "f"), RATE, 3.0, (0.3, 3.0))
    plant = tracking.test(1.02)
    if kind == "backbone":
        plan = Plan("backbone", tuple(np.linspace(0.1, 0.8, 6)))
    elif kind == "force":
        plan = Plan("force", tuple(np.linspace(0.05, 0.62, 14)), 1.1)
    else:
        plan = Plan("frequency", phases_through(plant, 13), 0.8, 0.6)
    return tracking.track(plan, plant, np.random.default_rng(1))


def _wanted(point: PointOnBranch) -> complex:
    model = Model.from_toml(MODEL)
    found = ImposedMotions(model, "x").solve(model.values(), point.frequency.value, point.amplitude.value)
    assert found is not None
    return found.force


def test_when_a_resonance_answers_a_multisine_then_its_numbers_and_the_skew_of_channels_are_found() -> None:
    w = 2 * np.pi * np.linspace(15, 40, 50)
    w0, z = 2 * np.pi * 25, 0.012
    f = -0.1 * np.exp(-1j * w * 2.0e-3)
    x = f * np.exp(-1j * w * 3e-4) * 7.0 / (w0**2 - w**2 + 2j * z * w0 * w)
    errors = np.full((2, len(w)), 1e-9)
    for sees, order in (("displacement", 0), ("velocity", 1)):
        seen = x * (1j * w) ** order
        plant = read_test(Response(w, np.array([seen, f]), errors, np.zeros(2)), 2500.0, sees)
        assert plant.frequency == pytest.approx(25, rel=1e-6) and plant.damping == pytest.approx(z, rel=1e-4)
        assert plant.skew == pytest.approx(3e-4, abs=1e-7) and plant.force_gain == pytest.approx(-0.1)
        assert plant.residue == pytest.approx(-0.7, rel=1e-4)
        assert plant.lag == pytest.approx(0.5 * np.pi * (order - 1))
        top = plant.growth(25.0) / plant.decay  # slowly varying amplitude, at resonance
        at_top = -0.7 * (1j * w0) ** order * np.exp(-2.3e-3j * w0) / (2j * z * w0**2)
        assert top == pytest.approx(at_top, rel=1e-3)
    with pytest.raises(DataError, match="of a period beside that of a velocity"):
        read_test(Response(w, np.array([x, f]), errors, np.zeros(2)), 2500.0, "velocity")
    with pytest.raises(DataError, match="drowns in noise"):
        read_test(Response(w, np.array([x, f]), 1e6 * errors, np.zeros(2)), 2500.0, "displacement")


def test_when_a_backbone_is_tracked_then_frequency_and_force_are_those_of_harmonic_balance() -> None:
    branch = _tracked("backbone", 3)
    assert branch.verdict == "tracked", branch.reason
    assert branch.periods <= 120
    assert branch.ramp is not None and not branch.ramp.moved and branch.ramp.compared >= 2
    for p in (one.point for one in branch.points):
        force = _wanted(p)
        # phase resonance: the frequency at which the force leads by a quarter of a period
        assert abs(np.angle(force) - np.pi / 2) * DAMPING < 2e-4
        assert p.force.value == pytest.approx(abs(force), rel=0.02)
    assert branch.in_order()[-1].point.frequency.value > 1.15  # it bends


@pytest.mark.parametrize("kind", ["force", "frequency"])
def test_when_a_response_curve_is_tracked_then_both_folds_are_passed_and_the_unstable_part_is_right(
    kind: str,
) -> None:
    branch = _tracked(kind, 5)
    assert branch.verdict == "tracked", branch.reason
    assert len(branch.folds) == 2
    stability = [branch.stable(p) for p in branch.in_order()]
    told = [one for one in stability if one is not None]
    changes = np.flatnonzero(np.diff(told))
    assert len(changes) == 2 and told[0] and told[-1] and told.count(False) >= 3
    for p in (one.point for one in branch.points):
        force = _wanted(p)
        assert p.force.value == pytest.approx(abs(force), rel=0.01)
        assert abs(np.angle(force * np.exp(1j * p.phase.value))) < 4 * p.phase.error + 0.01
    if kind == "force":
        model = Model.from_toml(MODEL)
        solver, amplitudes = ImposedMotions(model, "x"), np.linspace(0.05, 0.62, 600)
        curve = []
        motion = None
        for a in amplitudes:
            motion = solver.solve(model.values(), 1.1, float(a), motion)
            assert motion is not None
            curve.append(abs(motion.force))
        turns = np.flatnonzero(np.diff(np.sign(np.diff(curve)))) + 1
        for fold, turn in zip(branch.folds, turns, strict=True):
            assert fold.parameter.value == pytest.approx(curve[turn], rel=0.01)
            assert abs(fold.goal.value - amplitudes[turn]) < 4 * fold.goal.error + 2e-3


def test_when_the_specimen_softens_meanwhile_then_the_branch_is_said_to_have_moved() -> None:
    branch = _tracked("backbone", 3, ageing=2e-5)
    assert branch.verdict == "moved" and "half the ramp" in branch.reason


def test_when_the_drive_is_too_weak_for_the_amplitude_then_it_ends_and_says_so() -> None:
    tracking = Tracking(Specimen(1), ("x", "f"), RATE, 0.3, (0.3, 3.0))
    plant = tracking.test(1.0)
    plan = Plan("backbone", (0.1, 0.4, 0.8, 1.6, 3.0))
    branch = tracking.track(plan, plant, np.random.default_rng(0))
    assert branch.verdict == "incomplete" and "at its limit" in branch.reason


@pytest.mark.parametrize("kind", ["backbone", "force"])
def test_when_the_sensor_comes_off_then_the_drive_does_not_go_to_the_rigs_limit(kind: Kind) -> None:
    """It went up to it, twenty times what was needed, and stayed there for a goal's time."""
    specimen = Specimen(5)
    tracking = Tracking(specimen, ("x", "f"), RATE, 20.0, (0.3, 3.0))
    plant = replace(tracking.test(1.0), delay=DELAY / RATE)
    specimen.comes_off = specimen.passed + 420.0
    goals = tuple(np.linspace(0.05, 0.6, 12))
    branch = tracking.track(Plan(kind, goals, 1.1), plant, np.random.default_rng(2))
    assert branch.verdict == "incomplete" and "have the sensors come off?" in branch.reason
    assert 2 < len(branch.points) < 12
    before = max(drive for t, drive in specimen.drives if t < specimen.comes_off)
    ratio = goals[len(branch.points)] / goals[len(branch.points) - 1]
    assert max(drive for _, drive in specimen.drives) <= 2.5 * ratio**3 * before * 1.01


def test_when_the_response_runs_away_then_the_controller_takes_its_drive_back_to_zero() -> None:
    tracker = _tracker()
    samples = [8.0 * np.cos(2 * np.pi * i / RATE) for i in range(600)]
    drive = np.array([tracker.step(np.array([x, 0.1]), 0.0, 0.0) for x in samples])
    assert not tracker.holding and np.abs(drive).max() <= 5.0 and not drive[-60:].any()


def test_when_samples_are_lost_then_the_drive_goes_on_and_a_controller_travels_whole() -> None:
    tracker = _tracker()
    given = [np.array([0.1 * np.sin(2 * np.pi * i / RATE), 0.02]) for i in range(200)]
    for i, sample in enumerate(given):
        value = tracker.step(np.array([np.nan, np.nan]) if i % 7 == 3 else sample, 0.0, 0.0)
        assert np.isfinite(value)
    twin = pickle.loads(pickle.dumps(tracker))
    twin.adopt(tracker)
    assert twin.step(given[0], 0.0, 0.0) == tracker.step(given[0], 0.0, 0.0)


def _point(amplitude: float, force: complex, error: float) -> PointOnBranch:
    def exact(v: float) -> BranchValue:
        return BranchValue(v, 1e-9)

    return PointOnBranch(
        exact(1.1), exact(amplitude), BranchValue(abs(force), error),
        BranchValue(-float(np.angle(force)), error / abs(force)), 0.0, 0.0, 0.0, False, 60.0,
    )  # fmt: skip


def test_when_the_steps_are_coarse_then_the_lower_fold_is_still_where_it_is() -> None:
    """F = |(k - m w^2) A + 3/4 k3 A^3 + i c w A|: its minimum lies between points that read far higher."""
    amplitudes = np.linspace(0.05, 0.62, 10)
    stiffness, damping = SPRING * (1 - 1.1**2), 4 * np.pi * DAMPING * 2 * np.pi * 1.1

    def force(a: Array) -> NDArray[np.complex128]:
        return stiffness * a + 0.75 * CUBIC * SPRING * a**3 + 1j * damping * a

    fine = np.linspace(0.05, 0.62, 20001)
    size = np.abs(force(fine))
    lower = float(size[fine > 0.4].min())
    read = float(np.abs(force(amplitudes))[amplitudes > 0.4].min())
    assert read > 1.05 * lower
    points = [TrackedPoint(float(a), _point(float(a), complex(u), 1e-4), "out", 15.0)
              for a, u in zip(amplitudes, force(amplitudes), strict=True)]  # fmt: skip
    folds = find_folds(points, True, np.random.default_rng(0))
    assert folds[1].parameter.value == pytest.approx(lower, rel=0.01)
    assert abs(folds[1].parameter.value - lower) < 3 * folds[1].parameter.error
    moved = [
        replace(p, passed="back", point=_point(p.goal, 1.02 * complex(force(np.array(p.goal))), 1e-4))
        for p in points
    ]
    assert check_ramp(points + [replace(p, passed="back") for p in points], True).moved is False
    assert check_ramp(points + moved, True).moved


def test_when_a_point_is_measured_then_its_errors_hold_the_truth() -> None:
    plant = LinearPlant(RATE, 1.0, DAMPING, 10.0, 0, 0.05, 0.01, 10.0)
    rng, misses = np.random.default_rng(2), []
    for _ in range(60):
        t = np.arange(3600) / RATE
        w = 2 * np.pi * 1.0371
        x = 0.3 * np.cos(w * t - 1.2) + 0.02 * np.cos(3 * w * t) + 0.01 * rng.standard_normal(len(t))
        f = 0.8 * np.cos(w * t) + 0.02 * rng.standard_normal(len(t))
        p = measured(np.array([x, f]), plant, 1.036, False)
        pairs = ((p.frequency, 1.0371), (p.amplitude, 0.3), (p.force, 0.8), (p.phase, w * 0.01 - 1.2))
        misses.append([(found.value - truth) / found.error for found, truth in pairs])
    spread = np.std(misses, axis=0)
    assert np.all((spread > 0.7) & (spread < 1.5)), spread


@pytest.mark.parametrize("since", [0.05, 0.1, 0.2, 0.4, 0.6, 1.0])
def test_given_a_held_force_behind_a_lag_then_it_is_told_as_it_acts(since: float) -> None:
    """Read ``since`` samples after each step of the converter; the lag takes 0.22 samples. Closed form."""
    lag, w, rate = 0.22, 2 * np.pi / 40, 40.0
    old, kept = np.exp(-since / lag), np.exp(-1 / lag)
    z = np.exp(-1j * w)
    read = (1 - old) + old * (1 - kept) * z / (1 - kept * z)  # of the volts that were sent, at the samples
    acts = np.sinc(0.5 * w / np.pi) / np.hypot(1.0, w * lag)
    delay = -float(np.angle(read)) / w  # samples
    plant = LinearPlant(rate, 1.0, DAMPING, 10.0, 0, (delay + 0.1) / rate, 0.1 / rate, 10.0)
    n = np.arange(3600)
    x, f = np.cos(w * n - 1.2), (read * np.exp(1j * w * n)).real
    found = measured(np.array([x, f]), plant, 1.0, False).force
    assert abs(found.value / acts - 1) < 1.1e-3 and abs(found.value - acts) < found.error
