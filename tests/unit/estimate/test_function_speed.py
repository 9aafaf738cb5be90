"""Speed of curves and beams: processor time in a process of its own with one thread.

Seconds are those of a machine that takes 23 ms for the yardstick; a slower or busier one gets as much more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import LONG

PROGRAM = """
import json, time
from benchmarks.functions import beam_seconds, curve_seconds, modal_against_integration
def yardstick():
    begin, x = time.process_time(), 0.5
    for _ in range(400_000):
        x = 3.7 * x * (1 - x)
    return time.process_time() - begin
paces = [yardstick() for _ in range(3)]
ours, theirs = modal_against_integration()
times = {"H 1000": curve_seconds(1000), "H 4000": curve_seconds(4000), "c 1000": curve_seconds(1000, "c(t)")}
times["beam"] = beam_seconds()
paces += [yardstick() for _ in range(3)]
slower = max(1.0, max(paces) / 0.023)
print(json.dumps({**{name: seconds / slower for name, seconds in times.items()}, "ratio": theirs / ours}))
"""


@pytest.fixture(scope="module")
def measured() -> dict[str, float]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).parents[3],
        env={**os.environ, **threads},
        capture_output=True,
        text=True,
        check=True,
        timeout=LONG,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def test_given_thousand_samples_when_curves_are_recovered_then_under_a_third_of_a_second(measured) -> None:
    assert measured["H 1000"] < 0.3
    assert measured["c 1000"] < 0.3


def test_given_four_times_the_samples_when_recovered_then_about_four_times_the_time(measured) -> None:
    assert measured["H 4000"] < 10 * measured["H 1000"]


def test_given_flat_guess_when_published_beam_is_identified_then_under_two_seconds(measured) -> None:
    assert measured["beam"] < 2.0


def test_given_all_sensitivities_when_compared_with_integration_then_fifty_times_faster(measured) -> None:
    assert measured["ratio"] > 50
