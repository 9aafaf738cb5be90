"""Restoring force surface against the force that made the motion."""

import numpy as np
import pytest

from analysis.base.errors import ModelError
from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.functions.surface import RestoringForce, restoring_force
from analysis.estimate.methods import identify
from analysis.experiment import Experiment
from analysis.model import Model
from app.reproduce.liu2018 import miura_case
from drivers.library import load_model


def test_given_a_known_spring_when_binned_then_mean_and_spread_follow_it():
    t = np.arange(5000) * 0.01
    x = 2 * np.sin(t)
    force = 3 * x + x**3
    drive = 2 * (-x) + 0.5 * 2 * np.cos(t) + force  # m = 2, c = 0.5
    found = restoring_force(x, 2 * np.cos(t), -x, 2.0, 0.5, drive)
    assert found.mean == pytest.approx(3 * found.centres + found.centres**3, abs=0.4)
    assert found.spread.max() < 0.5
    assert found.count.sum() <= 5000


def test_given_the_miura_ori_when_the_surface_is_drawn_then_it_lies_beside_the_model():
    truth = load_model("miura_ori_measured")
    _, record = miura_case(40, 0)
    result = identify(truth, record, "surface", mass="m", damping="c", base=("Y", "W"), offset="X0", bins=60)
    assert result.residual.other["rms from the model / range"] < 0.03
    measured = np.array(result.curves["restoring force"].y)
    assert np.count_nonzero(np.diff(np.sign(measured))) >= 3  # both wells and the hill between them
    wrong = truth.with_values({"k2": 3.0})
    off = identify(wrong, record, "surface", mass="m", damping="c", base=("Y", "W"), offset="X0")
    assert (
        off.residual.other["rms from the model / range"]
        > 3 * result.residual.other["rms from the model / range"]
    )


def test_given_no_oscillator_when_asked_for_a_surface_then_refused():
    with pytest.raises(ModelError, match="single oscillator"):
        identify(load_model("lorenz"), Record.from_arrays(100, {"x": np.sin(np.arange(100.0))}), "surface")


def test_given_a_noisy_spring_then_the_error_of_each_bin_is_that_of_its_mean():
    rng = np.random.default_rng(1)
    errors, means = [], []
    for _ in range(12):
        x = rng.uniform(-1, 1, 4000)
        force = 3 * x + rng.standard_normal(4000)
        found = restoring_force(x, np.zeros(4000), np.zeros(4000), 1.0, 0.0, force, 20)
        errors.append(found.spread / np.sqrt(found.count))
        means.append(found.mean - 3 * found.centres)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.15)
    model = Model.from_equations({"x": "v", "v": "-4*x - 0.1*v"}, {})
    t = 0.05 * np.arange(2000)
    record = Record.from_arrays(20, {"x": np.cos(2 * t) + 1e-3 * rng.standard_normal(2000)})
    start = RestoringForce(bins=20).start(Experiment(model, record), SILENT)
    curve = start.curves["restoring force"]
    spread = (np.array(curve.upper) - np.array(curve.lower)) / 2
    assert start.findings["standard_error"] == pytest.approx(spread / np.sqrt(start.findings["count"]))
