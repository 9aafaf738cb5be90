"""Lyapunov exponents from 20 000 samples against the variational values."""

from collections.abc import Callable

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.orbits.spectrum import exponent_spectrum, kaplan_yorke
from analysis.reconstruct.embedding import delay_coordinates
from analysis.reconstruct.exponents import largest_exponent, wolf_exponent
from analysis.signal.noise import noise_level
from tests.chaotic import COULOMB_PERIOD, DUFFING_PERIOD, THESIS_LORENZ, coulomb, duffing, lorenz, roessler

LORENZ, ROESSLER = 0.9057, 0.0714  # nats per unit of time
LORENZ_THESIS = 2.17 * np.log(2)
DUFFING_BITS = 0.211
COULOMB_BITS = 0.16


@pytest.mark.parametrize(
    ("samples", "dt", "dimension", "delay", "truth"),
    [
        (lambda: lorenz(20_000)[0], 0.01, 3, 17, LORENZ),
        (lambda: lorenz(20_000, 0.01, THESIS_LORENZ)[0], 0.01, 3, 10, LORENZ_THESIS),
        (lambda: roessler(20_000)[0], 0.1, 3, 13, ROESSLER),
        (lambda: duffing(20_000)[0], DUFFING_PERIOD / 100, 4, 18, DUFFING_BITS * np.log(2)),
    ],
    ids=["lorenz", "lorenz of the thesis", "roessler", "duffing"],
)
def test_given_20000_clean_samples_of_one_channel_then_the_defaults_give_the_exponent_within_ten_per_cent(
    samples: Callable[[], np.ndarray], dt: float, dimension: int, delay: int, truth: float
) -> None:
    found = largest_exponent(delay_coordinates(samples(), dimension, delay), dt)
    assert found.value == pytest.approx(truth, rel=0.1)
    assert 0 < found.stderr < 0.1 * truth
    assert not found.message
    assert found.region[1] > found.region[0]


RECORDS = {  # 20 000 samples of one channel: samples, interval, dimension, delay, exponent
    "lorenz": (lambda: lorenz(20_000, 0.02)[0], 0.02, 3, 9, LORENZ),
    "roessler": (lambda: roessler(20_000, 0.2)[0], 0.2, 3, 7, ROESSLER),
    "duffing": (lambda: duffing(20_000, 25.0)[0], DUFFING_PERIOD / 25, 3, 6, DUFFING_BITS * np.log(2)),
    "coulomb": (lambda: coulomb(20_000, 25.0)[0], COULOMB_PERIOD / 25, 3, 8, COULOMB_BITS * np.log(2)),
}


@pytest.mark.parametrize("system", RECORDS)
@pytest.mark.parametrize("method", ["rosenstein", "kantz", "wolf"])
def test_given_20000_clean_samples_then_every_estimator_is_within_ten_per_cent(
    system: str, method: str
) -> None:
    samples, dt, dimension, delay, truth = RECORDS[system]
    points = delay_coordinates(samples(), dimension, delay)
    found = wolf_exponent(points, dt) if method == "wolf" else largest_exponent(points, dt, method=method)
    assert found.value == pytest.approx(truth, rel=0.1)
    assert 0 < found.stderr < 0.1 * truth
    assert not found.message
    if method == "wolf":
        assert found.curve[-1] == found.value


@pytest.mark.parametrize("system", RECORDS)
def test_given_one_per_cent_noise_then_several_neighbours_bear_it_and_a_sentence_says_so(system: str) -> None:
    samples, dt, dimension, delay, truth = RECORDS[system]
    x = samples()
    noisy = x + 0.01 * x.std() * np.random.default_rng(1).standard_normal(len(x))
    points = delay_coordinates(noisy, dimension, delay)
    kantz = largest_exponent(points, dt, method="kantz")
    assert kantz.value == pytest.approx(truth, rel=0.15)
    assert wolf_exponent(points, dt).value == pytest.approx(truth, rel=0.15)
    assert largest_exponent(points, dt).value == pytest.approx(truth, rel=0.2)  # the nearest alone: low
    assert "Noise" in kantz.message


def test_given_a_coarsely_sampled_motion_then_it_is_not_taken_for_noise() -> None:
    x = duffing(20_000, 25.0)[0]
    assert noise_level(x).value > 0.004 * x.std()  # high differences cannot tell
    points = delay_coordinates(x, 3, 6)
    assert largest_exponent(points, 1.0).value == largest_exponent(points, 1.0, noise=0.0).value


def test_given_the_states_of_lorenz_then_the_local_maps_give_exponent_and_dimension() -> None:
    found = exponent_spectrum(lorenz(20_000, 0.025), 0.025)
    assert found.values[0] == pytest.approx(LORENZ, rel=0.1)
    assert found.values[1] == 0.0
    assert kaplan_yorke(found.values) == pytest.approx(2.06, abs=0.04)


def test_given_the_drive_period_then_local_maps_give_both_duffing_exponents() -> None:
    x = duffing(20_000, 25.0)[0]
    found = exponent_spectrum(delay_coordinates(x, 3, 2), DUFFING_PERIOD / 25, period=25.0)
    bits = found.values / np.log(2)
    assert bits[0] == pytest.approx(DUFFING_BITS, rel=0.1)
    assert bits[1] == pytest.approx(-0.499, rel=0.1)
    assert np.sum(bits) == pytest.approx(-0.2 / np.log(2), rel=0.15)
    assert np.all(found.stderrs > 0)


def test_given_a_regular_motion_then_no_exponent_is_claimed() -> None:
    t = np.arange(8000)
    x = np.sin(2 * np.pi * t / 37.7) + 0.4 * np.sin(2 * np.pi * t / 53.1)
    found = largest_exponent(delay_coordinates(x, 4, 9), 1.0)
    assert abs(found.value) < 1e-3 or found.message


def test_given_a_periodic_motion_then_the_exponent_is_unknown_without_a_warning() -> None:
    x = np.sin(2 * np.pi * np.arange(5000) / 50) + 0.3 * np.sin(4 * np.pi * np.arange(5000) / 50)
    found = largest_exponent(delay_coordinates(x, 3, 6), 1.0)
    assert found.message
    assert not found.value > 0.01


def test_given_a_spectrum_then_the_kaplan_yorke_dimension_follows() -> None:
    assert kaplan_yorke(np.array([0.906, 0.0, -14.57])) == pytest.approx(2.0622, abs=1e-4)
    assert kaplan_yorke(np.array([0.211, -0.499])) == pytest.approx(1 + 0.211 / 0.499)
    assert kaplan_yorke(np.array([-0.1, -0.2])) == 0
    assert np.isnan(kaplan_yorke(np.array([0.5, -0.1])))


def test_given_a_short_record_then_it_is_refused() -> None:
    with pytest.raises(DataError, match="too short"):
        largest_exponent(delay_coordinates(lorenz(180)[0], 3, 17), 0.01)
    with pytest.raises(DataError, match="too few"):
        exponent_spectrum(duffing(1000), 0.1, period=100.0)
