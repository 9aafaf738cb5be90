"""Methods that find functions: what they compute beside sums, integrals and matrices written out."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.interpolate import BSpline, CubicSpline

from analysis.base.identification import Estimate, Identification
from analysis.base.record import Record
from analysis.estimate.discovery.motion import Motion, _integral, earlier, followed
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.linearised import linearisations
from analysis.estimate.finish.smooth_curves import Roughness, smoothed, with_curves, with_smoothness
from analysis.estimate.functions.beam.response import complex_modes, filtered, stepped
from analysis.estimate.functions.energetic.terms import _spline
from analysis.estimate.functions.surface import _by_direction, _without_drift, restoring_force
from analysis.estimate.start import Start
from analysis.experiment import Conditions, Experiment
from analysis.model import Model
from analysis.model.functions import Spline
from analysis.simulation.simulate import simulate

# restoring force


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_given_dry_friction_in_any_unit_then_the_ways_up_and_down_differ_by_twice_its_force(
    unit: float,
) -> None:
    t = np.linspace(0.0, 60.0, 6000)
    x, v = unit * np.cos(t), -unit * np.sin(t)
    force = 2.0 * x + 0.15 * unit * np.sign(v)
    noise = 0.01 * unit * np.random.default_rng(1).standard_normal(t.size)
    found = restoring_force(x, v, (noise - force) / 3.0, mass=3.0, bins=30)
    (words,) = _by_direction(found)
    assert f"on average {0.3 * unit:.2g}" in words
    share = 100 * 0.3 / (np.ptp(found.mean) / unit)
    assert f"{share:.2g} % of its range" in words
    damped = restoring_force(x, v, (noise - 2.0 * x - 0.15 * v) / 3.0, mass=3.0, damping=0.15, bins=30)
    assert _by_direction(damped) == []
    assert damped.mean == pytest.approx(2.0 * damped.centres, abs=0.08 * unit)


def test_given_few_places_or_a_small_gap_then_nothing_is_said_of_the_direction() -> None:
    t = np.linspace(0.0, 60.0, 6000)
    x, v = np.cos(t), -np.sin(t)
    for friction, bins, told in ((0.15, 4, False), (0.15, 6, True), (0.005, 30, False), (0.05, 30, True)):
        found = restoring_force(x, v, -2.0 * x - friction * np.sign(v), bins=bins)
        assert bool(_by_direction(found)) == told, (friction, bins)


def test_given_a_signal_with_mean_and_slope_then_neither_is_left() -> None:
    rng = np.random.default_rng(2)
    row = rng.standard_normal(400)
    left = _without_drift(7.0 - 0.3 * np.arange(400.0) + row)
    assert left == pytest.approx(_without_drift(row), abs=1e-9)
    assert np.mean(left) == pytest.approx(0.0, abs=1e-12)
    assert left @ np.arange(400.0) == pytest.approx(0.0, abs=1e-8)


# responses of beams

POLES = np.array([-0.3 + 4.0j, -2.0 + 0.0j, -1.0 + 60.0j, -40.0 + 5.0j])  # times the step: from 0.1 to 3


@pytest.mark.parametrize("count", [3, 25])
def test_given_a_force_at_samples_then_each_mode_follows_the_curve_through_them(count: int) -> None:
    dt = 0.05
    samples = np.random.default_rng(count).standard_normal(count)
    times = dt * np.arange(count)
    curve: Any = CubicSpline(times, samples) if count > 3 else lambda s: np.interp(s, times, samples)
    response, slope = filtered(POLES, samples, dt)
    for pole, row, by_pole in zip(POLES, response, slope, strict=True):
        for end in (1, count - 1):

            def integral(power: int, end: int = end, pole: complex = pole) -> complex:
                def part(s: float) -> complex:
                    left = times[end] - s
                    return complex(left**power * np.exp(pole * left) * curve(s))

                ends = pairwise(times[: end + 1])
                return complex(sum(quad(part, a, b, complex_func=True)[0] for a, b in ends))

            assert row[end] == pytest.approx(integral(0), rel=1e-8)
            assert by_pole[end] == pytest.approx(integral(1), rel=1e-7)
        assert row[0] == 0.0 and by_pole[0] == 0.0


def test_given_a_constant_force_then_modes_and_their_slopes_are_the_closed_form() -> None:
    times = np.array([0.0, 0.01, 0.2, 0.5, 2.0])
    value, slope = stepped(POLES, times)
    z = POLES[:, None] * times
    assert value == pytest.approx((np.exp(z) - 1.0) / POLES[:, None], rel=1e-10)
    step = 1e-6
    above, below = (stepped(POLES + change, times)[0] for change in (step + 0j, -step + 0j))
    assert slope == pytest.approx((above - below) / (2 * step), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("kind", ["none", "proportional", "coupled"])
def test_given_masses_that_damping_couples_then_their_modes_make_up_the_response(kind: str) -> None:
    """Sum over the poles of shape shape' / (s - pole) is the inverse of s^2 + C s + squared frequencies."""
    squared = np.array([4.0, 9.0, 30.0])
    root = np.random.default_rng(5).standard_normal((3, 3))
    damping = {"none": None, "proportional": np.diag([0.1, 0.5, 7.0]), "coupled": 0.3 * root @ root.T}[kind]
    modes = complex_modes(squared, damping)
    C = np.zeros((3, 3)) if damping is None else damping
    assert len(modes.poles) == 6
    for s in (0.7j, 2.5j, 1.0 + 3.0j):
        found = np.einsum("ik,jk,k->ij", modes.shapes, modes.shapes, 1.0 / (s - modes.poles))
        assert found == pytest.approx(np.linalg.inv(s**2 * np.eye(3) + s * C + np.diag(squared)), rel=1e-8)
    counted = {int(k): w for k, w in zip(modes.kept, modes.twice, strict=True)}
    assert sum(counted.values()) == 6
    for k, weight in counted.items():
        assert weight == (2.0 if abs(modes.poles[k].imag) > 1e-9 else 1.0)
        assert modes.poles[k].imag >= 0


