"""How long something stands still is counted only while this process runs."""

from __future__ import annotations

from drivers.base.standstill import LONGEST_LOOK, Standstill


def test_given_looks_at_something_that_does_not_move_then_their_time_counts() -> None:
    watch = Standstill()
    watch.begin(50.0)
    assert watch.seconds(7, 50.05) == 0.0
    still = [watch.seconds(7, 50.05 + 0.05 * k) for k in range(1, 21)]
    assert abs(still[-1] - 1.0) < 1e-9 and still == sorted(still)
    assert watch.seconds(8, 51.1) == 0.0
    assert watch.seconds(8, 51.15) > 0.0
    watch.begin(51.2)
    assert abs(watch.seconds(8, 51.22) - 0.02) < 1e-9


def test_given_a_process_that_was_frozen_itself_then_one_look_counts_little() -> None:
    watch = Standstill()
    watch.seconds(7, 10.0)
    assert watch.seconds(7, 3600.0) <= LONGEST_LOOK
