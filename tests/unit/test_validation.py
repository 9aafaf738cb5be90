"""Validation: a right model passes, a wrong one does not, and the numbers agree with independent ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.record import Excitation, Record
from analysis.simulation import simulate
from analysis.validation import energy_distance, validate
from app.cli import main
from drivers.formats import write
from drivers.library import load_model

DRIVE = 2 * np.pi  # the beam's unit of time is the drive's period over 2 pi


@pytest.fixture(scope="module")
def beam_record() -> Record:
    model = load_model("two_well_beam")
    times = DRIVE / 25 * np.arange(25 * 1050)
    x = simulate(model, times, np.array([0.72, 0.0])).states[0, 25 * 50 :]
    noisy = x + 0.002 * np.random.default_rng(1).normal(size=len(x))
    return Record.from_arrays(25 / DRIVE, {"x": noisy}, excitation=Excitation(1 / DRIVE, 0.25, 0.0))


def test_given_the_right_model_then_orbits_multipliers_and_exponents_agree(beam_record: Record) -> None:
    checks = validate(load_model("two_well_beam"), beam_record, {})
    assert checks.passed, checks.verdict
    found = [o for o in checks.orbits if o.found]
    assert len(found) >= 0.6 * len(checks.orbits)
    short = [o for o in found if o.multiple is not None and o.multiple <= 2]
    for orbit in short:  # local linear maps of the record against the model's own variational equations
        assert orbit.measured_multiplier == pytest.approx(orbit.multiplier, rel=0.25)
    # The divergence of the flow is -c, so the exponents add up to it exactly.
    assert checks.model_exponents.sum() == pytest.approx(-0.035, abs=2e-3)
    assert checks.model_exponents[0] == pytest.approx(0.128, abs=0.03)
    wells = [e for e in checks.equilibria if e.stable]
    assert len(wells) == 2
    assert len(checks.equilibria) == 3


def test_given_a_wrong_model_then_it_does_not_pass(beam_record: Record) -> None:
    checks = validate(load_model("two_well_beam"), beam_record, {"k1": 0.3, "k3": 0.6})
    assert not checks.passed
    assert "NOT validated" in checks.verdict[-1]


def test_given_a_model_that_escapes_then_the_verdict_says_so(beam_record: Record) -> None:
    checks = validate(load_model("two_well_beam"), beam_record, {"k4": -3.0})
    assert checks.escaped
    assert not checks.passed
    assert "escapes" in checks.verdict[0]


def test_given_equal_clouds_then_the_energy_distance_is_small(rng: np.random.Generator) -> None:
    one, other = rng.normal(size=(2, 400)), rng.normal(size=(2, 400))
    assert energy_distance(one, other) < 0.15
    assert energy_distance(one, other + 1.0) > 0.5


def test_given_the_command_then_json_holds_the_verdict(
    beam_record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "beam.h5"
    write(beam_record, path)
    figure = tmp_path / "section.png"
    code = main(
        [
            "validate",
            str(path),
            "two_well_beam",
            "--frequency",
            str(1 / DRIVE),
            "--json",
            "-",
            "--plot",
            str(figure),
        ]
    )
    answer = json.loads(capsys.readouterr().out)
    assert code == (0 if answer["passed"] else 1)
    assert set(answer) >= {"passed", "verdict", "exponents", "orbits", "equilibria", "section"}
    assert figure.stat().st_size > 1000
