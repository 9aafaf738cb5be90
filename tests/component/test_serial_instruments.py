"""Serial instruments: real pyserial on a pseudo-terminal, byte by byte, with all that goes wrong there."""

from __future__ import annotations

import itertools
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analysis import ShakedownError
from drivers.acquisition.guarded import open_guarded
from drivers.acquisition.stopping import stop_all
from drivers.base.limits import LimitError, Limits
from drivers.base.protocols import InstrumentError, LinkLost, SensorController
from drivers.base.waveform import RandomNoise, Sine
from drivers.instruments.generators import DS345, ScpiGenerator, _steps
from drivers.instruments.polytec import OFV3001, OFV5000, parse_range
from drivers.instruments.serial_link import LinkSettings, SerialLink
from drivers.rig.profile import load_rig, open_rig
from drivers.virtual.simulated_instruments import (
    SimulatedDS345,
    SimulatedGenerator,
    SimulatedOFV3001,
    SimulatedOFV5000,
    SimulatedScpi,
)
from tests.heart import Heart
from tests.waiting import GUARD, wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
LIMITS = Limits(3.0, 1.0, 100.0, slew=2000.0)


@pytest.fixture
def ofv() -> Iterator[tuple[SimulatedOFV5000, OFV5000]]:
    with SimulatedOFV5000() as instrument:
        controller = OFV5000(instrument.port)
        yield instrument, controller  # type: ignore[misc]
        controller.close()


def test_given_an_ofv5000_then_the_bytes_are_those_of_its_protocol(ofv: Any) -> None:
    instrument, controller = ofv
    assert controller.identify() == "Polytec OFV-5000, firmware 2.11"
    instrument.received.clear()
    controller.set("velocity range", "50 mm/s/V")
    assert controller.signal_strength() == 0.75
    assert controller.sensitivity() == (0.05, "m/s")
    assert not controller.over_range()
    assert instrument.received == [
        b"Set,VeloDec,0,Range,50 mm/s/V\n",
        b"Get,VeloDec,0,Range\n",
        b"Get,SignalLevel,0,Value\n",
        b"Get,VeloDec,0,Range\n",
        b"Get,OverRange,0,State\n",
    ]
    assert isinstance(controller, SensorController)
    settings = controller.settings()
    assert set(settings) == {"velocity range", "tracking filter"}  # the other parts are not built in
    assert settings["tracking filter"].choices == ("Off", "Slow", "Fast")


def test_given_values_that_it_does_not_take_then_said(ofv: Any) -> None:
    instrument, controller = ofv
    with pytest.raises(InstrumentError, match="one of 1 mm/s/V"):
        controller.set("velocity range", "3 mm/s/V")
    with pytest.raises(InstrumentError, match="no 'colour'"):
        controller.set("colour", "red")
    instrument.stubborn = True
    with pytest.raises(InstrumentError, match="did not take 'Fast'"):
        controller.set("tracking filter", "Fast")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("silence", "did not answer"),
        ("garbage", "garbage"),
        ("half", "broke off"),
        ("wrong", r"no OFV|no number"),
    ],
)
def test_given_a_bad_answer_then_refused_and_fine_again_afterwards(ofv: Any, fault: str, words: str) -> None:
    instrument, controller = ofv
    assert controller.signal_strength() == 0.75
    instrument.fault = fault
    with pytest.raises(InstrumentError, match=words):
        controller.signal_strength()
    instrument.fault = ""
    instrument.values["SignalLevel", "Value"] = "128"
    assert controller.signal_strength() == 0.25


def test_given_a_late_answer_then_it_is_never_taken_for_the_next(ofv: Any) -> None:
    instrument, controller = ofv
    controller.identify()
    instrument.late = 0.7  # longer than the time-out
    instrument.fault = "slow"
    assert controller.sensitivity() == (0.01, "m/s")  # the repetition, after the late one was drained
    assert controller.signal_strength() == 0.75


