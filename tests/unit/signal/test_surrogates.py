"""Surrogates, spectral lines, drift and permutation entropy."""

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.signal.drift import drift
from analysis.signal.lines import spectral_lines
from analysis.signal.permutation_entropy import permutation_entropy
from analysis.signal.surrogates import cycle_shuffled, iaaft, matching_stretch

RNG = np.random.default_rng(0)


def test_given_a_record_then_its_surrogate_has_its_values_and_nearly_its_spectrum() -> None:
    x = np.cumsum(RNG.standard_normal(2048)) ** 2
    y = iaaft(x, RNG)
    assert np.array_equal(np.sort(x), np.sort(y))
    assert not np.array_equal(x, y)
    power, other = (np.abs(np.fft.rfft(v)) for v in (x, y))
    assert np.linalg.norm(power - other) < 0.05 * np.linalg.norm(power)


def test_given_a_drive_then_shuffled_cycles_keep_their_phase() -> None:
    t = np.arange(3000)
    x = np.cos(2 * np.pi * t / 24.7) * (1 + 0.1 * RNG.standard_normal(3000))
    y = cycle_shuffled(x, 24.7, RNG)
    assert len(y) >= 2970
    carried = np.exp(2j * np.pi * t[: len(y)] / 24.7)
    assert abs(np.mean(y * carried)) == pytest.approx(0.5, rel=0.05)


def test_given_a_stretch_then_its_ends_meet() -> None:
    x = np.sin(np.arange(3000) / 9.7)
    part = matching_stretch(x, 2000)
    assert 1600 < len(part) <= 2000
    assert abs(part[0] - part[-1]) < 0.1


def test_given_two_frequencies_then_lines_find_them_and_foretell() -> None:
    t = np.arange(6000)
    x = 3 + np.sin(2 * np.pi * 0.0313 * t) + 0.3 * np.cos(2 * np.pi * 0.0817 * t)
    found = spectral_lines(x)
    assert found.frequencies == pytest.approx([0.0313, 0.0817], abs=1e-9)
    assert found.amplitudes == pytest.approx([1.0, 0.3], rel=1e-6)
    assert found.left_ahead < 1e-9
    assert found.fundamentals == 2
    assert found.fitted == pytest.approx(x, abs=1e-5)


def test_given_patterns_then_permutation_entropy_lies_between_nothing_and_noise() -> None:
    assert permutation_entropy(np.arange(1000.0)) == 0.0
    assert permutation_entropy(RNG.standard_normal(50_000)) == pytest.approx(1.0, abs=1e-3)
    # Of 0, 1, 0, 1, ... with a slow rise only two of the six orders of three occur, each half of the time.
    x = np.arange(4001) % 2 + 1e-6 * np.arange(4001)
    assert permutation_entropy(x, 3) == pytest.approx(np.log(2) / np.log(6), abs=1e-3)
    with pytest.raises(DataError, match="order between 2 and 8"):
        permutation_entropy(x, 9)


def test_given_a_steady_record_then_nothing_drifts() -> None:
    assert drift(RNG.standard_normal(4000)) == ""
    assert "mean moves" in drift(RNG.standard_normal(4000) + np.linspace(0, 1, 4000))
