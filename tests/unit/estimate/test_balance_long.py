"""A known orbit of thousands of samples: its harmonics, its weights, its memory, and an unknown phase."""

from __future__ import annotations

import tracemalloc
from functools import lru_cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.identification import Identification
from analysis.base.record import Excitation, Record
from analysis.estimate.balance.problem import _whitening
from analysis.estimate.balance.setting import _above_noise
from analysis.estimate.methods import identify
from analysis.model import Model

DRIVE, SAMPLES, NOISE = 1.1, 12_800, 0.01
TRUTH = {"c": 0.3, "k": 1.5, "q": 0.8}


def model(**bound: float) -> Model:
    return Model.from_equations(
        {"x": "v", "v": f"-c*v - k*x - q*x**3 + 1.2*cos({DRIVE}*t)"},
        {name: {"guess": 1.2 * value, **bound} for name, value in TRUTH.items()},
    )


@lru_cache
def steady() -> np.ndarray:
    """x and v of the steady response by SciPy, three periods and a third."""

    def rate(t: float, z: np.ndarray) -> list[float]:
        return [z[1], -0.3 * z[1] - 1.5 * z[0] - 0.8 * z[0] ** 3 + 1.2 * np.cos(DRIVE * t)]

    period = 2 * np.pi / DRIVE
    times = period / SAMPLES * np.arange(int(3.3 * SAMPLES))
    settled = solve_ivp(rate, (-40 * period, 0), (0.4, -0.2), rtol=1e-9, atol=1e-11).y[:, -1]
    return solve_ivp(rate, (0, times[-1]), settled, t_eval=times, rtol=1e-9, atol=1e-11).y


def record(seed: int, phase: float | None) -> Record:
    noisy = steady() + NOISE * np.random.default_rng(seed).standard_normal(steady().shape)
    drive = Excitation(DRIVE / (2 * np.pi), 1.2, phase)
    rate = SAMPLES * DRIVE / (2 * np.pi)
    return Record.from_arrays(rate, {"x": noisy[0], "v": noisy[1]}, excitation=drive)


def balanced(one: Model, seed: int, phase: float | None) -> Identification:
    return identify(one, record(seed, phase), "balance", finish=False, orbits=(1,), starts=(SAMPLES,))


def in_units(length: float, time: float, phase: float | None) -> np.ndarray:
    """Values and errors, back in the units of ``TRUTH``, from every hundredth sample."""
    units = {"c": 1 / time, "k": time**-2, "q": (time * length) ** -2}
    scaled = Model.from_equations(
        {"x": "v", "v": f"-c*v - k*x - q*x**3 + {1.2 * length / time**2!r}*cos({DRIVE / time!r}*t)"},
        {name: {"guess": 1.2 * value * units[name], "lower": 0.0} for name, value in TRUTH.items()},
    )
    x, v = (record(0, phase)[name][::100] for name in ("x", "v"))
    rate, drive = SAMPLES / 100 * DRIVE / (2 * np.pi * time), DRIVE / (2 * np.pi * time)
    coarse = Record.from_arrays(
        rate, {"x": length * x, "v": length / time * v}, excitation=Excitation(drive, 1.2, phase)
    )
    start = SAMPLES // 100
    result = identify(scaled, coarse, "balance", finish=False, orbits=(1,), starts=(start,))
    found = [(result.parameters[n].value, result.parameters[n].stderr) for n in TRUTH]
    return np.array([np.array(pair) / units[n] for n, pair in zip(TRUTH, found, strict=True)])


def errors(result: Identification) -> list[float]:
    return [abs(result.parameters[n].value - v) / result.parameters[n].stderr for n, v in TRUTH.items()]


def test_given_thousands_of_bands_of_noise_then_none_is_a_harmonic() -> None:
    x = steady()[0]
    lines = np.abs(np.fft.rfft(x[: 3 * SAMPLES])[::3]) / (1.5 * SAMPLES)  # amplitudes of the harmonics
    visible = int(np.max(np.flatnonzero(lines > NOISE * np.sqrt(4 / SAMPLES))))
    for seed in range(20):
        noisy = x + NOISE * np.random.default_rng(seed).standard_normal(len(x))
        assert 3 <= _above_noise(noisy, NOISE, float(SAMPLES)) <= visible < 12


def test_given_rows_of_very_different_noise_then_each_has_its_own_weight(rng: np.random.Generator) -> None:
    deviations = 10.0 ** np.arange(-12, 13, 3)
    mixing = np.tril(0.3 * rng.standard_normal((9, 9)), -1) + np.eye(9)
    factor = deviations[:, None] * mixing  # Cholesky factor of the covariance, but for the signs
    found = _whitening(factor @ factor.T)
    assert found @ factor == pytest.approx(np.eye(9), abs=1e-6)


def test_given_the_phase_then_a_long_orbit_is_balanced_in_memory_of_its_length() -> None:
    one, data = model(), record(0, 0.0)
    one.kernels().prepare("rhs_many", "jac_many")
    tracemalloc.start()
    result = identify(one, data, "balance", finish=False, orbits=(1,), starts=(SAMPLES,))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6  # it is 12e6; a covariance of thousands of rows alone would be 200e6
    assert max(errors(result)) < 4


def test_given_no_phase_but_bounds_then_the_right_minimum_is_found() -> None:
    result = balanced(model(lower=0.0), 0, None)
    assert max(errors(result)) < 4
    assert not any("Other values" in warning for warning in result.warnings)


def test_given_no_phase_and_two_solutions_then_the_other_one_is_named() -> None:
    # Harmonic 1 fixes |(k - w^2) x1 + q (x^3)_1 + i c w x1| only, a quadratic condition: k = -0.74 fits, too.
    result = balanced(model(), 0, None)
    said = next(warning for warning in result.warnings if "Other values" in warning)
    right = max(errors(result)) < 4
    assert right == (result.parameters["k"].value > 0)
    assert ("k = -0.7" in said) if right else ("k = 1.5" in said)


@pytest.mark.parametrize("phase", [0.0, None])
def test_given_other_units_then_the_relative_answer_is_the_same(phase: float | None) -> None:
    known = in_units(1.0, 1.0, phase)
    for length, time in ((1e-9, 1.0), (1e6, 1.0), (1.0, 1e-3), (1.0, 1e3)):
        assert in_units(length, time, phase) == pytest.approx(known, rel=1e-6)
