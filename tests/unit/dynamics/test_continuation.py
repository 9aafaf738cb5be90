"""Branches of periodic motions: folds, doublings and tongues against closed forms and known values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import fsolve
from scipy.special import mathieu_a, mathieu_b

from analysis import Model, follow, period_rule, settled_orbit
from analysis.base.errors import DataError, ModelError
from analysis.dynamics.continuation import Branch
from analysis.dynamics.tone_drive import driven_by_a_tone

DUFFING = Model.from_equations(
    {"x": "v", "v": "-2*z*v - x - k3*x**3 + F*cos(w*t)"},
    {"z": 0.05, "k3": 1.0, "F": 0.1, "w": 1.0},
    outputs={"x": "x"},
    initial={"x": 0.0, "v": 0.0},
)
ROESSLER = Model.from_equations(
    {"x": "-y - z", "y": "x + a*y", "z": "b + z*(x - c)"},
    {"a": 0.2, "b": 0.2, "c": 2.5},
    outputs={"x": "x"},
    initial={"x": 1.0, "y": 1.0, "z": 0.0},
)


def response(model: Model = DUFFING, lower: float = 0.9, upper: float = 1.5, **options: object) -> Branch:
    rule = period_rule(model, "w", lower, upper)
    start = settled_orbit(model, rule, "w", lower, None, None)
    return follow(model, "w", lower, upper, start.state, **options)  # type: ignore[arg-type]


def harmonic_balance(w: float, guess: np.ndarray) -> tuple[np.ndarray, float]:
    """Fourier coefficients (seven odd harmonics, cosine then sine) of the steady motion at frequency w, and
    what is left of the balance where the solver ends.
    """
    harmonics = len(guess) // 2
    theta = 2 * np.pi * np.arange(64) / 64
    orders = 2 * np.arange(harmonics) + 1
    c, s = np.cos(np.outer(orders, theta)), np.sin(np.outer(orders, theta))

    def balance(u: np.ndarray) -> np.ndarray:
        a, b = u[:harmonics], u[harmonics:]
        x = a @ c + b @ s
        v = w * ((orders * b) @ c - (orders * a) @ s)
        acceleration = -((w * orders) ** 2 * a) @ c - ((w * orders) ** 2 * b) @ s
        left = acceleration + 0.1 * v + x + x**3 - 0.1 * np.cos(theta)
        return np.concatenate([c @ left, s @ left]) / 32

    solved, details, *_ = fsolve(balance, guess, xtol=1e-13, full_output=True)
    return solved, float(np.linalg.norm(details["fvec"]))


def test_a_response_curve_passes_both_folds_and_agrees_with_harmonic_balance() -> None:
    found = response()
    assert found.ended == "bound"
    assert [s.kind for s in found.specials] == ["fold", "fold"]
    upper, lower = (s.point.parameter for s in found.specials)
    between = [p for p in found.points if not p.stable]
    assert between and all(lower < p.parameter < upper for p in between)
    assert all(p.stable for p in found.points if not lower < p.parameter < upper)
    first = found.harmonics(0)
    for k in range(0, len(found.points), 10):
        point, guess = found.points[k], np.zeros(14)
        guess[0], guess[7] = first[k].real, -first[k].imag
        solved, _ = harmonic_balance(point.parameter, guess)
        assert abs(solved[0] - 1j * solved[7] - first[k]) < 1e-7


def test_beyond_a_fold_harmonic_balance_has_no_motion_near_it() -> None:
    (fold, _) = response().specials
    first = 2 * np.fft.rfft(fold.point.path[0])[1] / fold.point.path.shape[1]
    guess = np.zeros(14)
    guess[0], guess[7] = first.real, -first.imag
    inside, left_inside = harmonic_balance(fold.point.parameter * (1 - 1e-6), guess)
    beyond, left_beyond = harmonic_balance(fold.point.parameter * (1 + 1e-6), inside)
    assert np.linalg.norm(inside - guess) < 0.05 and left_inside < 1e-12
    assert np.linalg.norm(beyond - guess) > 0.5 or left_beyond > 1e-8


@pytest.mark.parametrize("length", [1e-9, 1e3])
def test_folds_do_not_depend_on_the_unit_of_length_nor_on_the_pieces(length: float) -> None:
    small = DUFFING.with_values({"k3": 1 / length**2, "F": 0.1 * length})
    one = [s.point.parameter for s in response().specials]
    other = [s.point.parameter for s in response(small, segments=3).specials]
    np.testing.assert_allclose(one, other, rtol=1e-8)


def test_errors_of_folds_are_those_of_refitted_branches() -> None:
    sizes = {"z": 0.001, "k3": 0.01, "F": 0.001}
    covariance = {(n, n): s**2 for n, s in sizes.items()} | {("z", "F"): 5e-7, ("F", "z"): 5e-7}
    found = response(covariance=covariance).specials
    moved = []
    for name, size in sizes.items():
        here = DUFFING.parameters[name].value
        up, down = (response(DUFFING.with_values({name: here + d})) for d in (0.1 * size, -0.1 * size))
        moved.append(
            [
                (a.point.parameter - b.point.parameter) / (0.2 * size)
                for a, b in zip(up.specials, down.specials, strict=True)
            ]
        )
    slopes = np.array(moved)
    matrix = np.array([[covariance.get((a, b), 0.0) for b in sizes] for a in sizes])
    expected = np.sqrt(np.einsum("ik,ij,jk->k", slopes, matrix, slopes))
    np.testing.assert_allclose([s.stderr for s in found], expected, rtol=1e-3)


def test_tongues_of_mathieu_begin_at_the_characteristic_values() -> None:
    q = 0.5
    model = Model.from_equations(
        {"x": "v", "v": "-(a - 2*q*cos(2*t))*x"}, {"a": 1.0, "q": q}, outputs={"x": "x"}
    )
    found = follow(model, "a", -0.5, 5.0, {"x": 0.0, "v": 0.0})
    edges = sorted((s.point.parameter, s.kind) for s in found.specials)
    expected = [
        (mathieu_a(0, q), "branch point"),
        (mathieu_b(1, q), "period doubling"),
        (mathieu_a(1, q), "period doubling"),
        (mathieu_b(2, q), "branch point"),
        (mathieu_a(2, q), "branch point"),
    ]
    assert [kind for _, kind in edges] == [kind for _, kind in expected]
    np.testing.assert_allclose([a for a, _ in edges], [a for a, _ in expected], rtol=1e-8)


def test_the_cycle_of_roessler_doubles_where_it_is_known_to_with_its_error() -> None:
    """c = 2.8324 for a = b = 0.2; its error from that of ``a`` by branches at other values."""

    def doubling(a: float, **options: object) -> tuple[float, float]:
        model = ROESSLER.with_values({"a": a})
        start = settled_orbit(model, None, "c", 2.5, None, 6.0)
        found = follow(model, "c", 2.5, 3.5, start.state, period=start.period, **options)  # type: ignore[arg-type]
        (special,) = found.specials
        assert special.kind == "period doubling"
        assert [p.stable for p in found.points] == [
            p.parameter < special.point.parameter for p in found.points
        ]
        return special.point.parameter, special.stderr

    place, error = doubling(0.2, covariance={("a", "a"): 0.01**2})
    assert place == pytest.approx(2.8324, abs=1e-4)
    slope = (doubling(0.2005)[0] - doubling(0.1995)[0]) / 0.001
    assert error == pytest.approx(abs(slope) * 0.01, rel=1e-2)


def test_a_symmetric_motion_breaks_its_symmetry_at_a_branch_point() -> None:
    """Ueda's oscillator: the multiplier that passes +1 belongs to motions without the symmetry."""
    model = Model.from_equations(
        {"x": "v", "v": "-0.1*v - x**3 + F*cos(t)"},
        {"F": 1.0},
        outputs={"x": "x"},
        initial={"x": 0.1, "v": 0},
    )
    rule = period_rule(model, "F", 0.5, 4.0)
    start = settled_orbit(model, rule, "F", 0.5, None, None)
    found = follow(model, "F", 0.5, 4.0, start.state)
    (special,) = found.specials
    assert special.kind == "branch point"
    assert np.min(np.abs(special.point.multipliers - 1.0)) < 1e-5
    before, after = (special.point.parameter * (1 + d) for d in (-0.02, 0.02))
    offsets = []
    for value in (before, after):
        tilted = settled_orbit(model, rule, "F", value, {"x": 2.0, "v": 0.5}, None)
        path = follow(model, "F", value, value + 1e-3, tilted.state).points[0].path[0]
        offsets.append(abs(float(np.mean(path))) / np.ptp(path))
    assert offsets[0] < 1e-8 < 1e-3 < offsets[1]


