"""Curves from the command line: a damaged beam, a measured cantilever, an unknown restoring force."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from app.cli import main
from app.reproduce import make_table
from resources.beams.make_damaged import recording, stiffness

BEAMS = Path(str(files("resources"))) / "beams"
OSCILLATOR = """
name = "Unknown spring"
[states]
x = "v"
v = "f - 0.2*v"
[inputs]
f = "measured"
"""


def test_given_damaged_beam_when_identified_then_damage_is_found_within_its_band(tmp_path: Path) -> None:
    out, plot = tmp_path / "beam.json", tmp_path / "beam.png"
    recorded = str(BEAMS / "damaged-cantilever.csv")
    arguments = ["identify", recorded, "damaged-cantilever", "--method", "beam"]
    assert main([*arguments, "--json", str(out), "--plot", str(plot)]) == 0
    curve = json.loads(out.read_text())["curves"]["EI"]
    x, y, lower, upper = (np.array(curve[k]) for k in ("x", "y", "lower", "upper"))
    truth = stiffness(x)
    assert abs(x[np.argmin(y)] - 0.3) < 0.02
    assert upper[np.argmin(y)] < 0.9 * 20.0  # the band excludes the intact beam
    assert np.mean((lower <= truth) & (truth <= upper)) > 0.85
    assert np.sqrt(np.mean((y / truth - 1) ** 2)) < 0.02
    assert plot.stat().st_size > 10_000


def test_given_the_example_recording_when_made_again_then_it_is_the_same() -> None:
    stored = np.genfromtxt(BEAMS / "damaged-cantilever.csv", delimiter=",", names=True)
    again = recording()
    for name in again.names:
        np.testing.assert_allclose(stored[name], again[name], rtol=1e-4, atol=1e-5 * np.std(again[name]))


def test_given_frequencies_alone_when_identified_then_no_recording_is_needed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["identify", "steel-cantilever", "--method", "beam", "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["parameters"]["E"]["lower"] < 1.7e11 < result["parameters"]["E"]["upper"] * 1.02
    assert main(["identify", "duffing", "--method", "weak"]) == 1
    assert "no recording" in capsys.readouterr().err


def test_given_unknown_spring_when_identified_then_curve_with_band_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from scipy.integrate import solve_ivp

    t = np.arange(1001) * 0.02
    y = solve_ivp(
        lambda s, z: [z[1], 3 * np.cos(1.2 * s) - 0.2 * z[1] - z[0] - z[0] ** 3],
        (0, 20), (1, 0), t_eval=t, rtol=1e-9, atol=1e-9,
    ).y  # fmt: skip
    noisy = y[0] + 0.01 * np.std(y[0]) * np.random.default_rng(0).standard_normal(len(t))
    table = np.array([t, noisy, 3 * np.cos(1.2 * t)]).T
    np.savetxt(tmp_path / "run.csv", table, "%.8g", ",", header="t,x,f", comments="")
    (tmp_path / "spring.toml").write_text(OSCILLATOR)
    arguments = [
        "identify",
        str(tmp_path / "run.csv"),
        str(tmp_path / "spring.toml"),
        "--method",
        "energetic",
    ]
    assert main([*arguments, "--option", "unknown=H(x)", "--json", "-"]) == 0
    curve = json.loads(capsys.readouterr().out)["curves"]["H"]
    x = np.array(curve["x"])
    inside = np.abs(x) < 1.2
    np.testing.assert_allclose(np.array(curve["y"])[inside], (x + x**3)[inside], atol=0.05)


@pytest.mark.parametrize("name", ["liu2019-examples", "liu2019-table1", "banks1983-table"])
def test_given_a_published_table_when_reproduced_then_rows_stand_beside_the_printed_ones(name: str) -> None:
    made = make_table(name)
    assert len(made.rows) >= 6
    assert any(row.published is not None for row in made.rows)
    assert made.notes
