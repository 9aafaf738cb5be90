"""The Identify page: terms found, taken over and fitted; how far one parameter can go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PyQt6.QtCore import Qt
from pytestqt.qtbot import QtBot
from scipy.integrate import solve_ivp

from analysis.base.errors import ModelError
from analysis.base.progress import Progress
from analysis.base.record import Excitation, Record
from app.desktop import terms
from app.desktop.pages.identify import IdentifyPage
from app.desktop.widgets.termfinder import TERM, probability
from app.desktop.window import MainWindow
from drivers.formats import read
from tests.waiting import LONG_MS as LONG

LEFT = Qt.MouseButton.LeftButton


def _ringing(rng: np.random.Generator) -> Record:
    """x'' = -40 x - 0.8 v, displacement in mm under a name of the laboratory's own."""
    return Record.from_arrays(50.0, {"disp 1": _motion().y[0] + 0.01 * rng.normal(size=400)})


def _motion() -> Any:
    times = np.arange(400) / 50.0
    return solve_ivp(
        lambda t, y: (y[1], -40 * y[0] - 0.8 * y[1]), (0, 8), (3.0, 0.0), t_eval=times, rtol=1e-10
    )


def test_given_a_record_when_its_terms_are_found_taken_over_and_fitted_then_each_parameter_can_be_traced(
    make_window: Callable[..., MainWindow], qtbot: QtBot, rng: np.random.Generator, tmp_path: Path
) -> None:
    window = make_window("identify", begin=False)
    bench, page = window.bench, window.pages["identify"]
    assert isinstance(page, IdentifyPage)
    panel, table = page.profile_panel, page.result_view.table
    assert not panel.trace_button.isEnabled() and not page.find_button.isEnabled()
    bench.take_record(_ringing(rng), "ringing")

    qtbot.mouseClick(page.find_button, LEFT)
    finder = page.finder
    assert finder is not None and finder.displacement.currentText() == "disp 1"
    for item in finder._items():  # a small library, for the test's time
        if item.data(TERM).term not in ("x", "v", "x**3"):
            item.setCheckState(Qt.CheckState.Unchecked)
    qtbot.keyClicks(finder.own_term, "x^3")
    qtbot.keyClick(finder.own_term, Qt.Key.Key_Return)
    assert "already" in finder.state.text() and finder.job is None
    finder.own_term.clear()
    assert finder.question().terms == ("x", "x**3", "v")
    qtbot.mouseClick(finder.run_button, LEFT)
    assert finder.cancel_button.isVisible() and not finder.take_button.isEnabled()
    qtbot.mouseClick(finder.cancel_button, LEFT)
    qtbot.waitUntil(lambda: finder.job is None, timeout=LONG)
    assert "Cancelled" in finder.state.text()
    qtbot.mouseClick(finder.run_button, LEFT)
    qtbot.waitUntil(lambda: finder.job is None, timeout=LONG)
    assert finder.found is not None, finder.state.text()
    rows = [[finder.table.item(r, c).text() for c in range(3)] for r in range(finder.table.rowCount())]
    assert [row[0] for row in rows] == ["x", "v", "x^3"] and rows[2][2] == "left out"
    qtbot.mouseClick(finder.take_button, LEFT)
    qtbot.waitUntil(lambda: page.run_button.isEnabled(), timeout=LONG)
    assert "k1*x" in page.model_card.text() and page.mapping.values()["x"] == "disp 1"
    assert bench.result is not None and not bench.result_is_of() and bench.result.verdict == "fits"
    assert "choice of terms" in panel._refused

    qtbot.mouseClick(page.run_button, LEFT)
    qtbot.waitUntil(lambda: len(bench.results) == 2 and page.job is None, timeout=LONG)
    before = bench.result
    name = table.visualItemRect(table.item(1, 0)).center()
    qtbot.mouseClick(table.viewport(), LEFT, pos=name)
    assert page.tabs.currentWidget() is panel and panel.chooser.currentText() == "c1"
    assert panel.cancel_button.isVisible() and panel.bar.isVisible()
    qtbot.mouseClick(panel.cancel_button, LEFT)
    qtbot.waitUntil(lambda: panel.job is None, timeout=LONG)
    assert "Cancelled" in panel.state.text() and bench.result is before

    page.tabs.setCurrentWidget(page.result_view)
    table.setFocus()
    table.setCurrentCell(0, 1)
    qtbot.keyClick(table, Qt.Key.Key_Return)
    assert panel.chooser.currentText() == "k1"
    qtbot.waitUntil(lambda: panel.job is None, timeout=LONG)
    found = bench.result
    assert found is not None and "profile of k1" in found.curves and len(bench.results) == 2
    k1 = found.parameters["k1"]
    assert abs((k1.upper - k1.lower) / (2 * 1.96 * k1.stderr) - 1) < 0.05 and k1.covers(40.0)
    assert panel.state.text().startswith("k1 = ") and "correlation" in panel.words.text()
    assert found.parameters["c1"] == before.parameters["c1"]
    x, _ = panel.plot._curve.getData()
    assert list(x) == found.curves["profile of k1"].x
    # The velocity, which no sensor showed, with its band; and all states as a recording.
    states = page.states_panel
    page.tabs.setCurrentWidget(states)
    assert not states.export_button.isEnabled()
    qtbot.mouseClick(states.find_button, LEFT)
    qtbot.waitUntil(lambda: states.job is None, timeout=LONG)
    assert states.found is not None and states.chooser.currentText() == "v", states.state.text()
    truth = _motion().y[1]
    assert np.mean(np.abs(states.found.values[1] - truth) < 2.6 * states.found.stderr[1]) > 0.95
    assert "Standard error of v" in states.state.text()
    states.export(tmp_path / "states.xyz")
    qtbot.waitUntil(lambda: states.state.objectName() == "bad", timeout=LONG)
    with qtbot.waitSignal(bench.noticed, timeout=LONG):
        states.export(tmp_path / "states.h5")
    kept = read(tmp_path / "states.h5")
    assert kept.names == ("disp 1", "x (model)", "x (model) error", "v (model)", "v (model) error")
    # Shown again it is not traced again; of another model nothing is traced.
    page._ask_profile("k1")
    assert panel.job is None
    bench.miss_model("line 3: no number")
    assert not panel.trace_button.isEnabled() and "earlier model" in panel._refused
    assert not states.find_button.isEnabled() and not states.export_button.isEnabled()


