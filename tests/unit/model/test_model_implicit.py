"""Definitions by an equation: the root that is found, its derivatives, and what happens without a root."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.model import Model
from tests.trees import uncompiled


def root_of(residual: str, lower: float, upper: float, x: float) -> float:
    model = Model.from_equations(
        {"x": "z"}, definitions={"z": {"solve": residual, "lower": lower, "upper": upper}}
    )
    dx = np.empty(1)
    with np.errstate(all="ignore"):
        uncompiled(model).rhs(0.0, np.array([x]), np.empty(0), np.empty(0), dx)
    return float(dx[0])


@settings(max_examples=200, deadline=None)
@given(
    root=st.floats(-9.5, 9.5),
    shape=st.sampled_from(
        [
            "z - x",
            "(z - x)**3",
            "tanh(1000*(z - x))",
            "exp(z) - exp(x)",
            "z**3 - x**3",
            "sign(z - x)*abs(z - x)**0.2",
            "1e-9*(z - x) + (z - x)**5",
            "atan(50*(z - x)) + 0.01*(z - x)",
            "sign(z - x) + 0.1*(z - x)",
            "1e12*(z - x)",
            "1e-12*(z - x)",
        ],
    ),
)
def test_given_equation_with_one_root_when_solved_then_found(root: float, shape: str) -> None:
    # flat at the root, in powers of 3 or 5, the equation itself only fixes it to that root of rounding
    tolerance = 1e-5 if "**3" in shape or "**5" in shape else 1e-13
    assert abs(root_of(shape, -10.0, 10.0, root) - root) <= tolerance * max(1.0, abs(root))


def test_given_no_root_in_bounds_when_solved_then_not_a_number() -> None:
    assert math.isnan(root_of("z**2 + 1 + x", -10, 10, 0.0))
    assert math.isnan(root_of("z - x", -1, 1, 3.0))
    assert math.isnan(root_of("z - x", -1, 1, math.nan))
    assert math.isnan(root_of("sqrt(z - 5) + 1 - x", -1, 1, 0.0))


def test_given_root_at_a_bound_when_solved_then_the_bound() -> None:
    assert root_of("z - x", -1, 1, 1.0) == 1.0
    assert root_of("z - x", -1, 1, -1.0) == -1.0
    assert root_of("sin(z) - x", -math.pi / 2, math.pi / 2, 1.0) == pytest.approx(math.pi / 2, abs=1e-7)


def test_given_two_roots_when_solved_then_one_of_them() -> None:
    assert abs(root_of("z**2 - x", -10, 10, 4.0)) == pytest.approx(2.0, abs=1e-14)


def test_given_equation_defined_in_part_of_the_bounds_when_solved_then_found() -> None:
    assert root_of("sqrt(z) - x", -1, 10, 2.0) == pytest.approx(4.0, abs=1e-12)


def chained() -> Model:
    """Two unknowns, the second depends on the first; both on a state, an input and parameters."""
    return Model.from_equations(
        {"x": "a*first*second + helper", "y": "second - b*x"},
        {"a": 1.2, "b": 0.7},
        inputs={"f": "measured"},
        definitions={
            "helper": "tanh(first) + a*y",
            "first": {"solve": "first + b*first**3 - x - helper/5 + f", "lower": -50, "upper": 50},
            "second": {"solve": "exp(second) + second - first*a - y**2", "lower": -50, "upper": 50},
        },
        outputs={"s": "second**2 + f", "h": "helper"},
    )


def differences(model: Model, module: object) -> None:
    """Compare every Jacobian with central differences of order four."""
    kernel = module
    x0, u0, p0 = np.array([0.4, -0.8]), np.array([0.3]), np.array([1.2, 0.7])

    def rhs(x: np.ndarray, u: np.ndarray, p: np.ndarray) -> np.ndarray:
        dx, y = np.empty(2), np.empty(2)
        kernel.rhs(0.1, x, u, p, dx)  # type: ignore[attr-defined]
        kernel.out(0.1, x, u, p, y)  # type: ignore[attr-defined]
        return np.concatenate([dx, y])

    dx, jx, jp, ju = np.empty(2), np.empty((2, 2)), np.empty((2, 2)), np.empty((2, 1))
    y, yx, yp = np.empty(2), np.empty((2, 2)), np.empty((2, 2))
    kernel.jac(0.1, x0, u0, p0, dx, jx, jp)  # type: ignore[attr-defined]
    kernel.jac_u(0.1, x0, u0, p0, ju)  # type: ignore[attr-defined]
    kernel.out_jac(0.1, x0, u0, p0, y, yx, yp)  # type: ignore[attr-defined]
    np.testing.assert_allclose(np.concatenate([dx, y]), rhs(x0, u0, p0), rtol=1e-14)
    h = 1e-3
    for which, base in enumerate((x0, u0, p0)):
        for column in range(base.size):
            shifted = []
            for step in (-2, -1, 1, 2):
                arguments = [x0.copy(), u0.copy(), p0.copy()]
                arguments[which][column] += step * h
                shifted.append(rhs(*arguments))
            slope = (shifted[0] - 8 * shifted[1] + 8 * shifted[2] - shifted[3]) / (12 * h)
            own = (np.vstack([jx, yx]), None, np.vstack([jp, yp]))[which]
            if own is None:
                np.testing.assert_allclose(ju[:, column], slope[:2], rtol=1e-9, atol=1e-10)
            else:
                np.testing.assert_allclose(own[:, column], slope, rtol=1e-9, atol=1e-10)


def test_given_chained_unknowns_when_differentiated_then_as_finite_differences() -> None:
    model = chained()
    differences(model, uncompiled(model))


def test_given_chained_unknowns_when_compiled_then_as_finite_differences_and_many_agree() -> None:
    model = chained()
    kernels = model.kernels()
    differences(model, kernels)
    x = np.linspace(-1, 1, 2 * 19).reshape(2, 19)
    u, t, p = np.linspace(0, 1, 19)[None, :].copy(), np.zeros(19), model.values()
    dx, jx, jp = np.empty((2, 19)), np.empty((2, 2, 19)), np.empty((2, 2, 19))
    kernels.jac_many(t, x, u, p, dx, jx, jp)
    for i in range(19):
        d, a, b = np.empty(2), np.empty((2, 2)), np.empty((2, 2))
        kernels.jac(0.0, x[:, i].copy(), u[:, i].copy(), p, d, a, b)
        np.testing.assert_allclose(dx[:, i], d, rtol=1e-12)
        np.testing.assert_allclose(jx[:, :, i], a, rtol=1e-12)
        np.testing.assert_allclose(jp[:, :, i], b, rtol=1e-12)
