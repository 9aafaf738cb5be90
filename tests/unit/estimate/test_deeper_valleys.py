"""Fits that ended beside the deepest minimum: two tanks in a row, and impacts whose cost was rough."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.evaluation import Point
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.linearised import joined, linearisations, regressions_of
from analysis.estimate.methods import identify
from analysis.estimate.shooting.build import problem_of
from analysis.estimate.shooting.problem import ADAPTIVE, FINE, Problem
from analysis.estimate.weak.method import Weak
from analysis.experiment import Experiment
from analysis.model import Model
from benchmarks.strangers.system import load
from benchmarks.strangers.truth import measured, true_record

LEVEL = 0.05  # noise over the spread


@pytest.mark.parametrize("seed", [4004, 4013])
def test_given_tanks_whose_time_constants_can_be_exchanged_then_the_deeper_valley_is_reported(
    seed: int,
) -> None:
    """Output error from the guesses ends 30 % off with white residuals, 25 to 50 of chi-square above it."""
    system = load("tanks")
    record = measured(system, true_record(system, seed), LEVEL, seed)
    result = identify(Model.from_toml(system.model), record)
    assert result.verdict == "fits", result.reasons
    for name, truth in system.truth.items():
        found = result.parameters[name]
        assert abs(found.value - truth) < 4 * found.stderr
        assert found.stderr < 0.05 * truth


TRUTH = np.array([0.2, 4.0, 4000.0, 4.0, 0.5])  # c, k, kc, cc, gap


def impacts() -> tuple[Problem, Point]:
    """The vibro-impact of the benchmarks, 3 s of it: a stop with a damper, so that the force jumps."""
    system = load("impacts")
    times = np.arange(300) / system.rate
    force = 2.0 * np.cos(2 * np.pi * 0.4 * times)
    record = Record.from_arrays(system.rate, {"x": 0.3 * np.sin(times), "f": force})
    problem = problem_of(Experiment(Model.from_toml(system.model), record), np.array([[1e-3]]))
    return problem, Point(np.concatenate([TRUTH, np.zeros(3)])[None], (np.array([0.1, 1.0]),))


def by_scipy(values: np.ndarray, problem: Problem) -> np.ndarray:
    """The motion, from one passage of the stop to the next (SciPy's events)."""
    c, k, kc, cc, gap = values
    stretch = problem.stretches[0]
    f = stretch.inputs

    def slope(t: float, y: np.ndarray, touching: bool) -> list[float]:
        contact = kc * (y[0] - gap) + cc * y[1] if touching else 0.0
        return [y[1], -c * y[1] - k * y[0] - contact + float(f.values(np.array([t]))[0, 0])]

    times, y, t = stretch.times, np.array([0.1, 1.0]), float(stretch.times[0])
    found, touching = np.full(len(times), np.nan), False
    while t < times[-1]:

        def stop(at: float, now: np.ndarray, touching: bool) -> float:
            return float(now[0] - gap)

        stop.terminal, stop.direction = True, -1.0 if touching else 1.0  # type: ignore[attr-defined]
        solved = solve_ivp(
            slope, (t, times[-1]), y, "DOP853", events=stop, dense_output=True, args=(touching,),
            rtol=1e-10, atol=1e-12,
        )  # fmt: skip
        inside = (times >= t) & (times <= solved.t[-1])
        found[inside] = solved.sol(times[inside])[0]
        t, y, touching = float(solved.t[-1]), solved.y[:, -1], not touching
    return found


def test_given_impacts_then_output_error_has_the_motion_and_the_slopes_of_an_integrator_that_meets_them() -> (
    None
):
    """Equal steps of Runge-Kutta had a slope in kc that was 93 % off over 20 s of impacts."""
    problem, point = impacts()
    problem.settle_substeps(point, FINE)
    assert problem.substeps == ADAPTIVE
    motion = problem.evaluate(point).motions[0]
    assert motion.outputs[0] == pytest.approx(by_scipy(TRUTH, problem), abs=1e-5)
    for column, value in enumerate(TRUTH):
        step = np.zeros(len(TRUTH))
        step[column] = 1e-5 * value
        slope = (by_scipy(TRUTH + step, problem) - by_scipy(TRUTH - step, problem)) / (2e-5 * value)
        assert np.linalg.norm(motion.slopes[0, column] - slope) < 2e-3 * np.linalg.norm(slope)


def test_given_impacts_then_a_path_ends_as_one_motion_and_is_linearised_across_them() -> None:
    """The path ended 3 to 10 errors off, 10 of chi-square above the minimum that one motion reaches."""
    system, seed = load("impacts"), 4000
    record = measured(system, true_record(system, seed), LEVEL, seed)
    experiment = Experiment(Model.from_toml(system.model), record)
    fitted = fit(experiment, Weak().start(experiment, SILENT))
    assert fitted.engine == "shooting" and fitted.converged
    error = np.sqrt(np.diag(np.linalg.inv(fitted.information)))
    assert np.all(np.abs(fitted.estimate - TRUTH) < 3 * error)
    regressions, followed = regressions_of(fitted, linearisations(fitted))
    assert followed
    again = np.sqrt(np.diag(np.linalg.inv(joined(regressions)[0])))
    assert again == pytest.approx(error, rel=0.05)


def test_given_motions_that_run_apart_then_a_noisy_force_is_not_taken_as_exact() -> None:
    """Noise on the force moves such a motion far, but mostly along what the unknowns imitate: the close fit
    was held to refute the noise, and the damping ended nine stated errors off with `fits`."""
    system, seed = load("noisy_force_hidden_mass"), 215000
    record = measured(system, true_record(system, seed), LEVEL, seed)
    result = identify(Model.from_toml(system.model), record)
    assert result.verdict == "fits", result.reasons
    for name, truth in system.truth.items():
        found = result.parameters[name]
        assert abs(found.value - truth) < 3 * found.stderr
    assert result.parameters["c1"].stderr > 5e-4  # 1.5e-4 with the force as exact
