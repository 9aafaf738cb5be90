"""Repetition of a whole record: periods written down beforehand, tori, drifts and chaos that have none."""

import numpy as np
import pytest

from analysis.signal.repetition import repetition
from tests.chaotic import lorenz, roessler

N = 12_000
T = np.arange(N)


def multisine(period: float, lines: range, seed: int = 3) -> np.ndarray:
    """Lines of equal size and random phases: one period of it looks like noise."""
    phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, len(lines))
    return np.cos(2 * np.pi * np.outer(T, lines) / period + phases).sum(axis=1)


@pytest.mark.parametrize("period", [1500.0, 1533.37, 2048.0])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_given_a_multisine_then_its_period_is_found_between_the_samples(period: float, noise: float) -> None:
    x = multisine(period, range(20, 90))
    x = x + noise * x.std() * np.random.default_rng(1).standard_normal(N)
    found = repetition(x, max(1e-3, 2 * noise**2), 20)
    assert found is not None
    assert found.exact
    assert found.period == pytest.approx(period, abs=0.02 if noise == 0 else 0.1)
    assert found.left == pytest.approx(noise**2, abs=1e-5 if noise == 0 else 0.2 * noise**2)


def test_given_a_record_that_ends_before_the_third_period_then_it_comes_again_once() -> None:
    found = repetition(multisine(5000.0, range(100, 300)), 1e-3, 20)
    assert found is not None
    assert found.once
    assert not found.exact


def test_given_a_torus_near_an_almost_period_then_what_is_left_grows() -> None:
    """Frequencies whose ratio is 1/5 but for 1 %: after five turns nearly the same, less so the later."""
    x = np.sin(2 * np.pi * T / 400) + 0.2 * np.sin(2 * np.pi * T / 400 / 5 * 1.01)
    found = repetition(x, 1e-3, 50)
    assert found is not None
    assert not found.once
    assert not found.exact


@pytest.mark.parametrize(
    "samples",
    [
        np.sin(T / 4) + 0.5 * np.sin((np.sqrt(5) - 1) / 8 * T),
        lorenz(N, 0.03)[0],
        roessler(N)[0],
        np.random.default_rng(0).standard_normal(N),
        np.zeros(N),
    ],
    ids=["torus", "Lorenz", "Roessler", "white noise", "constant"],
)
def test_given_what_does_not_come_again_then_there_is_no_period(samples: np.ndarray) -> None:
    assert repetition(samples, 5e-3, 20) is None
