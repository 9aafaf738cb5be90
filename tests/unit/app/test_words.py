"""Words about numbers."""

from __future__ import annotations

import pytest

from app.words import unbroken


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("a converter at 2 kHz and a laser", "2\u00a0kHz"),
        ("closed within 0.5 % of the span", "0.5\u00a0%"),
        ("exponent 6.05 ± 0.83 /s", "6.05\u00a0±\u00a00.83\u00a0/s"),
        ("moved 3 m/s² more", "3\u00a0m/s²"),
        ("4 V  ·  drives sine", "4\u00a0V\u00a0\u00a0·  drives"),
        ("white over 2260 lags", "2260 lags"),  # a word like any other
        ("after 5 models and 3 hours", "5 models and 3 hours"),
    ],
)
def test_given_a_number_with_a_unit_then_no_line_ends_between_them(said: str, kept: str) -> None:
    assert kept in unbroken(said)
