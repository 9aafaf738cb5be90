"""Tables of Manikantan et al. 2020: ours find what the paper could not, with fewer runs."""

from __future__ import annotations

import pytest

from app.reproduce import make_table


def test_given_noise_then_most_of_our_estimates_lie_within_their_errors() -> None:
    rows = make_table("manikantan2020-3").rows
    assert len(rows) == 27
    assert sum(row[-1] == "off" for row in rows) <= 2
    assert sum(row[-1] == "within 2 std. errors" for row in rows) >= 21


def test_given_the_damper_then_only_the_known_combinations_are_claimed() -> None:
    table = make_table("manikantan2020-8")
    for _, actual, printed, ours, _ in table.rows[-3:]:
        assert ours == pytest.approx(actual, rel=1e-3)
        assert printed == pytest.approx(actual, rel=2e-3)
    assert any("alpha" in note for note in table.notes[1:])
