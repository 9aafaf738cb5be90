"""Harmonic balance on a measured steady response: the Silverbox circuit driven by a Schroeder multisine.

The file holds eleven periods of 1024 samples of it, from sample 10 587 on, among other multisines.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.base.record import Record
from analysis.estimate.methods import identify
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import simulate
from app.cli import main
from app.commands.identify import mapped
from drivers.formats import read
from drivers.library import load_model

EXCERPT = Path(__file__).parents[2] / "data" / "silverbox_schroeder_excerpt.mat"
SHARED = Path(__file__).parents[3].parent / "shared" / "data" / "silverbox"
RATE, PERIOD = 1e7 / 2**14, 1024
POOR = {"m": 1e-5, "d": 1e-3, "k1": 0.5, "k2": 0.0, "k3": 1.0, "c": 0.0}


def arrow_error(values: dict[str, float], u: np.ndarray, y: np.ndarray) -> float:
    """Rms error in volts of the simulated response to the benchmark's growing drive."""
    inputs = Inputs.from_samples(0.0, 1 / RATE, np.ascontiguousarray(u[None]))
    times = np.asarray(np.arange(len(u)) / RATE, dtype=np.float64)
    run = simulate(load_model("silverbox"), times, [y[0], 0.0], values, inputs, rtol=1e-7)
    return float(np.sqrt(np.mean((run["y"][1000:] - y[1000:]) ** 2)))


def assert_known_circuit(values: dict[str, float]) -> None:
    frequency = np.sqrt(values["k1"] / values["m"]) / (2 * np.pi)
    damping = values["d"] / (2 * np.sqrt(values["k1"] * values["m"]))
    assert frequency == pytest.approx(68.3, abs=0.1)
    assert damping == pytest.approx(0.049, abs=0.0006)
    assert values["k3"] == pytest.approx(3.91, rel=0.02)


def excerpt() -> Record:
    return mapped(read(EXCERPT, rate=RATE), ["u=V1", "y=V2"])


def test_given_four_measured_periods_when_weighted_by_their_scatter_then_the_circuit_is_found() -> None:
    known = {"frequency": RATE / PERIOD, "starts": (PERIOD,), "orbits": (1,)}
    model = load_model("silverbox").with_values(POOR)
    found = identify(model, excerpt(), "balance", recurrences=4, finish=False, **known)
    assert len(found.extra["orbits"]) == 4
    assert_known_circuit(found.values())
    assert found.residual.per_dof < 2  # the scatter is that of the noise, hum of the mains included
    assert not found.warnings


def test_given_a_shifted_window_then_the_result_stays_within_its_error() -> None:
    known = {"frequency": RATE / PERIOD, "orbits": (1,), "recurrences": 4, "finish": False}
    model, record = load_model("silverbox"), excerpt()
    first = identify(model, record, "balance", starts=(PERIOD,), **known).parameters
    other = identify(model, record, "balance", starts=(PERIOD + 10,), **known).parameters
    assert all(abs(other[n].value - first[n].value) < 2 * first[n].stderr for n in first)


@pytest.mark.skipif(not SHARED.exists(), reason="the Silverbox records are not here")
@pytest.mark.parametrize("finish", [False, True], ids=["balance alone", "finished"])
def test_given_ten_measured_periods_on_the_command_line_then_the_arrow_is_simulated_within_a_millivolt(
    tmp_path: Path, finish: bool
) -> None:
    options = {"frequency": RATE / PERIOD, "starts": 10_700, "orbits": 1, "recurrences": 10}
    command = ["identify", str(SHARED / "Schroeder80mV.mat"), "silverbox", "--method", "balance"]
    command += ["--rate", str(RATE), "--map", "u=V1", "--map", "y=V2", "--json", str(tmp_path / "found.json")]
    for name, value in options.items():
        command += ["--option", f"{name}={value}"]
    for name, value in POOR.items():
        command += ["--guess", f"{name}={value}"]
    assert main(command + ([] if finish else ["--no-finish"])) == 0
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    values = {name: entry["value"] for name, entry in found["parameters"].items()}
    assert_known_circuit(values)
    arrow = np.genfromtxt(SHARED / "SNLS80mV.csv", delimiter=",", skip_header=1, max_rows=40_500)
    assert arrow_error(values, *arrow[:, :2].T) < 0.6e-3
