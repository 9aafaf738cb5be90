"""Unknown functions in a model: what they stand for, how they are written, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline

from analysis import Model, ModelError
from analysis.model.functions import Spline, Surface

TEXT = """
[states]
x = "v"
v = "-c*v - H"
[parameters]
c = {{ guess = 0.3 }}
[definitions]
H = {{ {} }}
"""


def a_model(function: str) -> Model:
    return Model.from_toml(TEXT.format(function))


def test_given_coefficients_then_the_expression_is_the_b_spline_of_another_library_and_straight_beyond() -> (
    None
):
    spline = Spline("x", 5, -1.0, 2.0)
    rng = np.random.default_rng(0)
    b = rng.normal(size=7)
    knots = -1.0 + spline.step * np.arange(-3, 8)
    other = BSpline(knots, b, 3)
    x = np.linspace(-1, 2, 50)
    assert spline.basis(x) @ b == pytest.approx(other(x))
    slope = other.derivative()
    low, high = spline.basis(np.array([-1.7, 3.1])) @ b
    assert low == pytest.approx(other(-1.0) - 0.7 * slope(-1.0))
    assert high == pytest.approx(other(2.0) + 1.1 * slope(2.0))

    model = a_model('function = "x", knots = 5, lower = -1, upper = 2')
    assert model.free == ("c", *(f"H_{j}" for j in range(7)))
    model = model.with_values({f"H_{j}": value for j, value in enumerate(b)})
    for at in (-1.7, -0.3, 1.99, 3.1):
        out = np.empty(2)
        model.kernels().rhs(0.0, np.array([at, 0.5]), np.zeros(0), model.values(), out)
        assert -out[1] - 0.3 * 0.5 == pytest.approx(float((spline.basis(np.array([at])) @ b)[0]))
    assert "H_3" in model.linear
    again = Model.from_toml(model.to_toml())
    assert again == model and again.values().tolist() == model.values().tolist()
    moved = model.with_range("H", -2.0, 2.0)
    assert moved.equations.functions["H"].ends == (-2.0, 2.0)
    assert moved.parameters["H_lower"].value == -2.0 and Model.from_toml(moved.to_toml()) == moved
    assert "unknown function of x (5 knots from -1 to 2)" in model.to_text()
    assert any("unknown" in line for line in model.latex_equations())


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ('function = "x", knots = 3', "whole number from 4 to 60"),
        ('function = "x", knots = 4.5', "whole number"),
        ('function = "x", lower = 1', "both lower and upper"),
        ('function = "x", lower = 1, upper = 0', "must be below"),
        ('function = "y"', "unknown name `y`"),
        ('function = "x +"', "ends too early"),
        ('function = "x", points = 3', "unknown key `points`"),
        ('function = ["x", "v", "x"]', "one argument or two"),
        ('function = ["x", "x"]', "must differ"),
        ('function = ["x", "v +"]', "ends too early"),
        ('function = ["x", "w"]', "unknown name `w`"),
        ('function = ["x", "v"], knots = [8, 3]', "whole number from 4 to 60"),
        ('function = ["x", "v"], knots = 20', "484 coefficients, more than the 256"),
        ('function = ["x", "v"], lower = [0, 0], upper = [1, -1]', "must be below"),
    ],
)
def test_given_a_function_that_makes_no_sense_then_the_place_and_the_mistake_are_named(
    function: str, words: str
) -> None:
    with pytest.raises(ModelError, match=words):
        a_model(function)


def test_given_names_that_belong_to_a_function_then_they_are_refused() -> None:
    text = TEXT.format('function = "x"')
    with pytest.raises(ModelError, match="`H_0` belongs to the function"):
        Model.from_toml(text + 'H_0 = "2*x"\n')
    with pytest.raises(ModelError, match="`H_lower` belongs"):
        Model.from_toml(text.replace("[definitions]", "H_lower = 1.0\n[definitions]"))


def test_given_a_function_without_a_range_then_it_cannot_be_simulated_but_kept() -> None:
    model = a_model('function = "x"')
    assert Model.from_toml(model.to_toml()) == model
    with pytest.raises(ModelError, match="H has no range"):
        model.kernels()


def test_given_two_arguments_then_the_expression_is_the_product_of_the_b_splines_of_another_library() -> None:
    model = a_model('function = ["x", "v"], knots = [5, 4], lower = [-1, -2], upper = [2, 3]')
    function = model.equations.functions["H"]
    assert isinstance(function, Surface) and function.shape == (7, 6)
    b = np.random.default_rng(1).normal(size=42)
    model = model.with_values(dict(zip(function.coefficients("H"), b, strict=True)))
    rows = [
        BSpline(a.ends[0] + a.step * np.arange(-3, a.knots + 3), np.eye(a.knots + 2), 3)
        for a in function.axes
    ]
    for x, v in ((-1.0, 3.0), (0.3, -0.7), (1.99, 2.9)):
        out = np.empty(2)
        model.kernels().rhs(0.0, np.array([x, v]), np.zeros(0), model.values(), out)
        expected = rows[0](x) @ b.reshape(7, 6) @ rows[1](v)
        assert -out[1] - 0.3 * v == pytest.approx(expected)
        assert function.basis(np.array([x]), np.array([v])) @ b == pytest.approx([expected])
    beyond = function.basis(np.array([2.0, 2.5, 3.0]), np.array([1.0, 1.0, 1.0])) @ b
    assert beyond[2] - beyond[1] == pytest.approx(beyond[1] - beyond[0])
    assert Model.from_toml(model.to_toml()) == model and "H_3_2" in model.linear
    assert "unknown function of x (5 knots from -1 to 2) and v (4 knots from -2 to 3)" in model.to_text()
    flat = function.basis(np.linspace(-1, 2, 9), np.linspace(-2, 3, 9)).sum(axis=1)
    assert flat == pytest.approx(np.ones(9))
    weights = np.array([3.0, 0.2])
    total = sum(w * S for w, S in zip(weights, function.penalties(), strict=True))
    np.testing.assert_allclose(np.sort(weights @ function.spectra()), np.linalg.eigvalsh(total), atol=1e-12)
