"""The maximum likelihood's end: where it may stop, and what its error bars hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.base.record import Record
from analysis.estimate.finish import fit
from analysis.estimate.finish.assemble import assemble
from analysis.estimate.finish.fit import run_engine
from analysis.estimate.finish.judge import judge
from analysis.estimate.identifiability import covariance_of
from analysis.estimate.start import Start
from analysis.experiment import Conditions, Experiment
from analysis.model import Model
from tests.unit.estimate.test_every_method import NOISE, RATE, TRUTH, model, motion, record


def experiment(off: float = 1.0) -> Experiment:
    """With the noise known: the search may end at any iteration."""
    conditions = Conditions(noise={"x": NOISE, "v": NOISE})
    return Experiment(model(off=off), record(2.0, 21, drive_time=2.0).cut(0, 200), conditions)


def test_given_a_far_start_then_the_search_ends_within_a_small_part_of_an_error_of_the_minimum() -> None:
    best = fit(experiment(), Start("path", experiment().guesses()))
    best = fit(experiment(), best.as_start())
    errors = np.sqrt(np.diag(covariance_of(best.information)))
    for off in (0.3, 0.6, 1.5, 2.0, 3.0):
        found = fit(experiment(off), Start("path", experiment(off).guesses()))
        assert found.converged
        assert np.all(np.abs(found.estimate - best.estimate) < 0.15 * errors)  # asked for: a tenth


@pytest.mark.parametrize("away", [-1.5, 1.5])
def test_given_a_motion_that_obeys_the_equations_some_errors_away_then_the_search_goes_on_to_the_minimum(
    away: float,
) -> None:
    """Much noise: the equations are not linear over an error bar, and a single step does not arrive."""
    oscillator = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x - q*x**3 + 1.2*cos(1.1*t)"},
        {name: {"guess": value} for name, value in TRUTH.items()},
        outputs={"x": "x"},
    )
    x = motion(2.0)[0, :200] + 0.3 * np.random.default_rng(0).normal(size=200)
    data = Experiment(
        oscillator, Record.from_arrays(RATE, {"x": x}, drive_time=2.0), Conditions(noise={"x": 0.3})
    )
    best = fit(data, fit(data, Start("path", data.guesses())).as_start())
    errors = np.sqrt(np.diag(covariance_of(best.information)))
    beside = best.estimate + away * errors * [1, 1, -1]
    motion_there = run_engine(data.with_nothing_free(best.sigma), Start("path", beside))
    found = fit(data, motion_there.as_start())
    assert found.converged
    assert np.all(np.abs(found.estimate - best.estimate) < 0.15 * errors)


def test_given_inputs_that_are_uncertain_then_what_they_add_is_in_every_error_bar() -> None:
    plain = fit(experiment(), Start("path", experiment().guesses()))
    added = 3.0 * covariance_of(plain.information)
    noisy = replace(plain, input_covariance=added)
    before, after = judge(plain), judge(noisy)
    assert np.diag(after.covariance - before.covariance) == pytest.approx(np.diag(added), rel=0.05)
    first, second = assemble(plain, before, {}), assemble(noisy, after, {})
    for name in plain.names:
        ratio = second.parameters[name].stderr_ideal / first.parameters[name].stderr_ideal
        assert ratio == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize(("small", "determined"), [(1e-10, True), (1e-7, True), (1e-13, False)])
def test_given_nearly_equal_effects_of_two_parameters_then_only_rounding_makes_them_undetermined(
    small: float, determined: bool
) -> None:
    """[[1, r], [r, 1]] has the eigenvalues 1 + r and 1 - r, whatever the units."""
    correlated = np.array([[1.0, 1.0 - small], [1.0 - small, 1.0]])
    for unit in (1.0, 1e-6, 1e9):
        scale = np.array([1.0, unit])
        covariance = covariance_of(correlated * np.outer(scale, scale))
        assert np.all(np.isfinite(np.diag(covariance)) == determined)
        if determined:  # the inverse: 1/(1 - r^2)
            assert covariance[0, 0] == pytest.approx(1 / (2 * small - small**2), rel=1e-4)
