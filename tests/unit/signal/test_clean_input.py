"""Inputs cleaned of noise: drives that state no frequency, or one too low for the record."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import Excitation
from analysis.signal.smoothing import clean_input


@pytest.mark.parametrize("frequency", [0.0, 0.01])
def test_given_a_random_drive_or_segments_then_the_input_stays_as_it_is_with_its_noise(
    frequency: float,
) -> None:
    rng = np.random.default_rng(0)
    t = np.arange(4000) / 200.0
    clean = sum(
        np.cos(2 * np.pi * f * t + p) for f, p in zip(np.arange(1, 20, 0.37), range(60), strict=False)
    )
    row = np.asarray(clean) + 0.01 * rng.normal(size=len(t))
    found = clean_input(row, 1 / 200, Excitation(frequency, 1.0, None, "random"))
    assert np.array_equal(found.samples, row)
    assert found.noise == pytest.approx(0.01, rel=0.3)


@pytest.mark.parametrize(
    ("size", "cleaned", "noise"),
    [(0.25, True, 0.0), (0.28, False, 0.28), (0.6, False, 0.6), (0.8, False, 0.0)],
)
def test_given_a_random_part_then_it_is_never_taken_out_of_a_force_and_a_white_force_is_no_noise(
    size: float, cleaned: bool, noise: float
) -> None:
    """Up to 0.35 of the whole it may be a poor sensor's; from 0.7 on, 0.69 of a sine, it is the force."""
    clean = np.cos(0.157 * np.arange(4000))
    row = clean + size * np.random.default_rng(1).normal(size=4000)
    found = clean_input(row, 0.01)
    assert (np.std(found.samples - clean) < 0.03) == cleaned
    assert np.array_equal(found.samples, row) != cleaned
    assert found.noise == pytest.approx(noise, rel=0.05)


def test_given_blows_of_a_hammer_then_the_noise_between_them_counts() -> None:
    """Two short blows: the noise is half of what varies, and it is the sensor's."""
    row = 0.02 * np.random.default_rng(2).normal(size=4000)
    row[500:505] += np.hanning(7)[1:-1]
    row[2500:2505] += np.hanning(7)[1:-1]
    assert 0.02 / np.std(row) > 0.5
    found = clean_input(row, 0.01)
    assert np.array_equal(found.samples, row) and found.noise == pytest.approx(0.02, rel=0.1)
