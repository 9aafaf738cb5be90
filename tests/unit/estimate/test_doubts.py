"""What makes a good-looking fit doubtful: a sensor, a first value, numbers that cannot be right."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.record import Record
from analysis.estimate import auto
from analysis.estimate.finish import judge
from analysis.estimate.finish.score import Missing
from analysis.estimate.methods import identify
from analysis.model import Model

C, K = 0.2, 4.0
RATES = np.array([0.9, 1.7, 2.3, 3.1])


def driven(seed: int, noise: float) -> dict[str, np.ndarray]:
    """x'' = -C x' - K x + f under four cosines, steady, in closed form."""
    rng = np.random.default_rng(seed)
    t = np.arange(1500) * 0.05
    force = 2.0 * np.exp(1j * (RATES[:, None] * t + rng.uniform(0, 2 * np.pi, (4, 1))))
    x = force / (K - RATES**2 + 1j * C * RATES)[:, None]
    found = {name: row.real.sum(axis=0) for name, row in (("x", x), ("f", force))}
    return found | {"noise": noise * found["x"].std() * rng.standard_normal(len(t))}


def oscillator() -> Model:
    return Model.from_equations(
        {"x": "v", "v": "f - c*v - k*x"},
        {"c": {"guess": 0.3}, "k": {"guess": 5.0}},
        inputs={"f": "measured"},
        outputs={"x": "x"},
    )


@pytest.mark.parametrize(
    ("estimate", "nothing"),
    [([1.5, -2.0], True), ([1.5, 6.0], False), ([1.5, 2.0, 3.5], False), ([2.0], False)],
)
def test_given_parameters_that_may_all_be_zero_then_nothing_is_told_of_them(
    estimate: list[float], nothing: bool
) -> None:
    """An acceleration in the place of the force: x'' = f holds without any of them. A single one that is zero
    may be an answer."""
    fitted: Any = SimpleNamespace(
        unknowns=[SimpleNamespace(kind="parameter") for _ in estimate],
        estimate=np.array(estimate),
        information=np.eye(len(estimate)),
    )
    assert judge._all_may_be_zero(fitted) == nothing


@pytest.mark.parametrize("power", [2, 3])
def test_given_a_sensor_that_is_not_linear_then_it_is_named_and_the_errors_hold_the_truth(power: int) -> None:
    rows = driven(1, 0.01)
    x = rows["x"] - 0.01 * rows["x"] ** power
    record = Record.from_arrays(20.0, {"x": x + rows["noise"], "f": rows["f"]})
    result = identify(oscillator(), record, "path")
    assert result.verdict == "close"
    words = [r for r in result.reasons if r.startswith("The sensor of x does not seem to be linear.")]
    assert words and f"A term x^{power} in x" in words[0]
    for name, truth in (("c", C), ("k", K)):
        assert abs(result.parameters[name].value - truth) < 3 * result.parameters[name].stderr


def test_given_a_first_value_on_an_unstable_rest_then_the_errors_are_not_believed() -> None:
    """Robertson's reaction: the fast product b is not seen, and has an unstable rest below zero."""

    def rates(t: float, y: np.ndarray) -> list[float]:
        a, b, c = y
        return [-0.04 * a + 1e4 * b * c, 0.04 * a - 1e4 * b * c - 3e7 * b**2, 3e7 * b**2]

    t = np.arange(400.0)
    a, _, c = solve_ivp(rates, (0, 399), [1, 0, 0], "Radau", t_eval=t, rtol=1e-9, atol=1e-13).y
    rng = np.random.default_rng([69, 0])
    rng.choice([-1, 1], 3)
    record = Record.from_arrays(
        1.0, {n: y + 0.02 * y.std() * rng.standard_normal(400) for n, y in (("a", a), ("c", c))}
    )
    guesses = {"k1": {"guess": 0.056}, "k2": {"guess": 4.2e7}, "k3": {"guess": 1.4e4}}
    equations = {"a": "-k1*a + k3*b*c", "b": "k1*a - k3*b*c - k2*b**2", "c": "k2*b**2"}
    result = identify(Model.from_equations(equations, guesses, outputs={"a": "a", "c": "c"}), record)
    assert abs(result.parameters["k2"].value - 3e7) > 4 * result.parameters["k2"].stderr
    assert not result.usable and any("first value of b" in words for words in result.reasons)


def test_given_a_missing_term_then_the_numbers_that_go_with_it_are_told() -> None:
    unknowns = [
        SimpleNamespace(name=n, kind=k, lower=0.0, upper=np.inf)
        for n, k in (("c", "parameter"), ("k", "parameter"), ("d", "delay"))
    ]
    fitted: Any = SimpleNamespace(unknowns=unknowns)
    bars: Any = SimpleNamespace(
        estimate=np.array([0.27, 4.0, 1.0]), errors=SimpleNamespace(stderr=np.array([0.01, 0.1, 0.1]))
    )
    friction = Missing("sign(v)", "dv/dt", 80.0, -0.1, 0.001, 0.03, shift=(-0.07, 0.19, 5.0), text="sign(v)")
    (words,) = judge._numbers_with_the_term(fitted, friction, bars)
    assert words.startswith(
        "With sign(v) in dv/dt fitted, too, the numbers would be about c = 0.2 (not 0.27):"
    )
    below = replace(friction, shift=(-0.3, 0.19, 5.0))  # the damping would be negative
    assert judge._numbers_with_the_term(fitted, below, bars) == []
    assert judge._numbers_with_the_term(fitted, replace(friction, share=0.4), bars) == []
    late = Missing("delay", "x", 80.0, 0.1, 0.001, 0.03, shift=(-0.07, 0.19, 5.0))
    assert judge._numbers_with_the_term(fitted, late, bars) == []


def test_given_absurd_numbers_then_the_search_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: Any = SimpleNamespace(converged=True)
    evidence: Any = SimpleNamespace(good=True)
    for said, good in ([], True), (["b = 1e12 is 1e13 times its guess."], False):
        monkeypatch.setattr(auto, "absurd", lambda fitted, said=said: said)
        assert auto._Candidate("weak", fitted, evidence).good == good
