"""White noise taken out of a record: what is left, and what of the motion goes with it."""

import numpy as np

from analysis.signal.wiener import without_white_noise
from tests.chaotic import lorenz


def test_given_a_flow_in_white_noise_then_less_of_it_is_left_and_so_much_as_is_said() -> None:
    x = lorenz(20_000, 0.03)[0]
    level = 0.01 * x.std()
    noisy = x + level * np.random.default_rng(3).standard_normal(len(x))
    smooth, left = without_white_noise(noisy, level)
    off = np.std(smooth - x)
    assert off < 0.75 * level
    assert abs(left / off - 1) < 0.15


def test_given_a_trend_without_noise_then_nothing_changes() -> None:
    x = np.sin(0.1 * np.arange(3000)) + 1e-3 * np.arange(3000)
    smooth, left = without_white_noise(x, 0.0)
    assert np.allclose(smooth, x, atol=1e-9)
    assert left == 0.0


def test_given_mere_noise_then_nearly_nothing_is_left() -> None:
    x = np.random.default_rng(5).standard_normal(4000)
    smooth, left = without_white_noise(x - x.mean(), 1.0)
    assert np.std(smooth) < 0.3
    assert left < 0.2