def test_given_channels_then_the_drive_and_the_scale_of_friction_are_guessed_from_them() -> None:
    samples = np.sin(np.arange(1000) * 0.1)
    record = Record.from_arrays(10.0, {"a": samples, "Force": samples}, excitation=Excitation(2.0, 1.0))
    assert terms.likely_drive(record) == "Force"
    assert (
        terms.likely_drive(Record.from_arrays(10.0, {"a": samples}, excitation=Excitation(2.0, 1.0)))
        == terms.TONE
    )
    assert terms.likely_drive(Record.from_arrays(10.0, {"a": samples})) == ""
    speed = 1 / np.sqrt(2)  # of sin(t)
    friction = next(c.term for c in terms.oscillator_candidates(record, "a", "") if "tanh" in c.term)
    assert friction == f"tanh({float(f'{20 / speed:.0e}'):g}*v)"
    german = Record.from_arrays(
        10.0, {"Kraft": samples, "Größe": samples, "Weg": samples, "Geschw.": np.cos(np.arange(1000) * 0.1)},
        {"Kraft": "N", "Größe": "V", "Weg": "m", "Geschw.": "m/s"},
    )  # fmt: skip
    assert (terms.likely_drive(german), terms.likely_displacement(german)) == ("Kraft", "Weg")
    assert terms.likely_velocity(german, "Weg") == "Geschw."
    assert list(terms.equation_names(["Größe", "Übergang"])) == ["Groesse", "Uebergang"]
    names = terms.equation_names(["disp 1", "disp_1", "1a", "sin", "t"])
    assert names == {"disp_1": "disp 1", "disp_1_": "disp_1", "q_1a": "1a", "q_sin": "sin", "q_t": "t"}
    offered = terms.system_candidates(["x", "y"], "f")
    assert [c.term for c in offered][:4] == ["f", "1", "x", "y"] and not offered[-1].usual
    asked = terms.Question(("x", "f"), {"x": "a", "f": "Force"}, terms.TONE, oscillator=False)
    with pytest.raises(ModelError, match="tone"):
        terms.find_terms(record, asked, Progress())
    library = terms._library(replace(asked, drive="f"), record)
    assert library.inputs == {"f": "measured"} and set(library.equations) == {"x"}
    assert (probability(0.9999), probability(1e-5), probability(0.123)) == ("> 99.9 %", "< 0.1 %", "12.3 %")


