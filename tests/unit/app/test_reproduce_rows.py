"""The common row of reproduced tables and its verdicts."""

from __future__ import annotations

import math

import pytest

from app.reproduce import Table
from app.reproduce.page import counts, document, shown
from app.reproduce.rows import COLUMNS, VERDICTS, Row, least, same, value


@pytest.mark.parametrize(
    ("published", "ours", "stderr", "verdict"),
    [
        (1.02, 1.01, 0.001, "better than print"),
        (1.0, 1.0004, 0.0001, "agrees"),
        (1.01, 1.0102, 0.0001, "agrees"),  # as close as the last printed digit tells
        (1.0, 1.01, 0.02, "agrees within 2 std. errors"),
        (1.0, 1.01, 0.001, "worse than print"),
        (math.nan, 1.01, 0.001, "not printed"),
    ],
)
def test_given_an_estimate_then_the_verdict_says_how_it_compares(published, ours, stderr, verdict):
    row = value("case", "c", 1.0, published, None, ours, stderr, rounding=1e-3)
    assert row.verdict == verdict
    assert row.error == pytest.approx(100 * (ours - 1))


def test_given_a_truth_of_zero_then_there_is_no_relative_error():
    assert value("", "b2", 0.0, 0.01, None, 0.001).error is None


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(90.0, "better than print"), (103.0, "agrees"), (120.0, "worse than print")],
)
def test_given_a_count_then_the_smaller_is_the_better(ours, verdict):
    assert least("", "evaluations", 100.0, None, ours).verdict == verdict


def test_given_a_computed_quantity_then_it_agrees_or_differs():
    assert same("", "frequency", 5.0, 5.05, 0.02).verdict == "agrees"
    assert same("", "frequency", 5.0, 5.5, 0.02).verdict == "differs"


def test_given_a_table_when_shown_then_empty_columns_go_and_verdicts_are_counted():
    wrong = least("b", "J", 1.0, 2.0, 2.0).but("print is wrong: below the least possible")
    made = Table("some-table", "Some table", [least("a", "J", 1.0, 2.0, 0.5), wrong])
    columns, rows = shown(made)
    assert columns == ["case", "quantity", "published", "plain", "ours", "verdict"]
    assert len(rows) == 2
    assert counts(made) == {"better than print": 1, "print is wrong": 1}
    assert len(document([made]).blocks) > 3


def test_given_the_row_then_its_columns_and_phrases_fit_together():
    assert len(COLUMNS) == len(Row._fields)
    assert not any(a != b and a.startswith(b) for a in VERDICTS for b in VERDICTS)
