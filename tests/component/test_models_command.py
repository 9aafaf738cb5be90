"""shakedown models, as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli import main
from drivers.library import model_files


def test_given_no_name_when_run_then_all_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    printed = capsys.readouterr().out
    for name in model_files():
        assert f"\n{name} " in printed


def test_given_json_when_run_then_standard_output_is_json_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["model"] for entry in listed] == list(model_files())
    assert all(entry["states"] for entry in listed)


@pytest.mark.parametrize("name", model_files())
def test_given_name_when_run_then_the_model_is_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", name]) == 0
    printed = capsys.readouterr().out
    assert main(["models", name, "--json", "-"]) == 0
    detail = json.loads(capsys.readouterr().out)
    assert detail["name"] in printed
    for line in detail["equations"]:
        assert line in printed
    assert set(detail["linear"]) <= set(detail["free"]) <= set(detail["parameters"])
    assert len(detail["latex"]) >= len(detail["states"])


def test_given_json_file_when_run_then_written_beside_the_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "model.json"
    assert main(["models", "duffing", "--json", str(target)]) == 0
    assert "dx/dt" in capsys.readouterr().out
    assert json.loads(target.read_text())["free"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            b"[states]\nx = 'gama*x'\n[parameters]\ngamma = 1",
            "line 2, column 6: unknown name `gama`: did you mean",
        ),
        (b"[states]\nx = \"__import__('os').system('x')\"", "line 2, column 17"),
        (b"\xff\xfe\x00", "not a text file"),
        (b"x" * 10_000_000, "too long"),
        (b"[states]\nx = '" + b"(" * 10_000 + b"'", "nested"),
    ],
)
def test_given_bad_file_when_run_then_one_sentence_and_exit_code_1(
    content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    assert main(["models", str(path)]) == 1
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1


def test_given_unknown_name_when_run_then_the_nearest_is_suggested(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["models", "dufing"]) == 1
    assert "did you mean `duffing`?" in capsys.readouterr().err
    assert main(["models", "missing.toml"]) == 1
    assert "cannot be read" in capsys.readouterr().err
    assert main(["models", "."]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_given_listing_when_imported_then_nothing_heavy_is_loaded() -> None:
    code = (
        "import sys; from app.cli import main; main(['models']); "
        "heavy = {'sympy', 'numba', 'scipy', 'matplotlib', 'PyQt6'} & set(sys.modules); sys.exit(len(heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0
