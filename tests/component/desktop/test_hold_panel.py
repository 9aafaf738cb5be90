"""Orbits held from the Orbits page: the rig is taken and given back, STOP ends it, results can be read."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from analysis.base.record import Record
from app.desktop import looptasks
from app.desktop.looprun import LoopRun
from app.desktop.looptasks import HoldableOrbits
from app.desktop.pages.orbits import OrbitsPage, motions
from app.desktop.window import MainWindow
from app.holding.work import HoldState
from drivers.base.protocols import InstrumentError, LoopStatus
from drivers.base.waveform import Sine
from drivers.formats import read
from tests import desktop_jobs
from tests.waiting import LONG_MS as LONG

LOOP = ["target", "correction", "loop"]


class _Heard:
    """What a run tells."""

    def __init__(self, run: LoopRun) -> None:
        self.news: list[object] = []
        self.found: list[Any] = []
        self.over, self.returned = False, 0
        run.told.connect(self.news.append)
        run.done.connect(self.found.append)
        run.failed.connect(self.found.append)
        run.ended.connect(self._end)
        run.returned.connect(self._return)

    def _end(self) -> None:
        self.over = True

    def _return(self) -> None:
        assert self.over
        self.returned += 1


def test_given_work_with_the_loop_when_it_ends_or_stop_is_hit_then_the_rig_is_safe_and_given_back(
    window: MainWindow, qtbot: QtBot
) -> None:
    bench, desk = window.bench, window.bench.rig
    run = LoopRun(desk, bench.workers, "Pushing", "pushed", desktop_jobs.push, 0.5)
    heard = _Heard(run)
    run.begin()
    with pytest.raises(InstrumentError, match="Pushing has the rig: cancel it first"):
        desk.play(Sine(0.1, 7.5))
    with pytest.raises(InstrumentError, match="Pushing has the rig"):
        desk.record()
    qtbot.waitUntil(lambda: bool(heard.news), timeout=LONG)
    assert [c.name for c in desk.channels][-3:] == LOOP
    qtbot.waitUntil(lambda: heard.over, timeout=LONG)
    assert heard.found[0]["problem"] == ""
    record = read(heard.found[0]["files"][0])
    assert np.abs(record["correction"]).max() == pytest.approx(0.1, abs=1e-3)
    assert motions(record)[0] == ("x", "v")  # the loop's own channels are no motion of the specimen
    qtbot.waitUntil(lambda: desk.in_use == "" and desk.running, timeout=LONG)
    assert LOOP[0] not in [c.name for c in desk.channels]
    assert heard.returned == 1
    assert not desk.drive_status().driving  # although a virtual rig shakes by itself when it is opened

    run = LoopRun(desk, bench.workers, "Pushing", "pushed", desktop_jobs.push, 600.0)
    heard = _Heard(run)
    run.begin()
    qtbot.waitUntil(lambda: bool(heard.news), timeout=LONG)
    desk.stop()
    qtbot.waitUntil(lambda: heard.over, timeout=LONG)
    assert "The drive was stopped: STOP was pressed" in heard.found[0]["problem"]
    qtbot.waitUntil(lambda: desk.in_use == "", timeout=LONG)
    assert desk.running and desk.drive_status().latched  # not opened anew: only a person arms
    with pytest.raises(InstrumentError, match="arm it first"):
        LoopRun(desk, bench.workers, "Pushing", "pushed", desktop_jobs.push, 0.1).begin()


def _found() -> HoldableOrbits:
    """Two circles that stand for orbits of a model."""
    turn = 2 * np.pi * np.arange(40) / 40
    orbits = [np.stack([np.cos(turn), -np.sin(turn)]), 2 * np.stack([np.cos(2 * turn), -np.sin(2 * turn)])]
    told = [
        {"number": 1, "periods": 1, "multipliers": [[-3.9, 0.0], [-0.2, 0.0]], "expected_wait": 15.0,
         "expected_control": 0.002, "longest_delay": 0.03},
        {"number": 2, "periods": 2, "multipliers": [[6.5, 0.0], [0.1, 0.0]], "expected_wait": math.inf,
         "expected_control": 0.002, "longest_delay": 0.03},
    ]  # fmt: skip
    listed = {"stable": 1, "channels": ("x",), "drive": {"frequency": 7.5, "amplitude": 1.5}, "orbits": told}
    return HoldableOrbits(b"", listed, orbits, [{"x": o[0]} for o in orbits])


def _told(number: int, verdict: str) -> dict[str, Any]:
    found = _found()
    mean = found.shown[number - 1]["x"] + 0.01
    return {
        "number": number, "periods": number, "verdict": verdict, "reason": "as measured", "wait": 3.0,
        "averaged_periods": 40, "mean_control": 0.00041, "floor": 0.00025,
        "model_multipliers": [[-3.9, 0.0]], "multipliers": [[-3.912, 0.0]], "multiplier_errors": [0.004],
        "phase": (2 * np.pi * number * np.arange(40) / 40).tolist(),
        "orbit": {"x": {"mean": mean.tolist(), "stderr": [0.001] * 40}},
    }  # fmt: skip


def test_given_candidates_and_news_then_waits_state_and_results_are_shown_and_come_back(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window("orbits", begin=False)
    bench = window.bench
    bench.take_record(Record.from_arrays(100.0, {"x": np.zeros(50)}, units={"x": "mm"}), "beam")
    page = window.page
    assert isinstance(page, OrbitsPage)
    page.tabs.setCurrentIndex(1)
    panel = page.hold_panel
    assert "Fit a model to this record first" in panel.fit_words.text()
    assert not panel.search_button.isEnabled() and not panel.hold_button.isEnabled()
    assert panel.hint.isVisible()
    panel._show(_found(), {})
    assert not panel.hint.isVisible()
    assert [tile.accessibleName() for tile in panel.tiles] == [
        "1: period 1, multiplier −3.9, wait about 2 s", "2: period 2, multiplier 6.5, never came near",
    ]  # fmt: skip
    assert panel.chosen() == [0] and "Hold 1 orbit" in panel.hold_button.text()
    assert "At least 44 s" in panel.plan.text()  # test at rest 15 s, wait 15 and 200 periods at 7.5 Hz
    panel.toggle()  # no rig is open
    assert "No rig with a shaker is running" in panel.state.text()

    panel._held = panel.found, 2  # as a run that was begun would have it
    loop = LoopStatus("holding", "", 0.0056, 0.0003, 0.007, 1000, 2, 0)
    panel._news(HoldState("waiting for the motion to come near", 1, 15.0, loop=loop))
    assert panel.state.text() == "Orbit 1: waiting for the motion to come near, about 2 s …"
    panel._news(HoldState("holding", 1, 15.0, 0.0018, 0.0004, 0.0003, loop))
    assert "delay 5.6 ms, 2 deadlines missed" in panel.loop.text()
    assert "Corrections 0.18 % of the drive" in panel.loop.text()
    assert "Mean 0.04 %, floor 0.03 %" in panel.loop.text()
    panel._news(_told(1, "held"))
    panel._news(_told(2, "invasive"))
    row = [panel.table.item(0, column).text() for column in range(6)]  # type: ignore[union-attr]
    assert row == ["1", "held", "−3.9", "−3.9120 ± 0.0040", "0.041", "0.025"]
    assert "invasive" in panel.tiles[1].accessibleName() and "invasive: as measured" in panel.reason.text()
    panel.table.selectRow(0)
    x, off = panel.plot.difference.getData()
    assert off == pytest.approx(0.01) and x[-1] == pytest.approx(39 / 40)
    low, high = (edge.getData()[1] for edge in (panel.plot.low, panel.plot.high))
    assert high - low == pytest.approx(4 * 0.001)  # two standard errors on either side

    result = {"orbits": [_told(1, "held")], "held": 1, "offered": 1, "problem": None, "result_file": ""}
    panel._done(result)
    assert panel.state.text() == "1 of 2 orbits held."
    assert "held" in bench.kept().findings
    bench.take_record(Record.from_arrays(100.0, {"x": np.zeros(50)}), "another")
    assert panel.found is None and not panel.results and not panel.tiles
    panel._news(_told(1, "held"))  # of the record before, on its way
    panel._done(result)
    assert not panel.results and panel.table.rowCount() == 0 and panel.state.text() == "1 of 2 orbits held."


def test_given_a_disk_that_takes_no_file_then_what_was_found_is_told_all_the_same(tmp_path: Path) -> None:
    result = {"files": [str(tmp_path / "gone" / "held.h5")], "problem": None, "held": 2}
    kept = looptasks._kept(result)
    assert kept["result_file"] == "" and kept["held"] == 2
    assert "held.json cannot be written: No such file or directory" in kept["problem"]
    (tmp_path / "gone").mkdir()
    assert looptasks._kept(result)["result_file"] == str(tmp_path / "gone" / "held.json")
