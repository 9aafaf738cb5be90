"""Held orbits as data: parameters come back within their errors, and an orbit counts by how well it is known.

The truth is a hardening oscillator under one sine, with two steady motions, integrated by SciPy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis import DataError, Identification, Model, identify
from app.held_orbits import held_records, is_held

TRUE = {"c": 0.1, "k1": 1.0, "k3": 0.5}
OMEGA, FORCE, NODES = 1.6, 0.6, 50
MODEL = Model.from_toml("""
name = "hardening"
[states]
x = "v"
v = "-c*v - k1*x - k3*x**3 + f"
[inputs]
f = "measured"
[parameters]
c = { guess = 0.15 }
k1 = { guess = 1.2 }
k3 = { guess = 0.4 }
""")


def _steady(start: tuple[float, float]) -> np.ndarray[Any, Any]:
    """x and v at the nodes of a period, after the transient."""

    def slope(t: float, y: np.ndarray[Any, Any]) -> list[float]:
        pull = TRUE["c"] * y[1] + TRUE["k1"] * y[0] + TRUE["k3"] * y[0] ** 3
        return [y[1], FORCE * np.cos(OMEGA * t) - pull]

    turns = 40
    times = 2 * np.pi / OMEGA * (turns + np.arange(NODES) / NODES)
    found = solve_ivp(slope, (0, times[-1]), start, t_eval=times, method="DOP853", rtol=1e-8, atol=1e-10)
    return np.asarray(found.y)


@pytest.fixture(scope="module")
def orbits() -> list[np.ndarray[Any, Any]]:
    low, high = _steady((0.0, 0.0)), _steady((2.5, 0.0))
    assert np.ptp(high[0]) > 2 * np.ptp(low[0])  # both steady motions were found
    return [low, high]


def _write(path: Path, orbits: list[np.ndarray[Any, Any]], errors: list[float], seed: int) -> str:
    rng = np.random.default_rng(seed)
    phase = 2 * np.pi * np.arange(NODES) / NODES
    told = [
        {"number": i, "periods": 1, "verdict": "held", "phase": phase.tolist(),
         "input": {"f": (FORCE * np.cos(phase)).tolist()},
         "averaged": {
             name: {"mean": (row + error * rng.standard_normal(NODES)).tolist(), "stderr": [error] * NODES}
             for name, row in zip("xv", states, strict=True)
         }}
        for i, (states, error) in enumerate(zip(orbits, errors, strict=True), 1)
    ]  # fmt: skip
    told.append({**told[0], "verdict": "invasive", "number": 9})
    text = {"orbits": told, "drive": {"frequency": OMEGA / (2 * np.pi), "amplitude": FORCE}}
    path.write_text(json.dumps(text))
    return str(path)


def _worst(found: Identification) -> float:
    return max(abs(found.parameters[n].value - v) / found.parameters[n].stderr for n, v in TRUE.items())


@pytest.mark.parametrize("method", ["path", "balance"])
def test_given_held_orbits_when_identified_then_the_truth_lies_within_the_errors(
    orbits: list[np.ndarray[Any, Any]], tmp_path: Path, method: str
) -> None:
    records = held_records(_write(tmp_path / "held.json", orbits, [1e-3, 1e-3], 4), method == "balance")
    assert len(records) == 2  # what was not held is no data
    assert records[0].channels["x"].noise == pytest.approx(1e-3)
    found = identify(MODEL, records, method)
    assert _worst(found) < 4
    assert all(abs(found.parameters[n].value / v - 1) < 0.02 for n, v in TRUE.items())


def test_given_one_orbit_known_ten_times_better_then_it_counts_for_more(
    orbits: list[np.ndarray[Any, Any]], tmp_path: Path
) -> None:
    both = identify(MODEL, held_records(_write(tmp_path / "a.json", orbits, [1e-2, 1e-2], 4)), "path")
    good = identify(MODEL, held_records(_write(tmp_path / "b.json", orbits, [1e-2, 1e-3], 4)), "path")
    assert _worst(good) < 4
    assert good.parameters["k3"].stderr < 0.3 * both.parameters["k3"].stderr


def test_given_a_result_of_something_else_then_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    path.write_text("{}")
    assert is_held(str(path)) and not is_held("beam.h5")
    with pytest.raises(DataError, match="is not a result of `shakedown hold`"):
        held_records(str(path))
    path.write_text(json.dumps({"orbits": [{"verdict": "lost"}], "drive": {"frequency": 1, "amplitude": 1}}))
    with pytest.raises(DataError, match=r"No orbit of .* was held"):
        held_records(str(path))
    path.write_text(json.dumps({"orbits": [{"verdict": "held"}], "drive": {"frequency": 1, "amplitude": 1}}))
    with pytest.raises(DataError, match="earlier version"):
        held_records(str(path))
