"""Deviations, regulator, estimator and correction of a held orbit, each against another way to the same."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import solve_discrete_are
from scipy.signal import lsim

from analysis.base.errors import DataError, ModelError
from analysis.dynamics.shooting import periodic_orbit
from analysis.dynamics.tone_drive import driven_by_a_tone
from analysis.holding.correct import unforced
from analysis.holding.dither import dither_sequence, response
from analysis.holding.hold import mean_and_error, verdict_of
from analysis.holding.holder import Estimator, OrbitHolder
from analysis.holding.linearise import linearise, with_commands
from analysis.holding.orbit_estimate import shown_of_modes
from analysis.holding.outlook import expected_control, longest_delay
from analysis.holding.plant import ActuatorPath, LoopPlant, Mode
from analysis.holding.regulator import WEIGHT, regulate
from analysis.holding.stretch import Stretch, folded, ticks_of
from analysis.holding.target import Target, lower_period, same_orbit
from analysis.model import Model
from analysis.simulation.simulate import simulate

Array = NDArray[np.float64]

BEAM = """
name = "Beam"
[states]
x = "w*v"
v = "w*(-c*v + x - x**3 + f)"
[inputs]
f = "measured"
[parameters]
w = 6.283185307179586
c = 0.15
"""
FALLING = """
name = "Upside down"
[states]
x = "v"
v = "4*x - 0.1*v + f"
[inputs]
f = "measured"
"""


def _plant(text: str = BEAM, **changes: object) -> LoopPlant:
    plant = LoopPlant(
        Model.from_toml(text), ("x",), np.array([1e-3]), 1.0, 40.0, 2.0, np.array([0.0, 0.3, 0.0]),
        ActuatorPath(0.15, 0.004, 0.045), np.array([0.8, 0.4]),
    )  # fmt: skip
    return replace(plant, **changes)


@pytest.fixture(scope="module")
def target() -> Target:
    """The unstable orbit of one period around the hilltop of the beam."""
    model = driven_by_a_tone(_plant().model, 1.0, 0.3)
    angle = 2 * np.pi * np.arange(8) / 8
    along = 0.15 * np.array([-np.cos(angle), np.sin(angle)]) + 1e-3  # beside that of the linear hilltop
    orbit = periodic_orbit(model, along[:, 0], 1.0, segments=8, along=along)
    assert orbit.converged
    states = simulate(model, np.arange(40) / 40, orbit.state, rtol=1e-11).states
    return Target(1, states, orbit.multipliers)


def test_when_an_orbit_is_linearised_then_its_multipliers_are_those_of_shooting(target: Target) -> None:
    found = linearise(_plant(), target.states).multipliers
    assert abs(target.multipliers[0]) > 5
    assert np.allclose(found, target.multipliers, rtol=2e-5)


def test_when_the_delay_is_split_then_a_command_acts_as_in_a_simulation(target: Target) -> None:
    """A command of one tick, its force through the lag by hand, the motion by another integrator."""
    plant = _plant(path=ActuatorPath(0.15, 0.02, 1.8 / 40))
    dev = linearise(plant, target.states)
    assert dev.whole == 1
    d = np.zeros(3)
    for j in range(6):  # command 1e-3 of the amplitude at tick 0
        d = dev.A[j] @ d + dev.B1[j] * 1e-3 * (j == 2) + dev.B2[j] * 1e-3 * (j == 1)
    t = np.linspace(0, 6 / 40, 60_001)
    on = (t >= 1.8 / 40) & (t < 2.8 / 40)
    s, dt = np.zeros(len(t)), t[1]
    for i in range(len(t) - 1):
        s[i + 1] = s[i] + dt * (0.15 * 2e-3 * on[i] - s[i]) / 0.02
    from analysis.signal.inputs import Inputs

    force = 0.3 * np.cos(2 * np.pi * t)
    ends = [
        simulate(
            plant.model, t[[0, -1]], target.states[:, 0],
            inputs=Inputs.from_samples(0, dt, [f], "linear"), rtol=1e-11,
        ).states[:, -1]
        for f in (force, force + s)
    ]  # fmt: skip
    assert d[:2] == pytest.approx((ends[1] - ends[0]) / plant.scale, rel=2e-3)


def test_when_nothing_changes_along_the_orbit_then_the_gains_solve_the_riccati_equation() -> None:
    plant = _plant(FALLING, force=np.zeros(1))
    dev = linearise(plant, np.zeros((2, 40)))
    F, G = with_commands(dev)
    Q = np.zeros_like(F[0])
    Q[0, 0] = Q[1, 1] = dev.tick
    P = solve_discrete_are(F[0], G[0][:, None], Q, np.array([[WEIGHT * dev.tick]]))
    found = regulate(dev)
    assert np.allclose(found.costs[7], P, rtol=1e-5, atol=1e-9)
    assert found.largest_multiplier < 1


def test_when_a_motion_is_forced_by_a_known_correction_then_the_orbit_without_it_is_found() -> None:
    """A linear specimen: the answer to a periodic correction is a tone with a closed form."""
    plant = _plant(FALLING, force=np.zeros(1), path=ActuatorPath(1.0, 1e-6, 0.0))
    plant = replace(plant, rate=400.0)
    theta = 2 * np.pi * np.arange(plant.nodes) / plant.nodes
    dev = linearise(plant, np.zeros((2, plant.nodes)))
    delta = unforced(dev, 0.01 * np.cos(theta)) * plant.scale[:, None]
    jw = 2j * np.pi
    held = np.exp(-jw * plant.tick / 2)  # a command stands for a tick
    answer = 0.01 * plant.amplitude / (jw**2 + 0.1 * jw - 4) * held
    assert delta[0] == pytest.approx(-np.real(answer * np.exp(1j * theta)), abs=2e-3 * abs(answer))


def test_when_the_model_is_right_then_the_estimator_is_as_sure_as_it_should_be(target: Target) -> None:
    plant = _plant(process=1e-5)
    rng = np.random.default_rng(4)
    t = np.arange(1200) / 40
    model = driven_by_a_tone(plant.model, 1.0, 0.3)
    states = simulate(model, t, {"x": 0.5, "v": 0.1}, rtol=1e-10).states
    seen = states[:1] + 1e-3 * rng.standard_normal(len(t))
    found, _, misses = Estimator(plant).follow(seen, 2 * np.pi * t % (2 * np.pi), np.zeros(len(t)))
    assert misses == pytest.approx(1.0, abs=0.15)
    assert np.std(found[0, 200:] - states[0, 200:]) < 0.6e-3


def _held_by(plant: LoopPlant, target: Target, seed: int, jump: float = 0.0) -> tuple[Array, Array]:
    """The true beam (the model itself) under the holder: x and commands, the delay as in the plant."""
    rng = np.random.default_rng(seed)
    holder: OrbitHolder = pickle.loads(
        pickle.dumps(OrbitHolder(plant, target, regulate(linearise(plant, target.states))))
    )
    exact = Estimator(
        replace(plant, process=1e-9)
    )  # only its equations: the samples it is shown are no numbers
    exact.y[:, -1] = target.states[:, 0] + [0.03 + jump, 0.0]
    rows, commands, command = [], [], 0.0
    for j in range(1200):
        theta = 2 * np.pi * (j % 40) / 40
        exact.step(np.array([np.nan]), theta, command)
        rows.append(exact.states[0])
        command = holder.step(exact.states[:1] + 1e-3 * rng.standard_normal(1), theta, command)
        commands.append(command)
    return np.array(rows), np.array(commands)


def test_when_the_specimen_comes_near_then_it_is_caught_and_stays_with_the_control_foretold(
    target: Target,
) -> None:
    plant = _plant(process=1e-4)
    x, commands = _held_by(plant, target, 1)
    assert np.abs(x[200:] - np.tile(target.states[0], 30)[200:]).max() < 5e-3
    assert np.sqrt(np.mean(commands[200:] ** 2)) / 2.0 == pytest.approx(
        expected_control(plant, target), rel=0.4
    )


def test_when_the_delay_is_too_long_for_an_orbit_then_the_limit_is_a_number(target: Target) -> None:
    plant = _plant(noise=np.array([3e-3]), process=1e-3)
    limit = longest_delay(plant, target)
    assert 0 < limit < 0.24
    assert expected_control(plant, target, 1.2 * limit) > 0.05 > expected_control(plant, target, 0.8 * limit)


@pytest.mark.parametrize(
    ("mean", "floor", "control", "scatter", "verdict"),
    [
        (0.0005, 0.0004, 0.004, 0.003, "held"),
        (0.004, 0.002, 0.02, 0.01, "held"),  # lost in its floor
        (0.01, 0.0004, 0.012, 0.003, "invasive"),  # an orbit that only the model has
        (0.0005, 0.0004, 0.2, 0.003, "limit cycle"),
        (0.0005, 0.0004, 0.02, 0.3, "limit cycle"),
        (np.nan, np.nan, np.nan, np.nan, "limit cycle"),
    ],
)
def test_when_a_hold_is_judged_then_only_a_quiet_one_passes(
    mean: float, floor: float, control: float, scatter: float, verdict: str
) -> None:
    assert verdict_of(mean, floor, control, scatter)[0] == verdict


def test_when_cycles_are_correlated_then_the_band_says_so() -> None:
    rng = np.random.default_rng(2)
    draws = []
    for _ in range(60):
        e = rng.standard_normal((1, 101, 30))
        for i in range(1, 101):
            e[:, i] += 0.5 * e[:, i - 1]
        mean, band = mean_and_error(e[:, 1:])
        draws.append(np.mean(mean**2) / np.mean(band**2))
    assert np.mean(draws) == pytest.approx(1.0, abs=0.25)


def test_when_samples_fall_between_the_nodes_then_folding_still_finds_the_cycle() -> None:
    phase = 1.3 + 2 * np.pi * np.arange(4000) / 26.667
    row = np.cos(phase / 2 + 0.4) + 0.2 * np.cos(phase)
    cut = folded(row[None], phase, 2, 25)
    nodes = 2 * np.pi * np.arange(50) / 25
    assert np.allclose(cut[0].mean(axis=0), np.cos(nodes / 2 + 0.4) + 0.2 * np.cos(nodes), atol=2e-4)
    stretch = Stretch(row[None], phase, np.repeat(np.arange(2000.0), 2), np.ones(4000, bool))
    assert np.array_equal(ticks_of(stretch, 2).command, np.arange(2000.0))


def test_when_an_orbit_repeats_a_shorter_one_or_is_shifted_then_it_is_recognised() -> None:
    t = np.arange(80) / 40
    one = np.array([np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)])
    two = one + 0.3 * np.cos(np.pi * t)
    spread = np.ones(2)
    assert lower_period(one, spread, 2, 40) and not lower_period(two, spread, 2, 40)
    assert same_orbit(two, np.roll(two, 40, axis=1), spread, 40)
    assert not same_orbit(two, np.roll(two, 20, axis=1), spread, 40)


def test_when_the_model_cannot_be_driven_by_the_loop_then_one_sentence() -> None:
    with pytest.raises(ModelError, match="0 measured inputs"):
        _plant(BEAM.replace('"measured"', '"0.3*cos(2*pi*t)"'))


def test_when_a_mode_is_driven_then_its_part_in_the_channels_is_that_of_an_integration() -> None:
    mode = Mode(23.0, 0.02, ((3.0, 0.2),))
    plant = _plant(modes=(mode,), force=np.array([0.1, 0.3, -0.1, 0.02, 0.05]))
    found = shown_of_modes(plant, 2 * np.pi * np.arange(80) / 40)[0]
    t = np.linspace(0, 60, 240_001)
    theta = 2 * np.pi * t
    force = (
        0.1 + 0.3 * np.cos(theta) - 0.1 * np.sin(theta) + 0.02 * np.cos(2 * theta) + 0.05 * np.sin(2 * theta)
    )
    system = ([[0.0, 1.0], [-(23.0**2), -2 * 0.02 * 23.0]], [[0.0], [1.0]], [[3.0, 0.2]], [[0.0]])
    _, seen, _ = lsim(system, force, t)
    last = np.searchsorted(t, 58.0 - 1e-9) + 100 * np.arange(80)  # two periods, 40 places in each
    assert found == pytest.approx(np.asarray(seen)[last], abs=1e-5 * np.abs(found).max())


def test_when_an_estimate_is_no_number_any_more_then_it_begins_anew() -> None:
    plant = _plant(process=0.1)
    estimator = Estimator(plant)
    force = np.cos(2 * np.pi * np.arange(400) / 40)
    for j in range(400):
        if j == 50:
            estimator.y[:, -1] = np.inf  # as where the model escapes between two samples
        estimator.step(np.array([0.3 * force[j]]), 2 * np.pi * (j % 40) / 40, 0.0)
        assert np.isfinite(estimator.states).all()
    assert estimator.states[0] == pytest.approx(0.3 * force[-1], abs=0.05)


def test_when_the_loop_has_let_go_in_the_dither_test_then_a_sentence_says_so() -> None:
    sequence = dither_sequence(2.0, 100.0, 0.1)
    sent = np.tile(sequence, 5)
    whole = response(sent[None, :], sent, sequence, 100.0)
    np.testing.assert_allclose(whole.answers, 1.0)
    sent[3 * len(sequence) :] = 0.0
    with pytest.raises(DataError, match="the loop let go of the drive"):
        response(sent[None, :], sent, sequence, 100.0)