def test_given_the_cable_is_pulled_then_lost_and_connected_again_by_itself(ofv: Any) -> None:
    instrument, controller = ofv
    told: list[str] = []
    controller.link._on_event = told.append
    assert controller.signal_strength() == 0.75
    instrument.unplug()
    with pytest.raises(LinkLost):
        controller.signal_strength()
    with pytest.raises(LinkLost, match="check cable"):
        controller.signal_strength()
    instrument.plug_in()
    assert controller.signal_strength() == 0.75
    assert "lost" in told[0] and "connected again" in told[-1] and len(controller.link.events) == len(told)


def test_given_an_ofv3001_then_the_bytes_are_those_of_its_protocol() -> None:
    with SimulatedOFV3001() as instrument:
        controller = OFV3001(instrument.port, {3: "25 mm/s/V", 4: "125 mm/s/V"})
        controller.settings()
        instrument.received.clear()
        controller.set("velocity range", "4")
        assert instrument.received == [b"VELO?\n", b"VELO4\n", b"VELO?\n"]
        assert controller.sensitivity() == (0.125, "m/s") and not controller.over_range()
        assert isinstance(controller, SensorController)
        with pytest.raises(InstrumentError, match="cannot set"):
            controller.set("velocity range", "9")
        controller.close()


@pytest.mark.parametrize(
    ("text", "meaning"),
    [("10 mm/s/V", (0.01, "m/s")), ("50 um/V", (5e-5, "m")), ("1 m/s/V", (1.0, "m/s"))],
)
def test_given_a_range_then_what_a_volt_means(text: str, meaning: tuple[float, str]) -> None:
    assert parse_range(text) == (pytest.approx(meaning[0]), meaning[1])
    with pytest.raises(InstrumentError):
        parse_range("10 furlongs/V")


GENERATORS = [(SimulatedDS345, DS345), (SimulatedScpi, ScpiGenerator)]


@pytest.mark.parametrize(("simulated", "driver"), GENERATORS)
def test_given_a_generator_then_silent_soft_and_stopped_within_100_ms(simulated: Any, driver: Any) -> None:
    with simulated() as instrument:
        generator = driver(instrument.port, LIMITS)
        wait_until(lambda: instrument.peak == 0.0)  # after opening, although it was on
        generator.play(Sine(2.0, 7.5))
        wait_until(lambda: generator.state().steady)
        wait_until(lambda: instrument.peak == pytest.approx(2.0))
        assert instrument.frequency == 7.5
        levels = np.array([peak for _, peak in instrument.history])
        assert np.diff(levels).max() < 0.25 and len(np.unique(np.round(levels, 3))) >= 12  # no step
        generator.change(frequency=8.0, amplitude=1.0)
        wait_until(lambda: instrument.peak == pytest.approx(1.0) and instrument.frequency == 8.0)
        state = generator.state()
        assert state.playing and state.excitation() is not None and state.excitation().phase is None
        with Heart() as heart:
            time.sleep(0.05)
            pressed = time.monotonic()
            generator.stop("STOP")
            wait_until(lambda: instrument.peak == 0.0)
        silent = instrument.history[-1][0]
        assert silent - pressed - heart.stalled(pressed, silent) < 0.1
        assert generator.state().reason == "STOP" and not generator.state().playing
        generator.close()


@pytest.mark.parametrize(("simulated", "driver"), GENERATORS)
def test_given_forbidden_drives_then_refused_and_nothing_sent(simulated: Any, driver: Any) -> None:
    with simulated() as instrument:
        generator = driver(instrument.port, LIMITS)
        sent = len(instrument.received)
        for bad in (Sine(4.0, 7.5), Sine(1.0, 200.0), Sine(1.0, 0.5)):
            with pytest.raises(LimitError):
                generator.play(bad)
        with pytest.raises(InstrumentError, match="sines only"):
            generator.play(RandomNoise(1.0, 5.0, 50.0))
        assert len(instrument.received) == sent
        generator.close()


