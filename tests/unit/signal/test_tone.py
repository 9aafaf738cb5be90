"""The response to a tone is read right."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.signal.tone import tone_response


def test_given_a_delayed_noisy_distorted_tone_when_read_then_every_part_is_found(
    rng: np.random.Generator,
) -> None:
    rate, frequency, delay = 2000.0, 11.0, 0.0123
    t = np.arange(4000) / rate
    drive = 0.5 * np.cos(2 * np.pi * frequency * t + 0.7)
    late = 2 * np.pi * frequency * (t - delay) + 0.7
    signal = 1.5 + 0.8 * np.cos(late) + 0.08 * np.cos(2 * late) + rng.normal(0, 0.02, len(t))
    found = tone_response(signal, drive, rate, frequency)
    assert found.amplitude == pytest.approx(0.8, abs=0.003)
    assert found.offset == pytest.approx(1.5, abs=0.003)
    assert found.noise == pytest.approx(0.02, rel=0.1)
    assert found.distortion == pytest.approx(0.1, abs=0.005)
    assert found.delay == pytest.approx(delay, abs=2e-4)
    assert found.clear


def test_given_a_dead_sensor_when_read_then_the_tone_is_not_clear(rng: np.random.Generator) -> None:
    t = np.arange(2000) / 1000.0
    found = tone_response(rng.normal(0, 1e-3, len(t)), np.cos(2 * np.pi * 5 * t), 1000.0, 5.0)
    assert not found.clear
