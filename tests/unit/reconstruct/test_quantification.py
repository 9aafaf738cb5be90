"""Recurrence quantities and the 0-1 test on motions whose answers are known."""

import numpy as np
import pytest

from analysis.reconstruct.prediction import prediction_error
from analysis.reconstruct.quantification import recurrence_quantities
from analysis.reconstruct.zero_one import zero_one

RNG = np.random.default_rng(0)


def test_given_a_circle_then_all_recurrences_lie_on_long_diagonals_and_of_noise_few() -> None:
    t = 2 * np.pi * np.arange(1500) / 29.3
    circle = recurrence_quantities(np.stack([np.cos(t), np.sin(t)]), 29)
    noise = recurrence_quantities(RNG.standard_normal((3, 1500)), 5)
    assert circle.determinism > 0.95  # the radius is one of the distances: rounding breaks some lines
    assert circle.longest_diagonal > 1000
    assert noise.rate == pytest.approx(0.02, abs=0.005)
    assert noise.determinism < 0.2


def test_given_the_logistic_map_then_the_test_tells_chaos_from_a_cycle() -> None:
    def logistic(r: float) -> np.ndarray:
        x = np.empty(2500)
        x[0] = 0.3
        for i in range(1, len(x)):
            x[i] = r * x[i - 1] * (1 - x[i - 1])
        return x[500:]

    assert zero_one(logistic(3.97), RNG) > 0.95
    assert abs(zero_one(logistic(3.55), RNG)) < 0.1


def test_given_a_law_then_neighbours_foretell_it_and_noise_they_do_not() -> None:
    x = np.empty(2001)
    x[0] = 0.37
    for i in range(2000):
        x[i + 1] = 3.9 * x[i] * (1 - x[i])
    assert prediction_error(x[None, :-1], x[1:], 1) < 0.01
    y = RNG.standard_normal(2001)
    assert prediction_error(y[None, :-1], y[1:], 1) > 0.8
