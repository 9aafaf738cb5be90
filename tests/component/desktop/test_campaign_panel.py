"""Identify all: chosen in the library, a table that fills, a click that opens a fit, trends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from pytestqt.qtbot import QtBot

from analysis import Model, Record
from app.campaign.results import Results
from app.desktop.pages.recordings import RecordingsPage
from app.desktop.window import MainWindow
from drivers.formats import write
from tests.ringing import MODEL, record
from tests.waiting import LONG_MS as LONG

Make = Callable[..., MainWindow]


def test_given_recordings_when_all_are_identified_then_the_table_fills_and_a_click_opens_a_fit(
    make_window: Make, qtbot: QtBot, folders: Path, rng: np.random.Generator
) -> None:
    library = folders / "data" / "shakedown" / "recordings"
    library.mkdir(parents=True)
    for i in range(3):
        about = {"temperature": 20.0 + i, "operator": "AB"[i % 2]}
        made = record(4.0 + 0.1 * i, rng, start=f"2026-03-0{i + 1}T08:00:00+00:00", metadata=about)
        write(made, library / f"beam{i}.h5")
    write(Record.from_arrays(20.0, {"other": np.sin(np.arange(100.0))}), library / "strange.h5")
    window = make_window(begin=False)
    window.show_page("recordings")
    page = window.page
    assert isinstance(page, RecordingsPage)
    qtbot.waitUntil(lambda: page.list.count() == 4, timeout=LONG)
    page.list.selectAll()
    panel = page.campaign
    assert panel is not None and page.right.currentWidget() is panel
    assert not panel.run_button.isEnabled() and "Choose a model" in panel.state.text()
    window.bench.take_model(Model.from_toml(MODEL), "ring")
    panel.method.setCurrentIndex(panel.method.findData("weak"))
    panel.run()
    job = panel.job
    assert job is not None
    with qtbot.waitSignal(job.ended, timeout=LONG):
        pass
    found = {fit.path.stem: fit for fit in panel.fits}
    assert {name for name, fit in found.items() if fit.parameters} == {"beam0", "beam1", "beam2"}
    assert "none of the outputs" in found["strange"].failure
    assert panel.table.rowCount() == 4
    waiting = replace(found["beam0"], parameters=None, verdict="")
    panel._done(Results([], [], {"It was ended.": ["beam0"]}, {}))  # a job that was lost is not kept
    assert panel._told(waiting).failure == "It was ended." and panel._told(found["beam1"]).failure == ""
    assert panel.over.itemText(0) == "date"
    panel.parameter.setCurrentText("k")
    panel.over.setCurrentText("temperature")
    panel._draw()
    x, y = panel.dots.getData()
    assert sorted(x) == [20.0, 21.0, 22.0]
    assert np.allclose(np.array(y)[np.argsort(x)], [4.0, 4.1, 4.2], atol=0.02)
    panel.over.setCurrentText("operator")
    panel._draw()
    assert sorted(panel.dots.getData()[0]) == [1.0, 1.0, 2.0]
    row = next(i for i, fit in enumerate(panel.fits) if fit.path.stem == "beam1")
    with qtbot.waitSignal(window.bench.result_changed, timeout=LONG):
        panel.open_fit(row)
    assert window.bench.record is not None and window.bench.record.name == "beam1"
    result = window.bench.result
    assert result is not None and abs(result.values()["k"] - 4.1) < 0.02
    assert window.bench.result_is_of() == ""
    window.show_page("recordings")
    page._fill()  # as after every look at the library
    assert page.right.currentWidget() is panel and len(page.list.selectedItems()) == 4
    page.list.clearSelection()
    page.list.setCurrentRow(0)
    assert page.right.currentIndex() == 1
