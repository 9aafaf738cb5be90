"""Templates of reports: what reports have in common, in a file."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from analysis import DataError, Identification, Record
from analysis.base.identification import Estimate
from app.cli import main
from app.report import templates
from app.report.templates import Template
from drivers.formats import write


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_given_a_template_then_it_reads_back_equal_and_fills_in_the_title(tmp_path: Path) -> None:
    assert templates.names() == []
    kept = Template(
        "{recording} of {project}, {date} {0.__class__}", "Lab", str(tmp_path / "l.png"), "n", ("orbits",)
    )
    assert templates.save("Acceptance test/1", kept) == "Acceptance-test-1"
    assert templates.names() == ["Acceptance-test-1"] and templates.load("Acceptance-test-1") == kept
    assert kept.title_for("run1", "beam") == f"run1 of beam, {date.today()} {{0.__class__}}"
    path = tmp_path / "mine.toml"
    path.write_text("logo = 'logo.png'")
    assert templates.load(str(path)).logo == str(tmp_path / "logo.png")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("colour = 'red'", "'colour' is not known"),
        ("title = 3", "title is a text"),
        ("without = 'orbits'", "names parts"),
        ("without = ['soup']", "not 'soup'"),
        ("without = [['orbits']]", "names parts"),
        ("title =", "cannot be read"),
    ],
)
def test_given_a_template_with_a_mistake_then_one_sentence_says_it(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "t.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        templates.load(str(path))
    with pytest.raises(DataError, match="There is no template 'gone'"):
        templates.load("gone")


def test_given_a_template_on_the_command_line_then_the_report_follows_it(tmp_path: Path) -> None:
    write(Record.from_arrays(50.0, {"x": np.sin(np.arange(60) / 3)}), tmp_path / "run1.h5")
    result = Identification("path", "Beam", True, {"c": Estimate.normal(1.0, 0.1)}, 1)
    (tmp_path / "fit.json").write_text(result.to_json())
    templates.save(
        "ours", Template("Acceptance of {recording}", "Lab 3", notes="By procedure 12.", without=("orbits",))
    )
    out = tmp_path / "r.html"
    command = [
        "report",
        str(tmp_path / "fit.json"),
        "--recording",
        str(tmp_path / "run1.h5"),
        "--out",
        str(out),
    ]
    assert main([*command, "--template", "ours"]) == 0
    text = out.read_text()
    assert "Acceptance of run1" in text and "Lab 3" in text and "By procedure 12." in text
    assert main([*command, "--template", "ours", "--title", "Another", "--author", "Somebody"]) == 0
    assert "Another" in out.read_text() and "Lab 3" not in out.read_text()
    assert main([*command, "--template", "gone"]) == 1
