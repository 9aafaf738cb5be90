"""Harmonic balance on extracted orbits (Yuan 1995); truth by independent integration (SciPy DOP853)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.errors import DataError
from analysis.base.identification import Identification
from analysis.base.record import Excitation, Record
from analysis.dynamics.lyapunov import lyapunov_spectrum
from analysis.estimate.balance.method import HarmonicBalance
from analysis.estimate.balance.setting import read_setting
from analysis.estimate.methods import identify
from analysis.experiment import Experiment
from analysis.model import Model
from app.reproduce.yuan1995 import beam
from drivers.library import load_model

SAMPLES = 100  # a drive period, as in the thesis
PERIOD = 2 * np.pi / 1.33

SEVEN = """
name = "Duffing with five stiffness terms"
[states]
x = "v"
v = "(-c*v - k1*x - k2*x**2 - k3*x**3 - k4*x**4 - k5*x**5 + a*cos(w*t))/m"
[parameters]
m = { guess = 1.5, lower = 0.1, upper = 10 }
c = { guess = 0.5 }
k1 = { guess = 0.0 }
k2 = { guess = 0.0 }
k3 = { guess = 0.5 }
k4 = { guess = 0.0 }
k5 = { guess = 0.0 }
a = { value = 27.0 }
w = { value = 1.33 }
"""


@pytest.fixture(scope="module")
def duffing() -> np.ndarray:
    """Displacement and velocity of the thesis' Duffing record, without transient: 50 000 samples."""

    def rhs(t: float, z: np.ndarray) -> list[float]:
        return [z[1], -0.2 * z[1] - z[0] - z[0] ** 3 + 27 * np.cos(1.33 * t)]

    times = np.arange(52_000) * PERIOD / SAMPLES
    solution = solve_ivp(rhs, (0, times[-1]), [1.0, 0.0], "DOP853", times, rtol=1e-9, atol=1e-9)
    return solution.y[:, 2000:]


def record_of(
    states: np.ndarray, noise: float, rng: np.random.Generator, phase: float | None = 0.0
) -> Record:
    x, v = (row + noise * row.std() * rng.normal(size=len(row)) for row in states)
    return Record.from_arrays(
        SAMPLES / PERIOD, {"x": x, "v": v}, excitation=Excitation(1 / PERIOD, 27.0, phase)
    )


def force_error(result: Identification, states: np.ndarray) -> float:
    """Rms error of the restoring force over the visited range, relative to its rms."""
    x = np.linspace(states[0].min(), states[0].max(), 200)
    found = sum(result.values()[f"k{i}"] * x**i for i in range(1, 6))
    truth = x + x**3
    return float(np.sqrt(np.mean((found - truth) ** 2) / np.mean(truth**2)))


def balance(states: np.ndarray, noise: float, rng: np.random.Generator, **options: object) -> Identification:
    return identify(
        Model.from_toml(SEVEN),
        record_of(states, noise, rng),
        "balance",
        orbits=(3, 4, 5, 6),
        most_orbits=4,
        **options,
    )


def test_given_no_noise_then_plain_is_limited_by_closure_and_the_taper_is_not(
    duffing: np.ndarray, rng: np.random.Generator
) -> None:
    plain = balance(duffing, 0.0, rng, plain=True)
    tapered = balance(duffing, 0.0, rng, finish=False)
    assert force_error(plain, duffing) < 1e-3
    assert force_error(tapered, duffing) < 1e-5
    assert force_error(tapered, duffing) < 0.1 * force_error(plain, duffing)


@pytest.mark.parametrize(("noise", "weighted", "finished"), [(0.01, 0.0024, 0.0015), (0.05, 0.018, 0.008)])
def test_given_noise_then_weights_and_likelihood_reach_the_expected_accuracy(
    duffing: np.ndarray, rng: np.random.Generator, noise: float, weighted: float, finished: float
) -> None:
    draws = [(balance(duffing, noise, rng, finish=False), balance(duffing, noise, rng)) for _ in range(3)]
    assert np.median([force_error(start, duffing) for start, _ in draws]) < weighted
    assert np.median([force_error(end, duffing) for _, end in draws]) < finished


def test_given_noise_then_the_intervals_cover_the_truth(
    duffing: np.ndarray, rng: np.random.Generator
) -> None:
    truth = {"m": 1.0, "c": 0.2, "k1": 1.0, "k2": 0.0, "k3": 1.0, "k4": 0.0, "k5": 0.0}
    results = [balance(duffing, 0.02, rng) for _ in range(6)]
    covered = [r.parameters[name].covers(value) for r in results for name, value in truth.items()]
    assert sum(covered) >= 34  # of 42; 95 % of them are expected, and they are not independent


def rig_record(
    seed: int, clock_ppm: float = 0.0, offset_counts: float = 0.0, periods: int = 3000
) -> tuple[Model, Record]:
    """The experiment of chapter 4: strain alone, 12 bits, 25 samples a period, drive not recorded."""
    model = load_model("two_well_beam").with_free(["c", "k1", "k2", "k3", "k4", "a"])
    return model, beam.rig_record(seed, periods, clock_ppm, offset_counts)