def test_given_a_ds345_then_the_bytes_are_those_of_its_protocol() -> None:
    with SimulatedDS345() as instrument:
        generator = DS345(instrument.port, LIMITS)
        assert generator.identify() == "StanfordResearchSystems,DS345,12345,1.04"
        instrument.received.clear()
        generator.play(Sine(1.5, 7.5))
        wait_until(lambda: generator.state().steady)
        assert instrument.received[:5] == [
            b"AMPL 0.000VP\n", b"FREQ 7.500000\n", b"FUNC 0\n", b"OFFS 0.0\n", b"*ESR?\n",
        ]  # fmt: skip
        wait_until(lambda: instrument.peak == 1.5)  # peak to peak
        generator.close()
        off = b"AMPL 0.000VP\n"
        wait_until(lambda: instrument.received[-3:] == [off, b"AMPL? VP\n", off])


def test_given_a_scpi_generator_then_the_bytes_are_those_of_its_protocol() -> None:
    with SimulatedScpi() as instrument:
        generator = ScpiGenerator(instrument.port, LIMITS)
        assert instrument.received[-2:] == [b"OUTP OFF\n", b"OUTP?\n"]
        instrument.received.clear()
        generator.play(Sine(1.5, 7.5))
        wait_until(lambda: generator.state().steady)
        assert instrument.received[:9] == [
            b"OUTP OFF\n", b"FREQ 7.500000\n", b"FUNC SIN\n", b"VOLT:OFFS 0\n", b"OUTP:LOAD INF\n",
            b"VOLT:UNIT VPP\n", b"VOLT MIN\n", b"OUTP ON\n", b"SYST:ERR?\n",
        ]  # fmt: skip
        wait_until(lambda: instrument.peak == 1.5)
        generator.close()
        wait_until(lambda: instrument.received[-3:] == [b"OUTP OFF\n", b"OUTP?\n", b"OUTP OFF\n"])


@pytest.mark.parametrize(("simulated", "driver"), GENERATORS)
@pytest.mark.parametrize("into_50", [False, True])
def test_given_whatever_the_front_panel_says_then_the_load_gets_the_volts_that_were_asked_for(
    simulated: Any, driver: Any, into_50: bool
) -> None:
    """An output of 50 ohm gives half of its open voltage to a load of 50 ohm."""
    with simulated() as instrument:
        instrument.voltage_unit = "VRMS"
        generator = driver(instrument.port, LIMITS, into_50)
        generator.play(Sine(1.5, 7.5))
        wait_until(lambda: generator.state().steady)
        share = 0.5 if into_50 else 1.0
        wait_until(lambda: share * instrument.peak == pytest.approx(1.5))
        played = [share * peak for _, peak in instrument.history]
        assert max(played[played.index(0.0) :]) == pytest.approx(1.5)
        generator.close()


@pytest.mark.parametrize(("simulated", "driver"), GENERATORS)
def test_given_a_generator_that_is_switched_off_by_hand_then_said_and_it_does_not_go_on(
    simulated: Any, driver: Any
) -> None:
    with simulated() as instrument:
        generator = driver(instrument.port, LIMITS)
        generator.play(Sine(1.5, 7.5))
        wait_until(lambda: generator.state().steady)
        wait_until(lambda: instrument.peak == pytest.approx(1.5))
        if driver is DS345:
            instrument.peak_to_peak = 0.0
        else:
            instrument.on = False
        wait_until(lambda: "says that its output is off" in generator.lost)
        instrument.note()
        silent = len(instrument.history)
        generator.request_stop(generator.lost)  # as the rig's process does with what is lost
        wait_until(lambda: not generator.state().playing)
        assert not any(peak for _, peak in instrument.history[silent - 1 :])
        generator.close()


