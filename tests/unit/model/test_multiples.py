"""Parts of the equations that are a known multiple of one symbol, beside the algebra done by hand."""

from __future__ import annotations

import math

import pytest

from analysis.experiment.states import derivative_pairs, direct_states, scaled_derivatives
from analysis.model import Model


def seen(*outputs: str) -> dict[int, int]:
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - x"},
        {"c": {"guess": 0.1}, "one": 1.0},
        outputs={f"y{i}": text for i, text in enumerate(outputs)},
    )
    return direct_states(model)


def rate(text: str) -> dict[int, tuple[int, float]]:
    model = Model.from_equations(
        {"x": text, "v": "-c*v - x**3"}, {"c": {"guess": 0.1}, "w": 4.0, "g": {"guess": 1.0}}
    )
    return scaled_derivatives(model)


def test_given_outputs_then_only_those_that_are_a_state_at_any_value_are_direct() -> None:
    assert seen("x", "v", "one*x", "x + 0*v", "(2*x - x)", "-(-v)") == {0: 0, 1: 1, 2: 0, 3: 0, 4: 0, 5: 1}
    # equal to x where x is positive, and that is all
    assert seen("abs(x)", "max(x, 0)", "sqrt(x**2)", "where(x > 0, x, 0)") == {}
    assert seen("2*x", "-x", "x + v", "x*v", "x + 1e-9", "c*x", "x**2") == {}


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        ("v", 1.0), ("40*v", 40.0), ("w*v", 4.0), ("v/w", 0.25), ("-w*v/2", -2.0), ("v*sqrt(w)", 2.0),
        ("v + w*v", 5.0), ("w*v - v", 3.0), ("2*pi*v", 2 * math.pi), ("0*x + 3*v", 3.0), ("-(v - 3*v)", 2.0),
        ("where(w > 3, v, 2*v)", 1.0), ("0.1*10*v", 1.0),
    ],
)  # fmt: skip
def test_given_a_rate_then_it_is_a_known_factor_times_a_state(text: str, factor: float) -> None:
    assert rate(text) == {1: (0, pytest.approx(factor, rel=1e-14))}


@pytest.mark.parametrize(
    "text", ["g*v", "v + x", "v + 1", "w/v", "abs(v)", "v*v", "t*v", "x", "0*v", "w", "v/(w - 4)", "sin(v)"]
)
def test_given_any_other_rate_then_it_is_none(text: str) -> None:
    assert rate(text) == {}


def test_given_a_factor_other_than_one_then_the_state_is_no_derivative_by_itself() -> None:
    model = Model.from_equations({"x": "w*v", "v": "-x**3", "z": "x"}, {"w": 4.0})
    assert derivative_pairs(model) == {0: 2}
    assert scaled_derivatives(model) == {1: (0, 4.0), 0: (2, 1.0)}
