"""Frequency responses in the window: of the record in hand, and live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot
from scipy import signal

from analysis import Excitation, LinearApproximation, Marker, Record
from app.desktop.window import MainWindow
from drivers.base.waveform import OddMultisine, RandomNoise
from tests.waiting import GUARD_MS as GUARD
from tests.waiting import LONG_MS as LONG

Make = Callable[..., MainWindow]
RATE = 500.0


def mode(u: np.ndarray) -> np.ndarray:
    """20 Hz with 3 % damping."""
    w = 2 * np.pi * 20.0
    b, a, _ = signal.cont2discrete(([w**2], [1, 0.06 * w, w**2]), 1 / RATE, "zoh")
    return signal.lfilter(b.ravel(), a, u)


def test_given_a_record_when_the_page_is_shown_then_its_resonance_and_files(
    make_window: Make, qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window("response", begin=False)
    page = window.pages["response"]
    u = np.random.default_rng(1).standard_normal(40_000)
    window.bench.take_record(
        Record.from_arrays(RATE, {"x": mode(u), "f": u}, {"x": "mm", "f": "N"}), "shaken"
    )
    qtbot.waitUntil(lambda: page.found is not None and page.job is None, timeout=LONG)
    assert (page.input.currentText(), page.output.currentText()) == ("f", "x")
    (found,) = page.found.modes
    assert found.frequency == pytest.approx(20.0, rel=1e-2)
    assert page.table.item(0, 0).text().startswith("20.0")
    rows = list(page.plot.table())
    sizes = np.array([float(row[1]) for row in rows[1:]])
    assert sizes == pytest.approx(np.abs(page.found.response.response), rel=1e-6)  # not their logarithms
    page.save(tmp_path / "response.mat")
    assert (tmp_path / "response.mat").stat().st_size > 1000
    page.estimator.setCurrentIndex(2)
    qtbot.waitUntil(lambda: page.found.response.estimator == "hv" and page.job is None, timeout=LONG)
    # Of a sine nothing is drawn but its own frequency, and a marked moment is named.
    sine = np.cos(2 * np.pi * 7.5 * np.arange(8000) / RATE)
    drive = Excitation(7.5, 1.0, 0.0)
    record = Record.from_arrays(
        RATE, {"x": 2 * sine, "f": sine}, excitation=drive, markers=(Marker(500, "tap"),)
    )
    window.bench.take_record(record, "sine")
    qtbot.waitUntil(lambda: page.found.tone is not None and page.job is None, timeout=LONG)
    _, *rows = page.plot.table()
    assert len(rows) == 1 and [float(v) for v in rows[0][:2]] == pytest.approx([7.5, 2.0], rel=1e-6)
    assert "tap at 1 s" in page.state.text() and page.found.modes == ()
    assert [page.table.item(0, c).text() for c in (0, 1)] == ["7.5", "2"]


def test_given_a_multisine_then_the_page_says_what_is_nonlinear(make_window: Make, qtbot: QtBot) -> None:
    window = make_window("response", begin=False)
    page = window.pages["response"]
    u = OddMultisine(1.0, 5.0, 60.0, 0.5, seed=4).generator(RATE).take(6000)
    x = u + 0.3 * u**2 + 1e-3 * np.random.default_rng(2).standard_normal(len(u))
    drive = Excitation(0.5, 1.0, 0.0, "odd multisine")
    window.bench.take_record(Record.from_arrays(RATE, {"x": x, "f": u}, excitation=drive), "bent")
    qtbot.waitUntil(lambda: page.found is not None, timeout=LONG)
    assert isinstance(page.found.response, LinearApproximation)
    assert "even terms" in page.verdict.text() and "odd terms" not in page.verdict.text()
    page.method.setCurrentText("multisine, line by line")
    page.period.setValue(2.0003)
    qtbot.waitUntil(lambda: "whole number" in page.state.text(), timeout=LONG)
    assert not page.export_button.isEnabled()


def test_given_a_random_drive_then_the_live_response_averages_and_begins_anew_with_another(
    window: MainWindow, qtbot: QtBot
) -> None:
    page = window.pages["acquire"]
    page.views.choose(("response",))
    page.response.segment.choose(0)
    window.bench.rig.play(RandomNoise(0.5, 2, 60))
    live = page.response
    qtbot.waitUntil(lambda: live._drive[1:2] == ("random",), timeout=GUARD)
    qtbot.waitUntil(lambda: live.averager is not None and live.averager.segments > 5, timeout=GUARD)
    assert "averages" in live._count.toPlainText()
    first = live.averager
    window.bench.rig.play(RandomNoise(0.3, 2, 60))
    qtbot.waitUntil(lambda: live.averager is not first, timeout=GUARD)
