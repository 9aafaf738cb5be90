"""Compiled kernels: values and Jacobians against closed forms and independent evaluation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.model import Model
from drivers.library import load_model

NO_INPUT = np.empty(0)


def test_given_duffing_when_jac_then_closed_form() -> None:
    model = load_model("duffing")
    x, v, t = 1.3, -0.7, 0.4
    p = model.values({"c": 0.2, "k1": 0.5})
    dx, jx, jp = np.full(2, np.nan), np.full((2, 2), np.nan), np.full((2, 6), np.nan)
    model.kernels().jac(t, np.array([x, v]), NO_INPUT, p, dx, jx, jp)
    force = 27 * math.cos(1.33 * t)
    slope = -0.2 * v - 0.5 * x - x**3 + force
    np.testing.assert_allclose(dx, [v, slope], rtol=1e-14)
    np.testing.assert_allclose(jx, [[0, 1], [-0.5 - 3 * x**2, -0.2]], rtol=1e-14)
    by_frequency = -27 * t * math.sin(1.33 * t)
    expected = [-slope, -v, -x, -(x**3), math.cos(1.33 * t), by_frequency]
    np.testing.assert_allclose(jp, [[0] * 6, expected], rtol=1e-14)


def test_given_implicit_definition_when_jac_then_implicit_function_theorem() -> None:
    model = Model.from_equations(
        {"x": "-H*x + th"},
        {"c": 2.0},
        definitions={"H": "sin(th) + c", "th": {"solve": "H - 2 - x", "lower": -1.57, "upper": 1.57}},
    )
    dx, jx, jp = np.empty(1), np.empty((1, 1)), np.empty((1, 1))
    model.kernels().jac(0.0, np.array([0.3]), NO_INPUT, model.values(), dx, jx, jp)
    # here H = 2 + x whatever c is, and th = asin(2 + x - c)
    np.testing.assert_allclose(dx, -2.3 * 0.3 + math.asin(0.3), rtol=1e-14)
    np.testing.assert_allclose(jx, -2.6 + 1 / math.sqrt(1 - 0.09), rtol=1e-13)
    np.testing.assert_allclose(jp, -1 / math.sqrt(1 - 0.09), rtol=1e-13)


def test_given_many_samples_when_not_a_whole_tile_then_equal_to_one_by_one(rng: np.random.Generator) -> None:
    model = load_model("duffing")
    kernels = model.kernels()
    n, k = 2, len(model.parameters)
    for count in (0, 1, 5, 63, 64, 65, 150):
        t, x = rng.normal(size=count), rng.normal(size=(n, count))
        u, p = np.empty((0, count)), model.values()
        dx, jx, jp = (
            np.full((n, count), np.nan),
            np.full((n, n, count), np.nan),
            np.full((n, k, count), np.nan),
        )
        kernels.jac_many(t, x, u, p, dx, jx, jp)
        only = np.full((n, count), np.nan)
        kernels.rhs_many(t, x, u, p, only)
        sets = np.full((n, count), np.nan)
        kernels.rhs_sets(t, x, u, np.repeat(p[:, None], count, 1), sets)
        for i in range(count):
            d, a, b = np.empty(n), np.empty((n, n)), np.empty((n, k))
            kernels.jac(t[i], x[:, i].copy(), NO_INPUT, p, d, a, b)
            np.testing.assert_allclose(dx[:, i], d, rtol=1e-14)
            np.testing.assert_allclose(jx[:, :, i], a, rtol=1e-14)
            np.testing.assert_allclose(jp[:, :, i], b, rtol=1e-14)
        np.testing.assert_allclose(only, dx, rtol=1e-14)
        np.testing.assert_allclose(sets, dx, rtol=1e-14)


def test_given_sparse_jacobians_when_spread_then_equal_to_the_full_ones(rng: np.random.Generator) -> None:
    model = load_model("chua")
    kernels = model.kernels()
    n, k, count = len(model.states), len(model.parameters), 21
    t, x, u, p = np.zeros(count), rng.normal(size=(n, count)), np.empty((0, count)), model.values()
    dx, jx, jp = np.empty((n, count)), np.empty((n, n, count)), np.empty((n, k, count))
    kernels.jac_many(t, x, u, p, dx, jx, jp)
    of_x, of_p = kernels.pattern_x, kernels.pattern_p
    again, vx, vp = np.empty((n, count)), np.empty((of_x.shape[1], count)), np.empty((of_p.shape[1], count))
    kernels.jac_sparse_many(t, x, u, p, again, vx, vp)
    only = np.empty_like(vp)
    kernels.jac_p_sparse_many(t, x, u, p, again, only)
    for full, pattern, values in ((jx, of_x, vx), (jp, of_p, vp), (jp, of_p, only)):
        spread = np.zeros_like(full)
        spread[pattern[0], pattern[1]] = values
        np.testing.assert_allclose(spread, full, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(again, dx, rtol=1e-13)


def test_given_results_that_are_not_contiguous_then_refused_for_a_copy_would_be_written() -> None:
    kernels = load_model("duffing").kernels()
    t, x, u, p = np.zeros(4), np.ones((2, 4)), np.empty((0, 4)), load_model("duffing").values()
    with pytest.raises(TypeError, match="contiguous"):
        kernels.rhs_many(t, x, u, p, np.empty((4, 2)).T)
