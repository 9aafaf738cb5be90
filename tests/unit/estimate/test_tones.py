"""Tones left in residuals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from analysis.estimate.finish.tones import tone, tone_words

DT, N = 0.002, 1000


def test_given_a_tone_in_noise_then_its_frequency_and_amplitude_are_found() -> None:
    rng = np.random.default_rng(1)
    for frequency in (50.0, 61.7, 180.3):
        row = 1e-3 * (rng.standard_normal(N) + 0.7 * np.cos(2 * np.pi * frequency * DT * np.arange(N) + 1.0))
        row[300:340] = np.nan
        found = tone([row[:100], row], DT)
        assert found is not None
        assert found.frequency == pytest.approx(frequency, abs=0.2)
        assert found.amplitude == pytest.approx(0.7e-3, rel=0.2)
        assert "tone at" in tone_words("x", found, 0.01)


def test_given_noise_white_or_coloured_or_a_drift_then_there_is_no_tone() -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        white = rng.standard_normal(N + 100)
        assert tone([white], DT) is None
        assert tone([white[100:] + np.linspace(0, 3, N)], DT) is None
    coloured = [lfilter([1.0], [1.0, -0.9], rng.standard_normal(N + 100))[100:] for _ in range(300)]
    assert sum(tone([row], DT) is not None for row in coloured) <= 1
    assert tone([rng.standard_normal(50)], DT) is None
