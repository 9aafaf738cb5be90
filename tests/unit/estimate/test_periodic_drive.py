"""A sine measured with noise: its amplitude and phase are unknowns that the motion knows better."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import Identification, Model, Record, identify

C, K, AMPLITUDE, OMEGA = 0.1, 4.0, 1.5, 1.7


def found(gain: float = 1.0) -> Identification:
    """Steady state and a transient of a linear oscillator in closed form, 5 % noise on the force."""
    rng = np.random.default_rng(3)
    t = np.arange(1500) * 0.05
    steady = gain * AMPLITUDE / (K - OMEGA**2 + 1j * C * OMEGA)
    own = -C / 2 + 1j * np.sqrt(K - C**2 / 4)
    x = (steady * np.exp(1j * OMEGA * t)).real + (0.8 * np.exp(own * t)).real
    force = AMPLITUDE * np.cos(OMEGA * t)
    record = Record.from_arrays(
        20.0,
        {
            "x": x + 0.01 * x.std() * rng.standard_normal(len(t)),
            "f": force + 0.05 * force.std() * rng.standard_normal(len(t)),
        },
    )
    model = Model.from_equations(
        {"x": "v", "v": "f - c*v - k*x"},
        {"c": {"guess": 0.15}, "k": {"guess": 3.5}},
        inputs={"f": "measured"},
        outputs={"x": "x"},
    )
    return identify(model, record, "path")


def test_given_a_sine_measured_with_noise_then_the_right_model_fits_with_errors_of_the_motion() -> None:
    result = found()
    assert result.verdict == "fits"
    for name, truth in (("c", C), ("k", K)):
        assert abs(result.parameters[name].value - truth) < 3.5 * result.parameters[name].stderr
    # the force read off its channel is 0.18 % uncertain, and with it K - OMEGA**2: that alone is 0.0020
    assert result.parameters["k"].stderr < 0.0010
    assert result.extra["drive"] == pytest.approx(0.5, abs=0.49)


def test_given_a_force_sensor_with_a_wrong_gain_then_the_motion_asks_for_another_drive() -> None:
    result = found(gain=0.97)
    assert result.verdict == "close" and result.extra["drive"] < 1e-6
    assert any("asks for another drive than f shows" in words for words in result.reasons)
