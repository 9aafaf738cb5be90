"""Samples taken at one phase of the drive."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.signal.strobe import sample_at, strobe_positions


def test_given_a_drive_when_strobed_then_the_phase_is_the_asked_one_at_every_position() -> None:
    rate, frequency, phase, at = 187.5, 7.5, 1.234, -0.7
    positions = strobe_positions(phase, frequency, rate, 500, at)
    assert len(positions) == 20
    assert np.all((positions >= 0) & (positions < 500))
    turned = phase + 2 * np.pi * frequency * positions / rate
    assert np.allclose(np.exp(1j * turned), np.exp(1j * at), atol=1e-12)


def test_given_blocks_of_a_stream_when_strobed_one_by_one_then_no_passage_is_lost_or_doubled() -> None:
    rate, frequency, phase = 1000.0, 6.6, 0.3
    whole = strobe_positions(phase, frequency, rate, 4000)
    parts = []
    for start in range(0, 4000, 33):
        count = min(33, 4000 - start)
        now = phase + 2 * np.pi * frequency * start / rate
        parts.append(start + strobe_positions(now, frequency, rate, count))
    assert np.concatenate(parts) == pytest.approx(whole, abs=1e-8)


def test_given_a_smooth_signal_when_read_between_samples_then_the_cubic_is_close() -> None:
    n = np.arange(200.0)
    positions = np.linspace(1.0, 197.5, 333)
    read = sample_at(np.sin(0.1 * n)[None, :], positions)[0]
    assert np.max(np.abs(read - np.sin(0.1 * positions))) < 2e-5


def test_given_no_drive_when_strobed_then_nothing_comes() -> None:
    assert strobe_positions(0.0, 0.0, 100.0, 1000).size == 0
