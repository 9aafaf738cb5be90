"""The device's clock beside the computer's, on a stream of known drift and delays."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest

from drivers.acquisition.stream_clock import StreamClock

RATE, BLOCK = 1000.0, 200


def stream(seconds: float, drift: float, rng: np.random.Generator) -> tuple[StreamClock, int, list[float]]:
    """A device that is ``drift`` (per second) fast; blocks come with delays of some milliseconds."""
    moment = [0.0]
    clock = StreamClock(RATE, lambda: moment[0])
    late = []
    index = 0
    for _ in range(int(seconds * RATE / BLOCK)):
        index += BLOCK
        moment[0] = 5000.0 + index / RATE / (1 + drift) + 0.001 + rng.exponential(0.003)
        late.append(clock.arrived(index))
    return clock, index, late


@pytest.mark.parametrize("drift", [-50e-6, 0.0, 120e-6])
def test_given_a_drift_then_estimated_within_its_error_and_never_taken_for_lateness(
    drift: float, rng: np.random.Generator
) -> None:
    clock, _, late = stream(3 * 3600.0, drift, rng)
    found = clock.drift()
    assert found is not None and found.error < 1.0
    assert abs(found.ppm - 1e6 * drift) < 4 * found.error + 1e-3
    assert found.seconds == pytest.approx(3 * 3600.0, rel=0.02)
    assert max(late) == 0.0  # 50 ppm are 0.54 s in three hours


def test_given_many_streams_then_the_error_of_the_drift_is_right(rng: np.random.Generator) -> None:
    scores = []
    for _ in range(60):
        found = stream(240.0, 40e-6, rng)[0].drift()
        assert found is not None
        scores.append((found.ppm - 40.0) / found.error)
    assert 0.75 < float(np.std(scores)) < 1.3
    assert abs(float(np.mean(scores))) < 0.5


def test_given_a_machine_that_was_busy_at_first_then_the_drift_is_that_of_the_clocks() -> None:
    """For three seconds every block comes half a second late."""
    moment = [0.0]
    clock = StreamClock(RATE, lambda: moment[0])
    rng = np.random.default_rng(7)
    for index in range(BLOCK, 60_000, BLOCK):
        busy = 0.5 if index < 3000 else 0.0
        moment[0] = index / RATE / (1 + 40e-6) + rng.exponential(0.003) + busy
        clock.arrived(index)
    found = clock.drift()
    assert found is not None and found.error < 10.0
    assert abs(found.ppm - 40.0) < 4 * found.error


def test_given_a_short_stream_then_no_drift_is_claimed(rng: np.random.Generator) -> None:
    assert stream(10.0, 0.0, rng)[0].drift() is None


@pytest.mark.parametrize(("seconds", "drift"), [(15.0, 0.05), (15.0, -0.5), (60.0, 0.003), (60.0, -0.003)])
def test_given_another_rate_than_the_source_tells_then_it_is_said_with_the_true_one(
    seconds: float, drift: float, rng: np.random.Generator
) -> None:
    said = stream(seconds, drift, rng)[0].doubt()
    assert said.startswith("the source gives ") and "says 1000 Hz" in said
    assert float(said.split()[3]) == pytest.approx(1000 * (1 + drift), rel=2e-3)


def test_given_quartz_clocks_on_a_busy_machine_then_no_rate_is_doubted(rng: np.random.Generator) -> None:
    for _ in range(100):
        seconds, busy = rng.uniform(5, 60), rng.uniform(0, 4)
        moment = [0.0]
        clock = StreamClock(RATE, lambda moment=moment: moment[0])  # type: ignore[misc]
        drift, late = rng.normal(0, 60e-6), rng.exponential(0.3)
        for index in range(BLOCK, int(seconds * RATE), BLOCK):
            waited = rng.exponential(0.02) + (late if index < busy * RATE else 0.0)
            moment[0] = index / RATE / (1 + drift) + waited
            clock.arrived(index)
        assert clock.doubt() == ""


def test_given_a_delay_then_it_is_reported_once() -> None:
    moment = [100.0]
    clock = StreamClock(RATE, lambda: moment[0])
    late = []
    for k in range(1, 400):
        moment[0] = 100.0 + k * BLOCK / RATE + (0.8 if 150 <= k < 200 else 0.0)
        late.append(clock.arrived(k * BLOCK))
    assert [round(x, 3) for x in late if x] == [0.8]
    assert late.index(max(late)) == 149


def test_given_an_index_then_the_time_of_day_is_that_of_the_sample() -> None:
    clock = StreamClock(RATE)
    begin = datetime.now().astimezone()
    clock.arrived(2000)  # the last of these was taken just now
    first = datetime.fromisoformat(clock.moment(0))
    assert abs(first - (begin - timedelta(seconds=2.0))) < timedelta(seconds=1.0)
    apart = datetime.fromisoformat(clock.moment(1500)) - first
    assert apart / timedelta(seconds=1.5) == pytest.approx(1.0, abs=0.02)
