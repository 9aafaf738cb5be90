"""Generators and vibrometers on USB, LAN and GPIB: the instrument classes of the serial line, over VISA."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from drivers.base.limits import LimitError, Limits
from drivers.base.protocols import Exciter, InstrumentError
from drivers.base.waveform import Sine
from drivers.base.zeroing import ZeroingFailed, zero_output
from drivers.instruments.discovery import find_devices
from drivers.instruments.generators import ScpiGenerator
from drivers.instruments.polytec import OFV5000
from tests.waiting import wait_until

LIMITS = Limits(2.0, 1.0, 100.0, ramp=1000.0)
BUSES = ("GPIB0::10::INSTR", "USB0::0x0957::0x0407::MY44021621::INSTR", "TCPIP0::192.168.0.7::inst0::INSTR")


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyvisa_sim")
    monkeypatch.setenv("PYVISA_LIBRARY", f"{Path(__file__).parents[1] / 'data' / 'generator.yaml'}@sim")


@pytest.fixture(params=BUSES, ids=["gpib", "usb", "lan"])
def generator(request: pytest.FixtureRequest) -> Iterator[ScpiGenerator]:
    made = ScpiGenerator(f"visa://{request.param}", LIMITS)
    yield made
    made.close()


def test_given_a_generator_on_a_bus_then_it_plays_inside_its_limits_and_stops(
    generator: ScpiGenerator,
) -> None:
    assert isinstance(generator, Exciter)
    assert "33250A" in generator.identify()
    with pytest.raises(LimitError):
        generator.play(Sine(5.0, 10.0))
    generator.play(Sine(1.0, 10.0))
    wait_until(lambda: generator.state().steady)
    assert float(generator.link.query("FREQ?")) == 10.0
    assert float(generator.link.query("VOLT?")) == pytest.approx(2.0)  # peak to peak
    assert generator.link.query("OUTP?") == "ON"
    generator.request_stop("STOP")
    wait_until(lambda: not generator.state().playing)
    assert generator.link.query("OUTP?") == "OFF"


def test_given_a_vibrometer_on_a_bus_then_it_tells_its_sensitivity() -> None:
    controller = OFV5000("visa://GPIB0::11::INSTR")
    assert controller.identify() == "Polytec OFV-5000, firmware 3.1"
    assert controller.sensitivity() == (0.01, "m/s")
    controller.close()


def test_given_the_buses_then_devices_lists_each_instrument_once() -> None:
    found = [d.address.replace("::0::", "::") for d in find_devices()[0] if d.kind == "visa"]
    assert sorted(found) == sorted(f"visa://{n}" for n in (*BUSES, "GPIB0::11::INSTR"))


def test_given_nobody_at_the_address_then_one_sentence() -> None:
    with pytest.raises(InstrumentError, match=r"visa://GPIB0::30::INSTR did not answer"):
        ScpiGenerator("visa://GPIB0::30::INSTR", LIMITS)


def test_given_another_process_then_it_can_send_the_command_that_silences() -> None:
    how = {"kind": "line", "port": f"visa://{BUSES[0]}", "commands": ["OUTP OFF"]}
    zero_output(how)
    with pytest.raises(ZeroingFailed):
        zero_output({**how, "port": "visa://nonsense"})