# functions as terms of a model


@pytest.mark.parametrize("count", [4, 7])
def test_given_a_spline_then_its_text_has_its_values_and_goes_on_straight(count: int) -> None:
    low, high = -1.5, 2.0
    c = np.random.default_rng(count).standard_normal(count)
    width = (high - low) / (count - 3)
    knots = low + width * np.arange(-3, count + 1)
    spline = BSpline(knots, c, 3)
    definitions: dict[str, Any] = {}
    _spline({"coefficients": c.tolist(), "lower": low, "upper": high}, "H", "x", definitions)
    model = Model.from_equations({"x": "H"}, definitions=definitions)
    at = np.array([-3.0, -1.5, -1.2, 0.1, 0.77, 1.9, 2.0, 2.6])
    rates = np.empty((1, len(at)))
    model.kernels().rhs_many(np.zeros(len(at)), at[None], np.zeros((0, len(at))), np.empty(0), rates)
    inside = np.clip(at, low, high)
    expected = spline(inside) + spline.derivative()(inside) * (at - inside)
    assert rates[0] == pytest.approx(expected, abs=1e-10)


def regression(noise: float) -> tuple[Spline, Any, Any]:
    """A spline seen at 300 places, and a number beside it, as a fit knows them: estimates and information."""
    rng = np.random.default_rng(3)
    spline = Spline("x", 8, -1.0, 1.0)
    x = rng.uniform(-1, 1, 300)
    B = np.column_stack([rng.standard_normal(300), spline.basis(x)])
    y = 0.7 * B[:, 0] + np.sin(2 * x) + noise * rng.standard_normal(300)
    names = ["c", *spline.coefficients("H")]
    information = B.T @ B / noise**2
    found = np.linalg.solve(information, B.T @ y / noise**2)
    functions = {"H": spline}
    fitted: Any = SimpleNamespace(
        names=names, information=information, engine="shooting", estimate=found,
        experiment=SimpleNamespace(model=SimpleNamespace(equations=SimpleNamespace(functions=functions))),
    )  # fmt: skip
    return spline, fitted, found


