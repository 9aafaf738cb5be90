"""Angles whose sensor starts anew after each turn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.base.record import Record
from analysis.experiment import Experiment
from analysis.model import Model

RATE = 50.0


def read(output: str, angle: np.ndarray) -> tuple[np.ndarray, list[str]]:
    model = Model.from_equations({"q": "w", "w": "-g*sin(q)"}, {"g": {"guess": 1.0}}, outputs={"a": output})
    experiment = Experiment(model, Record.from_arrays(RATE, {"a": angle}))
    return experiment.runs[0].outputs[0], experiment.warnings


@pytest.mark.parametrize(("output", "turn"), [("q", 2 * math.pi), ("q*180/3.141592653589793", 360.0)])
def test_given_a_sensor_that_starts_anew_then_its_turns_are_counted_and_said(
    output: str, turn: float
) -> None:
    rng = np.random.default_rng(5)
    t = np.arange(1000) / RATE
    angle = turn * (0.7 * t + 0.05 * np.sin(2 * t) + 1e-3 * rng.standard_normal(1000))
    wrapped = (angle + turn / 2) % turn - turn / 2

    outputs, words = read(output, wrapped)

    np.testing.assert_allclose(outputs - outputs[0], angle - angle[0], atol=1e-9 * turn)
    assert any("starts anew after each turn (14 times)" in w for w in words)


def test_given_an_angle_within_a_turn_or_a_model_that_keeps_it_there_then_it_is_left_alone() -> None:
    t = np.arange(1000) / RATE
    swinging = 3.1 * np.sin(3 * t)
    assert np.array_equal(read("q", swinging)[0], swinging)
    wrapped = (4 * t + math.pi) % (2 * math.pi) - math.pi
    assert np.array_equal(read("atan2(sin(q), cos(q))", wrapped)[0], wrapped)
