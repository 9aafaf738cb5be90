"""shakedown continue: branches from a model, a fit or a tone, and a sentence for what cannot be done."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from app.cli import main

MODEL = """
[states]
x = "v"
v = "-c*v - k*x - k3*x**3 + f"
[inputs]
f = "measured"
[parameters]
c = { guess = 0.1 }
k = { guess = 1.0 }
k3 = { guess = 1.0 }
[outputs]
x = "x"
"""
FIT = {
    "method": "path",
    "model": "m",
    "converged": True,
    "parameters": {
        "c": {"value": 0.08, "stderr": 0.001},
        "k3": {"value": 1.0, "stderr": 0.02},
    },
    "covariance": [[1e-6, 0.0], [0.0, 4e-4]],
}
OVER = ["--over", "frequency", "0.15", "0.25"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.toml").write_text(MODEL)
    (tmp_path / "fit.json").write_text(json.dumps(FIT))
    return tmp_path


def test_a_fit_gives_folds_with_errors_a_table_and_a_picture(files: Path, capsys) -> None:
    assert main(["continue", "m.toml", "--fit", "fit.json", *OVER, "--amplitude", "0.1", "--out", "b.csv",
                 "--plot", "b.png", "--json", "b.json"]) == 0  # fmt: skip
    (branch,) = json.loads((files / "b.json").read_text())["branches"]
    assert branch["ended"] == "bound"
    assert [s["kind"] for s in branch["special"]] == ["fold", "fold"]
    assert all(0 < s["stderr"] < 0.01 for s in branch["special"])
    assert branch["special"][0]["at"] > branch["special"][1]["at"]
    with (files / "b.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(branch["points"])
    assert {row["stable"] for row in rows} == {"0", "1"}
    assert (files / "b.png").stat().st_size > 5000


def test_a_branch_for_each_amplitude_is_shown_in_words(files: Path, capsys) -> None:
    assert main(["continue", "m.toml", *OVER, "--amplitude", "0.1", "--each", "amplitude=0.02,0.1"]) == 0
    shown = capsys.readouterr().out
    assert "amplitude = 0.02" in shown and "amplitude = 0.1" in shown
    assert shown.count("fold") == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["m.toml", *OVER], "--amplitude makes it a tone"),
        (["m.toml", "--over", "frequency", "a", "b", "--amplitude", "1"], "two numbers"),
        (["m.toml", "--over", "frequency", "1", "1", "--amplitude", "1"], "are the same"),
        (["m.toml", "--over", "frequenzy", "1", "2", "--amplitude", "1"], "has no parameter"),
        (["lorenz", "--over", "rho", "20", "24"], "give a guess of the motion's period"),
        (["lorenz", "--over", "rho", "20", "24", "--period", "-1"], "positive number"),
        (["m.toml", *OVER, "--amplitude", "0.1", "--each", "c"], "NAME=A,B"),
        (["m.toml", *OVER, "--amplitude", "0.1", "--out", "b.txt"], "written as .csv"),
        (["m.toml", *OVER, "--amplitude", "nan"], "needs a finite number"),
        (["m.toml", *OVER, "--amplitude", "0.1", "--periods", "0"], "count from 1"),
        (["m.toml", "--over", "c", "0.1", "0.2", "--amplitude", "0.1"], "--set frequency=HZ says"),
        (["m.toml", "--over", "amplitude", "0.1", "0.2", "--amplitude", "0.1"], "--set frequency=HZ says"),
    ],
)
def test_what_cannot_be_followed_gets_one_sentence(
    files: Path, capsys, arguments: list[str], words: str
) -> None:
    assert main(["continue", *arguments]) in (1, 2)
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1
