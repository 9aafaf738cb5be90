"""Friction, impact, play and hysteresis: values and derivatives at the corners, and NaN that stays NaN."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from analysis.model import Model


def compiled(*expressions: str, **parameters: float) -> tuple[Model, int]:
    model = Model.from_equations(
        {"z": expressions[0], "w": "0"},
        parameters,
        outputs={f"e{i}": e for i, e in enumerate(expressions)},
    )
    return model, len(expressions)


def evaluate(model: Model, q: int, z: float, w: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    k = len(model.parameters)
    y, yx, yp = np.empty(q), np.empty((q, 2)), np.empty((q, k))
    model.kernels().out_jac(0.0, np.array([z, w]), np.empty(0), model.values(), y, yx, yp)
    many, many_x, many_p = np.empty((q, 3)), np.empty((q, 2, 3)), np.empty((q, k, 3))
    x = np.array([[z] * 3, [w] * 3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.kernels().out_jac_many(np.zeros(3), x, np.empty((0, 3)), model.values(), many, many_x, many_p)
    np.testing.assert_allclose(many[:, 1], y, rtol=1e-14)
    np.testing.assert_allclose(many_x[:, :, 1], yx, rtol=1e-14)
    np.testing.assert_allclose(many_p[:, :, 1], yp, rtol=1e-14)
    return y, yx, yp


BOUC_WEN = ("a*v - b*abs(v)*abs(z)**(n - 1)*z - g*v*abs(z)**n").replace("v", "w")


@pytest.mark.parametrize("n", [1.0, 1.5, 2.0, 3.0])
def test_given_bouc_wen_at_rest_when_differentiated_then_finite_limits(n: float) -> None:
    model, q = compiled(BOUC_WEN, "abs(z)**n", n=n, a=1.0, b=0.5, g=0.3)
    for z in (0.0, 0.2, -0.2):
        y, yx, yp = evaluate(model, q, z, 0.7)
        assert np.all(np.isfinite(y)) and np.all(np.isfinite(yx)) and np.all(np.isfinite(yp))
        size = abs(z)
        # d/dz: -b|w| n|z|^(n-1) - g w n |z|^(n-1) sign z, which is 0 at rest for n > 1
        power = size ** (n - 1) if size or n == 1 else 0.0
        sign = (z > 0) - (z < 0)
        slope = -0.5 * 0.7 * (n * power if z or n > 1 else 1.0) - 0.3 * 0.7 * n * power * sign
        assert yx[0, 0] == pytest.approx(slope, abs=1e-14)
        log = math.log(size) if size else 0.0
        by_n = -0.5 * 0.7 * power * z * log - 0.3 * 0.7 * size**n * log
        assert yp[0, 0] == pytest.approx(by_n, abs=1e-14)


def test_given_corners_when_evaluated_then_the_documented_conventions_hold() -> None:
    model, q = compiled(
        "abs(z)",
        "sign(z)",
        "heaviside(z)",
        "sqrt(abs(z))",
        "sign(z)*sqrt(abs(z))",
        "min(z, 0)",
        "max(z, w)",
        "where(z > 0, 1e6*z, 0)",
        "where(z >= 0 and w <= 0, 1, 2)",
        "where(not (z == 0) or w != 0, 3, 4)",
        "abs(z)**0.5",
    )
    y, yx, _ = evaluate(model, q, 0.0, 0.0)
    assert y.tolist() == [0, 0, 0.5, 0, 0, 0, 0, 0, 1, 4, 0]
    assert np.all(np.isfinite(yx))
    assert yx[0, 0] == 0 and yx[1, 0] == 0 and yx[2, 0] == 0 and yx[7, 0] == 0
    y, yx, _ = evaluate(model, q, 4.0, -1.0)
    assert y.tolist() == [4, 1, 1, 2, 2, 0, 4, 4e6, 1, 3, 2]
    assert yx[:, 0].tolist() == [1, 0, 0, 0.25, 0.25, 0, 1, 1e6, 0, 0, 0.25]
    y, yx, _ = evaluate(model, q, -4.0, 1.0)
    assert y.tolist() == [4, -1, 0, 2, -2, -4, 1, 0, 2, 3, 2]
    assert yx[:, 0].tolist() == [-1, 0, 0, -0.25, 0.25, 1, 0, 0, 0, 0, -0.25]


def test_given_nan_when_evaluated_then_nan_and_not_a_number_in_disguise() -> None:
    texts = ["abs(z)", "sign(z)", "heaviside(z)", "min(z, 1)", "max(1, z)", "min(w, z)", "max(z, w)"]
    texts += [
        "z**2",
        "z**0.5",
        "tanh(z)",
        "exp(z)",
        "sin(z)",
        "cos(z)",
        "tan(z)",
        "z**2.5",
        "1/z",
        "atan2(z, 1)",
    ]
    model, q = compiled(*texts)
    y, _, _ = evaluate(model, q, math.nan, 2.0)
    assert np.all(np.isnan(y)), [t for t, v in zip(texts, y, strict=True) if not np.isnan(v)]


def test_given_overflow_or_poles_when_evaluated_then_infinite_without_an_exception() -> None:
    model, q = compiled("1/z", "log(z)", "exp(1000*w)", "w**300*w**300", "sqrt(z - 1)", "asin(w)")
    y, _, _ = evaluate(model, q, 0.0, 20.0)
    assert y[0] == math.inf and y[1] == -math.inf and y[2] == math.inf and y[3] == math.inf
    assert np.isnan(y[4]) and np.isnan(y[5])


@pytest.mark.parametrize(
    "n", [0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 31, 32, 33, 64, -1, -2, -7, 2.5, -0.5, 7.5, 1e3]
)
def test_given_constant_power_when_evaluated_then_as_the_c_library(n: float) -> None:
    from tests.trees import uncompiled

    model, _ = compiled(f"z**({n})")
    for z in (0.3, 1.7, -1.3):
        if z < 0 and n != int(n):
            continue
        dx, jx, jp = np.empty(2), np.empty((2, 2)), np.empty((2, 0))
        uncompiled(model).jac(0.0, np.array([z, 0.0]), np.empty(0), np.empty(0), dx, jx, jp)
        assert dx[0] == pytest.approx(math.pow(z, n), rel=1e-14)
        slope = n * math.pow(z, n - 1) if n else 0.0
        assert jx[0, 0] == pytest.approx(slope, rel=1e-13)


def test_given_negative_base_and_whole_parameter_when_differentiated_in_it_then_real_part() -> None:
    model, q = compiled("z**n", n=3.0)
    y, yx, yp = evaluate(model, q, -2.0)
    assert (y[0], yx[0, 0]) == (-8.0, 12.0)
    assert yp[0, 0] == pytest.approx(-8 * math.log(2))