def test_given_a_load_that_is_none_then_one_sentence() -> None:
    with SimulatedScpi() as instrument:
        profile = load_rig("two_well_beam")
        for load in (75, True, "low", None):
            exciter = {"driver": "scpi", "port": instrument.port, "load": load}
            with pytest.raises(ShakedownError, match="load is what the generator feeds"):
                open_rig(replace(profile, instruments={**profile.instruments, "exciter": exciter}))


def test_given_another_instrument_on_the_port_then_said() -> None:
    with SimulatedScpi() as instrument, pytest.raises(InstrumentError, match="no DS345"):
        DS345(instrument.port, LIMITS)


def test_given_the_cable_is_pulled_while_it_plays_then_stop_reaches_it_when_back() -> None:
    with SimulatedDS345() as instrument:
        generator = DS345(instrument.port, LIMITS)
        generator.play(Sine(2.0, 7.5))
        wait_until(lambda: generator.state().steady)
        instrument.unplug()
        with pytest.raises(LinkLost):
            generator.stop("STOP")
        assert "cannot be reached" in generator.state().reason and generator.state().playing
        instrument.plug_in()
        wait_until(lambda: instrument.peak == 0.0)  # by itself, as soon as it is back
        wait_until(lambda: not generator.state().playing)
        generator.close()


def test_given_a_port_that_vanishes_while_it_drives_then_tripped_said_and_zero_as_soon_as_it_is_back() -> (
    None
):
    with SimulatedDS345() as instrument:
        profile = load_rig("two_well_beam")
        table = {**profile.instruments, "exciter": {"driver": "ds345", "port": instrument.port}}
        rig = open_guarded(replace(profile, instruments=table), patience=60)
        assert rig.exciter is not None
        rig.exciter.play(Sine(1.0, 7.5))
        wait_until(lambda: instrument.peak == 1.0)
        instrument.unplug()
        wait_until(lambda: rig.drive_status().state == "tripped")
        assert "the generator could not be reached for 2 s" in rig.drive_status().reason
        with pytest.raises(InstrumentError, match="switch off the amplifier by hand"):
            rig.close()
        assert instrument.peak == 1.0 and rig.link.page.path.exists()  # `shakedown stop` still finds it
        instrument.plug_in()
        wait_until(lambda: instrument.peak == 0.0)  # by the second guard: the rig's process is gone
        wait_until(lambda: not rig.link.page.path.exists())


def test_given_a_line_that_is_gone_for_a_moment_then_the_drive_goes_on() -> None:
    with SimulatedDS345() as instrument:
        generator = DS345(instrument.port, LIMITS)
        generator.play(Sine(1.0, 7.5))
        wait_until(lambda: generator.state().steady)
        instrument.unplug()
        wait_until(lambda: "lost" in generator.state().reason or "cannot" in generator.state().reason)
        instrument.plug_in()
        wait_until(lambda: generator.state().reason == "")
        assert not generator.lost and instrument.peak == 1.0
        generator.close()


def refused(action: Callable[..., None], *values: float) -> None:
    with pytest.raises(ShakedownError):
        action(*values)


@pytest.mark.parametrize("order", [False, True])
def test_given_a_line_that_came_back_and_an_instrument_that_does_not_answer_then_stop_waits_for_nothing(
    order: bool,
) -> None:
    with SimulatedScpi() as instrument:
        assert isinstance(instrument, SimulatedGenerator)
        generator = ScpiGenerator(instrument.port, LIMITS)
        generator.play(Sine(1.0, 7.5))
        wait_until(lambda: generator.state().steady)
        instrument.unplug()
        wait_until(lambda: generator.state().reason != "")
        instrument.fault = "silence"  # it has to say who it is before anything is set
        instrument.plug_in()
        wait_until(lambda: "did not answer" in generator.state().reason)
        if order:  # the line is being drained for a change of the drive when STOP comes
            asking = threading.Thread(target=refused, args=(generator.change, 9.0))
            asking.start()
            time.sleep(0.25)
        pressed = time.monotonic()
        generator.request_stop("STOP")
        wait_until(lambda: instrument.peak == 0.0)
        assert time.monotonic() - pressed < 0.25
        assert generator.state().playing  # nobody has heard that it is silent
        if order:
            asking.join(GUARD)
        instrument.fault = ""
        wait_until(lambda: not generator.state().playing)
        generator.close()


