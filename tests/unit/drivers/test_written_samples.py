"""What was written to a converter: where it stands after so many samples, whether it goes on up."""

from __future__ import annotations

import numpy as np
import pytest

from drivers.base.limits import STOP_RAMP, Limits
from drivers.instruments.written_samples import WrittenSamples, fall_from

RATE = 1000.0


def written(samples: np.ndarray, piece: int) -> WrittenSamples:
    sent = WrittenSamples(RATE)
    for start in range(0, len(samples), piece):
        sent.add(samples[start : start + piece])
    return sent


@pytest.mark.parametrize("piece", [1, 7, 100, 1000])
def test_given_pieces_of_any_size_then_the_value_that_stands_is_that_of_the_last_sample_played(
    piece: int,
) -> None:
    samples = np.arange(1.0, 1001.0)
    sent = written(samples, piece)
    assert [sent.held_after(k) for k in (0, 1, 500, 1000, 2000)] == [0.0, 1.0, 500.0, 1000.0, 1000.0]
    sent.replace_from(400, np.zeros(600))
    assert sent.count == 1000 and sent.held_after(400) == 400.0 and sent.held_after(401) == 0.0
    sent.forget_before(900)
    assert sent.held_after(900) == 0.0 and sent.held_after(400) in (0.0, 400.0)


@pytest.mark.parametrize("frequency", [1.0, 7.5, 49.7, 211.3, 499.0])
@pytest.mark.parametrize("phase", [0.0, 0.9, 2.2])
def test_given_a_steady_sine_then_it_does_not_rise_at_any_moment(frequency: float, phase: float) -> None:
    samples = 3.0 * np.cos(2 * np.pi * frequency * np.arange(1500) / RATE + phase)
    for played in range(600, 1460, 37):
        assert not written(samples[: played + 40], 10).rises_after(played)


@pytest.mark.parametrize("frequency", [0.01, 7.5, 211.3])
def test_given_a_soft_start_or_a_burst_then_it_rises(frequency: float) -> None:
    t = np.arange(500) / RATE
    soft = np.sin(np.pi * t) ** 2 * np.cos(2 * np.pi * frequency * t)
    assert all(written(soft[: k + 40], 10).rises_after(k) for k in (0, 100, 250, 350))
    burst = np.concatenate([np.zeros(700), np.cos(2 * np.pi * frequency * t)])
    assert written(burst[:740], 10).rises_after(699)
    assert not written(burst[:700], 10).rises_after(660)


@pytest.mark.parametrize("value", [5.0, -2.5, 1e-9, 0.0])
@pytest.mark.parametrize("rate", [200.0, 1000.0, 51200.0])
def test_given_a_value_that_stands_then_it_falls_to_zero_within_its_slew_and_in_time(
    value: float, rate: float
) -> None:
    limits = Limits(5.0, slew=5.0 / STOP_RAMP)
    fall = fall_from(value, limits, rate)
    steps = np.abs(np.diff(fall, prepend=value))
    assert steps.max() <= limits.slew / rate * (1 + 1e-9) and fall[-1] == 0.0
    assert np.abs(fall).max() <= abs(value) and len(fall) <= 2 * STOP_RAMP * rate + 3