def test_given_a_channel_that_is_left_out_then_it_stays_so_until_a_record_has_it_anew(
    make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    window = make_window("identify", begin=False)
    bench, page = window.bench, window.pages["identify"]
    assert isinstance(page, IdentifyPage)
    motion = _motion().y
    bare = Record.from_arrays(50.0, {"x": motion[0]})
    scaled = Record.from_arrays(50.0, {"x": motion[0], "v": motion[1] / 47.0})  # in a unit of its own
    bench.take_record(bare, "bare")
    text = '[states]\nx = "v"\nv = "-k*x - c*v"\n[parameters]\nk = { guess = 40 }\nc = { guess = 1 }\n'
    page.model_card.take_text(text)
    qtbot.waitUntil(lambda: "v" in page.mapping.boxes and not bench.model_checking, timeout=LONG)
    assert page.mapping.values() == {"x": "x", "v": ""}
    bench.take_record(scaled, "scaled")
    assert page.mapping.values() == {"x": "x", "v": "v"}
    page.mapping.boxes["v"].setCurrentIndex(0)
    page.model_card.take_text(text.replace("k =", "# stiff\nk ="))
    qtbot.waitUntil(lambda: bench.model is not None and "stiff" in bench.model.text, timeout=LONG)
    assert page.mapping.values() == {"x": "x", "v": ""}


def test_given_an_equation_of_displacement_alone_then_a_channel_of_another_unit_is_not_its_velocity(
    make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    window = make_window("identify", begin=False)
    bench, page = window.bench, window.pages["identify"]
    assert isinstance(page, IdentifyPage)
    x, v = _motion().y
    bench.take_record(Record.from_arrays(50.0, {"x": x, "v": v / 47.0}), "scaled")
    page.find_terms()
    finder = page.finder
    assert finder is not None and not finder._velocity()  # not the rate of x
    for item in finder._items():
        if item.data(TERM).term not in ("x", "v"):
            item.setCheckState(Qt.CheckState.Unchecked)
    finder.run()
    qtbot.waitUntil(lambda: finder.take_button.isEnabled(), timeout=LONG)
    finder.take()
    qtbot.waitUntil(lambda: "v" in page.mapping.boxes and page.run_button.isEnabled(), timeout=LONG)
    assert page.mapping.values() == {"x": "x", "v": ""} == bench.findings["mapping"]


def test_given_a_fit_that_is_given_up_then_the_one_in_hand_keeps_the_channels_that_it_was_made_from(
    make_window: Callable[..., MainWindow], qtbot: QtBot, rng: np.random.Generator
) -> None:
    window = make_window("identify", begin=False)
    bench, page = window.bench, window.pages["identify"]
    assert isinstance(page, IdentifyPage)
    motion = _motion().y + 0.01 * rng.normal(size=(2, 400))
    bench.take_record(Record.from_arrays(50.0, {"first": motion[0], "other": motion[1]}), "ringing")
    page.model_card.editor.setPlainText(
        'name = "ring"\n[states]\nx = "v"\nv = "-k*x - c*v"\n'
        "[parameters]\nk = { guess = 30.0 }\nc = { guess = 1.0 }\n"
    )
    qtbot.waitUntil(lambda: bench.model is not None and bench.model.name == "ring", timeout=LONG)
    page.mapping.boxes["x"].setCurrentText("first")
    page.run()
    qtbot.waitUntil(lambda: page.job is None and bench.result is not None, timeout=LONG)
    made_from = bench.findings["mapping"]
    assert made_from["x"] == "first"
    page.mapping.boxes["x"].setCurrentText("other")
    page.run()
    page.cancel()
    qtbot.waitUntil(lambda: page.job is None, timeout=LONG)
    assert bench.findings["mapping"] == made_from  # profiles, checks and the picture are of the first fit