@pytest.mark.parametrize(("simulated", "driver"), GENERATORS)
def test_given_a_generator_that_hears_nothing_then_stop_is_not_taken_for_silence(
    simulated: type[SimulatedGenerator], driver: type[DS345 | ScpiGenerator]
) -> None:
    """Its cable is out at the far end, or it has frozen: the port takes every byte, and it plays on."""
    with simulated() as instrument:
        assert isinstance(instrument, SimulatedGenerator)
        generator = driver(instrument.port, LIMITS)
        generator.play(Sine(1.0, 7.5))
        wait_until(lambda: generator.state().steady and instrument.peak == 1.0)
        instrument.fault = "deaf"
        generator.request_stop("STOP")
        wait_until(lambda: "cannot be reached" in generator.state().reason)
        assert generator.state().playing and instrument.peak == 1.0
        with pytest.raises(InstrumentError, match="did not answer"):
            generator.close()
        instrument.fault = ""
        driver(instrument.port, LIMITS).close()
        assert instrument.peak == 0.0


def test_given_a_generator_that_hears_nothing_then_it_is_tripped_and_nobody_says_that_it_is_silent() -> None:
    with SimulatedDS345() as instrument:
        profile = load_rig("two_well_beam")
        table = {**profile.instruments, "exciter": {"driver": "ds345", "port": instrument.port}}
        rig = open_guarded(replace(profile, instruments=table), patience=60)
        assert rig.exciter is not None
        rig.exciter.play(Sine(1.0, 7.5))
        wait_until(lambda: instrument.peak == 1.0)
        began = time.monotonic()
        instrument.fault = "deaf"
        wait_until(lambda: rig.drive_status().state == "tripped")
        assert time.monotonic() - began < 8.0  # about 3 s where the machine is not busy
        assert "could not be reached for 2 s" in rig.drive_status().reason
        wait_until(lambda: "could not be reached: it does not answer" in rig.drive_status().reason)
        (found,) = [drive for drive in stop_all() if drive.pid == rig.link.pid]
        assert not found.stopped and "switch off the amplifier" in found.word
        assert instrument.peak == 1.0
        instrument.fault = ""
        wait_until(lambda: instrument.peak == 0.0)
        wait_until(lambda: rig.link.page.zeroed)
        rig.close()


def test_given_a_generator_that_plays_then_a_second_program_cannot_silence_it() -> None:
    with SimulatedDS345() as instrument:
        generator = DS345(instrument.port, LIMITS)
        generator.play(Sine(1.0, 7.5))
        with pytest.raises(LinkLost, match="in use by another program"):
            DS345(instrument.port, LIMITS)
        wait_until(lambda: instrument.peak == 1.0)
        generator.close()
        DS345(instrument.port, LIMITS).close()  # free again


def test_given_a_tcp_socket_then_the_same_driver_reaches_it() -> None:
    simulated = SimulatedScpi()
    with socket.create_server(("127.0.0.1", 0)) as server, simulated:

        def relay() -> None:
            link, _ = server.accept()
            with link, link.makefile("rwb") as lines:
                for line in lines:
                    answer = simulated.answer(line.decode().strip())
                    if answer is not None:
                        lines.write(answer.encode() + b"\n")
                        lines.flush()

        thread = threading.Thread(target=relay, daemon=True)
        thread.start()
        generator = ScpiGenerator(f"socket://127.0.0.1:{server.getsockname()[1]}", LIMITS)
        with pytest.raises(LinkLost, match="in use by another program"):
            ScpiGenerator(generator.link.port, LIMITS)
        generator.play(Sine(1.0, 9.0))
        wait_until(lambda: simulated.peak == pytest.approx(1.0))
        generator.close()
        thread.join(GUARD)
        assert simulated.peak == 0.0


