"""A new rig by hand: chosen, not typed; the shaker's limits cannot be left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QAbstractButton, QComboBox
from pytestqt.qtbot import QtBot

from app.desktop.newrig import NO_SHAKER, NewRigDialog
from app.desktop.opening import rig_paths
from app.desktop.pages.rig import RigPage
from app.desktop.window import MainWindow
from app.rig_draft import ShakerLimits, channel_table
from drivers.instruments.discovery import Device, Terminals
from drivers.instruments.teds import SensorData
from drivers.rig.profile import load_rig
from tests.waiting import LONG_MS as LONG

Make = Callable[..., MainWindow]
SENSORS = """
[[sensors]]
name = "gauge"
unit = "mm"
sensitivity = 1.0742
calibrated = 2020-03-01
"""


def _press(dialog: NewRigDialog, qtbot: QtBot, words: str) -> None:
    tool = next(b for b in dialog.findChildren(QAbstractButton) if b.text() == words and b.isVisible())
    qtbot.mouseClick(tool, Qt.MouseButton.LeftButton)


def _box(dialog: NewRigDialog, row: int, column: int) -> QComboBox:
    box = dialog.table.cellWidget(row, column)
    assert isinstance(box, QComboBox)
    return box


def test_given_an_instrument_then_a_rig_is_made_by_presses_and_only_with_the_limits_of_its_shaker(
    make_window: Make, qtbot: QtBot, tmp_path: Path
) -> None:
    window = make_window("rig", begin=False)
    page = window.page
    assert isinstance(page, RigPage)
    dialog = NewRigDialog(window.bench, page)
    qtbot.addWidget(dialog)
    dialog.show()
    dialog.offer([Device("serial", "/dev/tty", "?"), Device("virtual", "two_well_beam", "Beam")], [])
    assert dialog.devices.count() == 1 and not dialog.next.isEnabled()  # a serial port is no source
    dialog.devices.setCurrentRow(0)
    _press(dialog, qtbot, "Next")
    _press(dialog, qtbot, "Add")
    assert dialog.table.currentRow() == dialog.table.rowCount() - 1  # the new one is chosen
    made = [c.name for c in dialog.draft.channels]
    dialog.table.setCurrentCell(0, 0)
    _press(dialog, qtbot, "Duplicate")
    assert dialog.table.currentRow() == 1
    _press(dialog, qtbot, "Remove")
    assert [c.name for c in dialog.draft.channels] == made  # it was the copy that went
    (tmp_path / "s.toml").write_text("[[sensors]]\n")
    dialog.import_sensors(tmp_path / "s.toml")
    assert "needs a name" in dialog.state.text()
    (tmp_path / "s.toml").write_text(SENSORS)
    dialog.import_sensors(tmp_path / "s.toml")
    _box(dialog, 0, 2).setCurrentIndex(1)
    assert "out of date since 2021-03-01" in dialog.table.cellWidget(0, 3).text()  # type: ignore[union-attr]
    before = [c.name for c in dialog.draft.channels]
    dialog.table.setCurrentCell(0, 0)
    _press(dialog, qtbot, "Down")
    assert [c.name for c in dialog.draft.channels] == before[::-1] and dialog.table.currentRow() == 1
    _press(dialog, qtbot, "Next")
    dialog.title.setText("Bench 2")
    assert not dialog.next.isEnabled() and "limits are not whole" in dialog.state.text()
    dialog.save()  # nor by any other way
    assert not dialog.key
    for box, text in (
        (dialog.amplitude, "2"),
        (dialog.lowest, "1"),
        (dialog.highest, "60"),
        (dialog.ramp, "1"),
    ):
        assert not dialog.next.isEnabled()
        box.setText(text)
        box.apply()
    dialog.title.setText("two_well_beam")
    _press(dialog, qtbot, "Save and test")
    assert "already" in dialog.state.text() and dialog.isVisible()
    dialog.title.setText("Bench 2")
    _press(dialog, qtbot, "Save and test")
    assert dialog.key == "Bench_2" and not dialog.isVisible()
    page.reload(dialog.key)
    assert page.profile is not None and page.profile.limits.peak == 2.0
    gauge = next(c for c in page.profile.channels if c.sensor == "gauge")
    assert gauge.sensitivity == 1.0742 and gauge.calibrated == "2020-03-01"
    assert load_rig(page._paths()["Bench_2"]).instruments["exciter"]["driver"] == "virtual"


def test_given_no_shaker_then_no_limits_are_asked_for(make_window: Make, qtbot: QtBot) -> None:
    window = make_window("rig", begin=False)
    dialog = NewRigDialog(window.bench, window)
    qtbot.addWidget(dialog)
    net = Device("opendaq", "daqref://device0", "Device 0")
    dialog.offer([net, Device("serial", "/dev/ttyUSB0", "?")], [])
    dialog.devices.setCurrentRow(0)
    assert "Asking daqref://device0" in dialog.state.text() and not dialog.next.isEnabled()
    qtbot.waitUntil(lambda: bool(dialog.draft.channels), timeout=LONG)
    assert dialog.draft.terminals() == ["AI0", "AI1"]  # as the device says, and no more
    dialog.take_terminals(net, Terminals(("late",)))
    assert dialog.draft.terminals() == ["AI0", "AI1"]
    dialog.turn(1)
    dialog.turn(1)
    assert [dialog.output.itemText(i) for i in range(2)] == [
        "Stanford DS345 at /dev/ttyUSB0", "SCPI generator at /dev/ttyUSB0"
    ]  # fmt: skip
    dialog.output.setCurrentIndex(1)
    driven = replace(dialog.draft, limits=ShakerLimits(1.0, 1.0, 60.0, 1.0))
    assert not driven.problem() and 'driver = "scpi"\nport = "/dev/ttyUSB0"' in driven.text("net")
    assert "limits are not whole" in dialog.state.text()
    dialog.output.setCurrentText(NO_SHAKER)
    dialog.title.setText("net")
    assert dialog.output.currentText() == NO_SHAKER and dialog.next.isEnabled()
    assert not dialog.amplitude.isEnabled()


def test_given_a_sound_card_then_its_volts_must_be_given(make_window: Make, qtbot: QtBot) -> None:
    window = make_window("rig", begin=False)
    dialog = NewRigDialog(window.bench, window)
    qtbot.addWidget(dialog)
    dialog.show()
    card = Device("sound", "USB Audio", "sound card, 2 inputs, 2 outputs")
    dialog.offer([card, Device("virtual", "two_well_beam", "Beam")], [])
    dialog.devices.setCurrentRow(1)
    assert not dialog.card_input.isVisible()
    dialog.devices.setCurrentRow(0)
    dialog.take_terminals(card, Terminals(("0", "1"), ("0", "1")))
    assert dialog.card_input.isVisible() and dialog.draft.rate == 48000
    dialog.turn(1)
    _press(dialog, qtbot, "Add")
    _box(dialog, 1, 0).setCurrentText("drive")
    dialog.turn(1)
    dialog.title.setText("card")
    assert dialog.output.currentText() == "output 0"
    for box, text in (
        (dialog.amplitude, "1.5"),
        (dialog.lowest, "25"),
        (dialog.highest, "900"),
        (dialog.ramp, "1"),
    ):
        box.setText(text)
        box.apply()
    assert "volts at the card's inputs" in dialog.state.text() and not dialog.next.isEnabled()
    for box, text in ((dialog.card_input, "1.9"), (dialog.card_output, "1.4")):
        box.setText(text)
        box.apply()
    assert "more than the card's output gives" in dialog.state.text()
    dialog.amplitude.setText("1.2")
    dialog.amplitude.apply()
    dialog.loopback.setCurrentText("drive")
    dialog.output.setCurrentText(NO_SHAKER)
    assert not dialog.card_output.isEnabled() and "loopback" not in dialog.draft.text("card")
    dialog.output.setCurrentIndex(0)
    _press(dialog, qtbot, "Save and test")
    made = load_rig(rig_paths()[dialog.key]).instruments
    assert made["source"] == {
        "driver": "sound", "device": "USB Audio", "wiring": {"x": 0, "drive": 1}, "full_scale": 1.9,
        "loopback": "drive",
    }  # fmt: skip
    assert made["exciter"] == {"driver": "sound", "output": 0, "full_scale": 1.4}


def test_given_a_sensor_that_tells_of_itself_then_it_is_shown_and_taken_only_when_told_to(
    make_window: Make, qtbot: QtBot
) -> None:
    window = make_window("rig", begin=False)
    dialog = NewRigDialog(window.bench, window)
    qtbot.addWidget(dialog)
    dialog.show()
    rack = Device("nidaqmx", "cDAQ1Mod1", "NI 9234")
    dialog.offer([rack], [])
    dialog.devices.setCurrentRow(0)
    dialog.take_terminals(rack, Terminals(("cDAQ1Mod1/ai0", "cDAQ1Mod1/ai1")))
    dialog.turn(1)
    _press(dialog, qtbot, "Add")
    dialog.table.setCurrentCell(1, 0)
    _press(dialog, qtbot, "Ask the sensor")
    assert "Asking the sensor at cDAQ1Mod1/ai1" in dialog.state.text() and not dialog.take_button.isVisible()
    qtbot.waitUntil(dialog.teds_button.isEnabled, timeout=LONG)  # there is no such driver here
    assert "asking the sensor" in dialog.state.text().lower() and not dialog.take_button.isVisible()
    dialog.show_sensor("cDAQ1Mod1/ai1", SensorData("iepe", "m/s²", 0.0104, 16, 352, 4711))
    assert "serial number 4711, 10.4 mV per m/s²" in dialog.state.text()
    assert dialog.draft.channels[1].sensor is None
    dialog.table.setCurrentCell(1, 0)
    _press(dialog, qtbot, "Up")  # it is taken by its input, wherever the channel is
    _press(dialog, qtbot, "Take it")
    taken = dialog.draft.channels[0]
    assert taken.terminal == "cDAQ1Mod1/ai1" and dialog.draft.channels[1].sensor is None
    assert channel_table(taken)["teds"] is True and channel_table(taken)["sensitivity"] == 0.0104
    assert not dialog.take_button.isVisible()
    assert dialog.table.cellWidget(0, 3).text() == "by TEDS"  # type: ignore[union-attr]


def test_given_an_instrument_that_cannot_be_asked_then_the_usual_inputs_are_offered(
    make_window: Make, qtbot: QtBot
) -> None:
    window = make_window("rig", begin=False)
    dialog = NewRigDialog(window.bench, window)
    qtbot.addWidget(dialog)
    gone = Device("opendaq", "daqref://device7", "unplugged")
    dialog.offer([gone], [])
    dialog.devices.setCurrentRow(0)
    dialog.take_terminals(gone, Terminals(), "It cannot be reached.")
    assert "cannot be reached. The inputs that" in dialog.state.text() and dialog.next.isEnabled()
    assert "AI7" in dialog.draft.terminals()


def test_given_a_shipped_rig_then_its_channels_are_edited_in_a_copy(
    make_window: Make, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make_window("rig", begin=False)
    page = window.page
    assert isinstance(page, RigPage)
    page.reload("two_well_beam")
    shipped = page._paths()["two_well_beam"]
    before = shipped.read_bytes()
    made: list[NewRigDialog] = []
    opened: list[str] = []

    def shown(dialog: NewRigDialog) -> int:
        made.append(dialog)
        return 0

    monkeypatch.setattr(NewRigDialog, "exec", shown)
    monkeypatch.setattr(window.bench.rig, "open", opened.append)
    qtbot.mouseClick(page.channels.edit, Qt.MouseButton.LeftButton)
    (dialog,) = made
    qtbot.addWidget(dialog)
    dialog.show()
    assert not dialog.back.isVisible() and dialog.next.isEnabled()
    assert _box(dialog, 0, 2).currentText().startswith("as it is: strain gauge")
    dialog.table.setCurrentCell(0, 0)
    _press(dialog, qtbot, "Duplicate")
    _press(dialog, qtbot, "Remove")
    assert not dialog.state.text()  # the other one of the two still stops the drive
    dialog.table.setCurrentCell(0, 0)
    _press(dialog, qtbot, "Remove")
    assert "Nothing stops the drive any more when x" in dialog.state.text()
    _press(dialog, qtbot, "Down")
    _press(dialog, qtbot, "Save and test")
    assert dialog.key == "my_two_well_beam" and shipped.read_bytes() == before
    page.take_new(dialog.key)
    assert opened == ["my_two_well_beam"] and page.tabs.currentWidget() is page.self_test
    copy = page._paths()["my_two_well_beam"]
    assert "# Hz: 25 samples" in copy.read_text(encoding="utf-8")
    edited = NewRigDialog(window.bench, page, copy)
    qtbot.addWidget(edited)
    copy.write_text(copy.read_text(encoding="utf-8") + "# by hand\n", encoding="utf-8")
    edited.save()
    assert "by somebody else" in edited.state.text() and "# by hand" in copy.read_text(encoding="utf-8")
