"""A model whose motion does not last where the record's does is no equation of that motion."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis import Identification, Model, Record, identify

DT = 0.05
CYCLE = Model.from_equations(
    {"x": "v", "v": "mu*(1 - b*x**2)*v - k*x"},
    {"mu": {"guess": 0.4}, "b": {"guess": 0.8}, "k": {"guess": 1.2}},
    outputs={"x": "x"},
)
FREE = Model.from_equations(
    {"x": "v", "v": "-c*v - k*x - k3*x**3"},
    {"c": {"guess": 0.02}, "k": {"guess": 1.2}, "k3": {"guess": 0.4}},
    outputs={"x": "x"},
)


def rayleigh(t: float, z: np.ndarray) -> list[float]:
    return [z[1], 0.5 * (1 - z[1] ** 2 / 3) * z[1] - z[0]]


def van_der_pol(t: float, z: np.ndarray) -> list[float]:
    return [z[1], 0.5 * (1 - z[0] ** 2) * z[1] - z[0]]


def oscillator(c: float):
    return lambda t, z: [z[1], -c * z[1] - z[0] - 0.3 * z[0] ** 3]


def record(rates: object, seconds: float = 60.0, settled: float = 40.0, noise: float = 0.05) -> Record:
    t = np.arange(0.0, settled + seconds, DT)
    z = solve_ivp(rates, (0, t[-1]), [1.0, 0.0], t_eval=t, method="DOP853", rtol=1e-10, atol=1e-12).y  # type: ignore[arg-type]
    x = z[0, t >= settled]
    x = x + noise * np.std(x) * np.random.default_rng(3).standard_normal(len(x))
    return Record.from_arrays(1 / DT, {"x": x})


def says(result: Identification) -> bool:
    return any("run on from" in words for words in result.reasons)


@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_a_cycle_that_the_model_leaves_is_missed(size: float) -> None:
    """Rayleigh's cycle looks like van der Pol's with the damping's sign changed: the residuals are white."""
    found = record(rayleigh)
    found = found.with_channels(x=size * found["x"])
    model = CYCLE.with_values({"b": 0.8 / size**2})
    result = identify(model, found)
    assert result.parameters["mu"].value < 0
    assert result.verdict == "misses" and says(result)


@pytest.mark.parametrize("seconds", [22.0, 33.0])
def test_a_few_periods_and_a_part_of_one_show_it_as_well(seconds: float) -> None:
    """What is cut off of a period moves the mean of a half, and the model leaves the cycle slowly."""
    result = identify(CYCLE, record(rayleigh, seconds, noise=0.02))
    assert result.parameters["mu"].value < 0
    assert result.verdict == "misses" and says(result)


def test_the_cycle_of_the_right_model_lasts() -> None:
    result = identify(CYCLE, record(van_der_pol))
    assert result.verdict == "fits"
    assert abs(result.parameters["mu"].value - 0.5) < 4 * result.parameters["mu"].stderr


@pytest.mark.parametrize("loss", [0.0, 0.06, 0.4])
def test_free_motion_that_loses_little_in_the_record_may_lose_more_after_it(loss: float) -> None:
    c = -2 * np.log(1 - loss) / 60
    result = identify(FREE, record(oscillator(c), settled=0.0))
    assert result.verdict == "fits" and not says(result)
