"""Numbers inside sentences never have a power of ten that nobody reads."""

from __future__ import annotations

import pytest

from analysis import percent


@pytest.mark.parametrize(
    "share, digits, words",
    [
        (0.997, 2, "100 %"),  # not 1e+02
        (1.8213, 2, "180 %"),
        (9.04e-7, 2, "0.00009 %"),  # not 9e-05
        (0.004, 2, "0.4 %"),
        (0.1234, 3, "12.3 %"),
        (-0.0251, 2, "-2.5 %"),
        (0.0, 2, "0 %"),
    ],
)
def test_given_a_share_of_any_size_then_it_is_written_with_its_digits_alone(
    share: float, digits: int, words: str
) -> None:
    assert percent(share, digits) == words
