"""Inside a project, commands take names of recordings, models and fits, and keep what they find."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from analysis import Channel, Estimate, Identification, Progress, Record
from app import project as projects
from app import project_names as names
from app.campaign.run import results_folder
from app.campaign.store import FITS
from app.campaign.study import plan, read_study
from app.cli import main
from app.report.findings import session_of
from drivers.formats import write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one recording of noise through a resonance; we are in one of its folders."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = projects.create(tmp_path / "beam")
    f = np.random.default_rng(1).standard_normal(4000)
    x = np.convolve(f, np.exp(-0.02 * np.arange(400)) * np.sin(0.5 * np.arange(400)))[:4000]
    write(Record(1000.0, {"x": Channel(x, "mm"), "f": Channel(f, "N")}), made.recordings / "Lauf 1.csv")
    monkeypatch.chdir(made.folder / "reports")
    return made.folder


def test_given_a_name_then_it_is_sought_as_a_path_then_in_the_project(folder: Path) -> None:
    there = str(Path("..") / "recordings" / "Lauf 1.csv")
    for given in ("Lauf 1", "Lauf 1.csv", "recordings/Lauf 1.csv", there):
        assert names.recording(given) == there
    for strange in ("", "gone", "a\0b", "x" * 5000, "..", "recordings"):
        assert names.recording(strange) == strange
    Path("Lauf 1.csv").write_text("t,x\n0,1\n")
    assert names.recording("Lauf 1.csv") == "Lauf 1.csv"  # the one that is here


def test_given_a_name_of_two_recordings_then_the_command_asks_which(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "recordings" / "Lauf 1.h5.journal").write_bytes(b"under way")
    (folder / "recordings" / "Lauf 1.part").write_bytes(b"under way")
    assert names.recording("Lauf 1").endswith("Lauf 1.csv")
    (folder / "recordings" / "Lauf 1.tdms").write_bytes(b"")
    assert main(["info", "Lauf 1"]) == 1
    assert "any of Lauf 1.csv, Lauf 1.tdms" in capsys.readouterr().err


def test_given_a_model_named_like_one_of_the_library_then_the_projects_own_is_taken_and_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert names.model("duffing") == "duffing"
    (folder / "models" / "duffing.toml").write_text("")
    assert Path(names.model("duffing")).samefile(folder / "models" / "duffing.toml")
    assert "not the model of the library" in capsys.readouterr().err


def test_given_commands_in_a_project_then_what_they_tell_is_kept_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert main(["frf", "Lauf 1", "--input", "f", "--output", "x", "--lines", "100", "--json", "-"]) == 0
    told = capsys.readouterr()
    (kept,) = (folder / "analyses").iterdir()
    assert kept.name == "Lauf-1-frf-x-over-f.json" and str(kept) in told.err
    assert json.loads(kept.read_text())["resonances"][0]["frequency"] == pytest.approx(80, abs=1)
    assert main(["frf", "Lauf 1", "--input", "f", "--output", "x", "--lines", "50"]) == 0
    assert len(list((folder / "analyses").iterdir())) == 2
    assert main(["info", "Lauf 1", "--json", "../recordings/Lauf 1.csv"]) == 1  # what is read by name is safe
    assert "is what the command reads" in capsys.readouterr().err


def test_given_an_answer_that_cannot_be_kept_then_it_is_told_all_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "project.toml").write_text("title = 3")
    assert main(["frf", "Lauf 1", "--input", "f", "--output", "x", "--lines", "100"]) == 0
    told = capsys.readouterr()
    assert "H1 of x" in told.out and "not kept in the project" in told.err


def test_given_a_study_in_a_project_then_names_and_results_are_the_projects(
    folder: Path, tmp_path: Path
) -> None:
    study = folder / "lot.toml"
    study.write_text('models = ["duffing"]\n[recordings]\nfiles = ["Lauf*"]\n[channels]\nv = "x"\n')
    found = plan(read_study(study), tmp_path, tmp_path, {}, Progress(), project=folder)
    assert [Path(s.path).name for s in found.seen] == ["Lauf 1.csv"]
    assert results_folder(None, study) == folder / "campaigns" / "lot"
    assert results_folder("else", study) == Path("else")
    (folder / "lot" / FITS).mkdir(parents=True)  # begun before
    assert results_folder(None, study) == folder / "lot"


def test_given_a_fit_of_a_project_that_was_moved_then_its_recording_is_found(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = Identification(
        "path", "duffing", True, {"c": Estimate(1.0, 0.1)},
        recordings=[{"file": "/elsewhere/Lauf 1.csv", "sha256": "0" * 64}],
    )  # fmt: skip
    kept = projects.keep_fit(projects.load(folder), result, "Lauf 1")
    session = session_of(Path(names.fit(kept.stem)))
    assert [Path(r.file).name for r in session.recordings] == ["Lauf 1.csv"]
    assert session.recordings[0].sha256 == "0" * 64  # so that the report says that it is another one