def result_of(fitted: Any, widened: float) -> Identification:
    errors = np.sqrt(np.diag(np.linalg.inv(fitted.information)))
    parameters = {
        name: replace(Estimate.normal(float(value), widened * float(error)), stderr_ideal=float(error))
        for name, value, error in zip(fitted.names, fitted.estimate, errors, strict=True)
    }
    covariance = widened**2 * np.linalg.inv(fitted.information)
    return Identification("test", "model", True, parameters, covariance=covariance.tolist())


def test_given_errors_that_were_widened_then_a_smooth_curve_and_its_band_are_those_of_so_much_noise() -> None:
    fitted = regression(0.1)[1]
    ideal = with_curves(result_of(fitted, 1.0), fitted)
    curve = ideal.curves["H"]
    x, y = np.array(curve.x), np.array(curve.y)
    assert x[[0, -1]] == pytest.approx([-1.0, 1.0])
    width = np.array(curve.upper) - y
    assert np.mean(np.abs(y - np.sin(2 * x)) < width) > 0.9 and np.all(width > 0) and np.median(width) < 0.1
    assert y - np.array(curve.lower) == pytest.approx(width)
    assert abs(ideal.parameters["c"].value - 0.7) < 4 * ideal.parameters["c"].stderr
    wide = with_curves(result_of(fitted, 3.0), fitted)
    fitted.information = fitted.information / 9
    same = with_curves(result_of(fitted, 1.0), fitted)
    for name, estimate in wide.parameters.items():
        other = same.parameters[name]
        assert (estimate.value, estimate.stderr) == pytest.approx((other.value, other.stderr), rel=1e-6)
    assert wide.curves["H"].y == pytest.approx(same.curves["H"].y, rel=1e-6, abs=1e-9)
    assert wide.curves["H"].upper == pytest.approx(same.curves["H"].upper, rel=1e-6, abs=1e-9)
    freedom = ideal.extra["degrees of freedom"]["H"]
    assert 3.0 < freedom < 10.0  # of ten coefficients
    order = list(wide.parameters)
    assert np.sqrt(np.diag(wide.covariance)) == pytest.approx([wide.parameters[n].stderr for n in order])


def test_given_a_penalty_among_other_unknowns_then_they_are_as_without_it_where_it_does_not_act() -> None:
    """A straight line has no roughness: whatever the weight, line and number are those of least squares."""
    spline, fitted, _ = regression(0.1)
    M = fitted.information
    straight = np.concatenate([[0.7], np.linspace(-1.2, 3.0, spline.knots + 2)])
    found, covariance, weights = smoothed(M, M @ straight, [Roughness.of(spline, list(range(1, 11)), 11)])
    assert found == pytest.approx(straight, abs=1e-3)  # of an error of 0.02
    assert weights[0] > 0 and np.all(np.diag(covariance) <= np.diag(np.linalg.inv(M)) * (1 + 1e-9))
    faint = with_smoothness(fitted)
    assert np.all(np.linalg.eigvalsh(faint - M) > -1e-9 * np.trace(M)) and not np.allclose(
        faint, M, rtol=1e-12
    )
    assert faint == pytest.approx(M, rel=1e-3, abs=1e-4 * M.max())


# jumps of the slope


