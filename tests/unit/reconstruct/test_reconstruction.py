"""Delay, dimension and singular values of signals with known answers."""

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.reconstruct.delay import autocorrelation, delay_by_autocorrelation, delay_by_mutual_information
from analysis.reconstruct.dimension import (
    correlation_dimension,
    correlation_sum,
    false_neighbours,
    singular_spectrum,
)
from analysis.reconstruct.embedding import delay_coordinates
from analysis.signal.timescale import mean_period, theiler_window
from tests.chaotic import duffing, lorenz, roessler


def test_given_a_sine_then_its_period_and_delays_are_known() -> None:
    x = np.sin(2 * np.pi * np.arange(8000) / 80)
    assert mean_period(x) == pytest.approx(80, rel=0.01)
    assert delay_by_autocorrelation(x, 0.5).samples == 20
    assert delay_by_autocorrelation(x, 0.5).time == 10.0
    assert delay_by_autocorrelation(x, 0.5, "minimum").samples == 40
    assert delay_by_autocorrelation(x, 0.5, "fraction").samples == 3  # a fifteenth of 40
    assert autocorrelation(x, 100)[:3] == pytest.approx(np.cos(2 * np.pi * np.arange(3) / 80), abs=1e-3)


def test_given_lorenz_then_the_mutual_information_has_its_known_first_minimum() -> None:
    found = delay_by_mutual_information(lorenz(20_000)[0], 0.01)
    assert found.time == pytest.approx(0.17, abs=0.02)  # Fraser and Swinney; every textbook
    assert not found.message
    assert found.curve[0] > found.curve[found.samples]


def test_given_a_drift_then_the_delay_says_that_the_data_do_not_support_it() -> None:
    found = delay_by_autocorrelation(np.linspace(0, 1, 2000) ** 2, 1.0, longest=100)
    assert "does not cross zero" in found.message
    noise = np.random.default_rng(0).standard_normal(5000)
    assert delay_by_mutual_information(noise, 1.0, longest=30).message


@pytest.mark.parametrize(
    ("samples", "delay", "dimension"),
    [(lorenz(20_000)[0], 17, 3), (roessler(20_000)[0], 13, 3), (duffing(20_000)[0], 18, 4)],
    ids=["lorenz", "roessler", "forced duffing"],
)
def test_given_a_system_then_false_neighbours_end_at_its_dimension(
    samples: np.ndarray, delay: int, dimension: int
) -> None:
    found = false_neighbours(samples, delay)
    assert found.dimension == dimension
    assert found.fractions[0] > 0.5
    assert np.all(found.stderrs < 0.01)  # 3000 points at least
    assert found.fractions[dimension - 1] < 0.01
    assert not found.message


def test_given_noise_then_the_floor_keeps_the_dimension_and_without_it_neighbours_look_false() -> None:
    rng = np.random.default_rng(1)
    x = lorenz(20_000)[0]
    noisy = x + 0.01 * x.std() * rng.standard_normal(len(x))
    assert false_neighbours(noisy, 17).dimension == 3
    assert false_neighbours(noisy, 17, noise=0.0).fractions[0] > false_neighbours(noisy, 17).fractions[0]


def test_given_random_numbers_then_no_dimension_is_supported() -> None:
    found = false_neighbours(np.random.default_rng(2).standard_normal(5000), 1, largest=4)
    assert "too noisy or too few" in found.message


def test_given_lorenz_then_the_correlation_dimension_is_that_of_the_literature() -> None:
    found = correlation_dimension(delay_coordinates(lorenz(20_000)[0], 3, 17))
    assert found.value == pytest.approx(2.05, abs=0.1)  # Grassberger and Procaccia: 2.05 +- 0.01
    assert 0 < found.stderr < 0.2
    assert found.region[1] > 4 * found.region[0]
    assert not found.message


def test_given_simple_sets_then_the_correlation_dimension_is_exact() -> None:
    rng = np.random.default_rng(3)
    t = rng.uniform(0, 1, 20_000)
    circle = np.stack([np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)])
    assert correlation_dimension(circle, theiler=0).value == pytest.approx(1.0, abs=0.03)
    square = rng.uniform(0, 1, (2, 20_000))
    assert correlation_dimension(square, theiler=0).value == pytest.approx(2.0, abs=0.1)


def test_given_noise_off_a_surface_then_it_is_taken_out_of_the_radii() -> None:
    """A torus in four coordinates: the noise across it lifts the slope by 2 s² (4 - 2) / r² of itself."""
    rng = np.random.default_rng(6)
    a, b = rng.uniform(0, 2 * np.pi, (2, 20_000))
    torus = np.stack([np.cos(a), np.sin(a), np.cos(b), np.sin(b)])
    noisy = torus + 0.05 * rng.standard_normal(torus.shape)
    region = (0.25, 0.6)
    exact = correlation_dimension(torus, theiler=0, region=region).value
    assert correlation_dimension(noisy, theiler=0, region=region).value > exact + 0.05
    found = correlation_dimension(noisy, theiler=0, region=region, noise=0.1)
    assert found.value == pytest.approx(exact, abs=0.02)


def test_given_no_theiler_window_then_neighbours_in_time_are_counted_as_close() -> None:
    points = delay_coordinates(lorenz(5000, 0.002)[0], 3, 80)
    radius = np.array([0.5])
    assert correlation_sum(points, radius, 0)[0] > 2 * correlation_sum(points, radius, 200)[0]


def test_given_noise_then_the_singular_values_above_the_floor_are_counted() -> None:
    rng = np.random.default_rng(5)
    t = np.arange(20_000)
    x = np.sin(2 * np.pi * t / 40) + 0.3 * np.sin(2 * np.pi * t / 17.3)
    found = singular_spectrum(x + 0.01 * rng.standard_normal(len(t)), 20)
    assert found.rank == 4  # two sines, two directions each
    assert found.values[4:] == pytest.approx(0.01, rel=0.15)
    assert "noise floor" in singular_spectrum(x, 4, noise=0.0).message


def test_given_slow_motion_then_the_theiler_window_is_one_mean_period_at_most_a_twentieth() -> None:
    x = np.sin(2 * np.pi * np.arange(8000) / 80)
    assert theiler_window(x) == pytest.approx(80, abs=2)
    assert theiler_window(np.sin(2 * np.pi * np.arange(1000) / 900)) <= 50
    with pytest.raises(DataError):
        mean_period(np.ones(100))
