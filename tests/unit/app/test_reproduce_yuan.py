"""Tables of Yuan 1995 come out at least as close to the truth as printed."""

from __future__ import annotations

import pytest

from app.reproduce import TABLES, make_table
from app.reproduce.rows import AGREES, BETTER, WORSE


@pytest.mark.parametrize("number", ["2", "10", "12"])
def test_given_a_printed_table_then_ours_is_at_least_as_close_or_within_its_error(number: str) -> None:
    table = make_table(f"yuan1995-{number}")
    verdicts = [row.verdict for row in table.rows]
    assert verdicts.count(WORSE) <= 0.05 * len(verdicts)
    assert verdicts.count(AGREES) + verdicts.count(BETTER) >= 0.8 * len(verdicts)


def test_given_the_rig_of_chapter_4_then_damping_stiffness_and_force_are_recovered() -> None:
    table = make_table("yuan1995-14")
    found = {row.quantity: row for row in table.rows}
    assert all(row.verdict.startswith(AGREES) for name, row in found.items() if name != "a")
    assert abs(found["a"].ours - 0.25) < 0.0025
    damping = found["c"]
    assert abs(damping.ours - 0.035) < 0.0005
    assert abs(damping.plain - 0.035) > 10 * abs(damping.ours - 0.035)  # the plain method's weak spot
    assert len(table.figures) == 4


def test_given_a_power_series_then_the_printed_coefficients_come_out() -> None:
    rows = make_table("yuan1995-13").rows
    assert sum(row.verdict == AGREES for row in rows) >= 0.9 * len(rows)


def test_given_the_wells_then_frequencies_are_near_the_printed_ones() -> None:
    rows = make_table("yuan1995-15").rows
    assert len(rows) == 8
    for row in rows:
        assert row.ours == pytest.approx(row.published, rel=0.04)


def test_given_the_register_then_all_fifteen_tables_are_there() -> None:
    assert {f"yuan1995-{n}" for n in range(1, 16)} <= set(TABLES)
