"""A branch tracked from the Response page: asked for in fields, drawn as it grows, judged at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyqtgraph as pg
import pytest
from pytestqt.qtbot import QtBot

from app.desktop.pages.response import ResponsePage
from app.desktop.window import MainWindow
from drivers.base.protocols import LoopStatus
from drivers.library import load_model
from tests.waiting import LONG_MS as LONG


def _point(goal: float, force: float, stable: bool | None = None) -> dict[str, Any]:
    return {
        "goal": goal, "frequency": 28.0, "frequency_stderr": 0.0, "amplitude": goal,
        "amplitude_stderr": 1e-6, "phase": 0.3, "phase_stderr": 1e-3, "force": force, "force_stderr": 2e-4,
        "stable": stable,
    }  # fmt: skip


def test_given_a_branch_then_fields_are_checked_points_grow_and_what_it_is_worth_is_told(
    make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    window = make_window("response", rig="hardening_beam", start_shaking=False)
    page = window.page
    assert isinstance(page, ResponsePage)
    page.tabs.setCurrentIndex(1)
    panel = page.track_panel
    assert (panel.response.currentText(), panel.force.currentText(), panel.to.unit) == ("x", "f", "m")
    assert not panel.fields.isRowVisible(panel.at)  # a backbone finds its frequency itself
    panel.kind.setCurrentIndex(1)
    assert panel.fields.isRowVisible(panel.at) and panel.at.unit == "Hz"
    panel.toggle()
    assert "at which the curve is followed is positive" in panel.state.text() and panel.run is None
    panel.at.setValue(28.0)
    panel.to.setValue(0.0012)
    panel.model.setCurrentIndex(2)
    panel.toggle()
    assert "There is no fit yet" in panel.state.text() and panel.run is None

    request, channels = panel.request()
    assert (request.kind, request.at, request.to, request.begin) == ("force", 28.0, 0.0012, None)
    model = load_model("hardening_beam").with_values({"m": 0.1, "c": 0.3142, "k1": 2467.4, "k3": 7.4e8})
    panel._asked, panel._model = (request, channels), (model.to_toml(), {})
    panel.plot.begin("force", "N", "m")
    assert not panel.plot.item.getAxis("bottom").style["showValues"]  # nothing is there yet
    panel._news(("on the way out", LoopStatus("holding", "", 0.0016, 0.0, 0.0, 100, 3, 0)))
    assert panel.state.text() == "On the way out …" and "3 deadlines missed" in panel.loop.text()
    panel._news(_point(1e-4, 0.07))
    panel._news(_point(4e-4, 0.22))
    x, y = panel.plot.dots.getData()
    assert list(x) == [0.07, 0.22] and list(y) == [1e-4, 4e-4]
    assert panel.plot.item.getAxis("bottom").style["showValues"]
    assert panel.plot.bars.opts["width"] == pytest.approx(4 * 2e-4)  # two standard errors on either side
    qtbot.waitUntil(lambda: len(panel.plot.model.getData()[0]) == 120, timeout=LONG)
    line = panel.plot.model.getData()
    assert line[1][0] == pytest.approx(1e-4) and line[1][-1] == pytest.approx(4e-4)

    result = {
        "points": [_point(1e-4, 0.07, True), _point(7e-4, 0.1, False), _point(6e-4, 0.2)],
        "folds": [{"over": "force", "at": 0.259, "stderr": 1e-4, "amplitude": 6.1e-4}], "verdict": "moved",
        "reason": "by 2 %", "problem": None, "table": "", "ramp_check": {"compared": 2, "largest": 0.02},
        "linear": {"frequency": 25.0, "damping": 0.01}, "units": {"force": "N", "amplitude": "m"},
    }  # fmt: skip
    panel._model = None
    panel._done(result)
    surface, colour = window.theme.colours.surface, window.theme.colours.data[0]
    brushes = [pg.mkBrush(spot.brush()).color() for spot in panel.plot.dots.points()]
    assert brushes[0].name() == colour and brushes[0].alpha() == 255  # stable: filled
    assert brushes[1].name() == surface  # unstable: open
    assert brushes[2].name() == colour and brushes[2].alpha() < 255  # not told: pale
    assert panel.state.text().startswith("Moved: at half the speed the branch lies elsewhere. By 2 %")
    assert "Fold at force 0.25900 ± 0.00010 N." in panel.verdict.text()
    assert "1 stable, 1 unstable, 1 not told" in panel.verdict.text()
    assert list(panel.plot.folds.getData()[0]) == [0.259]
