"""No command destroys a recording, a model or what it reads, unless it is told to."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from analysis.base.record import Record
from app.cli import main
from drivers.formats import read, write

SIMULATE = ["simulate", "duffing", "--seconds", "2", "--rate", "50"]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    write(Record.from_arrays(100.0, {"x": np.sin(np.arange(400) / 7.0)}, {"x": "mm"}), path)
    return path


def commands(a: Path, target: Path) -> dict[str, list[str]]:
    """Every option that writes a file, pointed at ``target``; ``a`` is a recording to read."""
    return {
        "info json": ["info", str(a), "--json", str(target)],
        "convert": ["convert", str(a), str(target)],
        "convert json": ["convert", str(a), str(a.parent / "new.csv"), "--json", str(target)],
        "select out": ["select", str(a), "--out", str(target)],
        "select json": ["select", str(a), "--json", str(target)],
        "simulate out": [*SIMULATE, "--out", str(target)],
        "simulate json": [*SIMULATE, "--json", str(target)],
        "models json": ["models", "--json", str(target)],
        "rigs json": ["rigs", "--json", str(target)],
        "embed json": ["embed", str(a), "--channel", "x", "--json", str(target)],
        "orbits json": ["orbits", str(a), "--channel", "x", "--json", str(target)],
        "identify json": ["identify", str(a), "duffing", "--json", str(target)],
        "validate json": ["validate", str(a), "duffing", "--json", str(target)],
        "replay out": ["replay", str(a), "--fast", "--out", str(target)],
        "acquire out": ["acquire", "two_well_beam", "--fast", "--seconds", "1", "--out", str(target)],
        "acquire json": ["acquire", "two_well_beam", "--fast", "--seconds", "1", "--out",
                         str(a.parent / "run"), "--json", str(target)],
        "reproduce json": ["reproduce", "duffing", "--json", str(target)],
        "report json": ["report", str(a.parent), "--json", str(target)],
    }  # fmt: skip


@pytest.mark.parametrize("name", list(commands(Path("a"), Path("b"))))
def test_given_a_recording_in_the_way_then_no_command_replaces_it(
    recording: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.h5"
    other.write_bytes(recording.read_bytes())
    link = tmp_path / "link.h5"
    link.symlink_to(recording)
    hard = tmp_path / "hard.h5"
    os.link(recording, hard)
    before = recording.read_bytes()
    there = sorted(tmp_path.iterdir())
    for target in (recording, other, link, hard):
        assert main(commands(recording, target)[name]) == 1
        said = capsys.readouterr().err
        assert said.startswith("shakedown: ")
        assert said.count("\n") == 1
    assert recording.read_bytes() == other.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == there


@pytest.mark.parametrize("option", ["plot", "json"])
@pytest.mark.parametrize("command", ["embed", "orbits", "identify", "validate", "select"])
def test_given_an_own_text_in_the_way_then_it_stays(
    recording: Path, tmp_path: Path, command: str, option: str
) -> None:
    if (command, option) == ("identify", "json"):
        pytest.skip("above")
    mine = tmp_path / "mine.png"
    mine.write_text("my notes")
    arguments = {
        "embed": ["--channel", "x"], "orbits": ["--channel", "x"], "identify": ["duffing"],
        "validate": ["duffing"], "select": [],
    }[command]  # fmt: skip
    assert main([command, str(recording), *arguments, f"--{option}", str(mine)]) == 1
    assert mine.read_text() == "my notes"


def test_given_force_then_it_is_replaced_and_an_earlier_result_is_without(
    recording: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sim.csv"
    assert main([*SIMULATE, "--out", str(out)]) == 0
    first = out.read_bytes()
    assert main([*SIMULATE, "--out", str(out), "--seed", "3", "--snr", "20"]) == 1
    assert out.read_bytes() == first
    assert main([*SIMULATE, "--out", str(out), "--seed", "3", "--snr", "20", "--force"]) == 0
    assert out.read_bytes() != first
    result = tmp_path / "result.json"
    for _ in range(2):
        assert main(["info", str(recording), "--json", str(result)]) == 0
    assert main(["info", str(recording), "--json", str(recording), "--force"]) == 0
    assert recording.read_text().startswith("{")


def test_given_two_outputs_of_one_name_then_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for out, json in (("a.csv", "a.csv"), ("a.csv", "A.CSV"), ("run", "run.h5")):
        assert main([*SIMULATE, "--out", str(tmp_path / out), "--json", str(tmp_path / json)]) == 1
        assert "twice" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_given_a_link_to_an_earlier_result_then_the_link_stays_one(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "link.json").symlink_to("real.json")
    assert main(["info", str(recording), "--json", str(tmp_path / "link.json")]) == 0
    assert (tmp_path / "link.json").is_symlink()
    assert '"samples"' in (tmp_path / "real.json").read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes in folders")
def test_given_a_pipe_a_folder_or_a_missing_folder_as_target_then_one_sentence(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder", "none/x.json", "a.h5/x.json", "", "a\0b"):
        target = str(tmp_path / name) if name else ""
        assert main(["info", str(recording), "--json", target]) == 1
        assert capsys.readouterr().err.count("\n") == 1
    assert (tmp_path / "folder").is_dir()


def test_given_the_demonstration_in_a_folder_of_mine_then_it_keeps_off(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = recording.rename(tmp_path / "beam.h5")
    assert main(["demo", "--seconds", "4", "--out", str(tmp_path)]) == 1
    assert "--force" in capsys.readouterr().err
    assert len(read(mine)) == 400
