"""Orbits included on the Orbits page are the ones that the balance uses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PyQt6.QtCore import Qt
from pytestqt.qtbot import QtBot

from analysis.base.record import Excitation, Record
from analysis.simulation.simulate import simulate
from app.desktop.pages.identify import IdentifyPage
from app.desktop.pages.orbits import OrbitsPage
from app.desktop.window import MainWindow
from drivers.library import load_model
from tests.waiting import LONG_MS as LONG


def _look_at_one(orbits: OrbitsPage, qtbot: QtBot) -> None:
    """A click enlarges an orbit and leaves the choice as it is; the record's own samples are drawn."""
    before, tile = [t.isChecked() for t in orbits.tiles], orbits.tiles[2]
    qtbot.waitUntil(tile.isVisible, timeout=LONG)
    qtbot.mouseClick(tile, Qt.MouseButton.LeftButton)
    up = orbits.close_up
    assert up.isVisible() and [t.isChecked() for t in orbits.tiles] == before
    piece, record = orbits.shown[2].segment, orbits.bench.record
    assert record is not None
    assert np.array_equal(up._line.getData()[0], record.record["x"][piece])
    assert up.loop.item.getAxis("bottom").labelText == "x [–]"
    times = up.signals.items[-1].items[0].getData()[0]
    assert times[-1] == (len(times) - 1) / record.record.rate
    up.include.click()
    assert tile.isChecked() is not before[2]
    up.include.click()
    qtbot.mouseClick(up.after, Qt.MouseButton.LeftButton)
    assert np.array_equal(up._line.getData()[0], record.record["x"][orbits.shown[3].segment])
    assert up.include.isChecked() == before[3]
    qtbot.mouseClick(up.back, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: tile.isVisible() and not up.isVisible(), timeout=LONG)
    tile.setFocus()
    qtbot.keyClick(tile, Qt.Key.Key_Return)  # without a mouse
    assert up.isVisible() and [t.isChecked() for t in orbits.tiles] == before
    up.back.click()


def test_given_orbits_left_out_when_balanced_then_only_the_included_ones_are_used(
    make_window: Callable[..., MainWindow], qtbot: QtBot, rng: np.random.Generator
) -> None:
    window = make_window("orbits", begin=False)
    bench = window.bench
    step = 2 * np.pi / 1.33 / 50
    states = simulate(load_model("duffing"), step * np.arange(50 * 300)).states[:, 50 * 50 :]
    x, v = (row + 1e-3 * row.std() * rng.normal(size=len(row)) for row in states)
    drive = Excitation(1 / (50 * step), 27.0, 0.0)
    bench.take_record(Record.from_arrays(1 / step, {"x": x, "v": v}, excitation=drive), "duffing")
    orbits = window.page
    assert isinstance(orbits, OrbitsPage)
    orbits.longest.setValue(5)
    orbits.run()
    qtbot.waitUntil(lambda: orbits.job is None, timeout=LONG)
    assert len(orbits.tiles) > 4
    orbits._include(False)
    included = [1, 3, 4]
    for number in included:
        orbits.tiles[number].click()
    _look_at_one(orbits, qtbot)
    wanted = sorted(int(orbits.found.orbits[number].start) for number in included)

    window.show_page("identify")
    identify = window.page
    assert isinstance(identify, IdentifyPage)
    identify.model_card.choose("duffing")
    qtbot.waitUntil(lambda: bench.model is not None and "Duffing" in bench.model.name, timeout=LONG)
    identify.method.setCurrentIndex(identify.method.findData("balance"))
    identify.run()
    assert "3 orbits" in identify.state.text()
    qtbot.waitUntil(lambda: identify.job is None, timeout=LONG)
    result = bench.result
    assert result is not None, identify.state.text()
    assert sorted(result.options["starts"]) == wanted
    assert {orbit["start"] for orbit in result.extra["orbits"]} <= set(wanted)
    assert "3 orbits included" in result.chosen
    assert abs(result.parameters["k3"].value - 1.0) < 0.01