def test_given_a_rig_with_generator_and_vibrometer_then_it_opens_whole() -> None:
    with SimulatedDS345() as ds345, SimulatedOFV5000() as ofv5000:
        profile = load_rig("two_well_beam")
        instruments = {
            "source": profile.instruments["source"],
            "exciter": {"driver": "ds345", "port": ds345.port},
            "vibrometer": {"driver": "ofv5000", "port": ofv5000.port},
        }
        from dataclasses import replace

        rig = open_rig(replace(profile, instruments=instruments))
        assert rig.controllers["vibrometer"].sensitivity() == (0.01, "m/s")
        rig.play()
        assert isinstance(ds345, SimulatedGenerator)
        wait_until(lambda: ds345.peak == pytest.approx(1.5))
        rig.close()
        wait_until(lambda: ds345.peak == 0.0)


def test_given_a_port_that_is_not_there_then_one_sentence() -> None:
    link = SerialLink("/dev/does-not-exist", LinkSettings())
    with pytest.raises(LinkLost, match="cannot be reached"):
        link.query("*IDN?")


@pytest.mark.parametrize(("begin", "target"), [(0.0, 2.0), (0.5, 2.0), (1.9, 2.0), (2.0, 0.7), (0.001, 5.0)])
def test_given_another_amplitude_then_no_step_upwards_is_more_than_a_twentieth(
    begin: float, target: float
) -> None:
    steps = [begin, *_steps(begin, target)]
    assert steps[-1] == target and len(steps) < 70
    if target > begin:
        assert all(b <= max(1.05 * a, 0.05 * target) * (1 + 1e-12) for a, b in itertools.pairwise(steps))
        assert all(b > a for a, b in itertools.pairwise(steps))
    else:
        assert all(b < a for a, b in itertools.pairwise(steps))


@pytest.mark.parametrize(("simulated", "driver"), [(SimulatedDS345, DS345), (SimulatedScpi, ScpiGenerator)])
@pytest.mark.parametrize("rises", [0, 1, 20])
def test_given_stop_while_a_step_upwards_is_on_the_line_then_it_is_withdrawn(
    simulated: type[SimulatedGenerator], driver: type[DS345 | ScpiGenerator], rises: int
) -> None:
    """STOP comes between the two parts of the line that sets the next amplitude."""
    with simulated() as instrument:
        assert isinstance(instrument, SimulatedGenerator)
        generator = driver(instrument.port, Limits(5.0))
        plain, sent = generator.link._put, itertools.count()

        def put(data: bytes) -> None:
            plain(data)
            if data.startswith((b"AMPL ", b"VOLT ")) and not data.endswith(b"\n") and next(sent) == rises:
                generator.request_stop("STOP")

        generator.link._put = put  # type: ignore[method-assign]
        generator.play(Sine(1.0, 9.0))
        wait_until(lambda: not generator.state().playing)
        peaks = [peak for _, peak in instrument.history]
        (withdrawn,) = [i for i, line in enumerate(instrument.received) if b"E-" in line]
        assert instrument.received[withdrawn].rstrip(b"VP\n").endswith(b"E-1" if rises else b"E-9")
        before = b"".join(instrument.received[:withdrawn])
        share = 1 if driver is DS345 else 2  # told is peak to peak; of the DS345 into 50 ohm
        told = [float(volts) / share for volts in re.findall(rb"(?:AMPL|VOLT) ([\d.]+)", before)]
        wait_until(lambda: instrument.peak == 0.0)
        assert max(peaks) == pytest.approx(max(told, default=0.0), abs=0.005)  # VOLT MIN
        generator.close()
