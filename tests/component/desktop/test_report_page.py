"""Reports of a laboratory look alike: a template is chosen, or saved from what is filled in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from analysis import Record
from analysis.base.identification import Estimate, Identification
from app import project as projects
from app.desktop.pages.report import NO_TEMPLATE, ReportPage
from app.desktop.window import MainWindow
from app.report import templates
from tests.waiting import LONG_MS as LONG


def test_given_what_is_filled_in_when_saved_as_a_template_then_another_report_takes_it_over(
    make_window: Callable[..., MainWindow],
) -> None:
    window = make_window("report", begin=False)
    page, settings = window.page, window.bench.settings
    assert isinstance(page, ReportPage)
    assert page.template.count() == 1 and page.template.currentText() == NO_TEMPLATE
    window.bench.take_record(Record.from_arrays(100.0, {"x": np.zeros(9)}), "run1")
    page.title.setText("Acceptance of run1")
    page.author.setText("Lab 3")
    page.notes.setPlainText("By procedure 12.")
    page.ticks["embedding"].setChecked(False)
    page.save_template("ours")
    assert templates.load("ours").title == "Acceptance of {recording}"
    assert settings.report_template == page.template.currentText() == "ours"

    second = make_window("report", begin=False, report_template="ours")
    other = second.page
    assert isinstance(other, ReportPage) and other.template.currentText() == "ours"
    second.bench.take_record(Record.from_arrays(100.0, {"x": np.zeros(9)}), "run2")
    other.use_template("ours")
    other.use_template("ours")  # twice changes nothing
    assert other.title.text() == "Acceptance of run2" and other.author.text() == "Lab 3"
    assert other.notes.toPlainText() == "By procedure 12."
    assert not other.ticks["embedding"].isChecked() and other.ticks["fits"].isChecked()
    (templates.folder() / "ours.toml").write_text("soup = 1")
    other.use_template("ours")
    assert "not known" in second.notice._text.text() and other.template.currentText() == NO_TEMPLATE


def test_given_fits_of_another_record_then_they_are_no_part_of_the_report(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window("report", begin=False)
    page, bench = window.page, window.bench
    assert isinstance(page, ReportPage)
    flat = Record.from_arrays(100.0, {"x": np.zeros(9)})
    fits = [Identification("path", name, True, {"k": Estimate.normal(4.0, 0.1)}) for name in "ab"]
    bench.take_record(flat, "run1", tmp_path / "run1.h5")
    bench.take_result(fits[0])
    bench.take_record(flat, "run2", tmp_path / "run2.h5")
    assert not page.ticks["fits"].isEnabled()
    found = page.findings()
    assert found is not None and not found.studies
    bench.take_result(fits[1])
    found = page.findings()
    assert found is not None and [study.result.model for study in found.studies] == ["b"]
    assert page.ticks["fits"].isEnabled() and not page.ticks["earlier"].isEnabled()
    # The words beside a tick are part of it; those of what is not there lead to where it is made.
    words = {b.text(): b for b in page.findChildren(QPushButton)}
    qtbot.mouseClick(words["Fitted parameters"], Qt.MouseButton.LeftButton)
    assert window.page is page and not page.ticks["fits"].isChecked()
    qtbot.mouseClick(words["Its periodic orbits"], Qt.MouseButton.LeftButton)
    assert window.page is window.pages["orbits"]


def test_given_the_same_fit_twice_then_the_report_has_it_once(
    make_window: Callable[..., MainWindow], tmp_path: Path
) -> None:
    window = make_window("report", begin=False)
    page, bench = window.page, window.bench
    assert isinstance(page, ReportPage)
    bench.take_record(Record.from_arrays(100.0, {"x": np.zeros(9)}), "run1", tmp_path / "run1.h5")
    first, other = (
        Identification("path", "spring", True, {"k": Estimate.normal(k, 0.1)}) for k in (4.0, 5.0)
    )
    for fit in (first, other, replace(first)):
        bench.take_result(fit)
    found = page.findings()
    assert found is not None
    assert [study.result.parameters["k"].value for study in found.studies] == [5.0, 4.0]


def test_given_a_written_report_when_another_record_comes_in_hand_then_title_and_view_are_not_of_the_first(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window("report", begin=False)
    page, bench = window.page, window.bench
    assert isinstance(page, ReportPage)
    flat = Record.from_arrays(100.0, {"x": np.zeros(99)})
    (tmp_path / "run1.h5").touch()  # its fingerprint is in the report
    bench.take_record(flat, "run1", tmp_path / "run1.h5")
    assert page.title.placeholderText() == "run1: recording"  # nothing is identified, and nothing checked
    page.run()
    qtbot.waitUntil(lambda: page.job is None, timeout=LONG)
    assert "run1" in page.preview.toPlainText() and page.save_button.isEnabled()
    bench.take_result(Identification("path", "spring", True, {"k": Estimate.normal(4.0, 0.1)}))
    assert "write it again" in page.state.text()
    assert page.title.placeholderText() == "run1: fit"
    bench.take_record(flat, "run2", tmp_path / "run2.h5")
    assert page.title.placeholderText() == "run2: recording"
    assert not page.preview.toPlainText() and not page.save_button.isEnabled() and page.paths is None


def test_given_a_template_then_the_title_follows_the_record_until_somebody_changes_it(
    make_window: Callable[..., MainWindow],
) -> None:
    templates.save("ours", templates.Template("{recording}: acceptance", notes="By procedure 12."))
    window = make_window("report", begin=False, report_template="ours")
    page, bench = window.page, window.bench
    assert isinstance(page, ReportPage)
    assert page.notes.toPlainText() == "By procedure 12."
    flat = Record.from_arrays(100.0, {"x": np.zeros(9)})
    for name in ("run1", "run2"):
        bench.take_record(flat, name)
        assert page.title.text() == f"{name}: acceptance"
    page.title.setText("Mine")
    bench.take_record(flat, "run3")
    assert page.title.text() == "Mine"


def test_given_two_recordings_of_one_name_then_the_fits_of_one_are_not_in_the_report_of_the_other(
    make_window: Callable[..., MainWindow], tmp_path: Path
) -> None:
    bench = make_window("report", begin=False).bench
    flat = Record.from_arrays(100.0, {"x": np.zeros(9)})
    paths = [tmp_path / folder / "run.h5" for folder in ("monday", "tuesday")]
    for path in paths:
        path.parent.mkdir()
        path.touch()
    bench.take_record(flat, "run", paths[0])
    bench.take_result(Identification("path", "spring", True, {"k": Estimate.normal(4.0, 0.1)}))
    bench.take_record(flat, "run", paths[1])
    assert not bench.results_of_record()
    paths[0].unlink()  # moved: known by its name alone
    assert len(bench.results_of_record()) == 1


def test_given_a_copy_of_a_project_then_its_fits_are_those_of_its_own_recordings(
    make_window: Callable[..., MainWindow], tmp_path: Path
) -> None:
    first, copy = (projects.create(tmp_path / name, title=name) for name in ("first", "copy"))
    for project in (first, copy):
        (project.recordings / "run.h5").touch()
    bench = make_window("report", begin=False, project=str(copy.folder)).bench
    bench.take_record(Record.from_arrays(100.0, {"x": np.zeros(9)}), "run", copy.recordings / "run.h5")
    fit = Identification("path", "spring", True, {"k": Estimate.normal(4.0, 0.1)})
    bench.take_result(replace(fit, recordings=[{"file": str(first.recordings / "run.h5")}]))
    assert len(bench.results_of_record()) == 1
