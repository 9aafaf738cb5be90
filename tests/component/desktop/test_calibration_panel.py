"""Calibration in the window: a sound card that is wired back to itself, and sensors at known values."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PyQt6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.desktop.pages.rig import RigPage
from app.desktop.widgets import calibrationpanel
from app.desktop.widgets.calibrationpanel import MOTION, VALUES, CalibrationPanel
from app.desktop.window import MainWindow
from drivers.acquisition import guarded
from drivers.instruments import sound
from drivers.rig.profile import RigProfile, load_rig, open_rig, rig_files
from drivers.virtual.sound_host import LoopbackHost
from tests.sound_card import PROFILE
from tests.waiting import LONG_MS as LONG

Make = Callable[..., MainWindow]
OUTPUT, INPUT = 1.4, 2.8  # V that are 1.0 in the card's numbers, in truth


def _own(folders: Path, key: str, text: str) -> Path:
    path = folders / "config" / "shakedown" / "rigs" / f"{key}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _panel(window: MainWindow) -> CalibrationPanel:
    page = window.page
    assert isinstance(page, RigPage)
    page.tabs.setCurrentWidget(page.calibration)
    return page.calibration


def _type(box: Any, text: str) -> None:
    box.setText(text)
    assert box.apply()


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch, folders: Path) -> LoopbackHost:
    """The card, a profile that guesses its volts, and the rig opened in this process."""
    host = LoopbackHost(137, OUTPUT / INPUT, (8000.0,))
    monkeypatch.setattr(sound, "_portaudio", lambda: host)
    monkeypatch.setattr(calibrationpanel, "SECONDS", 0.5)

    def here(profile: RigProfile, *_: Any, **__: Any) -> Any:
        return open_rig(profile)

    monkeypatch.setattr(guarded, "open_guarded", here)
    _own(folders, "card", PROFILE.replace("full_scale = 4.0", "full_scale = 4.0   # a guess"))
    return host


def test_given_a_sound_card_when_the_steps_are_pressed_then_its_volts_and_its_sensor_are_in_the_profile(
    make_window: Make, qtbot: QtBot, card: LoopbackHost, folders: Path
) -> None:
    window = make_window("rig", rig="card")
    panel, path = _panel(window), folders / "config" / "shakedown" / "rigs" / "card.toml"
    assert panel.steps.currentIndex() == 0 and not panel.take_volts.isEnabled()
    assert not panel.keep_button.isEnabled()
    qtbot.mouseClick(panel.play_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(panel.take_volts.isEnabled, timeout=LONG)
    assert "voltmeter" in panel.words.text() and window.bench.rig.drive().playing
    _type(panel.volts, f"{0.1 * OUTPUT / math.sqrt(2):.9f}")
    qtbot.mouseClick(panel.take_volts, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.bench.rig.drive().playing, timeout=LONG)
    assert panel.found is not None and panel.found.output == pytest.approx(OUTPUT, rel=1e-6)
    with qtbot.waitSignal(window.bench.rig.opened, timeout=LONG):
        qtbot.mouseClick(panel.keep_button, Qt.MouseButton.LeftButton)
    made = load_rig(path).instruments
    assert made["exciter"]["full_scale"] == pytest.approx(OUTPUT, rel=1e-6)
    assert made["source"]["full_scale"] == pytest.approx(INPUT, rel=1e-4)
    assert "# a guess" in path.read_text(encoding="utf-8")
    panel.way.setCurrentIndex(MOTION)
    card.tone = (159.155, 0.3)  # 0.84 V of amplitude at the input, from 10 mm
    qtbot.mouseClick(panel.listen_button, Qt.MouseButton.LeftButton)
    assert "how large the known motion" in panel.words.text()
    _type(panel.known, f"{10 / math.sqrt(2):.9f}")
    steady = 0.3 * INPUT / 0.5 / math.sqrt(2)  # mm, as the profile has it, once a second is full of it
    qtbot.waitUntil(lambda: abs(window.bench.feed.stats[0].rms / steady - 1) < 1e-3, timeout=LONG)
    qtbot.mouseClick(panel.listen_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(panel.keep_button.isEnabled, timeout=LONG)
    assert "V per mm" in panel.words.text() and "at 159.1" in panel.words.text()
    with qtbot.waitSignal(window.bench.rig.opened, timeout=LONG):
        qtbot.mouseClick(panel.keep_button, Qt.MouseButton.LeftButton)
    x = load_rig(path).channels[0]
    assert x.sensitivity == pytest.approx(0.3 * INPUT / 10, rel=1e-4) and x.calibrated
    panel.way.setCurrentIndex(VALUES)
    qtbot.mouseClick(panel.point_button, Qt.MouseButton.LeftButton)
    assert "stands still" in panel.words.text()  # a card does not see it


def test_given_a_tone_that_plays_when_the_page_is_left_then_it_ends_and_nothing_is_found(
    make_window: Make, qtbot: QtBot, card: LoopbackHost
) -> None:
    window = make_window("rig", rig="card")
    panel = _panel(window)
    panel.play()
    qtbot.waitUntil(lambda: window.bench.rig.drive().playing, timeout=LONG)
    window.show_page("acquire")
    qtbot.waitUntil(lambda: not window.bench.rig.drive().playing, timeout=LONG)
    assert panel.found is None and "left while the tone played" in panel.words.text()
    window.show_page("rig")
    card.gain = 0.0
    panel.play()
    qtbot.waitUntil(lambda: "is it connected" in panel.words.text(), timeout=LONG)
    qtbot.waitUntil(lambda: not window.bench.rig.drive().playing, timeout=LONG)
    assert not panel.take_volts.isEnabled() and panel.play_button.isEnabled()


def test_given_known_values_then_a_line_gives_sensitivity_and_zero_of_a_sensor(
    make_window: Make, qtbot: QtBot, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = rig_files()["two_well_beam_modern"].read_text(encoding="utf-8")
    path = _own(folders, "bench", shipped)
    monkeypatch.setattr(calibrationpanel, "SECONDS", 0.1)
    window = make_window("rig", rig="bench", start_shaking=True)
    panel = _panel(window)
    panel.way.setCurrentIndex(VALUES)
    before = load_rig(path).channels[0]
    qtbot.waitUntil(lambda: window.bench.rig.drive().playing, timeout=LONG)
    panel.take_point()
    assert "Stop the drive first" in panel.words.text()
    window.bench.rig.end_drive()
    qtbot.waitUntil(lambda: not window.bench.rig.drive().playing, timeout=LONG)
    noise = np.random.default_rng(1).normal(0, 1e-5, (len(window.bench.rig.channels), 50))
    for value in (0.0, 2.0, 4.0):  # a sensor that gives 1 % more than the profile says, and 0.5 beside it
        _type(panel.value, str(value))
        panel.take_point()
        assert panel._listener is not None
        panel._stop_listening()
        panel._try(lambda value=value: panel._then(noise + 1.01 * (value - 0.5) + before.zero))  # type: ignore[misc]
    assert panel.points.rowCount() == 3 and "+1.0 %" in panel.words.text()
    with qtbot.waitSignal(window.bench.rig.opened, timeout=LONG):
        qtbot.mouseClick(panel.keep_button, Qt.MouseButton.LeftButton)
    x = load_rig(path).channels[0]
    assert x.sensitivity == pytest.approx(1.01 * before.sensitivity, rel=1e-4)
    assert x.zero == pytest.approx(0.5, abs=1e-4) and x.calibrated
