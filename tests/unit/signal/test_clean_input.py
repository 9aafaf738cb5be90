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


@pytest.mark.parametrize(("size", "cleaned"), [(0.22, True), (0.30, False), (5.0, False)])
def test_given_a_broadband_force_then_it_is_no_noise_whatever_tone_is_in_it(
    size: float, cleaned: bool
) -> None:
    """A sine with noise of 0.3 of the whole is a poor sensor; with more of it, a force with a random part."""
    row = np.cos(0.157 * np.arange(4000)) + size * np.random.default_rng(1).normal(size=4000)
    found = clean_input(row, 0.01)
    if cleaned:
        assert np.std(found.samples - np.cos(0.157 * np.arange(4000))) < 0.02
    else:
        assert np.array_equal(found.samples, row) and found.noise == 0.0 and not len(found.modes)
