"""Machine code written down from a model's statements does what the same statements do in Python."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import Model
from tests.trees import uncompiled

TERMS = {
    "arithmetic": "-x*y/(2 + z) - a*x + 0.5 - b/(x + 7)",
    "products": "x**3 + y**7 + (z + 9)**-2 + (x + 5)**2.5",
    "powers": "(x + 5)**a + (y + 5)**(z/3) + abs(z)**b",
    "circle": "sin(3*x) + cos(40*y) + tan(z/3) + asin(x/4) + acos(y/4) + atan(z)",
    "growth": "exp(x) + log(y + 5) + sqrt(z + 5) + sinh(x) + cosh(y) + tanh(2*z)",
    "angle": "atan2(x, y) + atan2(y, z)",
    "sides": "sign(x) + heaviside(y - a) + abs(z) + abs(x*y) + sign(x - y)",
    "extremes": "min(x, y) + max(y, z) + min(x*y, max(z, a))",
    "choices": "where(x > y, x*z, y**2) + where(x <= a, z, where(y >= z, 1, x)) + where(x != y, x, 0)",
    "motion": "sin(2*t)*x + t**2 + f*y + f**2",
}


def _model(term: str) -> Model:
    return Model.from_equations(
        {"x": "y", "y": TERMS[term], "z": "x - z"},
        {"a": {"guess": 0.7}, "b": {"guess": 1.3}},
        inputs={"f": "measured"},
        outputs={"seen": TERMS[term]},
    )


@pytest.mark.parametrize("term", TERMS)
def test_given_an_expression_then_machine_code_and_python_agree(term: str, rng: np.random.Generator) -> None:
    model = _model(term)
    kernels, python = model.kernels(), uncompiled(model)
    u, p = np.array([0.4]), model.values()
    for x in (*rng.uniform(-3.0, 3.0, (20, 3)), np.array([0.7, 0.7, -0.7])):
        machine = np.full(3, 9.0), np.full((3, 3), 9.0), np.full((3, 2), 9.0)
        plain = np.full(3, 8.0), np.full((3, 3), 8.0), np.full((3, 2), 8.0)
        kernels.jac(1.7, x, u, p, *machine)
        python.jac(1.7, x, u, p, *plain)
        for found, expected in zip(machine, plain, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
        seen, expected_seen = np.empty(1), np.empty(1)
        kernels.out(1.7, x, u, p, seen)
        python.out(1.7, x, u, p, expected_seen)
        np.testing.assert_allclose(seen, expected_seen, rtol=1e-13, atol=1e-13)


def test_given_a_state_that_is_no_number_then_no_choice_hides_it() -> None:
    model = _model("extremes")
    dx = np.empty(3)
    model.kernels().rhs(0.0, np.array([np.nan, 1.0, 2.0]), np.zeros(1), model.values(), dx)
    assert np.isnan(dx[1])


def test_given_many_samples_then_each_is_as_one_alone(rng: np.random.Generator) -> None:
    model = _model("circle")
    kernels, p = model.kernels(), model.values()
    t, x, u = rng.uniform(0, 9, 70), rng.uniform(-3, 3, (3, 70)), rng.standard_normal((1, 70))
    together = np.empty((3, 70)), np.empty((3, 3, 70)), np.empty((3, 2, 70))
    kernels.jac_many(t, x, u, p, *together)
    for k in range(70):
        alone = np.empty(3), np.empty((3, 3)), np.empty((3, 2))
        kernels.jac(t[k], x[:, k].copy(), u[:, k].copy(), p, *alone)
        for many, one in zip(together, alone, strict=True):
            np.testing.assert_allclose(many[..., k], one, rtol=1e-12, atol=1e-13)
