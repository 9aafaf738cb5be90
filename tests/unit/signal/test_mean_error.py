"""The error of a mean of correlated terms, against the closed form of an autoregressive sequence."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.signal.mean_error import correlated_mean_error


def sequences(memory: float, count: int, length: int, seed: int) -> np.ndarray:
    """Stationary first-order autoregressive sequences of spread 1, one in each row."""
    rng = np.random.default_rng(seed)
    rows = np.empty((count, length))
    rows[:, 0] = rng.standard_normal(count)
    for i in range(1, length):
        rows[:, i] = memory * rows[:, i - 1] + np.sqrt(1 - memory**2) * rng.standard_normal(count)
    return rows


def error_of_the_mean(memory: float, length: int) -> float:
    lags = np.arange(1, length)
    return float(np.sqrt((1 + 2 * np.sum((1 - lags / length) * memory**lags)) / length))


@pytest.mark.parametrize(
    ("memory", "lowest", "highest"), [(0.0, 1.0, 1.15), (0.4, 0.9, 1.1), (0.7, 0.8, 1.1)]
)
def test_given_terms_with_a_memory_when_their_mean_is_taken_then_its_error_is_the_true_one(
    memory: float, lowest: float, highest: float
) -> None:
    rows = sequences(memory, 1000, 40, seed=3)
    errors = np.array([correlated_mean_error(row) for row in rows])
    assert lowest < np.sqrt(np.mean(errors**2)) / error_of_the_mean(memory, 40) < highest


def test_given_terms_with_a_memory_when_their_mean_is_taken_then_two_errors_cover_it() -> None:
    rows = sequences(0.7, 1000, 80, seed=4)
    covered = [abs(row.mean()) < 2 * correlated_mean_error(row) for row in rows]
    assert 0.87 < np.mean(covered) < 0.97


def test_given_equal_terms_when_their_mean_is_taken_then_it_has_no_error() -> None:
    assert correlated_mean_error(np.full(20, 3.0)) == 0.0
