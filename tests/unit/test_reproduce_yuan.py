"""Tables of Yuan 1995 come out at least as close to the truth as printed."""

from __future__ import annotations

import pytest

from app.reproduce import TABLES, make_table
from app.reproduce.yuan1995.comparison import verdict


@pytest.mark.parametrize("number", ["2", "10", "12"])
def test_given_a_printed_table_then_ours_is_at_least_as_close_or_within_its_error(number: str) -> None:
    table = make_table(f"yuan1995-{number}")
    verdicts = [row[-1] for row in table.rows]
    assert verdicts.count("farther off") <= 0.05 * len(verdicts)
    assert verdicts.count("at least as close") >= 0.8 * len(verdicts)


def test_given_the_rig_of_chapter_4_then_damping_stiffness_and_force_are_recovered() -> None:
    table = make_table("yuan1995-14")
    found = {row[0]: row for row in table.rows}
    assert all(row[-1] == "recovered" for row in table.rows)
    assert abs(found["c"][5] - 0.035) < 0.0005
    assert abs(found["c"][3] - 0.035) > 10 * abs(found["c"][5] - 0.035)  # the plain method's weak spot


def test_given_a_power_series_then_the_printed_coefficients_come_out() -> None:
    rows = make_table("yuan1995-13").rows
    assert sum(row[-1] == "as printed" for row in rows) >= 0.9 * len(rows)


def test_given_the_wells_then_frequencies_are_near_the_printed_ones() -> None:
    for _, _, printed, ours, printed_damping, damping, _ in make_table("yuan1995-15").rows:
        assert ours == pytest.approx(printed, rel=0.04)
        assert damping == pytest.approx(printed_damping, rel=0.04)


def test_given_a_value_then_the_verdict_says_how_it_compares() -> None:
    assert verdict(1.0, 1.02, 1.01, 0.001, 1e-3) == "at least as close"
    assert verdict(1.0, 1.0, 1.01, 0.02, 1e-3) == "within 2 std. errors"
    assert verdict(1.0, 1.0, 1.01, 0.001, 1e-3) == "farther off"


def test_given_the_register_then_all_fifteen_tables_are_there() -> None:
    assert {f"yuan1995-{n}" for n in range(1, 16)} <= set(TABLES)
