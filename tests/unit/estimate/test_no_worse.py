"""A fit never ends above its start."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from analysis.base.record import Record
from analysis.estimate.finish.finish import finish
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.no_worse import misfit, no_worse_than_start
from analysis.estimate.start import Start
from analysis.experiment import Experiment
from analysis.model import Model

TRUE = np.array([0.05, 4.0])  # damping, stiffness: x'' + c x' + k x = 0


def experiment() -> Experiment:
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x"}, {"c": {"guess": 0.05}, "k": {"guess": 4.0}}, outputs={"x": "x"}
    )
    t = np.arange(1000) * 0.05
    slow = 0.025
    x = np.exp(-slow * t) * np.cos(np.sqrt(4.0 - slow**2) * t)
    noisy = x + 0.01 * np.random.default_rng(3).normal(size=len(t))
    return Experiment(model, Record.from_arrays(20.0, {"x": noisy}))


@pytest.mark.parametrize("engine", ["path", "shooting"])
def test_given_a_fit_that_ended_far_from_its_good_start_then_the_start_is_taken_and_said(
    engine: Literal["path", "shooting"],
) -> None:
    data = experiment()
    wrong = fit(data, Start("weak", np.array([0.5, 7.0]), engine=engine), max_iterations=1)
    assert abs(wrong.estimate[1] - 4.0) > 0.03  # the premise
    sent = replace(wrong, start=Start("weak", TRUE, engine=engine))
    found = no_worse_than_start(sent)
    assert found.estimate[1] == pytest.approx(4.0, abs=0.005)
    if engine == "shooting":  # a path that stopped early follows the data and misses the equations
        assert misfit(found, wrong.sigma) < 0.1 * misfit(wrong, wrong.sigma)
    assert "times the misfit (chi2) of its start" in found.start.warnings[-1]
    assert found.start.method == "weak"


def test_given_a_fit_that_is_better_than_its_start_then_it_is_left_as_it_is() -> None:
    data = experiment()
    good = fit(data, Start("weak", TRUE))
    for values in (TRUE, np.array([0.05, 4.4])):
        sent = replace(good, start=Start("weak", values))
        assert no_worse_than_start(sent) is sent
    assert not finish(data, Start("weak", TRUE)).warnings


@pytest.mark.parametrize(("worse", "taken"), [(1.005, False), (1.02, True)])
def test_given_a_fit_worse_than_its_start_then_two_hundredths_of_the_misfit_count_and_a_half_does_not(
    worse: float, taken: bool
) -> None:
    good = fit(experiment(), Start("weak", TRUE, engine="shooting"))
    pieces = [replace(p, residuals=np.sqrt(worse) * p.residuals) for p in good.pieces]
    sent = replace(good, pieces=pieces, start=good.as_start())
    found = no_worse_than_start(sent)
    assert (found is not sent) is taken
    assert any("of its start" in words for words in found.start.warnings) is taken
