"""The drive's frequency, from the drive and from the response to it."""

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.signal.drive import drive_frequency, line_error
from tests.chaotic import TWO_WELLS, duffing


def test_given_a_noisy_sine_then_its_frequency_is_found_far_below_the_resolution() -> None:
    rng = np.random.default_rng(0)
    n = np.arange(20_000)
    x = np.cos(2 * np.pi * 0.0400037 * n + 0.3) + 0.1 * rng.standard_normal(len(n))
    assert drive_frequency(x) == pytest.approx(0.0400037, rel=5e-6)


@pytest.mark.parametrize("ppm", [-100.0, 10.0, 100.0])
def test_given_a_chaotic_response_then_the_clock_error_is_read_off_it(ppm: float) -> None:
    response = duffing(100_000, 25 * (1 + 1e-6 * ppm))[0]
    assert 1e6 * (1 / (25 * drive_frequency(response, 1 / 25)) - 1) == pytest.approx(ppm, abs=2)


def test_given_pieces_of_a_chaotic_response_then_the_errors_of_their_lines_are_as_large_as_said() -> None:
    pieces = duffing(100_000, 25, TWO_WELLS)[0].reshape(40, -1)  # 100 periods each
    lines = [(piece, drive_frequency(piece, 1 / 25)) for piece in pieces]
    over = np.array([(f - 1 / 25) / line_error(piece, f) for piece, f in lines if f != 1 / 25])
    assert len(over) > 30
    assert 0.6 < np.sqrt(np.mean(over**2)) < 1.2 and np.abs(over).max() < 4.0


def test_given_no_line_then_the_nominal_frequency_stays() -> None:
    assert drive_frequency(np.random.default_rng(1).standard_normal(10_000), 0.04) == 0.04


def test_given_a_constant_then_it_is_refused() -> None:
    with pytest.raises(DataError):
        drive_frequency(np.ones(1000))
