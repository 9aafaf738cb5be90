"""The homotopy in closed form: costs, derivatives, information, and what decides between its stages."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.evaluation import Point
from analysis.estimate.homotopy import method, windows
from analysis.estimate.homotopy import search as search_module
from analysis.estimate.homotopy.coupled import (
    CLASSICAL,
    LUTHER,
    Controller,
    CoupledStretch,
    rough_states,
    run_coupled,
    segments_of,
)
from analysis.estimate.homotopy.method import Homotopy, _inside, _let_go
from analysis.estimate.homotopy.observer import linearised, synchronisation_error, uniform_controller
from analysis.estimate.homotopy.output_error import (
    Evaluation,
    Fit,
    OutputError,
    SearchCoordinates,
    information,
)
from analysis.estimate.homotopy.plain import objective
from analysis.estimate.homotopy.result import joint_information, own_estimate
from analysis.estimate.homotopy.search import (
    TRUSTED,
    Search,
    growth_rate,
    misfit,
    noise_levels,
    set_accuracy,
)
from analysis.estimate.homotopy.windows import _why_windows
from analysis.experiment import Experiment
from analysis.experiment.noise_sharing import NoiseSharing
from analysis.model import Model

DT, COUNT = 0.1, 60
MODEL = Model.from_equations(
    {"x": "v", "v": "-c*v - k*x"},
    {"c": {"guess": 0.2}, "k": {"guess": 3.0, "lower": 1e-2, "upper": 1e2}},  # k over four decades
)
TIMES = DT * np.arange(COUNT)


def motion(c: float, k: float, x0: float = 1.0, v0: float = 0.0) -> np.ndarray:
    """x and v of the damped oscillator in closed form."""
    turn = np.sqrt(k - c**2 / 4)
    e, cos, sin = np.exp(-c * TIMES / 2), np.cos(turn * TIMES), np.sin(turn * TIMES)
    x = e * (x0 * cos + (v0 + c * x0 / 2) / turn * sin)
    v = e * (v0 * cos - (k * x0 + c * v0 / 2) / turn * sin)
    return np.array([x, v])


def problem(gap: bool = False, sigma: float = 0.05, model: Model = MODEL) -> OutputError:
    x, v = motion(0.1, 2.5)
    if gap:
        x = np.where((TIMES > 2) & (TIMES < 3), np.nan, x)
    record = Record.from_arrays(1 / DT, {"x": x, "v": v})
    segments = segments_of(Experiment(model, record))
    return OutputError(
        model, segments, SearchCoordinates.of(model), np.array([[sigma, 2 * sigma]]), substeps=4
    )


def start(one: OutputError, c: float = 0.2, k: float = 3.0) -> Point:
    return Point(np.array([c, k]), tuple(np.array([1.1, 0.1]) for _ in one.segments))


def test_given_bounds_then_a_logarithmic_scale_from_three_decades_on() -> None:
    cases = {(1.0, 1000.0): True, (1.0, 999.0): False, (0.0, 1e6): False, (1.0, np.inf): False}
    for (lower, upper), logarithmic in cases.items():
        free = (
            {"guess": 5.0, "lower": lower, "upper": upper}
            if np.isfinite(upper)
            else {"guess": 5.0, "lower": 1.0}
        )
        unknowns = SearchCoordinates.of(Model.from_equations({"x": "-a*x"}, {"b": 1.0, "a": free}))
        assert list(unknowns.logarithmic) == [logarithmic] and list(unknowns.positions) == [1]
        value = np.array([7.0])
        assert unknowns.to_search(value) == pytest.approx(np.log(value) if logarithmic else value)
        assert unknowns.to_values(unknowns.to_search(value)) == pytest.approx(value)
        assert unknowns.slope(value) == pytest.approx(value if logarithmic else 1.0)
    narrow = SearchCoordinates(np.array([0]), np.array([1.0]), np.array([2.0]), np.array([False]))
    assert narrow.to_values(np.array([5.0])) == [2.0] and narrow.to_values(np.array([-5.0])) == [1.0]


@pytest.mark.parametrize("gap", [False, True])
def test_given_a_point_then_its_cost_is_that_of_the_closed_form_and_its_slopes_those_of_differences(
    gap: bool,
) -> None:
    one = problem(gap)
    point, none = start(one), Controller.none(MODEL)
    here = one.evaluate(point, none, 0.0)
    assert one.evaluations == 1
    left = one.segments[0].outputs - motion(0.2, 3.0, 1.1, 0.1)
    weighted = left / np.array([[0.05], [0.1]])
    assert one.samples == np.isfinite(weighted).sum()
    assert here.cost == pytest.approx(0.5 * np.nansum(weighted**2), rel=1e-6)
    measured = one.segments[0].outputs / np.array([[0.05], [0.1]])
    assert one.power == pytest.approx(np.nansum(measured**2))
    gradient = np.concatenate([here.gradient, here.local[0][0]])
    h = 1e-5
    for i, step in enumerate(h * np.eye(4)):
        moved = [one.moved(point, sign * step[:2], [sign * step[2:]]) for sign in (1, -1)]
        ahead, behind = (one.evaluate(p, none, 0.0, sensitivities=False).cost for p in moved)
        assert gradient[i] == pytest.approx(-(ahead - behind) / (2 * h), rel=1e-4)
    assert one.evaluations == 1  # runs without sensitivities are not counted


def test_given_an_evaluation_then_the_information_is_the_inverse_of_the_marginal_covariance() -> None:
    one = problem(True)
    here = one.evaluate(start(one), Controller.none(MODEL), 0.0)
    joint = joint_information(one, here)
    unit = np.diag([1.0, 1 / 3.0, 1.0, 1.0])  # d log k / d k at k = 3
    _, h, cross = here.local[0]
    assert joint == pytest.approx(unit @ np.block([[here.hessian, cross], [cross.T, h]]) @ unit)
    marginal = np.linalg.inv(np.linalg.inv(joint)[:2, :2])
    assert information(here, one.unknowns) == pytest.approx(marginal, rel=1e-6)
    own = own_estimate(one, Fit(here, True, 1, []))
    assert own.names == ["c", "k", "x(0)", "v(0)"]
    assert own.residual.dof == one.samples - 4 and own.residual.chi2 == pytest.approx(2 * here.cost)
    assert own.information == pytest.approx(joint / (2 * here.cost / (one.samples - 4)), rel=1e-9)
    left = one.segments[0].outputs - here.motions[0].outputs
    assert own.residual.rms == pytest.approx(
        dict(zip("xv", np.sqrt(np.nanmean(left**2, axis=1)), strict=True))
    )


def test_given_initial_values_in_units_of_their_own_then_the_information_is_the_same() -> None:
    one = problem(True)
    here = one.evaluate(start(one), Controller.none(MODEL), 0.0)
    gradient, h, cross = here.local[0]
    units = np.array([1e9, 1.0])
    other = replace(here, local=[(gradient / units, h / np.outer(units, units), cross / units)])
    assert information(other, one.unknowns) == pytest.approx(information(here, one.unknowns), rel=1e-6)


def test_given_a_step_then_it_stays_within_bounds_and_three_decades() -> None:
    one = problem()
    low, high = one.reach(Point(np.array([0.2, 1.0]), ()))
    assert low == pytest.approx([-np.inf, np.log(1e-2)]) and high == pytest.approx([np.inf, np.log(1e2)])
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x"}, {"c": {"guess": 0.2}, "k": {"guess": 1.0, "lower": 1e-9, "upper": 1e9}}
    )
    low, high = replace(one, model=model, unknowns=SearchCoordinates.of(model)).reach(
        Point(np.array([0.2, 1.0]), ())
    )
    assert (low[1], high[1]) == pytest.approx((-np.log(1e3), np.log(1e3)))
    bounded = replace(one, segments=[replace(one.segments[0], lower=np.zeros(2), upper=np.array([1.0, 0.0]))])
    assert list(bounded.segments[0].free_initial) == [0]
    moved = bounded.moved(start(bounded), np.zeros(2), [np.array([9.0])])
    assert list(moved.initials[0]) == [1.0, 0.0]


@pytest.mark.parametrize(("integral", "squared"), [(0.0, False), (0.7, False), (0.7, True)])
def test_given_a_coupled_model_then_its_sensitivities_are_those_of_differences(
    integral: float, squared: bool
) -> None:
    one = problem()
    controller = Controller(
        np.array([[1.0, 0.2], [0.5, 2.0]]), integral * np.array([[0.0, 0.3], [1.0, 0.5]]), squared
    )
    point = start(one)
    free = np.array([0, 1])

    def outputs(values: np.ndarray, initial: np.ndarray) -> np.ndarray:
        return run_coupled(
            MODEL, one.segments[0], values, initial, free[:0], controller, 0.6, 4, False
        ).outputs

    run = run_coupled(MODEL, one.segments[0], point.values, point.initials[0], free, controller, 0.6, 4)
    assert not run.diverged and run.slopes.shape == (2, 4, COUNT)
    h = 1e-6
    for i, step in enumerate(h * np.eye(4)):
        ahead = outputs(point.values + step[:2], point.initials[0] + step[2:])
        behind = outputs(point.values - step[:2], point.initials[0] - step[2:])
        assert run.slopes[:, i] == pytest.approx((ahead - behind) / (2 * h), abs=2e-6)


def test_given_a_scalar_law_then_the_controller_pulls_as_the_closed_form_says() -> None:
    """x' = -a x + K (y - x) + I w, w' = y - x with y = t: a linear system, also of y and y' = 1."""
    a, gain, integral = 0.5, 2.0, 1.5
    model = Model.from_equations({"x": "-a*x"}, {"a": {"guess": a}})
    segment = segments_of(Experiment(model, Record.from_arrays(1 / DT, {"x": TIMES})))[0]
    controller = Controller(np.array([[gain]]), np.array([[integral]]))
    none = np.zeros(0, dtype=np.int64)
    from scipy.linalg import expm

    for strength in (1.0, 0.3):
        run = run_coupled(model, segment, np.array([a]), np.array([0.2]), none, controller, strength, 8)
        pull, push = strength * gain, strength * integral
        matrix = np.array([[-a - pull, push, pull, 0], [-1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
        exact = [(expm(matrix * t) @ [0.2, 0.0, 0.0, 1.0])[0] for t in TIMES]
        assert run.states[0] == pytest.approx(exact, abs=1e-7)
    away = np.where(np.arange(COUNT) >= 30, np.nan, TIMES)
    lost = segments_of(Experiment(model, Record.from_arrays(1 / DT, {"x": away})))[0]
    pushed = Controller(np.array([[gain]]), np.zeros((1, 1)))
    run = run_coupled(model, lost, np.array([a]), np.array([0.2]), none, pushed, 1.0, 8)
    # from the last interval with samples at both ends on the model runs by itself
    assert run.states[0, 29:] == pytest.approx(
        run.states[0, 29] * np.exp(-a * (TIMES[29:] - TIMES[29])), rel=1e-6
    )


def test_given_a_published_controller_then_integrals_push_no_kinematic_state() -> None:
    found = uniform_controller(MODEL, 10.0, 3.0, True)
    assert np.all(found.gain == 10.0) and found.squared
    assert found.integral.tolist() == [[0.0, 0.0], [3.0, 3.0]]


def test_given_samples_then_rough_states_are_measured_differentiated_or_the_initial_ones() -> None:
    x = motion(0.1, 2.5)[0]
    model = Model.from_equations({"x": "v", "v": "-k*x - z", "z": "-z"}, {"k": {"guess": 1.0}})
    segment = segments_of(Experiment(model, Record.from_arrays(1 / DT, {"x": x})))[0]
    states = rough_states(model, replace(segment, initial=np.array([9.0, 9.0, 0.7])))
    assert states[0] == pytest.approx(x) and states[1] == pytest.approx(np.gradient(x, DT))
    assert np.all(states[2] == 0.7)
    few = np.full(COUNT, np.nan)
    few[:3] = 1.0  # three samples are no course
    assert np.all(
        rough_states(model, replace(segment, outputs=np.array([few, few, few]), initial=np.ones(3))) == 1.0
    )


def test_given_a_record_then_its_noise_is_as_said_as_seen_or_a_thousandth_of_the_spread() -> None:
    rng = np.random.default_rng(1)
    waves = np.sin(0.05 * np.arange(600)) + 0.02 * rng.standard_normal((2, 600))
    noisy = replace(problem().segments[0], outputs=waves)
    assert noise_levels([noisy])[0] == pytest.approx([0.02, 0.02], rel=0.2)
    assert list(noise_levels([noisy], np.array([[0.3, np.nan]]))[0]) == [0.3, noise_levels([noisy])[0, 1]]
    louder = replace(noisy, record=1, outputs=waves + 0.06 * rng.standard_normal((2, 600)))
    apart = noise_levels([noisy, louder], None, NoiseSharing((0, 1), (True, False)))
    alone = [noise_levels([replace(one, record=0)])[0] for one in (noisy, louder)]
    assert apart[:, 0] == pytest.approx([alone[0][0], alone[1][0]])
    assert apart[:, 1] == pytest.approx(np.median([alone[0][1], alone[1][1]]))
    smooth = replace(noisy, outputs=np.array([np.linspace(0, 1, COUNT), np.full(COUNT, np.nan)]))
    assert noise_levels([smooth])[0] == pytest.approx([1e-3 * np.std(np.linspace(0, 1, COUNT)), 1.0])


def test_given_residuals_then_the_misfit_is_none_within_three_times_the_noise() -> None:
    one = problem()
    measured = one.segments[0].outputs

    def judged(off: float, cost: float) -> float:
        run = SimpleNamespace(outputs=measured + off * np.std(measured, axis=1)[:, None])
        return misfit(one, Evaluation(start(one), cost, [cast(Any, run)]))

    within = 0.5 * 9.0 * one.samples
    assert judged(0.4, 0.99 * within) == 0.0
    assert judged(0.4, 1.01 * within) == pytest.approx(0.4)
    assert judged(0.4, np.inf) == np.inf


def test_given_outputs_with_a_gap_then_the_misfit_counts_the_spread_of_what_was_seen() -> None:
    outputs = 50.0 * motion(0.1, 2.5)
    outputs[0, 10:15] = np.nan
    measured = replace(problem().segments[0], outputs=outputs)
    gaps = OutputError(MODEL, [measured], SearchCoordinates.of(MODEL), np.full((1, 2), 1e-3))
    run = SimpleNamespace(outputs=outputs + 0.4 * np.nanstd(outputs, axis=1)[:, None])
    assert misfit(gaps, Evaluation(start(gaps), 1e9, [cast(Any, run)])) == pytest.approx(0.4)


def test_given_stretches_then_their_growth_is_weighted_by_length(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model.from_equations({"x": "a*x"}, {"a": {"guess": 0.5}})
    long = segments_of(Experiment(model, Record.from_arrays(1 / DT, {"x": TIMES})))[0]
    short = long.cut(0, 20)
    one = OutputError(model, [long, short], SearchCoordinates.of(model), np.ones((1, 1)))
    runs = [SimpleNamespace(states=np.ones((1, len(s)))) for s in one.segments]
    fit = Fit(Evaluation(Point(np.array([0.5]), ()), 1.0, cast(Any, runs)), True, 1, [])
    assert growth_rate(one, fit) == pytest.approx(0.5, rel=1e-4)
    monkeypatch.setattr(search_module, "growth_along", lambda model, segment, *_: float(len(segment)))
    assert growth_rate(one, fit) == pytest.approx((60 * 60 + 20 * 20) / 80)


def test_given_an_accuracy_then_twice_the_steps_change_less_and_half_of_them_more() -> None:
    one = problem(sigma=1e-3)
    point, none = start(one), Controller.none(MODEL)
    set_accuracy(one, point, none, 0.0)

    def outputs(scheme: Any, steps: int) -> np.ndarray:
        free = np.zeros(0, dtype=np.int64)
        args = (
            MODEL,
            one.segments[0],
            point.values,
            point.initials[0],
            free,
            none,
            0.0,
            steps,
            False,
            scheme,
        )
        return run_coupled(*args).outputs

    limit = 1e-5 * one.sigma[0][:, None]
    assert one.scheme is LUTHER
    chosen = outputs(LUTHER, one.substeps)
    assert np.all(np.abs(outputs(LUTHER, 2 * one.substeps) - chosen) < limit)
    assert np.any(np.abs(chosen - outputs(LUTHER, max(one.substeps // 2, 1))) >= limit) or one.substeps == 1
    assert np.any(np.abs(outputs(CLASSICAL, 2) - outputs(CLASSICAL, 1)) >= limit)
    set_accuracy(one, point, none, 1.0)  # coupled: a thousandth of the spread will do
    assert one.scheme is CLASSICAL and one.substeps == 1


def test_given_a_start_beyond_half_the_spread_then_no_descent_is_begun_unless_hoped_for() -> None:
    one = problem(sigma=1e-3)
    none = Controller.none(MODEL)
    search = Search(one, none, SILENT, [])
    far = Point(np.array([0.1, 60.0]), (np.array([1.0, 0.0]),))
    assert misfit(one, one.evaluate(far, none, 0.0, sensitivities=False)) > 0.5
    glance = search.stage(far, 0.0, 1e-10, 50)
    assert glance.iterations == 0 and not glance.converged and search.history == []
    near = Point(np.array([0.12, 2.6]), (np.array([1.0, 0.0]),))
    found = search.stage(near, 0.0, 1e-10, 50)
    assert found.converged and found.point.values == pytest.approx([0.1, 2.5], rel=1e-5)
    assert search.iterations == found.iterations and search.history == found.history
    assert search.stage(far, 0.0, 1e-10, 1, hopeful=True).iterations == 1


def test_given_a_model_that_cannot_follow_then_its_descent_ends_once_the_cost_has_settled() -> None:
    one = problem(sigma=1e-3)
    disturbed = one.segments[0].outputs + np.array([[0.15], [0.3]]) * np.sin(4.0 * TIMES)
    one = replace(one, segments=[replace(one.segments[0], outputs=disturbed)])
    near = Point(np.array([0.2, 2.7]), (np.array([1.0, 0.0]),))
    search = Search(one, Controller.none(MODEL), SILENT, [])
    ended = search.stage(near, 0.0, 1e-10, 50)
    least = search.stage(near, 0.0, 1e-10, 50, hopeful=True)
    assert misfit(one, ended.evaluation) > TRUSTED
    assert ended.cost == pytest.approx(least.cost, rel=1e-3)
    assert not ended.converged and least.converged and ended.iterations < least.iterations
    assert search.iterations == ended.iterations + least.iterations


@pytest.mark.parametrize(
    ("trusted", "iterations", "strengths", "alone"),
    [
        (0.0, 100, [0.0], True),  # it stands alone at once
        (0.4, 100, [0, 1 / 2, 0], False),  # 200 iterations in vain are enough
        # steps back by halves, and ends when it could go down by no more than a tenth
        (
            0.4,
            10,
            [
                0,
                1 / 2,
                0,
                1 / 4,
                3 / 8,
                7 / 16,
                0,
                7 / 32,
                21 / 64,
                49 / 128,
                105 / 256,
                0,
                105 / 512,
                315 / 1024,
                735 / 2048,
                1575 / 4096,
            ],
            False,
        ),
    ],
)
def test_given_stages_then_lambda_falls_as_far_as_the_search_is_trusted(
    trusted: float, iterations: int, strengths: list[float], alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from analysis.estimate.homotopy import method

    tried: list[float] = []

    def stage(point: Any, strength: float, tolerance: float, most: int) -> Any:
        tried.append(strength)
        assert (tolerance, most) == ((1e-10, 100) if strength == 0.0 else (1e-2, 12))
        return SimpleNamespace(point=point, evaluation=strength, strength=strength, iterations=iterations)

    monkeypatch.setattr(method, "growth_rate", lambda *_: 0.0)
    monkeypatch.setattr(method, "misfit", lambda _, strength: 0.0 if strength >= trusted else 1.0)
    search = SimpleNamespace(problem=SimpleNamespace(segments=[one_second()]), stage=stage)
    coupled = SimpleNamespace(point=None, evaluation=1.0, strength=1.0)
    fit, held = _let_go(cast(Any, search), cast(Any, coupled), Homotopy())
    assert tried == strengths
    assert (fit is not None) == alone
    assert cast(Any, held).strength == (1.0 if alone else min(s for s in strengths if s >= trusted))


def one_second() -> CoupledStretch:
    return segments_of(Experiment(MODEL, Record.from_arrays(1 / DT, {"x": TIMES, "v": TIMES})))[0]


def test_given_bounds_then_the_observer_expects_errors_of_a_tenth_of_them_or_of_the_guess() -> None:
    """d(rate of v) = -v dc - x dk: the covariance of the rates' errors is the mean of its squares."""
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x"},
        {"c": {"guess": 0.2, "lower": 0.0, "upper": 8.0}, "k": {"guess": 3.0, "lower": 1e-2, "upper": 1e2}},
    )
    x = motion(0.1, 2.5)[0]
    record = Record.from_arrays(1 / DT, {"x": x})
    segment = segments_of(Experiment(model, record))[0]
    sigma = np.array([0.05, 0.1])
    found = linearised(model, segment, np.array([0.2, 3.0]), SearchCoordinates.of(model), sigma)
    rough = rough_states(model, segment)
    expected = np.mean((0.8 * rough[1]) ** 2) + np.mean((3.0 * rough[0]) ** 2)  # a tenth of 8; log: the guess
    assert found.spread == pytest.approx(np.array([[0.0, 0.0], [0.0, expected]]))
    assert found.slope == pytest.approx(np.array([[0.0, 1.0], [-3.0, -0.2]]))
    assert found.seen == pytest.approx(np.array([[1.0, 0.0], [0.0, 0.0]]))  # v is not measured
    assert found.sensor == pytest.approx(np.diag([0.05**2, 1.0]))
    assert found.size == pytest.approx(np.std(rough, axis=1)) and found.reach == pytest.approx(
        [np.std(x), 1.0]
    )


def test_given_a_model_that_follows_then_its_error_is_counted_in_the_spread_of_the_signal() -> None:
    one = problem()
    none = Controller.none(MODEL)
    point = Point(np.array([0.1, 2.5]), (np.array([1.2, 0.0]),))  # a fifth too large all along
    x, v = motion(0.1, 2.5)
    expected = max(0.2 * np.sqrt(np.mean(row**2)) / np.std(row) for row in (x, v))
    assert synchronisation_error(MODEL, one.segments, point, none, 4) == pytest.approx(expected, rel=1e-4)
    explosive = Point(np.array([-900.0, 2.5]), point.initials)
    assert synchronisation_error(MODEL, one.segments, explosive, none, 4) == np.inf


def test_given_the_published_objective_then_it_is_half_the_integral_of_the_squares() -> None:
    one = problem()
    point = start(one)
    left = one.segments[0].outputs - motion(0.2, 3.0, 1.1, 0.1)
    expected = 0.5 * np.trapezoid(np.sum(left**2, axis=0), dx=DT)
    assert objective(one, point, Controller.none(MODEL), 0.0) == pytest.approx(expected, rel=1e-6)
    explosive = Point(np.array([-900.0, 2.5]), point.initials)
    assert objective(one, explosive, Controller.none(MODEL), 0.0) == 1e10


def test_given_guesses_outside_their_bounds_then_the_search_starts_on_them() -> None:
    unknowns = replace(SearchCoordinates.of(MODEL), lower=np.array([0.5, 1e-2]), upper=np.array([1.0, 2.0]))
    assert list(_inside(MODEL, unknowns)) == [0.5, 2.0]


def test_given_windows_then_chaos_is_named_from_three_lyapunov_times_on() -> None:
    assert "chaotic" in _why_windows(0.31, 10.0)
    assert "chaotic" not in _why_windows(0.29, 10.0)


@pytest.mark.parametrize(("error", "unsure"), [(0.99, False), (1.01, True), (3.5, True)])
def test_given_no_gain_with_which_the_model_follows_then_the_result_is_said_to_be_unsure(
    error: float, unsure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = problem()
    monkeypatch.setattr(method, "choose_controller", lambda *_: (Controller.none(MODEL), error))
    record = Record.from_arrays(1 / DT, dict(zip("xv", motion(0.1, 2.5), strict=True)))
    found = method._default(one, start(one), Homotopy(), Experiment(MODEL, record), SILENT, False)
    assert any("unsure" in words for words in found.warnings) == unsure


@pytest.mark.parametrize(("exponent", "length"), [(2.0, 20), (1.0, 30), (0.7, 42), (0.1, 60)])
def test_given_chaos_then_windows_of_three_lyapunov_times_cover_the_record_from_the_coupled_motion(
    exponent: float, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = problem()
    search = Search(one, Controller.none(MODEL), SILENT, [])
    here = one.evaluate(start(one), search.controller, 0.0)
    coupled = Fit(here, True, 1, [])
    seen: list[Any] = []

    def stage(inner: Search, begin: Point, strength: float, tolerance: float, *_: Any, **__: Any) -> Fit:
        seen.append((inner.problem.segments, begin, strength, tolerance))
        return Fit(inner.problem.evaluate(begin, inner.controller, 0.0), True, 2, [])

    monkeypatch.setattr(Search, "stage", stage)
    record = Record.from_arrays(1 / DT, dict(zip("xv", motion(0.1, 2.5), strict=True)))
    for alone, tolerance in ((True, 1e-10), (False, 1e-4)):
        windows.in_windows(
            search, coupled, exponent, Homotopy(), Experiment(MODEL, record), [], alone
        )  # fmt: skip
        segments, begin, strength, asked = seen.pop()
        assert (strength, asked) == (0.0, tolerance)
        edges = [0]
        for segment, initial in zip(segments, begin.initials, strict=True):
            assert segment.times[0] == pytest.approx(TIMES[edges[-1]])
            assert initial == pytest.approx(here.motions[0].states[:, edges[-1]])
            edges.append(edges[-1] + len(segment))
        assert edges[-1] > COUNT - 10 or edges[-1] == COUNT
        assert all(b - a == length for a, b in pairwise(edges[:-1]))
