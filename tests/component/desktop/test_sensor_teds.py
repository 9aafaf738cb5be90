"""Sensors that tell of themselves, from the dialog through the real nidaqmx package to a simulated rack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta

import numpy as np
import pytest
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QComboBox, QLabel
from pytestqt.qtbot import QtBot

from analysis.model import Model
from app.desktop.newrig import NewRigDialog
from app.desktop.opening import rig_paths
from app.desktop.rigfile import save_text
from app.desktop.window import MainWindow
from drivers.rig.profile import load_rig, open_rig
from drivers.virtual.ni_products import Teds, compact_daq
from drivers.virtual.nidaq_server import serve
from drivers.virtual.plant import Plant, Shaker, Specimen
from drivers.virtual.simulated_device import SimulatedDevice, Wire
from tests.waiting import GUARD
from tests.waiting import LONG_MS as LONG

RACK = """
name = "Rack"
rate = 2048.0
[[channels]]
name = "a"
unit = "V"
[[channels]]
name = "f"
unit = "V"
[[channels]]
name = "x"
unit = "V"
[instruments.source]
driver = "nidaqmx"
server = "127.0.0.1:{port}"
wiring = {{ a = "cDAQ1Mod1/ai0", f = "cDAQ1Mod1/ai1", x = "cDAQ1Mod1/ai2" }}
"""
DAY = date.today() - timedelta(30)
ACCELEROMETER = Teds(102.0, serial=815, calibrated=DAY, valid_days=730)  # mV per g
FORCE = Teds(2.2, "force", maker=21, model=208, serial=12)  # mV per N


def _still(rate: float, oversampling: int) -> Plant:
    model = Model.from_equations({"x": "y - x"}, inputs={"y": "measured"}, name="follower")
    return Plant(Specimen(model, inputs={"y": "table"}), Shaker(1.0, 1e-3), rate, oversampling)


@pytest.fixture
def rack() -> Iterator[int]:
    """The port of a chassis with three sensors at rest: 0.25 V at each; the last has no TEDS."""
    sensors = (ACCELEROMETER, FORCE, None)
    wires = {f"cDAQ1Mod1/ai{i}": Wire("drive", 0.0, 0.25, teds=teds) for i, teds in enumerate(sensors)}
    device = SimulatedDevice(_still, wires, rack=compact_daq())
    server, port, _ = serve(device)
    yield port
    server.stop(0).wait(GUARD)
    device.close()


def _ask(dialog: NewRigDialog, qtbot: QtBot, row: int) -> str:
    dialog.table.setCurrentCell(row, 0)
    qtbot.mouseClick(dialog.teds_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(dialog.teds_button.isEnabled, timeout=LONG)
    return dialog.state.text()


def _shown(dialog: NewRigDialog, row: int) -> tuple[str, str]:
    sensor, calibration = dialog.table.cellWidget(row, 2), dialog.table.cellWidget(row, 3)
    assert isinstance(sensor, QComboBox) and isinstance(calibration, QLabel)
    return sensor.currentText(), calibration.text()


def test_given_a_rack_on_the_network_then_the_dialog_fills_in_what_its_sensors_say_and_the_rig_measures_by_it(
    make_window: Callable[..., MainWindow], qtbot: QtBot, rack: int
) -> None:
    window = make_window("rig", begin=False)
    dialog = NewRigDialog(window.bench, window, save_text(RACK.format(port=rack), "rack"))
    qtbot.addWidget(dialog)
    dialog.show()
    assert _ask(dialog, qtbot, 0) == (
        "At cDAQ1Mod1/ai0: accelerometer of maker 16, model 352, serial number 815, "
        f"10.4 mV per m/s², calibrated on {DAY.isoformat()}."
    )
    qtbot.mouseClick(dialog.take_button, Qt.MouseButton.LeftButton)
    assert "Taken: accelerometer" in dialog.state.text() and "10.4 mV per m/s²" in dialog.state.text()
    good = (DAY + timedelta(730)).isoformat()
    assert _shown(dialog, 0) == ("TEDS 16-352, serial number 815", f"by TEDS; good until {good}")
    assert _ask(dialog, qtbot, 1).endswith("model 208, serial number 12, 2.2 mV per N.")
    qtbot.mouseClick(dialog.take_button, Qt.MouseButton.LeftButton)
    assert _shown(dialog, 1) == ("TEDS 21-208, serial number 12", "by TEDS")
    assert "-200709" in _ask(dialog, qtbot, 2) and not dialog.take_button.isVisible()
    qtbot.mouseClick(dialog.next, Qt.MouseButton.LeftButton)
    saved = load_rig(rig_paths()[dialog.key])
    assert [(c.unit, c.kind, c.teds, c.calibrated) for c in saved.channels] == [
        ("m/s²", "iepe", True, DAY.isoformat()), ("N", "force", True, ""), ("V", "voltage", False, ""),
    ]  # fmt: skip
    rig = open_rig(saved)
    try:
        rig.source.start()
        got = rig.source.read(np.empty((3, 64))).data[:, -1]
    finally:
        rig.close()
    assert got == pytest.approx([0.25 * 9.80665 / 0.102, 0.25 / 0.0022, 0.25], rel=1e-9)
