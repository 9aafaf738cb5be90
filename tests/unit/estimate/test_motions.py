"""Simulated motions of the searches: values by an independent integration, derivatives by differences."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.record import Record
from analysis.estimate.evaluation import Point
from analysis.estimate.homotopy import output_error
from analysis.estimate.homotopy.coupled import (
    LUTHER,
    Controller,
    CoupledStretch,
    _cubics,
    run_coupled,
    segments_of,
)
from analysis.estimate.homotopy.plain import objective
from analysis.estimate.methods import identify
from analysis.estimate.shooting.problem import Problem
from analysis.estimate.shooting.run import run, run_adaptive
from analysis.estimate.stretch import Stretch
from analysis.estimate.unknowns import Unknowns
from analysis.experiment import Experiment
from analysis.model import Model
from analysis.signal.inputs import Inputs

MODEL = Model.from_equations(
    {"x": "v", "v": "-c*v - k*x - 0.5*x**3 + f"},
    {"c": {"guess": 0.3}, "k": {"guess": 2.0}},
    inputs={"f": "measured"},
    outputs={"x": "x + 0.2*c*v", "a": "f - c*v - k*x"},
)
DT, N = 0.1, 40
TIMES = 3.0 + DT * np.arange(N)
INPUTS = Inputs.from_samples(2.0, DT, np.sin(1.3 * (2.0 + DT * np.arange(80)))[None])
START = np.array([0.7, -0.4])
FREE = np.array([0, 1], dtype=np.int64)


def force(t: float) -> float:
    return float(INPUTS.values(np.array([t]))[0, 0])


def outputs_of(states: np.ndarray, at: np.ndarray) -> np.ndarray:
    x, v = states
    return np.stack([x + 0.2 * 0.3 * v, INPUTS.values(at)[0] - 0.3 * v - 2.0 * x])


def followed(controller: Controller | None, measured: np.ndarray, strength: float) -> np.ndarray:
    """States by SciPy, the controller with its integrals written out."""
    gain, integral = (
        (np.zeros((2, 2)), np.zeros((2, 2))) if controller is None else (controller.gain, controller.integral)
    )
    cubics = _cubics(TIMES[0], DT, measured)

    def rate(t: float, z: np.ndarray) -> np.ndarray:
        piece = min(int((t - TIMES[0]) / DT + 1e-9), N - 2)
        s = t - TIMES[0] - piece * DT
        c = cubics[:, piece]
        shown = c[:, 0] + s * (c[:, 1] + s * (c[:, 2] + s * c[:, 3]))
        error = shown - outputs_of(z[:2, None], np.array([t]))[:, 0]
        pushed = strength * (gain @ error + integral @ z[2:])
        own = np.array([z[1], -0.3 * z[1] - 2.0 * z[0] - 0.5 * z[0] ** 3 + force(t)])
        squared = controller is not None and controller.squared
        return np.concatenate([own + pushed, error**2 if squared else error])

    start = np.concatenate([START, np.zeros(2)])
    return solve_ivp(rate, (TIMES[0], TIMES[-1]), start, t_eval=TIMES, rtol=1e-8, atol=1e-10, max_step=DT).y[
        :2
    ]


@pytest.fixture(scope="module")
def measured() -> np.ndarray:
    return np.ascontiguousarray(outputs_of(np.stack([np.cos(TIMES), 0.3 * np.sin(2 * TIMES)]), TIMES))


def segment_of(outputs: np.ndarray) -> CoupledStretch:
    """From a first position that is known."""
    lower = np.array([START[0], -np.inf])
    upper = np.array([START[0], np.inf])
    cubics = _cubics(TIMES[0], DT, outputs)
    return CoupledStretch(TIMES, outputs, INPUTS, lower=lower, upper=upper, initial=START, measured=cubics)


def differences(outputs: Any, size: int) -> np.ndarray:
    h = 1e-6
    return np.stack([(outputs(h * e) - outputs(-h * e)) / (2 * h) for e in np.eye(size)], axis=1)


@pytest.mark.parametrize(("strength", "squared"), [(0.0, False), (0.8, False), (0.8, True)])
def test_given_a_coupled_motion_then_values_and_slopes_are_those_of_its_equations(
    measured: np.ndarray, strength: float, squared: bool
) -> None:
    controller = Controller(np.array([[0.5, 0.1], [0.2, 0.3]]), np.array([[0.0, 0.0], [0.4, 0.1]]), squared)
    segment = segment_of(measured)
    found = run_coupled(MODEL, segment, MODEL.values(), START, FREE, controller, strength, 2, True, LUTHER)
    assert found.reached == N and not found.diverged
    exact = followed(controller, measured, strength)
    np.testing.assert_allclose(found.states, exact, atol=2e-6)
    np.testing.assert_allclose(found.outputs, outputs_of(found.states, TIMES), atol=1e-9)

    def outputs(change: np.ndarray) -> np.ndarray:
        initial = START + np.array([0.0, change[2]])
        values = MODEL.values() + change[:2]
        none = FREE[:0]
        return run_coupled(
            MODEL, segment, values, initial, none, controller, strength, 2, False, LUTHER
        ).outputs

    np.testing.assert_allclose(found.slopes, differences(outputs, 3), atol=1e-6)


def test_given_missing_samples_then_the_controller_lets_go_of_them(measured: np.ndarray) -> None:
    """Without any sample the coupled motion is the free one."""
    lost = np.full_like(measured, np.nan)
    controller = Controller(np.full((2, 2), 0.7), np.zeros((2, 2)))
    segment = segment_of(lost)
    found = run_coupled(MODEL, segment, MODEL.values(), START, FREE, controller, 1.0, 2, False)
    np.testing.assert_allclose(found.states, followed(None, np.zeros_like(measured), 0.0), atol=2e-5)
    gappy = measured.copy()
    gappy[0, 10] = np.nan
    cubics = _cubics(TIMES[0], DT, gappy)
    assert np.isnan(cubics[0, [9, 10]]).all()
    assert np.isfinite(cubics[0, [8, 11]]).all() and np.isfinite(cubics[1]).all()


def test_given_bounds_of_the_first_state_then_a_stretch_behind_a_gap_does_not_know_them() -> None:
    """The first position lies between 0.8 and 1.2; ten seconds later it may be anywhere."""
    model = Model.from_equations(
        {"x": "v", "v": "-k*x + f"}, {"k": {"guess": 4.0}}, inputs={"f": "measured"}, outputs={"x": "x"},
        initial={"x": {"guess": 1.0, "lower": 0.8, "upper": 1.2}},
    )  # fmt: skip
    times = 0.05 * np.arange(400)
    force = np.where((times > 9) & (times < 10), np.nan, 0.0)
    first, second = segments_of(
        Experiment(model, Record.from_arrays(20.0, {"x": np.cos(2 * times), "f": force}))
    )
    assert first.upper[0] == 1.2 and len(second.upper) == 0
    assert first.free_initial.tolist() == second.free_initial.tolist() == [0, 1]
    assert second.times[0] == pytest.approx(10.0) and second.initial[0] == pytest.approx(np.cos(20.0))
    assert second.cut(3, 40).measured.shape == (1, 37, 4) and first.cut(0, 40).upper[0] == 1.2
    problem = output_error.OutputError(
        model, [first, second], output_error.SearchCoordinates.of(model), np.ones(1)
    )
    start = output_error.Point(model.values(), (first.initial, second.initial))
    moved = problem.moved(start, np.zeros(1), [np.array([5.0, 0.0]), np.array([-5.0, 1.0])])
    assert moved.initials[0] == pytest.approx([1.2, first.initial[1]])
    assert moved.initials[1] == pytest.approx(second.initial + [-5.0, 1.0])


def test_given_the_published_objective_then_it_is_half_the_integral_of_the_squared_error(
    measured: np.ndarray,
) -> None:
    segment = segment_of(measured)
    problem: Any = SimpleNamespace(model=MODEL, segments=[segment, segment], substeps=2)
    point: Any = SimpleNamespace(values=MODEL.values(), initials=[START, START])
    left = measured - outputs_of(followed(None, np.zeros_like(measured), 0.0), TIMES)
    each = 0.5 * np.trapezoid(np.sum(left**2, axis=0), dx=DT)
    assert objective(problem, point, Controller.none(MODEL), 0.0) == pytest.approx(2 * each, rel=1e-4)


def test_given_a_free_motion_then_fixed_and_adaptive_steps_agree_with_an_independent_integration() -> None:
    exact = followed(None, np.zeros((2, N)), 0.0)
    fixed = run(MODEL.kernels(), TIMES, INPUTS, MODEL.values(), START, 2, 4, FREE)
    adaptive = run_adaptive(MODEL, TIMES, INPUTS, MODEL.values(), START, FREE)

    def outputs(change: np.ndarray) -> np.ndarray:
        values = MODEL.values() + change[:2]
        return run(MODEL.kernels(), TIMES, INPUTS, values, START + change[2:], 2, 4).outputs

    slopes = differences(outputs, 4)
    for found, close in ((fixed, 1e-6), (adaptive, 1e-4)):
        assert found.reached == N and not found.diverged
        np.testing.assert_allclose(found.states, exact, atol=close)
        np.testing.assert_allclose(found.outputs, outputs_of(found.states, TIMES), atol=1e-9)
        np.testing.assert_allclose(found.slopes, slopes, atol=2 * close)
    alone = run_adaptive(MODEL, TIMES, INPUTS, MODEL.values(), START)
    np.testing.assert_allclose(alone.states, exact, atol=1e-4)
    assert alone.slopes.shape == (2, 0, N)
    lost = run(MODEL.kernels(), TIMES, INPUTS, np.array([-400.0, 2.0]), START, 2, 4)
    assert lost.diverged and lost.reached < N


def test_given_a_shooting_problem_then_gradient_and_curvature_are_those_of_its_cost(
    measured: np.ndarray,
) -> None:
    """Two records with an offset, a delay and a drift; c on a logarithmic scale; samples missing."""
    size = 2 + 3 * 2
    unknowns = Unknowns([(0, -1), (1, -1), (2, 0), (2, 1), (5, -1), (6, -1)], 2)
    gappy = measured.copy()
    gappy[1, 7:12] = np.nan
    stretches = [
        Stretch(TIMES, measured, INPUTS, record=0, origin=float(TIMES[0])),
        Stretch(TIMES[:30], np.ascontiguousarray(gappy[:, :30]), INPUTS, record=1, origin=1.0),
    ]
    logs = np.zeros(size, bool)
    logs[0] = True
    problem = Problem(
        MODEL, stretches, unknowns, np.full(size, -np.inf), np.full(size, np.inf), logs, np.ones(size),
        np.array([[0.5, 2.0], [0.8, 1.5]]), substeps=2,
    )  # fmt: skip
    values = np.array(
        [[0.3, 2.0, 0.1, 0.0, 0.0, 0.02, 0.05, 0.0], [0.3, 2.0, -0.2, 0.0, 0.0, 0.02, 0.05, 0.0]]
    )
    point = Point(values, (START, START + 0.1))
    here = problem.evaluate(point)

    def cost(change: np.ndarray) -> float:
        moved = problem.moved(point, change[:6], [change[6:8], change[8:]])
        return problem.evaluate(moved, derivatives=False).cost

    h = 1e-5
    slope = np.array([(cost(h * e) - cost(-h * e)) / (2 * h) for e in np.eye(10)])
    assert here.gradient == pytest.approx(-slope[:6], rel=1e-4, abs=1e-5)  # downhill
    for (g, _, _), part in zip(here.local, (slope[6:8], slope[8:]), strict=True):
        assert g == pytest.approx(-part, rel=1e-4, abs=1e-5)

    def residuals(change: np.ndarray) -> np.ndarray:
        moved = problem.moved(point, change[:6], [change[6:8], change[8:]])
        rows = problem.residuals(problem.evaluate(moved, derivatives=False))
        weighted = [np.nan_to_num(r / s[:, None]).ravel() for r, s in zip(rows, problem.sigma, strict=True)]
        return np.concatenate(weighted)[None, :]

    J = differences(residuals, 10)[0]
    whole = J @ J.T
    assert here.hessian == pytest.approx(whole[:6, :6], rel=1e-4, abs=1e-4)
    for k, (_, own, cross) in enumerate(here.local):
        rows = slice(6 + 2 * k, 8 + 2 * k)
        assert own == pytest.approx(whole[rows, rows], rel=1e-4, abs=1e-4)
        assert cross == pytest.approx(whole[:6, rows], rel=1e-4, abs=1e-4)


def test_given_the_published_weak_form_then_its_errors_are_those_of_its_rows() -> None:
    """Least squares over all rows as if they were independent: within the factor of the splines' overlap."""
    model = Model.from_equations({"x": "-k*x"}, {"k": {"guess": 0.5}})
    t = 0.05 * np.arange(120)
    errors, values = [], []
    for seed in range(12):
        noisy = np.exp(-0.8 * t) + 0.01 * np.random.default_rng(seed).standard_normal(len(t))
        found = identify(model, Record.from_arrays(20.0, {"x": noisy}), "weak", plain=True, finish=False)
        values.append(found.parameters["k"].value)
        errors.append(found.parameters["k"].stderr)
    assert np.mean(values) == pytest.approx(0.8, abs=0.02)
    assert 0.3 < np.mean(errors) / np.std(values) < 5.0
