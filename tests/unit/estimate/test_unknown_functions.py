"""Unknown functions identified: smoothness by restricted likelihood, bands, ranges and refusals."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.optimize import curve_fit

from analysis import Identification, Model, ModelError, Record, identify
from analysis.estimate.finish.curve_formulas import formulas, sentence
from analysis.estimate.finish.smooth_curves import Roughness, smoothed
from analysis.model.functions import Spline

Array = NDArray[np.float64]

TEXT = """
name = "unknown spring"
[states]
x = "v"
v = "f - c*v - H"
[inputs]
f = "measured"
[parameters]
c = { guess = 0.3, lower = 0, upper = 10 }
[definitions]
H = { function = "x", knots = 4 }
[outputs]
x = "x"
"""


@pytest.mark.parametrize("truth", ["straight", "cubic", "wave"])
def test_given_a_regression_then_the_band_covers_and_a_straight_line_is_found_straight(truth: str) -> None:
    curves = {
        "straight": lambda x: 2 * x - 1,
        "cubic": lambda x: x + 3 * x**3,
        "wave": lambda x: np.sin(4 * x),
    }
    spline, covered, freedom = Spline("x", 12, -1.0, 1.0), [], []
    grid = np.linspace(-1, 1, 41)
    for seed in range(15):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 1, 300)
        B = spline.basis(x)
        y = curves[truth](x) + 0.3 * rng.normal(size=len(x))
        M = B.T @ B / 0.09
        b, C, _ = smoothed(M, B.T @ y / 0.09, [Roughness.of(spline)])
        at = spline.basis(grid)
        width = 1.96 * np.sqrt(np.einsum("ij,jk,ik->i", at, C, at))
        covered.append(np.mean(np.abs(at @ b - curves[truth](grid)) < width))
        freedom.append(np.trace(C @ M))
    assert 0.88 <= np.mean(covered) <= 0.995
    if truth == "straight":
        assert np.median(freedom) < 3.0
    else:
        assert 3.0 < np.median(freedom) < 12.0


DEAD_ZONE = "(max(u - {0}, 0) + min(u + {0}, 0))"
NAMED: list[tuple[Callable[[Array], Array], tuple[str, ...], list[tuple[float, int]]]] = [
    # the curve, its terms, its constants with their powers of one over the argument
    (lambda u: -3 * u, ("u",), [(-3.0, 1)]),
    (lambda u: u + 3 * u**3, ("u", "u**3"), [(1.0, 1), (3.0, 3)]),
    (lambda u: 0.5 * u + 2 * u * np.abs(u), ("u", "u*abs(u)"), [(0.5, 1), (2.0, 2)]),
    (lambda u: 0.4 - u**2, ("1", "u**2"), [(0.4, 0), (-1.0, 2)]),
    (lambda u: 2 * np.sin(3 * u), ("sin({0}*u)",), [(2.0, 0), (3.0, 1)]),
    (lambda u: np.tanh(6 * u) + 0.5 * u, ("tanh({0}*u)", "u"), [(1.0, 0), (0.5, 1), (6.0, 1)]),
    (lambda u: 5 * (np.maximum(u - 0.3, 0) + np.minimum(u + 0.3, 0)), (DEAD_ZONE,), [(5.0, 1), (0.3, -1)]),
]


@pytest.mark.parametrize(("truth", "terms", "constants"), NAMED, ids=[" + ".join(n[1]) for n in NAMED])
@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_given_a_curve_with_a_formula_then_it_is_named_with_its_constants(
    truth: Callable[[Array], Array],
    terms: tuple[str, ...],
    constants: list[tuple[float, int]],
    scale: float,
) -> None:
    spline, distances = Spline("u", 16, -scale, scale), []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        u = rng.uniform(-1, 1, 500)
        B = spline.basis(scale * u)
        y = truth(u) + 0.04 * rng.normal(size=len(u))
        found = formulas(spline, np.linalg.lstsq(B, y, rcond=None)[0], B.T @ B / 0.04**2)
        (named,) = (f for f in found if f.terms == terms)
        assert named.probability >= 0.01 and named.freedom == 18 - len(constants)
        for estimate, (value, power) in zip(named.constants, constants, strict=True):
            distances.append((estimate.value * scale**power - value) / (estimate.stderr * scale**power))
    assert 0.4 < np.sqrt(np.mean(np.square(distances))) < 1.7


@pytest.mark.parametrize(
    ("shape", "terms", "constants"),
    [
        (lambda u, a, s: a * np.sin(s * u), ("sin({0}*u)",), (2.0, 1.3)),  # nearly the product alone is known
        (lambda u, a, b, s: a * np.tanh(s * u) + b * u, ("tanh({0}*u)", "u"), (1.0, 0.5, 3.0)),
    ],
)
def test_given_a_constant_inside_of_a_function_then_errors_are_those_of_all_constants_together(
    shape: Callable[..., Array], terms: tuple[str, ...], constants: tuple[float, ...]
) -> None:
    spline, u, noise = Spline("u", 16, -1.0, 1.0), np.linspace(-1, 1, 400), 0.02
    y = shape(u, *constants) + noise * np.random.default_rng(4).normal(size=len(u))
    direct, covariance = curve_fit(shape, u, y, constants, np.full(len(u), noise), absolute_sigma=True)
    B = spline.basis(u)
    found = formulas(spline, np.linalg.lstsq(B, y, rcond=None)[0], B.T @ B / noise**2)
    (named,) = (f for f in found if f.terms == terms)
    errors = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose([e.stderr for e in named.constants], errors, rtol=0.02)
    assert np.all(np.abs([e.value for e in named.constants] - direct) < 0.1 * errors)


def test_given_a_curve_without_a_formula_then_none_is_named() -> None:
    spline, rng = Spline("x - y", 12, -1.0, 1.0), np.random.default_rng(2)
    u = rng.uniform(-1, 1, 500)
    B = spline.basis(u)
    for truth, said in (
        (u + np.exp(-20 * u**2), "No formula of at most 4 constants lies within the band of H."),
        (u**2, "Within its band H is "),
    ):
        y = truth + 0.02 * rng.normal(size=len(u))
        told = sentence("H", formulas(spline, np.linalg.lstsq(B, y, rcond=None)[0], B.T @ B / 0.02**2))
        assert told.startswith(said)
    assert "*(x - y)**2 (p = " in told


def test_given_no_data_in_a_part_of_the_range_then_the_curve_goes_on_straight_with_a_wide_band() -> None:
    spline = Spline("x", 12, -1.0, 2.0)
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 400)
    B = spline.basis(x)
    y = x + x**3 + 0.05 * rng.normal(size=len(x))
    M = B.T @ B / 0.05**2
    b, C, _ = smoothed(M, B.T @ y / 0.05**2, [Roughness.of(spline)])
    far = spline.basis(np.array([0.5, 1.5, 1.75, 2.0]))
    values, errors = far @ b, np.sqrt(np.einsum("ij,jk,ik->i", far, C, far))
    assert values[3] - values[2] == pytest.approx(values[2] - values[1], rel=0.05)
    assert errors[3] > 20 * errors[0]


def record(seed: int) -> Record:
    """An oscillator with H = 9 x + 6 x^3 and c = 0.5 under a multisine, displacement at 1 % noise."""
    rng, t = np.random.default_rng(seed), np.arange(1200) / 40.0
    lines = np.arange(0.1, 1.2, 0.08)
    turns = 2 * np.pi * np.outer(t, lines) + rng.uniform(0, 2 * np.pi, len(lines))
    force = CubicSpline(t, 1.5 * np.cos(turns).sum(axis=1))

    def rate(at: float, z: Array) -> list[float]:
        return [z[1], float(force(at)) - 0.5 * z[1] - 9 * z[0] - 6 * z[0] ** 3]

    x = solve_ivp(rate, (0, t[-1]), [0.1, 0.0], "DOP853", t, rtol=1e-9, atol=1e-9).y[0]
    return Record.from_arrays(40.0, {"x": x + 0.01 * x.std() * rng.normal(size=len(x)), "f": force(t)})


def test_given_an_unknown_spring_then_it_is_found_with_its_band_beside_the_damping() -> None:
    measured, model = record(1), Model.from_toml(TEXT)
    result = identify(model, measured, "path")
    assert result.verdict == "fits"
    c = result.parameters["c"]
    assert abs(c.value - 0.5) < 4 * c.stderr < 0.05
    curve = result.curves["H"]
    x, y, low, high = (np.array(row) for row in (curve.x, curve.y, curve.lower, curve.upper))
    assert (x[0], x[-1]) == (measured["x"].min(), measured["x"].max())
    truth = 9 * x + 6 * x**3
    assert np.sqrt(np.mean((y - truth) ** 2)) < 0.01 * truth.std()
    assert np.mean((low <= truth) & (truth <= high)) > 0.6  # one draw: errors along a curve go together
    again = Model.from_toml(result.model_text)
    assert again.equations.functions["H"].ends == (x[0], x[-1])
    assert 3.0 < result.extra["degrees of freedom"]["H"] <= 6.0
    assert list(result.extra["penalty"]) == ["H"] and result.extra["penalty"]["H"] > 0
    assert re.match(
        r"Within its band H is (9\.0\d*|8\.9\d*)\*x \+ (6\.0|5\.9)\d*\*x\*\*3 \(p = ", curve.formula
    )


def test_given_what_a_method_cannot_find_then_one_sentence() -> None:
    model, measured = Model.from_toml(TEXT), record(1)
    with pytest.raises(ModelError, match="homotopy does not identify the unknown function H"):
        identify(model, measured, "homotopy")
    with pytest.raises(ModelError, match="energetic does not"):
        identify(model, measured, "energetic")
    with pytest.raises(ModelError, match="Without its finish"):
        identify(model, measured, "path", finish=False)
    hidden = Model.from_toml(TEXT.replace('function = "x"', 'function = "x - v"'))
    with pytest.raises(ModelError, match="no channel is called x - v, so give it lower and upper"):
        identify(hidden, measured, "path")


def test_given_a_blow_that_nobody_recorded_then_its_course_is_found_from_the_motion() -> None:
    def blow(t: Array) -> Array:
        return np.asarray(6 * np.exp(-0.5 * ((t - 2.0) / 0.25) ** 2))

    times = np.arange(0, 5, 0.025)
    x = solve_ivp(
        lambda t, z: [z[1], blow(t) - 0.3 * z[1] - 20 * z[0]], (0, 5), [0.02, 0.0], "DOP853", times,
        rtol=1e-9, atol=1e-11, max_step=0.02,
    ).y[0]  # fmt: skip
    record = Record.from_arrays(
        40.0, {"x": x + 0.01 * x.std() * np.random.default_rng(1).normal(size=len(x))}
    )
    model = Model.from_equations(
        {"x": "v", "v": "F - c*v - k*x"},
        {"c": 0.3, "k": 20.0},
        definitions={"F": {"function": "t", "knots": 30}},
        outputs={"x": "x"},
    )
    found = identify(model, record, "path")
    curve = found.curves["F"]
    truth = blow(np.array(curve.x))
    assert found.verdict in ("fits", "close")
    assert np.abs(np.array(curve.y) - truth).max() < 0.2  # of 6
    assert np.mean((np.array(curve.lower) <= truth) & (truth <= np.array(curve.upper))) > 0.85
    assert (curve.x[0], curve.x[-1]) == (0.0, pytest.approx(times[-1]))
    with pytest.raises(ModelError, match="belongs to one record"):
        identify(model, [record, record], "path")


def test_given_spring_and_damper_in_one_function_then_its_surface_is_found_from_displacement() -> None:
    def truth(x: Array, v: Array) -> Array:
        return np.asarray(9 * x + 6 * x**3 + 0.4 * v + 0.8 * x**2 * v)

    rng, t = np.random.default_rng(3), np.arange(1000) / 25.0
    lines = np.arange(0.1, 1.2, 0.08)
    turns = 2 * np.pi * np.outer(t, lines) + rng.uniform(0, 2 * np.pi, len(lines))
    force = CubicSpline(t, 1.5 * np.cos(turns).sum(axis=1))
    motion = solve_ivp(
        lambda at, z: [z[1], float(force(at)) - float(truth(z[0], z[1]))], (0, t[-1]), [0.1, 0.0], "DOP853",
        t, rtol=1e-9, atol=1e-9,
    ).y  # fmt: skip
    noisy = motion[0] + 0.002 * motion[0].std() * rng.normal(size=len(t))
    model = Model.from_equations(
        {"x": "v", "v": "f - H"},
        {},
        inputs={"f": "measured"},
        definitions={"H": {"function": ["x", "v"], "knots": 4}},
        outputs={"x": "x"},
    )
    result = identify(model, Record.from_arrays(25.0, {"x": noisy, "f": force(t)}), "path")
    assert result.verdict == "fits" and not result.undetermined and not result.listed
    surface, found = result.surfaces["H"], Model.from_toml(result.model_text).equations.functions["H"]
    assert found.axes[1].ends[0] < motion[1].min() and found.axes[1].ends[1] > motion[1].max()
    there = truth(*np.meshgrid(surface.x, surface.y, indexing="ij"))
    low, high = np.array(surface.lower), np.array(surface.upper)
    assert np.mean((low <= there) & (there <= high)) > 0.6  # one draw: errors along a surface go together
    along = found.basis(*motion) @ [result.parameters[n].value for n in found.coefficients("H")]
    assert np.sqrt(np.mean((along - truth(*motion)) ** 2)) < 0.005 * truth(*motion).std()
    assert re.match(
        r"Within its band H is .*\*x \+ .*\*v \+ .*\*x\*\*3 \+ .*\*x\*\*2\*v \(p = ", surface.formula
    )
    assert list(result.curves) == ["H at v = 0", "H at x = 0"]
    assert Identification.from_json(result.to_json()) == result


def test_given_a_range_that_the_motion_does_not_fill_then_the_other_numbers_stand_all_the_same() -> None:
    text = TEXT.replace("knots = 4", "knots = 9, lower = -4, upper = 1.5")
    result = identify(Model.from_toml(text), record(1), "path")
    assert result.verdict == "fits" and not result.undetermined
    assert abs(result.parameters["c"].value - 0.5) < 4 * result.parameters["c"].stderr
    assert any("beyond, H is a straight continuation that no data support" in w for w in result.warnings)