def test_given_friction_then_the_derivatives_over_an_interval_with_a_jump_are_those_of_differences() -> None:
    model = Model.from_equations(
        {"x": "v", "v": "-k*x - r*sign(v)"}, {"k": {"guess": 1.0}, "r": {"guess": 0.1}}
    )
    values, start = {"k": 1.0, "r": 0.1}, np.array([1.0, 0.0])
    times = 0.2 * np.arange(26)

    def run(first: np.ndarray, k: float = 1.0, r: float = 0.1, at: np.ndarray = times) -> np.ndarray:
        return np.asarray(simulate(model, at, first, {"k": k, "r": r}, rtol=1e-10).states)

    states = run(start)
    clean = Record.from_arrays(5.0, {"x": states[0], "v": states[1]})
    experiment = Experiment(model, clean, Conditions(noise={"x": 1e-3, "v": 1e-3}))
    begin = Start("test", np.array([list(values.values())]), [states], engine="shooting")
    fitted = fit(experiment, begin)
    whole, *_ = linearisations(fitted)
    halves = linearisations(fitted, 2)
    assert len(halves) == 2
    joined = np.concatenate([part.flow for part in halves])
    turns = [i for i in range(25) if states[1, i] * states[1, i + 1] < 0]
    assert turns and min(turns) > 0
    step = 1e-6
    for i in (*turns, 3):
        at, first = times[i : i + 2], fitted.pieces[0].states[:, i]
        exact = np.column_stack(
            [
                (run(first + step * e, at=at) - run(first - step * e, at=at))[:, -1] / (2 * step)
                for e in np.eye(2)
            ]
            + [
                (run(first, at=at, **{n: v + step}) - run(first, at=at, **{n: v - step}))[:, -1] / (2 * step)
                for n, v in values.items()
            ]
        )
        assert whole.flow[i] == pytest.approx(exact, abs=2e-3), i
        if i < 12:
            assert joined[i] == pytest.approx(exact, abs=2e-3)


# states that a search for terms starts from


def test_given_a_state_that_nobody_sees_then_its_equation_is_integrated_along_the_others() -> None:
    """Against SciPy, the state that is seen and the force straight between their samples."""
    model = Model.from_equations(
        {"x": "0*x", "z": "-0.8*z + x*f + 0.3*cos(2*t)"}, inputs={"f": "measured"}, outputs={"x": "x"}
    )
    rng, dt = np.random.default_rng(6), 0.25
    times = 3.0 + dt * np.arange(30)
    x, f = np.cumsum(rng.standard_normal((2, 30)), axis=1) * 0.5
    experiment = Experiment(
        model, Record.from_arrays(1 / dt, {"x": x, "f": f}, drive_time=3.0), Conditions(inputs="linear")
    )
    run = experiment.runs[0]
    seen = np.stack([x, np.zeros(30)])
    before = Motion(seen, seen.copy(), np.zeros(2), {}, (1,))
    after = followed(model, run, before)

    def rate(t: float, z: np.ndarray) -> np.ndarray:
        return np.asarray(-0.8 * z + np.interp(t, times, x) * np.interp(t, times, f) + 0.3 * np.cos(2 * t))

    exact = solve_ivp(rate, (times[0], times[-1]), [0.0], t_eval=times, max_step=dt / 4, rtol=1e-8)
    assert after.smooth[1] == pytest.approx(exact.y[0], abs=2e-4)
    assert np.array_equal(after.smooth[0], x) and np.array_equal(after.values[1], after.smooth[1])
    assert not before.smooth[1].any()  # the motion that was given stays as it is
    assert followed(model, run, replace(before, hidden=())).smooth is before.smooth


def test_given_late_sensors_then_the_motion_is_read_that_much_earlier_and_stands_still_at_the_end() -> None:
    row = np.array([[0.0, 1.0, 4.0, 9.0, 16.0]])
    moved = earlier(Motion(row, 2 * row, np.zeros(1), {}, ()), 1.5)
    assert moved.smooth[0] == pytest.approx([2.5, 6.5, 12.5, 16.0, 16.0])
    assert moved.values[0] == pytest.approx([5.0, 13.0, 25.0, 32.0, 32.0])


def test_given_a_rate_with_an_offset_then_its_integral_is_the_motion_without_the_drift() -> None:
    t = 0.02 * np.arange(3000)
    rate = 3.0 * np.cos(3.0 * t) + 0.4 + 0.01 * t
    found = _integral(rate, 0.02)
    inside = slice(600, -600)
    assert found[inside] == pytest.approx(np.sin(3.0 * t)[inside], abs=0.05)
    short = _integral(np.array([1.0, 2.0, 4.0]), 0.5)
    assert short == pytest.approx(np.array([0.0, 0.75, 2.25]) - 1.0)
