"""Work beside a drive: signs of life go on while it computes, stay away when it is stuck, errors come out."""

from __future__ import annotations

import time

import pytest

from analysis import DataError
from app.watched_work import WatchedWork


def test_given_long_work_then_signs_of_life_go_on_until_it_shows_no_step_for_too_long() -> None:
    beats: list[float] = []
    watched = WatchedWork(lambda: beats.append(time.monotonic()), longest=0.3)
    stuck: list[float] = []

    def work() -> None:
        for _ in range(8):
            time.sleep(0.1)  # computes, and shows each step
            watched.step()
        stuck.append(time.monotonic())
        time.sleep(1.2)

    looks: list[int] = []
    watched.run(work, lambda: looks.append(1))
    assert any(b < stuck[0] for b in beats) and max(beats) < stuck[0] + 0.6
    assert len(looks) > len(beats)  # somebody looks at Ctrl-C to the end


def test_given_work_that_fails_then_its_error_comes_out() -> None:
    def work() -> None:
        raise DataError("No orbit.")

    with pytest.raises(DataError, match="No orbit"):
        WatchedWork(bool, 1.0).run(work, bool)
