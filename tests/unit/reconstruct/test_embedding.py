"""Delay and singular coordinates."""

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.reconstruct.embedding import delay_coordinates, singular_coordinates, window_spectrum


def test_given_a_ramp_then_delay_coordinates_are_the_delayed_samples() -> None:
    points = delay_coordinates(np.arange(20.0), 3, 4)
    assert points.shape == (3, 12)
    assert points[:, 5].tolist() == [5, 9, 13]


def test_given_samples_then_the_window_spectrum_is_that_of_the_trajectory_matrix() -> None:
    x = np.random.default_rng(0).standard_normal(400).cumsum()
    windows = np.lib.stride_tricks.sliding_window_view(x - x.mean(), 9)
    truth = np.linalg.svd(windows, compute_uv=False) / np.sqrt(len(windows))
    assert window_spectrum(x, 9)[1] == pytest.approx(truth, rel=1e-10)


def test_given_samples_then_singular_coordinates_are_uncorrelated_with_the_right_spread() -> None:
    x = np.random.default_rng(1).standard_normal(3000).cumsum() / 10
    space = singular_coordinates(x, 12, 4)
    second = space.coordinates @ space.coordinates.T / space.coordinates.shape[1]
    assert second == pytest.approx(np.diag(space.values[:4] ** 2), abs=1e-9 * space.values[0] ** 2)
    windows = np.lib.stride_tricks.sliding_window_view(x - x.mean(), 12)
    assert space.coordinates == pytest.approx((windows @ space.vectors).T)


def test_given_too_few_samples_then_it_is_refused() -> None:
    with pytest.raises(DataError, match="too few"):
        delay_coordinates(np.arange(20.0), 6, 4)
    with pytest.raises(DataError, match="too few"):
        singular_coordinates(np.arange(20.0), 12, 3)
    with pytest.raises(DataError, match="between 1 and the window"):
        singular_coordinates(np.arange(200.0), 12, 13)
