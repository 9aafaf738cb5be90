"""Terms that the data support, from the Duffing record of Yuan 1995."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.base.errors import ModelError
from analysis.base.identification import Identification, Residual, estimates
from analysis.base.record import Excitation, Record
from analysis.estimate.search.selection import _path, named_terms, oscillator, select_terms
from analysis.simulation.simulate import simulate
from app.cli import main
from drivers.formats import write
from drivers.library import load_model


def duffing_record(noise: float, rng: np.random.Generator) -> Record:
    step = 2 * np.pi / 1.33 / 100
    times = np.asarray(step * np.arange(35_000), dtype=np.float64)
    states = simulate(load_model("duffing"), times).states[:, 5000:]
    x, v = (row + noise * row.std() * rng.normal(size=len(row)) for row in states)
    return Record.from_arrays(1 / step, {"x": x, "v": v}, excitation=Excitation(1 / (100 * step), 27.0, 0.0))


LIBRARY = ["1", "x", "x^2", "x^3", "x^4", "x^5", "v", "v*abs(v)", "sign(v)"]


def test_given_twenty_noisy_records_then_the_weak_form_picks_exactly_the_true_terms(
    rng: np.random.Generator,
) -> None:
    terms = named_terms(LIBRARY)
    model, hits = oscillator(terms, "27*cos(1.33*t)"), 0
    candidates = [name for name in terms if name != "c1"]
    for _ in range(20):
        part = duffing_record(0.01, rng).cut(0, 4000)
        found = select_terms(model, part, candidates, method="weak", finish=False)
        hits += set(found.kept) == {"k1", "k3"}
    assert hits >= 18


def test_given_one_channel_then_orbits_are_balanced_and_the_true_terms_found(
    rng: np.random.Generator,
) -> None:
    terms = named_terms(LIBRARY)
    whole = duffing_record(0.01, rng)
    record = replace(whole, channels={"x": whole.channels["x"]})
    candidates = [name for name in terms if name != "c1"]
    found = select_terms(
        oscillator(terms, "27*cos(1.33*t)"), record, candidates, orbits=(3, 4, 5, 6), most_orbits=6
    )
    assert found.whole.method == "balance"
    assert set(found.kept) == {"k1", "k3"}
    assert [len(step.terms) for step in found.path] == [8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert {"k1", "k3"} & set(found.indistinguishable) == set()
    assert found.result.values()["k3"] == pytest.approx(1.0, rel=0.01)
    assert set(found.model.free) == {"k1", "k3", "c1"}
    assert "x**5" not in found.model.text  # what was dropped is gone, not zero


def test_given_a_swinging_pendulum_then_dry_friction_is_kept(rng: np.random.Generator) -> None:
    """Free decay with dry and viscous friction, truth from the pendulum of the library."""
    times = np.arange(4000) / 200.0
    states = simulate(load_model("pendulum"), times, [1.2, 0.0]).states
    record = Record.from_arrays(200.0, {"x": states[0] + 1e-3 * rng.normal(size=len(times))})
    terms = named_terms(["sin(x)", "x", "x^3", "v", "v*abs(v)", "tanh(v/0.02)"])
    found = select_terms(oscillator(terms), record, [n for n in terms if n != "c1"], method="weak")
    assert {terms[n] for n in found.kept} == {"sin(x)", "tanh(v/0.02)"}


def test_given_the_chi2_of_subsets_then_it_is_that_of_least_squares(rng: np.random.Generator) -> None:
    design, truth = rng.normal(size=(200, 5)), np.array([2.0, 0.0, -1.0, 0.0, 0.5])
    data = design @ truth + rng.normal(size=200)
    covariance = np.linalg.inv(design.T @ design)
    estimate = covariance @ design.T @ data
    names = list("abcde")
    whole = Identification(
        "weak", "m", True, estimates(names, estimate, covariance), residual=Residual(dof=195.0),
        covariance=covariance.tolist(),
    )  # fmt: skip
    path = _path(whole, names)
    for step in path[1:-1]:
        part = design[:, [names.index(n) for n in step.terms]]
        rest = data - part @ np.linalg.lstsq(part, data, rcond=None)[0]
        full = data - design @ estimate
        assert step.chi2 == pytest.approx(rest @ rest - full @ full, rel=1e-6)
    assert min(path, key=lambda s: s.bic).terms == ("a", "c", "e")


def test_given_the_command_then_a_model_file_is_written_that_identify_reads(
    rng: np.random.Generator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording, model, figure = tmp_path / "run.h5", tmp_path / "found.toml", tmp_path / "path.png"
    write(duffing_record(0.01, rng).cut(0, 4000), recording)
    arguments = ["select", str(recording), "--terms", "1,x,x^2,x^3,sign(v)", "--out", str(model)]
    assert main([*arguments, "--plot", str(figure), "--json", "-"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["kept"] == {"k1": "x", "k3": "x**3"}
    assert answer["parameters"]["p"]["value"] == pytest.approx(27.0, rel=0.01)
    assert [len(step["terms"]) for step in answer["path"]] == [5, 4, 3, 2, 1, 0]
    assert figure.stat().st_size > 5000
    assert main([*arguments, "--force"]) == 0
    assert "smallest model that the data support" in capsys.readouterr().out
    assert main(["identify", str(recording), str(model), "--method", "weak", "--json", "-"]) == 0
    fitted = json.loads(capsys.readouterr().out)["parameters"]
    assert fitted["k3"]["value"] == pytest.approx(1.0, rel=0.01)


def test_given_a_velocity_in_other_units_then_the_command_says_that_nothing_fits(
    rng: np.random.Generator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = duffing_record(0.001, rng)
    write(record.with_channels(v=record["v"] / 40), tmp_path / "run.h5")
    main(["select", str(tmp_path / "run.h5"), "--degree", "3"])
    assert "! The equations miss the data by" in capsys.readouterr().out


def test_given_a_term_that_is_not_there_then_one_sentence_says_so(rng: np.random.Generator) -> None:
    model = oscillator({"k1": "x"}, "cos(t)")
    with pytest.raises(ModelError, match="k9"):
        select_terms(model, Record.from_arrays(1.0, {"x": np.zeros(100)}), ["k9"])
    with pytest.raises(ModelError, match="at least one"):
        oscillator({})
    with pytest.raises(ModelError, match="twice"):
        named_terms(["x", "x^1"])
