"""Noise level from high-order differences."""

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.signal.noise import noise_level, noise_levels, robust_deviation, robust_error
from tests.chaotic import duffing


@pytest.mark.parametrize("percent", [0.1, 1.0, 5.0])
def test_given_noise_on_a_chaotic_record_then_its_level_is_found(percent: float) -> None:
    rng = np.random.default_rng(3)
    x = duffing(20_000)[0]
    level = percent / 100 * x.std()
    found = noise_level(x + level * rng.standard_normal(len(x)))
    assert found.settled and not found.message
    assert found.value == pytest.approx(level, rel=0.04)
    assert abs(found.value - level) < 5 * found.stderr


def test_given_a_clean_record_then_the_level_is_a_bound_far_below_the_signal() -> None:
    x = duffing(20_000)[0]
    assert noise_level(x).value < 1e-7 * x.std()


def test_given_quantised_samples_then_the_level_is_a_step_over_root_twelve() -> None:
    x = duffing(20_000)[0]
    assert noise_level(np.round(x / 0.01) * 0.01).value == pytest.approx(0.01 / np.sqrt(12), rel=0.15)


def test_given_steps_in_the_signal_then_they_do_not_count_as_noise() -> None:
    rng = np.random.default_rng(4)
    x = np.sin(np.arange(20_000) / 30) + 3.0 * (np.arange(20_000) // 400 % 2)
    assert noise_level(x + 1e-3 * rng.standard_normal(len(x))).value == pytest.approx(1e-3, rel=0.1)


def test_given_a_long_record_then_pieces_of_it_suffice() -> None:
    rng = np.random.default_rng(5)
    x = np.sin(np.arange(1_000_000) / 30) + 0.01 * rng.standard_normal(1_000_000)
    assert noise_level(x).value == pytest.approx(0.01, rel=0.03)


def test_given_coarse_sampling_then_the_result_says_that_it_is_an_upper_bound() -> None:
    found = noise_level(np.sin(np.arange(5000) * 2 * np.pi / 5.3))
    assert not found.settled
    assert "upper bound" in found.message


def test_given_rows_then_each_has_its_level() -> None:
    rng = np.random.default_rng(6)
    rows = np.sin(np.arange(5000) / 30) + np.array([[0.01], [0.1]]) * rng.standard_normal((2, 5000))
    assert noise_levels(rows) == pytest.approx([0.01, 0.1], rel=0.06)


def test_given_a_constant_then_there_is_no_noise_and_given_little_data_then_it_refuses() -> None:
    assert noise_level(np.ones(1000)).value == 0
    with pytest.raises(DataError, match="samples"):
        noise_level(np.ones(50))


@pytest.mark.parametrize("count", [100, 400, 4000])
def test_given_normal_numbers_then_their_robust_deviation_scatters_as_stated(count: int) -> None:
    draws = np.random.default_rng(5402).standard_normal((2000, count))
    scatter = np.std([robust_deviation(row) for row in draws])
    assert robust_error(count) == pytest.approx(scatter, rel=0.1)
