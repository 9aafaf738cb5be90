"""A channel coupled through a capacitor is named, with its time constant; the state that it needs fits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis import Model, Record, identify

TAU, DT, N = 8.0, 0.05, 1500
TRUTH = {"c": 0.2, "k": 4.0, "k2": 1.5, "k3": 3.0}


@pytest.fixture(scope="module")
def measured() -> dict[str, np.ndarray]:
    """Force, displacement as it is, and as the channel shows it; by SciPy, the filter as an equation."""
    rng = np.random.default_rng(4)
    w, phase = 2 * np.pi * rng.uniform(0.05, 0.8, 30), rng.uniform(0, 2 * np.pi, 30)
    c, k, k2, k3 = TRUTH.values()

    def slope(t: float, z: np.ndarray) -> list[float]:
        x, v, q = z
        force = 0.5 * np.cos(w * t + phase).sum()
        return [v, force - c * v - k * x - k2 * x**2 - k3 * x**3, (x - q) / TAU]

    t = np.arange(N) * DT
    z = solve_ivp(slope, (-40.0, t[-1]), [0.1, 0.0, 0.0], "DOP853", t, rtol=1e-9, atol=1e-10).y
    noise = 0.02 * z[0].std() * rng.standard_normal(N)
    force = 0.5 * np.cos(np.multiply.outer(t, w) + phase).sum(axis=1)
    return {"f": force, "plain": z[0] + noise, "filtered": z[0] - z[2] + noise}


def model(filtered: bool) -> Model:
    equations = {"x": "v", "v": "f - c*v - k*x - k2*x**2 - k3*x**3"}
    guesses = {name: {"guess": 1.4 * value} for name, value in TRUTH.items()}
    if filtered:
        equations["q"], guesses["tau"] = "(x - q)/tau", {"guess": 5.0, "lower": 0.1}
    return Model.from_equations(
        equations, guesses, inputs={"f": "measured"}, outputs={"y": "x - q" if filtered else "x"}
    )


def words(channel: np.ndarray, force: np.ndarray, filtered: bool = False) -> tuple[str, list[str], object]:
    record = Record.from_arrays(1 / DT, {"y": channel, "f": force})
    found = identify(model(filtered), record, denoise=False)
    return found.verdict, [r for r in found.reasons if "high-pass" in r], found


def test_given_a_channel_with_a_high_pass_then_it_is_named_with_its_time_constant(measured) -> None:
    verdict, said, found = words(measured["filtered"], measured["f"])
    assert verdict == "close" and len(said) == 1
    assert said[0].startswith("y seems to have passed a high-pass filter")
    stated = float(said[0].partition("time constant near ")[2].split()[0])
    assert 0.6 * TAU < stated < 1.7 * TAU
    k2 = found.parameters["k2"]  # hardly seen without the mean of the motion: the error bar has to know
    assert abs(k2.value - TRUTH["k2"]) < 4 * k2.stderr


def test_given_the_state_that_it_names_then_the_numbers_are_right(measured) -> None:
    verdict, said, found = words(measured["filtered"], measured["f"], filtered=True)
    assert verdict == "fits" and not said
    for name, truth in {**TRUTH, "tau": TAU}.items():
        estimate = found.parameters[name]
        assert abs(estimate.value - truth) < 4 * estimate.stderr


def test_given_a_channel_without_one_then_none_is_named(measured) -> None:
    verdict, said, _ = words(measured["plain"], measured["f"])
    assert verdict == "fits" and not said
