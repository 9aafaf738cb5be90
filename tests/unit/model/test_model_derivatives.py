"""Values and derivatives of random expressions against an evaluation that shares no code with the model."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.model import Model
from tests.trees import Outside, Tree, derivative, evaluate, random_tree, text, uncompiled

NAMES = ("x", "y", "f", "a", "b", "t")
STATES, MEASURED, PARAMETERS = ("x", "y"), ("f",), ("a", "b")


def build(expressions: list[str]) -> Model:
    """A model whose outputs are the expressions."""
    return Model.from_equations(
        {"x": expressions[0], "y": "x"},
        dict.fromkeys(PARAMETERS, 1.0),
        inputs={"f": "measured"},
        outputs={f"e{i}": e for i, e in enumerate(expressions)},
    )


def point(draw: random.Random) -> dict[str, float]:
    return {name: draw.uniform(-2, 2) for name in NAMES}


def close(computed: float, true: float, scale: float = 1.0) -> bool:
    return abs(computed - true) <= 1e-8 * max(1.0, abs(true), scale)


@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_given_random_expression_when_generated_then_value_and_jacobians_agree(seed: int) -> None:
    draw = random.Random(seed)
    tree = random_tree(draw, NAMES, draw.randint(1, 5))
    try:
        model = build([text(tree, draw)])
    except Exception as error:
        assert "no finite value" in str(error)  # such as log(0): a constant without a value is refused
        return
    module = uncompiled(model)
    for _ in range(3):
        at = point(draw)
        try:
            true = complex(evaluate(tree, at)).real
            slopes = {name: derivative(tree, at, name) for name in (*STATES, *PARAMETERS, *MEASURED)}
        except Outside:
            continue
        size = max(map(abs, [true, *slopes.values()]))
        if size > 1e6:
            continue
        y, yx, yp = np.full(1, np.nan), np.full((1, 2), np.nan), np.full((1, 2), np.nan)
        dx, ju = np.full(2, np.nan), np.full((2, 1), np.nan)
        x, p, u = (np.array([at[n] for n in names]) for names in (STATES, PARAMETERS, MEASURED))
        with np.errstate(all="ignore"):
            module.out_jac(at["t"], x, u, p, y, yx, yp)
            module.rhs(at["t"], x, u, p, dx)
            module.jac_u(at["t"], x, u, p, ju)
        assert close(y[0], true, size) and close(dx[0], true, size)
        computed = [*yx[0], *yp[0], ju[0, 0]]
        for name, value in zip((*STATES, *PARAMETERS, *MEASURED), computed, strict=True):
            assert close(value, slopes[name], size), (name, value, slopes[name])


@pytest.mark.parametrize("seed", [1, 2])
def test_given_many_random_expressions_when_compiled_then_one_and_many_samples_agree(seed: int) -> None:
    draw = random.Random(seed)
    trees: list[Tree] = []
    points = [point(draw) for _ in range(37)]
    while len(trees) < 12:
        tree = random_tree(draw, NAMES, 4)
        try:
            build([text(tree, draw)])
            for at in points:
                evaluate(tree, at)
        except Exception:
            continue
        trees.append(tree)
    model = build([text(tree, draw) for tree in trees])
    kernels = model.kernels()
    q, count = len(trees), len(points)
    t = np.array([at["t"] for at in points])
    x, u = (np.array([[at[n] for at in points] for n in names]) for names in (STATES, MEASURED))
    p = np.array([points[0][n] for n in PARAMETERS])
    y, yx, yp = np.empty((q, count)), np.empty((q, 2, count)), np.empty((q, 2, count))
    kernels.out_jac_many(t, x, u, p, y, yx, yp)
    compared = 0
    for i, at in enumerate(points):
        at = {**at, **{n: points[0][n] for n in PARAMETERS}}
        y1, yx1, yp1 = np.empty(q), np.empty((q, 2)), np.empty((q, 2))
        kernels.out_jac(t[i], x[:, i].copy(), u[:, i].copy(), p, y1, yx1, yp1)
        for j, tree in enumerate(trees):
            try:
                true = complex(evaluate(tree, at)).real
                slopes = [derivative(tree, at, name) for name in (*STATES, *PARAMETERS)]
            except Outside:
                continue
            size = max(map(abs, [true, *slopes]))
            if size > 1e6:
                continue
            compared += 1
            for one, many in ((y1[j], y[j, i]),):
                assert close(one, true, size) and close(many, true, size)
            for one, many, slope in zip(
                [*yx1[j], *yp1[j]], [*yx[j, :, i], *yp[j, :, i]], slopes, strict=True
            ):
                assert close(one, slope, size) and close(many, slope, size)
    assert compared > 0.5 * q * count