@pytest.mark.parametrize(("clock", "offset"), [(0.0, 0.0), (100.0, 20.0)])
def test_given_one_strain_channel_and_an_unknown_drive_then_ten_draws_identify_a_chaotic_beam(
    clock: float, offset: float
) -> None:
    model = load_model("two_well_beam").with_free(list(beam.RIG_GUESS))
    truth = {name: model.parameters[name].value for name in model.free}
    results = []
    for seed in range(10):
        record = beam.rig_record(seed, 7000, clock, offset)
        guess = model.with_values(beam.RIG_GUESS)
        results.append(identify(guess, record, "balance", most_orbits=10, offset=offset != 0.0))
    errors = {n: np.median([abs(r.values()[n] - truth[n]) for r in results]) for n in truth}
    assert all(r.converged and len(r.extra["orbits"]) == 10 for r in results)
    assert errors["c"] < 0.0005
    assert all(errors[k] < 0.0015 for k in ("k1", "k2", "k3", "k4"))
    assert errors["a"] < 0.01 * truth["a"]
    covered = [r.parameters[n].covers(truth[n]) for r in results for n in truth]
    assert sum(covered) >= 48  # of 60, not independent; 57 are expected
    found = {n: float(np.median([r.values()[n] for r in results])) for n in truth}
    exponent = lyapunov_spectrum(model.with_values(found), 2000.0, transient=200.0, count=1)
    assert exponent.bits[0] * np.log(2) == pytest.approx(0.128, abs=0.03)


def test_given_the_plain_method_and_an_unknown_drive_then_its_harmonic_is_left_out() -> None:
    model, record = rig_record(4, periods=1500)
    result = identify(model, record, "balance", plain=True, most_orbits=10)
    assert any(sentence.startswith("a ") for sentence in result.undetermined)


def test_given_three_states_of_an_unforced_system_then_lorenz_is_identified() -> None:
    model = load_model("lorenz")

    def rhs(t: float, z: np.ndarray) -> np.ndarray:
        rate = np.empty(3)
        model.kernels().rhs(t, z, np.zeros(0), model.values(), rate)
        return rate

    times = np.arange(12_000) * 0.01
    start = np.array([model.initial[s].value for s in model.states])
    states = solve_ivp(rhs, (0, times[-1]), start, "DOP853", times, rtol=1e-10, atol=1e-10).y[:, 1000:]
    record = Record.from_arrays(100.0, dict(zip(model.states, states, strict=True)))
    free = model.with_free(list(model.parameters)).with_values(dict.fromkeys(model.parameters, 1.0))
    result = identify(free, record, "balance", finish=False, longest=6, most_orbits=8)
    for name, parameter in model.parameters.items():
        assert result.values()[name] == pytest.approx(parameter.value, rel=2e-3)


def test_given_a_record_without_recurrence_then_one_sentence_says_what_to_do(
    rng: np.random.Generator,
) -> None:
    ramp = np.arange(3000) * 0.1
    record = Record.from_arrays(
        SAMPLES / PERIOD, {"x": ramp, "v": ramp**2}, excitation=Excitation(1 / PERIOD, 27.0, 0.0)
    )
    with pytest.raises(DataError, match="No periodic orbit"):
        identify(Model.from_toml(SEVEN), record, "balance")


def test_given_a_missing_state_then_another_method_is_named() -> None:
    model = load_model("lorenz")
    record = Record.from_arrays(100.0, {model.states[0]: np.sin(np.arange(3000) * 0.1)})
    with pytest.raises(DataError, match="homotopy"):
        identify(model.with_free(list(model.parameters)), record, "balance")


def test_given_noise_then_the_harmonics_that_stand_out_of_it_are_balanced(rng: np.random.Generator) -> None:
    """A response whose harmonics fall by a factor of ten each: noise leaves as many as rise above it."""
    phase = 2 * np.pi * np.arange(40_000) / 100
    response = sum(10.0 ** (1 - j) * np.cos(j * phase + j) for j in range(1, 10))
    floor = response.std() * 1e-5 * np.sqrt(2 / 100)  # amplitude of a line as strong as its band of noise
    taken, model = {}, Model.from_toml(SEVEN)
    for noise in (0.0, 1e-3, 1e-1):
        x = response + noise * rng.normal(size=len(response))
        record = Record.from_arrays(100.0, {"x": x, "v": x}, excitation=Excitation(1.0, 27.0, 0.0))
        taken[noise] = read_setting(model, Experiment(model, record).runs[0], HarmonicBalance()).harmonics
        lowest = max(noise * np.sqrt(2 / 100), floor)
        expected = np.flatnonzero(10.0 ** (1 - np.arange(1, 10)) > lowest)[-1] + 1
        assert abs(taken[noise] - max(expected, 3)) <= 1
    assert taken[0.0] > taken[1e-3] > taken[1e-1]


def test_given_the_starts_of_orbits_then_exactly_these_are_balanced(duffing: np.ndarray) -> None:
    record = record_of(duffing, 0.0, np.random.default_rng(1))
    found = identify(Model.from_toml(SEVEN), record, "balance", orbits=(3, 5), most_orbits=2, plain=True)
    known = {entry["multiple"]: entry["start"] for entry in found.extra["orbits"]}
    again = identify(
        Model.from_toml(SEVEN), record, "balance", orbits=(3, 5), starts=(known[3], known[5]), plain=True
    )
    assert again.values() == pytest.approx(found.values(), rel=1e-6, abs=1e-9)
    with pytest.raises(DataError, match="for each start"):
        identify(Model.from_toml(SEVEN), record, "balance", orbits=(3, 5), starts=(100,))
