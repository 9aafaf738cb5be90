"""Homotopy on measured records: the Silverbox circuit and a pendulum (not shipped; skipped where absent)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.base.record import Record
from analysis.estimate.methods import identify
from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import simulate
from drivers.library import load_model

DATA = Path(__file__).parents[3].parent / "shared" / "data"
RATE = 1e7 / 2**14


@pytest.mark.skipif(not (DATA / "silverbox").exists(), reason="the Silverbox records are not here")
def test_given_the_silverbox_then_the_arrow_is_simulated_within_its_noise() -> None:
    u, y = np.loadtxt(DATA / "silverbox/SNLS80mV.csv", delimiter=",", skiprows=1, usecols=(0, 1)).T
    text = load_model("silverbox").text.replace(
        "y = 0.0\nv = 0.0", "y = { guess = 0.0 }\nv = { guess = 0.0 }"
    )
    guess = {"m": 1e-5, "d": 1e-3, "k1": 0.5, "k2": 0.0, "k3": 1.0, "c": 0.0}
    train = slice(40_650, 40_650 + 8192)
    record = Record.from_arrays(RATE, {"u": u[train], "y": y[train]})
    found = identify(Model.from_toml(text).with_values(guess), record, "homotopy")
    arrow = slice(0, 40_500)
    inputs = Inputs.from_samples(0.0, 1 / RATE, u[None, arrow])
    times = np.asarray(np.arange(40_500) / RATE, dtype=np.float64)
    values = {name: found.values()[name] for name in guess}
    model = load_model("silverbox")
    simulated = simulate(model, times, [y[0], 0.0], values, inputs, rtol=1e-7)["y"]
    error = np.sqrt(np.mean((simulated[1000:] - y[1000:40_500]) ** 2))
    assert error <= 0.45e-3


@pytest.mark.skipif(not (DATA / "pendulum").exists(), reason="the pendulum records are not here")
def test_given_the_pendulum_then_every_segment_gives_the_frequency_and_small_swings_show_dry_friction() -> (
    None
):
    from scipy.io import loadmat

    data = loadmat(DATA / "pendulum/SinglePendulumDataForParameterEstimation.mat")
    model = load_model("pendulum")
    for number, samples in enumerate([*data["Y_id"].ravel(), *data["Y_vad"].ravel()]):
        angle, rate = np.asarray(samples, dtype=np.float64)[:, ::5]
        angle = angle - np.pi  # measured from the upper rest
        start = f"angle = {{ guess = {angle[0]} }}\nrate = {{ guess = {rate[0]} }}"
        free = Model.from_toml(model.text.replace("angle = 1.0\nrate = 0.0", start))
        free = free.with_values({"w2": 50.0, "c": 0.1, "mu": 0.1})
        record = Record.from_arrays(200.0, {"angle": angle})
        found = identify(free, record, "homotopy")
        assert found.values()["w2"] == pytest.approx(64.1, rel=0.005)
        assert any(
            "not white" in words for words in (*found.warnings, *found.reasons)
        )  # bearings are not all that simple
        if number == 5:  # the smallest swings: without dry friction the misfit is far larger
            viscous = free.with_values({"mu": 0.0}).with_free(["w2", "c"])
            worse = identify(viscous, record, "homotopy").residual.rms["angle"]
            assert worse**2 > 1.5 * found.residual.rms["angle"] ** 2
