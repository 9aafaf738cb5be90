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
from app.desktop.pages.report import NO_TEMPLATE, ReportPage
from app.desktop.window import MainWindow
from app.report import templates


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
