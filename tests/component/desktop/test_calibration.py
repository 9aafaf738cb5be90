"""Calibration on the rig page: null and shunt, and the controller of a laser vibrometer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from app.desktop.pages.rig import RigPage
from app.desktop.rigfile import changed
from app.desktop.widgets.controllers import ControllerCard, volts_per_unit
from app.desktop.window import MainWindow
from drivers.base.protocols import InstrumentError
from drivers.rig.profile import load_rig, rig_files
from drivers.virtual.nidaq_server import serve
from drivers.virtual.plant import Plant, Shaker, Specimen
from drivers.virtual.simulated_device import SimulatedDevice, Wire
from drivers.virtual.simulated_instruments import SimulatedOFV5000
from tests.waiting import LONG_MS as WAIT

Make = Callable[..., MainWindow]
SHIPPED = rig_files()["two_well_beam_modern"]


def _own(folders: Path, key: str, text: str) -> Path:
    path = folders / "config" / "shakedown" / "rigs" / f"{key}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _page(window: MainWindow) -> RigPage:
    window.show_page("rig")
    page = window.page
    assert isinstance(page, RigPage)
    return page


def _heard(window: MainWindow) -> list[str]:
    said: list[str] = []
    window.bench.noticed.connect(lambda notice: said.append(notice.text))
    return said


def _choose(page: RigPage, channel: str) -> None:
    assert page.profile is not None
    page.channels.table.setCurrentCell([c.name for c in page.profile.channels].index(channel), 0)


def _reopened(window: MainWindow, qtbot: QtBot, action: Callable[[], object]) -> None:
    with qtbot.waitSignal(window.bench.rig.opened, timeout=WAIT):
        action()
    feed = window.bench.feed
    qtbot.waitUntil(lambda: feed.ring.stop > window.bench.rig.rate and feed.stats[0].rms >= 0, timeout=WAIT)


def test_given_an_amplifier_with_an_offset_when_nulled_then_it_reads_zero_and_the_profile_keeps_it(
    make_window: Make, qtbot: QtBot, folders: Path
) -> None:
    shipped = SHIPPED.read_text(encoding="utf-8")
    path = _own(folders, "bench", shipped.replace("bits = 24", "bits = 24\noffsets = { f = 0.25 }"))
    window = make_window("rig", rig="bench", start_shaking=False)
    page, feed = _page(window), window.bench.feed
    qtbot.waitUntil(lambda: abs(feed.stats[2].mean - 0.05) < 1e-3, timeout=WAIT)  # 0.25 V at 5 V a unit
    _choose(page, "f")
    said = _heard(window)
    _reopened(window, qtbot, page.channels.null_channel)
    qtbot.waitUntil(lambda: abs(feed.stats[2].mean) < 1e-4, timeout=WAIT)
    assert any("f is calibrated" in text and "bench" in text for text in said)
    kept = load_rig(path).channels[2]
    assert kept.zero == pytest.approx(-0.05, abs=1e-4) and kept.calibrated
    text = path.read_text(encoding="utf-8")
    assert "# V at the function generator" in text  # the file's own comments stay
    assert kept.calibrated in page.channels.message.text()


def test_given_a_rig_of_the_program_when_nulled_then_a_copy_is_made_and_the_original_stays(
    window: MainWindow, qtbot: QtBot, folders: Path
) -> None:
    before = SHIPPED.read_bytes()
    page = _page(window)
    qtbot.waitUntil(lambda: bool(window.bench.feed.stats[0].rms > 0), timeout=WAIT)
    _choose(page, "drive")
    _reopened(window, qtbot, page.channels.null_channel)
    assert window.bench.rig.name == page.name() == "my_two_well_beam_modern"
    assert SHIPPED.read_bytes() == before


BRIDGE = """
name = "Strain bench"
rate = 1000
[limits]
amplitude = 1.0
[[channels]]
name = "e"
unit = "strain"
kind = "bridge"       # a full bridge
range = 0.02
gauge_factor = 2.1
[[channels]]
name = "volts"
unit = "V"
[instruments.source]
driver = "nidaqmx"
server = "127.0.0.1:PORT"
wiring = { e = "Dev1/ai0", volts = "Dev1/ai1" }
"""


@pytest.fixture
def strain_bench(folders: Path) -> Iterator[Path]:
    """A bridge 3 mV out of balance with leads that lose 3 %, behind an NI device server."""
    from analysis.model import Model

    rest = Model.from_equations({"x": "-x"}, name="a beam at rest")
    device = SimulatedDevice(
        lambda rate, oversampling: Plant(Specimen(rest), Shaker(), rate, oversampling),
        {"ai0": Wire("x", 1.0, 0.003, lead=0.97), "ai1": Wire("x", 1.0, 0.5)},
    )
    server, port, _ = serve(device)
    yield _own(folders, "strain", BRIDGE.replace("PORT", str(port)))
    server.stop(None).wait()
    device.close()


def test_given_a_strain_bridge_when_nulled_and_shunted_then_the_profile_holds_both_and_they_are_in_force(
    make_window: Make, qtbot: QtBot, strain_bench: Path
) -> None:
    window = make_window("rig", rig="strain")
    page, feed, said = _page(window), window.bench.feed, _heard(window)
    assert page.channels.shunt.isVisible() and not page.channels.table.isColumnHidden(8)
    qtbot.waitUntil(lambda: bool(feed.stats[0].mean < -5e-4), timeout=WAIT)
    _reopened(window, qtbot, page.channels.null_channel)
    assert load_rig(strain_bench).channels[0].initial_bridge_voltage == pytest.approx(0.00291, rel=1e-6)
    qtbot.waitUntil(lambda: abs(feed.stats[0].mean) < 1e-9, timeout=WAIT)
    _reopened(window, qtbot, lambda: page.channels.shunt_channel(100e3))
    kept = load_rig(strain_bench).channels[0]
    assert kept.shunt_gain == pytest.approx(1 / 0.97, rel=1e-6) and kept.calibrated
    assert "gain 1.0309" in page.channels.message.text() and "2.91 mV" in page.channels.message.text()
    assert any("a gain of 1.0309" in text for text in said)
    assert "# a full bridge" in strain_bench.read_text(encoding="utf-8")
    _choose(page, "volts")
    assert not page.channels.shunt.isVisible()


def test_given_a_device_that_will_not_calibrate_then_one_sentence_comes_and_the_stream_goes_on(
    make_window: Make, qtbot: QtBot, strain_bench: Path
) -> None:
    window = make_window("rig", rig="strain")
    rig, said = window.bench.rig, _heard(window)
    _page(window)
    rig.calibrate("volts")
    qtbot.waitUntil(lambda: any("no strain bridge" in text for text in said), timeout=WAIT)
    qtbot.waitUntil(lambda: rig.running and rig.status().samples > 200, timeout=WAIT)
    assert not rig.failure


@pytest.fixture
def vibrometer(folders: Path) -> Iterator[SimulatedOFV5000]:
    """The virtual beam with the controller of its laser vibrometer on a serial line."""
    with SimulatedOFV5000() as instrument:
        assert isinstance(instrument, SimulatedOFV5000)
        text = SHIPPED.read_text(encoding="utf-8").replace('name = "v"', 'name = "v"\nunit = "m/s"')
        text += f'\n[instruments.vibrometer]\ndriver = "ofv5000"\nport = "{instrument.port}"\n'
        _own(folders, "laser", text)
        yield instrument


def _card(window: MainWindow, qtbot: QtBot) -> ControllerCard:
    page = _page(window)
    page.tabs.setCurrentWidget(page.controllers)
    card = page.controllers.cards["vibrometer"]
    qtbot.waitUntil(lambda: "velocity range" in card.boxes and card.strength.value() > 0, timeout=WAIT)
    return card


def test_given_a_vibrometer_when_its_range_is_changed_then_the_channel_can_follow_and_keeps_it(
    make_window: Make, qtbot: QtBot, folders: Path, vibrometer: SimulatedOFV5000
) -> None:
    window = make_window("rig", rig="laser", start_shaking=False)
    card = _card(window, qtbot)
    assert "OFV-5000" in card.identity.text()
    assert card.strength.value() == 75
    qtbot.waitUntil(lambda: card.lamp.state == "good", timeout=WAIT)  # asked after the strength
    assert card.boxes["velocity range"].currentText() == "10 mm/s/V"
    assert "displacement range" not in card.boxes  # not built in
    assert card.channel.currentText() == "v"
    card.choose("velocity range", "50 mm/s/V")
    qtbot.waitUntil(lambda: "instead of 20" in card.meaning.text(), timeout=WAIT)
    assert vibrometer.values["VeloDec", "Range"] == "50 mm/s/V"
    with qtbot.waitSignal(window.bench.rig.opened, timeout=WAIT):
        card.apply()
    profile = load_rig(folders / "config" / "shakedown" / "rigs" / "laser.toml")
    assert profile.channels[1].sensitivity == 20.0
    assert profile.instruments["vibrometer"]["channel"] == "v"
    again = _card(window, qtbot)
    qtbot.waitUntil(lambda: "counts with it" in again.meaning.text(), timeout=WAIT)


def test_given_a_vibrometer_that_misbehaves_then_the_card_says_it_in_one_sentence_and_stop_still_works(
    make_window: Make, qtbot: QtBot, vibrometer: SimulatedOFV5000
) -> None:
    window = make_window("rig", rig="laser")
    card, rig = _card(window, qtbot), window.bench.rig
    vibrometer.stubborn = True
    card.choose("tracking filter", "Fast")
    qtbot.waitUntil(lambda: "did not take 'Fast'" in card.state.text(), timeout=WAIT)
    qtbot.waitUntil(lambda: card.boxes["tracking filter"].currentText() == "Slow", timeout=WAIT)
    qtbot.waitUntil(lambda: rig.drive().level > 0.1, timeout=WAIT)
    vibrometer.fault = "silence"
    asked = len(vibrometer.received)
    card.choose("velocity range", "2 mm/s/V")
    # the instrument's thread is waiting for an answer that does not come
    qtbot.waitUntil(lambda: len(vibrometer.received) > asked, timeout=WAIT)
    rig.stop()
    qtbot.waitUntil(lambda: not rig.drive().playing, timeout=WAIT)
    assert "did not answer" not in card.state.text()  # the drive did not wait for it
    qtbot.waitUntil(lambda: "did not answer" in card.state.text(), timeout=WAIT)
    vibrometer.unplug()
    card.choose("velocity range", "2 mm/s/V")
    qtbot.waitUntil(
        lambda: "cannot be reached" in card.state.text() or "lost" in card.state.text(), timeout=WAIT
    )
    qtbot.waitUntil(lambda: card.strength_text.text() == "–", timeout=WAIT)


def test_given_units_then_one_volt_becomes_a_sensitivity_or_a_sentence() -> None:
    assert volts_per_unit((0.01, "m/s"), "m/s") == pytest.approx(100)
    assert volts_per_unit((0.01, "m/s"), "mm/s") == pytest.approx(0.1)
    assert volts_per_unit((5e-5, "m"), "um") == pytest.approx(0.02)
    for unit in ("", "m", "V", "g"):
        with pytest.raises(InstrumentError, match="measures m/s"):
            volts_per_unit((0.01, "m/s"), unit)


def test_given_a_profile_written_in_one_line_when_changed_then_the_values_are_right() -> None:
    import tomllib

    plain = 'channels = [{name = "a", zero = 1.0}, {name = "b"}]\n[instruments.laser]\ndriver = "ofv5000"\n'
    after = tomllib.loads(changed(plain, "b", {"zero": np.pi.__float__()}, "laser"))
    assert after["channels"] == [{"name": "a", "zero": 1.0}, {"name": "b", "zero": np.pi}]
    assert after["instruments"]["laser"] == {"driver": "ofv5000", "channel": "b"}
