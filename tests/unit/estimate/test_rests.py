"""An accelerometer in one of two wells: the search begins in the well, not on the hill between them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis import Model, Record, identify
from analysis.estimate.shooting.build import start_point
from analysis.estimate.shooting.rests import rests
from analysis.experiment import Experiment

FORCE = "-c*v + k1*x - k3*x**3 + f"
RATE, C, K1, K3 = 20.0, 0.15, 2.0, 2.0
MICRON = 1e-6  # the wells lie that far from the hill, in the model's unit of length


def accelerometer(length: float) -> Model:
    return Model.from_equations(
        {"x": "v", "v": FORCE},
        {"c": {"guess": 0.2, "lower": 0.0}, "k1": {"guess": 3.0}, "k3": {"guess": 3.0 / length**2}},
        inputs={"f": "measured"},
        outputs={"a": FORCE},
    )


@pytest.mark.parametrize("length", [1e-9, 1e-3, 1.0, 1e3, 1e6])
def test_given_a_state_that_nothing_shows_then_its_rests_are_found_in_any_unit(length: float) -> None:
    """x'' = k (x - x^3/length^2) rests at plus and minus one length."""
    t = np.arange(200) / RATE
    record = Record.from_arrays(RATE, {"a": length * np.sin(t), "f": 0.01 * length * np.cos(3 * t)})
    experiment = Experiment(accelerometer(length), record)
    hill = start_point(experiment, experiment.guesses(), [np.zeros((2, len(t)))])
    places = sorted(point.initials[0][0] / length for point in rests(experiment, hill))
    assert places == pytest.approx([-1.0, 1.0], abs=0.01)


def test_given_an_accelerometer_in_one_well_then_the_search_looks_there_as_well() -> None:
    rng = np.random.default_rng(1)
    tones, phases = rng.uniform(0.1, 1.0, 40), rng.uniform(0, 2 * np.pi, 40)

    def force(at: np.ndarray | float) -> np.ndarray:
        return np.asarray(0.067 * np.cos(2 * np.pi * np.multiply.outer(at, tones) + phases).sum(axis=-1))

    def total(at: np.ndarray | float, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return -C * v + K1 * x - K3 * x**3 + force(at)

    t = np.arange(600) / RATE
    x, v = solve_ivp(
        lambda at, z: [z[1], float(total(at, *z))], (0, t[-1]), [1.0, 0.0], t_eval=t, rtol=1e-9, atol=1e-12
    ).y
    assert x.min() > 0  # it stays in its well
    a = total(t, x, v)
    a = a + 0.02 * a.std() * rng.standard_normal(len(t))
    record = Record.from_arrays(RATE, {"a": MICRON * a, "f": MICRON * force(t)})
    result = identify(accelerometer(MICRON), record)
    assert result.verdict == "fits"
    for name, truth in (("c", C), ("k1", K1), ("k3", K3 / MICRON**2)):
        assert abs(result.parameters[name].value - truth) < 4 * result.parameters[name].stderr
