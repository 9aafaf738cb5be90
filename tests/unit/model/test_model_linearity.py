"""Which parameters are found to enter linearly."""

from __future__ import annotations

import time

import numpy as np
import pytest

from analysis.model import Model
from drivers.library import load_model, model_files
from tests.trees import uncompiled


def linear(rhs: str, *free: str, **more: str) -> tuple[str, ...]:
    definitions = dict(more)
    model = Model.from_equations(
        {"x": rhs}, {name: {"guess": 0.7} for name in free}, definitions=definitions or None
    )
    return model.linear


@pytest.mark.parametrize(
    ("rhs", "free", "expected"),
    [
        ("a*x + b*x**3", "ab", "ab"),
        ("a*x*b", "ab", "a"),
        ("a*(x + b) + c", "abc", "ac"),
        ("(a*x + b)/c", "abc", "ab"),
        ("a**2*x + b", "ab", "b"),
        ("sin(a*x) + b*sin(c*x)", "abc", "b"),
        ("a*cos(b*t) + c*sin(b*t)", "abc", "ac"),
        ("where(x > a, b*x, c*x)", "abc", "bc"),
        ("where(x > 0, a*x, b*x)", "ab", "ab"),
        ("heaviside(x - a) + b", "ab", "b"),
        ("abs(a*x)", "a", ""),
        ("abs(x)**a*b", "ab", "b"),
        ("min(a, x)", "a", ""),
        ("a*b + b*c + c*d", "abcd", "ac"),
        ("a*b + a*c + a*d", "abcd", "bcd"),
        ("(a + b)*(c + d)", "abcd", "ab"),
        ("a - a*x + 2*a", "a", "a"),
        ("x", "a", "a"),
    ],
)
def test_given_right_hand_side_when_asked_then_jointly_linear_set(rhs: str, free: str, expected: str) -> None:
    assert linear(rhs, *free) == tuple(expected)


def test_given_definitions_when_asked_then_seen_through() -> None:
    assert linear("D*x", "a", "b", D="a + b") == ("a", "b")
    assert linear("D*b", "a", "b", D="a + x") == ("a",)


def test_given_implicit_definition_when_asked_then_its_parameters_are_not_linear() -> None:
    model = Model.from_equations(
        {"x": "a*z + z2"},
        {name: {"guess": 1.0} for name in "abc"},
        definitions={
            "z": {"solve": "z + b*z**3 - x", "lower": -9, "upper": 9},
            "z2": {"solve": "z2 + z - c", "lower": -99, "upper": 99},
        },
    )
    assert model.linear == ("a",)
    assert not model.is_linear
    assert model.with_free(["a"]).is_linear


@pytest.mark.parametrize("name", model_files())
def test_given_library_model_when_linear_then_the_right_hand_side_is_affine_in_them(name: str) -> None:
    model = load_model(name)
    module = uncompiled(model)
    n, k = len(model.states), len(model.parameters)
    x = np.array([model.initial[s].value if s in model.initial else 0.1 for s in model.states]) + 0.01
    u = np.full(len(model.inputs), 0.02)
    columns = [model.index(p) for p in model.linear]
    p = model.values()

    def evaluate(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        dx, jx, jp = np.empty(n), np.empty((n, n)), np.empty((n, k))
        module.jac(0.3, x, u, p, dx, jx, jp)
        return dx, jp[:, columns]

    dx, jp = evaluate(p)
    zero = p.copy()
    zero[columns] = 0.0
    constant, _ = evaluate(zero)
    scale = np.abs(jp) @ np.abs(p[columns]) + np.abs(constant)
    assert np.all(np.isfinite(dx))
    assert np.all(np.abs(dx - (constant + jp @ p[columns])) <= 1e-12 * (scale + 1e-300))


def test_given_two_thousand_parameters_when_asked_then_answered_at_once() -> None:
    names = [f"p{i}" for i in range(1500)]
    rhs = f"sin({'+'.join(names[:700])}) + x*({'+'.join(names[700:])})"
    model = Model.from_equations({"x": rhs}, {name: {"guess": 1.0} for name in names})
    start = time.thread_time()
    assert model.linear == tuple(names[700:])
    assert time.thread_time() - start < 5
