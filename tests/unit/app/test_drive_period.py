"""The period of the drive, as the response shows it beside the frequency that was given."""

from __future__ import annotations

import pytest

from app.drive import corrected_period
from tests.chaotic import TWO_WELLS, duffing


def test_given_a_clock_that_is_right_then_what_chaos_does_to_a_line_is_not_called_its_error() -> None:
    for piece in duffing(50_000, 25, TWO_WELLS)[0].reshape(20, -1):
        period, said = corrected_period(piece, 1 / 25, 1.0)
        assert period == 25.0
        assert all("could not be confirmed" in sentence for sentence in said)


@pytest.mark.parametrize("ppm", [-200.0, 200.0])
def test_given_a_clock_that_is_wrong_then_it_is_said_and_put_right(ppm: float) -> None:
    response = duffing(100_000, 25 * (1 + 1e-6 * ppm), TWO_WELLS)[0]
    period, said = corrected_period(response, 1 / 25, 1.0)
    assert 1e6 * (period / 25 - 1) == pytest.approx(ppm, abs=3)
    assert "the clocks differ" in said[0]
