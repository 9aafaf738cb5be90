"""Spikes and samples at a sensor's limit, found from the samples alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from analysis.experiment.outliers import dropped_out, pressed_flat, spikes


def signal(rng: np.random.Generator, noise: float) -> NDArray[np.float64]:
    t = np.arange(2000) * 0.05
    smooth = np.cos(1.3 * t + rng.uniform(0, 6)) + 0.3 * np.cos(7 * t)
    return np.asarray(1e-6 * (smooth + noise * rng.standard_normal(len(t))))  # in whatever unit


def test_given_spikes_anywhere_then_they_and_no_others_are_found() -> None:
    rng = np.random.default_rng(2)
    missed = 0
    for noise in (0.001, 0.02, 0.1):
        for _ in range(20):
            row = signal(rng, noise)
            assert not spikes(row).any()
            places = rng.choice(2000, 3, replace=False)
            row[places] += 1e-6 * rng.choice([-1, 1], 3) * rng.uniform(20 * noise + 0.2, 5, 3)
            found = spikes(row)
            assert not found[np.setdiff1d(np.arange(2000), places)].any()
            missed += int((~found[places]).sum())
    assert missed <= 3  # of 180; next to the ends a cubic is extrapolated


def test_given_sharp_peaks_sampled_coarsely_then_none_is_a_spike_but_a_spike_among_them_is() -> None:
    rng = np.random.default_rng(6)
    t = np.arange(1000) * 0.05
    z = solve_ivp(
        lambda t, z: [10 * (z[1] - z[0]), z[0] * (28 - z[2]) - z[1], z[0] * z[1] - 8 / 3 * z[2]],
        (0, t[-1]), [1.0, 3.0, 20.0], t_eval=t, rtol=1e-8,
    ).y  # fmt: skip
    for row in z:
        noisy = row + 0.01 * row.std() * rng.uniform(-1.7, 1.7, len(t))
        assert not spikes(noisy).any()
        noisy[437] += 12 * row.std()
        assert list(np.flatnonzero(spikes(noisy))) == [437]


def test_given_a_gap_then_its_edges_are_no_spikes() -> None:
    row = signal(np.random.default_rng(3), 0.01)
    row[500:733] = np.nan
    assert not spikes(row).any()


def test_given_a_limit_then_what_stands_at_it_is_found_and_quantised_samples_are_left_alone() -> None:
    row = signal(np.random.default_rng(4), 0.02)
    clipped = np.clip(row, -0.9e-6, 1.1e-6)
    np.testing.assert_array_equal(pressed_flat(clipped), (row <= -0.9e-6) | (row >= 1.1e-6))
    assert not pressed_flat(row).any()
    assert not pressed_flat(np.round(row / 5e-8) * 5e-8).any()


def test_given_many_spikes_then_the_largest_do_not_hide_the_others() -> None:
    rng = np.random.default_rng(11)
    for _ in range(20):
        row = signal(rng, 0.01)
        places = rng.choice(np.arange(5, 1995, 10), 19, replace=False)  # just below the share that is allowed
        row[places] += 1e-6 * rng.choice([-1, 1], 19) * rng.uniform(1, 4, 19)
        assert set(np.flatnonzero(spikes(row))) == set(places)


def test_given_a_loose_plug_then_its_stretches_are_found_and_a_motion_that_rests_is_left_alone() -> None:
    rng = np.random.default_rng(12)
    row = signal(rng, 0.01)
    expected = np.zeros(2000, dtype=bool)
    for first, stop in ((300, 312), (700, 740), (1970, 2000)):
        expected[first:stop] = True
    row[expected] = 0.0
    np.testing.assert_array_equal(dropped_out(row), expected)
    t = np.arange(2000) * 0.01
    resting = 1e-3 * np.where(t < 5.0, 0.0, np.sin(t - 5.0) ** 2)  # at rest until it is struck, in metres
    assert not dropped_out(resting).any()
    assert not dropped_out(np.round(row / 5e-8) * 5e-8).any()
    plastic = np.where(t % 1.0 < 0.4, 0.0, (t % 1.0 - 0.4) * np.exp(0.1 * t))  # stops dead, leaves smoothly
    assert not dropped_out(plastic).any()
