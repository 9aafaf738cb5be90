"""One parameter of a fit on the Identify page: how far it can go, and what it is confused with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PyQt6.QtCore import Qt
from pytestqt.qtbot import QtBot

from analysis.base.record import Record
from app.desktop.pages.identify import IdentifyPage
from app.desktop.window import MainWindow
from tests.waiting import LONG_MS as LONG

DECAY = """
name = "Decay"
[states]
x = "-a*x + b"
[parameters]
a = { guess = 0.7 }
b = { guess = 0.2 }
"""


def _decay(rng: np.random.Generator) -> Record:
    times = np.arange(300) / 50.0
    return Record.from_arrays(50.0, {"x": 1.0 + np.exp(-times) + 0.01 * rng.normal(size=300)})


def test_given_a_fit_when_a_parameter_is_clicked_then_its_profile_comes_and_is_kept_with_the_fit(
    make_window: Callable[..., MainWindow], qtbot: QtBot, rng: np.random.Generator
) -> None:
    window = make_window("identify", begin=False)
    bench, page = window.bench, window.pages["identify"]
    assert isinstance(page, IdentifyPage)
    panel, table = page.profile_panel, page.result_view.table
    assert not panel.trace_button.isEnabled()
    bench.take_record(_decay(rng), "decay")
    page.model_card.editor.setPlainText(DECAY)
    page.model_card.check()
    qtbot.waitUntil(lambda: bench.model is not None and page.run_button.isEnabled(), timeout=LONG)
    qtbot.mouseClick(page.run_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bench.result is not None and page.job is None, timeout=LONG)
    before = bench.result
    assert before is not None and before.verdict == "fits"

    name = table.visualItemRect(table.item(1, 0)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=name)
    assert page.tabs.currentWidget() is panel and panel.chooser.currentText() == "b"
    assert panel.cancel_button.isVisible() and panel.bar.isVisible()
    qtbot.mouseClick(panel.cancel_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: panel.job is None, timeout=LONG)
    assert "Cancelled" in panel.state.text() and bench.result is before

    page.tabs.setCurrentWidget(page.result_view)
    table.setFocus()
    table.setCurrentCell(0, 2)
    qtbot.keyClick(table, Qt.Key.Key_Return)
    assert panel.chooser.currentText() == "a"
    qtbot.waitUntil(lambda: panel.job is None, timeout=LONG)
    found = bench.result
    assert found is not None and "profile of a" in found.curves and len(bench.results) == 1
    a, b = found.parameters["a"], found.parameters["b"]
    assert abs((a.upper - a.lower) / (2 * 1.96 * a.stderr) - 1) < 0.05
    assert panel.state.text().startswith("a = ") and "correlation 0.9" in panel.words.text()
    assert b == before.parameters["b"]
    x, _ = panel.plot._curve.getData()
    assert list(x) == found.curves["profile of a"].x
    # Shown again it is not traced again; of another model nothing is traced.
    page._ask_profile("a")
    assert panel.job is None
    bench.miss_model("The model's text is being read.")
    assert not panel.trace_button.isEnabled() and "earlier model" in panel._refused