def test_a_measured_input_becomes_a_tone_whose_frequency_is_followed() -> None:
    model = Model.from_equations(
        {"x": "v", "v": "-0.1*v - x + f"}, {}, inputs={"f": "measured"}, outputs={"x": "x"}
    )
    driven = driven_by_a_tone(model, 0.1, 2.0)
    rule = period_rule(driven, "frequency", 0.1, 0.3)
    start = settled_orbit(driven, rule, "frequency", 0.1, None, None)
    found = follow(driven, "frequency", 0.1, 0.3, start.state)
    w = 2 * np.pi * found.parameters
    np.testing.assert_allclose(found.amplitudes(0), 2.0 / np.hypot(1 - w**2, 0.1 * w), rtol=1e-5)
    assert found.stable.all() and not found.specials


@pytest.mark.parametrize(
    ("model", "over", "words"),
    [
        (DUFFING, "q", "has no parameter"),
        (ROESSLER, "c", "has no drive"),
        (
            Model.from_equations({"x": "-x + cos(w*w*t)"}, {"w": 1.0}),
            "w",
            "choose the frequency itself",
        ),
        (Model.from_equations({"x": "-x + exp(-w*t)"}, {"w": 1.0}), "w", "does not repeat"),
    ],
)
def test_what_cannot_be_followed_gets_a_sentence(model: Model, over: str, words: str) -> None:
    with pytest.raises((DataError, ModelError), match=words):
        follow(model, over, 0.5, 1.5, np.zeros(len(model.states)))
