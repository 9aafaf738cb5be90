"""Uncoupled output error and the portfolio, on systems whose truth SciPy integrates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.evaluation import Point
from analysis.estimate.finish import fit
from analysis.estimate.methods import identify
from analysis.estimate.observability import observability, shown_at_an_instant
from analysis.estimate.shooting.build import problem_of, start_point
from analysis.estimate.shooting.evidence import white_chance
from analysis.estimate.shooting.method import Shooting
from analysis.estimate.shooting.problem import ADAPTIVE, ROUGH
from analysis.experiment import Conditions, Experiment
from analysis.model import Model
from analysis.simulation.simulate import simulate
from benchmarks.strangers.system import System, load
from benchmarks.strangers.truth import measured, true_record


def brought(name: str, level: float, **changes: object) -> tuple[System, Model, Record]:
    """A stranger, shortened where asked for, with its model and a noisy record."""
    system = replace(load(name), **changes)  # type: ignore[arg-type]
    return system, Model.from_toml(system.model), measured(system, true_record(system, 3), level, 3)


def distances(system: System, result: object) -> list[float]:
    parameters = result.parameters  # type: ignore[attr-defined]
    return [abs(parameters[n].value - v) / parameters[n].stderr for n, v in system.truth.items()]


def test_given_a_point_then_the_gradient_is_that_of_finite_differences() -> None:
    _, model, record = brought("ac_coupled", 0.01, seconds=12.0)
    experiment = Experiment(model, record)
    problem = problem_of(experiment)
    point = start_point(experiment, experiment.guesses(), experiment.start_states())
    here = problem.evaluate(point)
    for i in range(len(problem.unknowns)):
        ends = []
        for sign in (1, -1):
            step = np.zeros(len(problem.unknowns))
            step[i] = sign * 1e-5
            ends.append(problem.evaluate(problem.moved(point, step, [np.zeros(3)]), derivatives=False).cost)
        assert here.gradient[i] == pytest.approx(-(ends[0] - ends[1]) / 2e-5, rel=1e-4)


def test_given_only_an_accelerometer_then_every_parameter_is_found_and_its_error_is_the_spread() -> None:
    """Twelve draws of noise: the distances from the truth are standard normal in size."""
    system = replace(load("accelerometer_duffing"), seconds=24.0)
    model, truth = Model.from_toml(system.model), true_record(system, 3)
    assert not shown_at_an_instant(model, Experiment(model, truth).runs[0]).any()
    found = []
    for seed in range(12):
        experiment = Experiment(model, measured(system, truth, 0.05, seed))
        fitted = fit(experiment, Shooting().start(experiment, SILENT))
        assert fitted.engine == "shooting" and fitted.converged
        errors = np.sqrt(np.diag(np.linalg.inv(fitted.information)))
        found.append((fitted.estimate - [system.truth[n] for n in fitted.names]) / errors)
    rms = float(np.sqrt(np.mean(np.square(found))))
    assert 0.6 < rms < 1.5  # 36 numbers, correlated in threes


def test_given_an_engine_then_information_is_the_sum_of_its_projected_jacobians() -> None:
    _, model, record = brought("chain_2", 0.01, seconds=20.0)
    experiment = Experiment(model, record)
    start = Shooting().start(experiment, SILENT)
    by_shooting = fit(experiment, start)
    total = sum(np.einsum("qnp,qnr->pr", p.jacobian, p.jacobian) for p in by_shooting.pieces)
    np.testing.assert_allclose(by_shooting.information, total, rtol=1e-10)
    by_path = fit(experiment, replace(by_shooting.as_start(), engine="path"))
    errors = np.sqrt(np.diag(np.linalg.inv(by_path.information)))
    assert np.all(np.abs(by_path.estimate - by_shooting.estimate) < 0.2 * errors)
    np.testing.assert_allclose(np.sqrt(np.diag(np.linalg.inv(by_shooting.information))), errors, rtol=0.05)


@pytest.mark.parametrize("name", ["displacement_and_accelerometer", "held_force", "clearance"])
def test_given_a_stranger_then_auto_ends_within_four_errors(name: str) -> None:
    system, model, record = brought(name, 0.01, seconds=30.0)
    result = identify(model, record)
    assert max(distances(system, result)) < 4
    assert result.converged and result.chosen and result.extra["tried"]


def test_given_spikes_and_a_gap_then_they_are_said_and_the_answer_stands() -> None:
    system, model, record = brought("spikes", 0.02, seconds=40.0, gap=4.0, spikes=5)
    result = identify(model, record)
    assert max(distances(system, result)) < 4
    assert any("samples of x lie far off" in words for words in result.warnings)


def test_given_a_pair_that_cannot_be_split_then_it_is_named_before_and_after_the_fit() -> None:
    system, model, record = brought("undetermined_pair", 0.01, seconds=20.0)
    words = " ".join(observability(Experiment(model, record)).words)
    assert "b and s only appear as a product" in words
    result = identify(model, record)
    assert all(np.isinf(result.parameters[name].stderr) for name in ("s", "b"))
    assert all(abs(result.parameters[n].value / system.truth[n] - 1) < 0.02 for n in ("c", "k"))


def test_given_bounds_of_an_initial_value_then_the_fit_stays_inside() -> None:
    _, model, record = brought("chain_2", 0.05, seconds=15.0)
    bounded = Model.from_toml(model.text + "\n[initial]\nv1 = { guess = 0.4, lower = 0.3, upper = 2 }\n")
    result = identify(bounded, record, "shooting", finish=False)
    start = Shooting().start(Experiment(bounded, record), SILENT)
    assert result.converged
    assert start.states[0] is not None and start.states[0][1, 0] >= 0.3


def test_given_white_and_coloured_residuals_then_ljung_and_box_tell_them_apart() -> None:
    rng = np.random.default_rng(5)
    chances = [white_chance([rng.standard_normal(500)], 40) for _ in range(200)]
    assert 2 <= sum(p < 0.05 for p in chances) <= 22
    coloured = np.convolve(rng.standard_normal(600), [1.0, 0.5], "valid")
    coloured[100:130] = np.nan
    assert white_chance([coloured], 40) < 1e-6


def test_given_a_motion_that_no_steps_can_follow_then_it_is_lost_and_not_stiff() -> None:
    """dx/dt = x² + 1 is infinite at t = pi/2: no adaptive integrator may be asked to go on."""
    model = Model.from_equations({"x": "a*x**2 + 1"}, {"a": 1.0})
    times = np.linspace(0.0, 4.0, 81)
    record = Record.from_arrays(20.0, {"x": np.sin(times)})
    problem = problem_of(Experiment(model.with_free(["a"]), [record], Conditions()))
    point = Point(np.array([[1.0, 0.0, 0.0, 0.0]]), (np.zeros(1),))
    problem.settle_substeps(point, ROUGH)
    assert problem.substeps != ADAPTIVE
    assert problem.evaluate(point).cost == np.inf


def test_given_more_steps_than_allowed_then_a_run_ends_where_it_is() -> None:
    model = Model.from_equations({"x": "v", "v": "-k*x"}, {"k": 1e6})
    found = simulate(model, np.linspace(0.0, 10.0, 11), [1.0, 0.0], most_steps=500)
    assert found.steps <= 600
    assert found.diverged_at is not None and 0 < found.diverged_at < 10.0
    assert not np.isfinite(found.states[:, -1]).any()


def test_given_initial_values_that_are_asked_for_then_the_search_alone_tells_them_with_marginal_errors() -> (
    None
):
    """Against the regression on derivatives taken by differences, all four unknowns together."""
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x"},
        {"c": {"guess": 0.1, "lower": 0.0}, "k": {"guess": 1.5, "lower": 0.1}},
        outputs={"x": "x"},
        initial={"x": {"guess": 1.0}, "v": {"guess": 0.0}},
    )
    t, sigma = 0.05 * np.arange(300), 0.01

    def motion(u: np.ndarray) -> np.ndarray:
        c, k, x, v = u
        w = np.sqrt(k - c * c / 4)
        return np.asarray(np.exp(-c * t / 2) * (x * np.cos(w * t) + (v + c * x / 2) / w * np.sin(w * t)))

    truth = np.array([0.2, 2.0, 1.0, 0.3])
    noise = sigma * np.random.default_rng(3).standard_normal(300)
    record = Record.from_arrays(20.0, {"x": motion(truth) + noise})
    found = identify(model, record, "shooting", finish=False)
    assert list(found.parameters) == ["c", "k", "x(0)", "v(0)"]
    J = np.array([(motion(truth + h) - motion(truth - h)) / 2e-6 for h in 1e-6 * np.eye(4)])
    expected = sigma * np.sqrt(np.diag(np.linalg.inv(J @ J.T)))
    errors = np.sqrt(np.diag(found.covariance))
    assert errors == pytest.approx(expected, rel=0.15)
    assert [e.stderr for e in found.parameters.values()] == pytest.approx(errors)
    assert np.all(np.abs(np.array(list(found.values().values())) - truth) < 4 * expected)
