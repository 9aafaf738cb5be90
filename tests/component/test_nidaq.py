"""NI-DAQmx with the real nidaqmx package against the device server, in the process and over loopback TCP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nidaqmx import GrpcSessionOptions

from analysis.base.errors import ShakedownError
from analysis.model import Model
from drivers.acquisition.capture import recording_to
from drivers.acquisition.engine import Engine
from drivers.acquisition.guarded import open_guarded
from drivers.base.limits import STOP_RAMP, Limits
from drivers.base.protocols import InstrumentError, LinkLost
from drivers.base.waveform import Sine, Sweep
from drivers.formats import read
from drivers.instruments.nidaq import (
    STILL_SECONDS,
    NidaqExciter,
    NidaqSource,
    connect,
    list_devices,
    terminals,
)
from drivers.rig.player import Player
from drivers.rig.profile import ChannelProfile, RigError, RigProfile, load_rig, open_rig
from drivers.virtual.nidaq_server import DeviceServer, InProcessChannel, device_of, serve
from drivers.virtual.plant import Plant, Shaker, Specimen
from drivers.virtual.simulated_device import DaqFailure, SimulatedDevice, Wire
from tests.heart import Heart
from tests.waiting import GUARD, wait_until

RATE = 2000.0
AHEAD = 0.15  # s written ahead over the network, so that a busy machine does not starve the output


def still_plant(rate: float, oversampling: int) -> Plant:
    """A specimen that does nothing but follow the table: easy to predict."""
    model = Model.from_equations({"x": "y - x"}, inputs={"y": "measured"}, name="follower")
    return Plant(Specimen(model, inputs={"y": "table"}), Shaker(1.0, 1e-3), rate, oversampling)


def hardware(profile: RigProfile, **source: Any) -> RigProfile:
    """The same rig with NI instruments: nothing else differs."""
    wiring = {c.name: f"Dev1/ai{i}" for i, c in enumerate(profile.channels)}
    instruments = {
        "source": {"driver": "nidaqmx", "wiring": wiring, **source},
        "exciter": {"driver": "nidaqmx", "output": "Dev1/ao0", "ahead_seconds": AHEAD, **source},
    }
    return replace(profile, instruments=instruments)


def bench(*channels: ChannelProfile, rate: float = RATE, **source: Any) -> RigProfile:
    wiring = {c.name: f"Dev1/ai{i}" for i, c in enumerate(channels)}
    instruments = {
        "source": {"wiring": wiring, **source},
        "exciter": {
            "output": "Dev1/ao0",
            "oversampling": source.get("oversampling", 1),
            "watchdog": source.get("watchdog"),
            "watchdog_optional": source.get("watchdog_optional", False),
        },
    }
    return RigProfile("bench", "bench", rate, channels, Limits(5.0, slew=5000.0), instruments)


class Bench:
    """A simulated device, the real package's session with it, and the rig opened on it."""

    def __init__(
        self,
        profile: RigProfile,
        wires: dict[str, Wire],
        server: type[DeviceServer] = DeviceServer,
        **options: Any,
    ) -> None:
        self.device = SimulatedDevice(still_plant, wires, **options)
        self.calls = server(self.device)
        self.session = GrpcSessionOptions(InProcessChannel(self.calls), "")
        self.source = NidaqSource(profile, self.session)
        self.exciter = NidaqExciter(profile, self.source)

    def close(self) -> None:
        self.exciter.close()
        self.source.close()
        self.device.close()


DRIVE = ChannelProfile("drive", "V")
TABLE = ChannelProfile("table", "mm", sensitivity=2.0)
WIRES = {"ai0": Wire("drive"), "ai1": Wire("table", 2.0)}


@pytest.fixture
def simple() -> Iterator[Bench]:
    opened = Bench(bench(DRIVE, TABLE), WIRES)
    yield opened
    opened.close()


def blocks(source: NidaqSource, count: int, size: int = 100) -> list[Any]:
    return [source.read(np.empty((len(source.channels), size))) for _ in range(count)]


def until_driven(source: NidaqSource) -> list[Any]:
    """Blocks until the drive is at its full level."""
    got: list[Any] = []
    end = time.monotonic() + GUARD
    while not (got and got[-1].drive is not None and got[-1].drive.level >= 1):
        assert time.monotonic() < end, "the drive never rises"
        got += blocks(source, 1, 37)
    return got


def until_steady(source: NidaqSource, size: int = 100) -> list[Any]:
    """Blocks until the drive has risen to its amplitude, however late it was asked for."""
    got: list[Any] = []
    end = time.monotonic() + GUARD
    while not (got and got[-1].drive.steady):
        assert time.monotonic() < end, "the drive never becomes steady"
        got += blocks(source, 1, size)
    return got


def test_given_a_device_then_it_is_discovered(simple: Bench) -> None:
    found, note = list_devices(simple.session)
    assert found == [("Dev1", "PXIe-6363 (simulated), serial number 5AFE")] and note == ""
    inputs, outputs = terminals("Dev1", simple.session)
    assert inputs == [f"Dev1/ai{i}" for i in range(len(inputs))] and outputs == ["Dev1/ao0"]
    with pytest.raises(InstrumentError, match="asking Dev9"):
        terminals("Dev9", simple.session)


def test_given_a_sine_then_its_phase_is_known_at_every_sample(simple: Bench) -> None:
    simple.source.start()
    got = blocks(simple.source, 1)
    assert not got[0].data[0].any()  # silent at start-up
    simple.exciter.play(Sine(1.5, 11.0, 0.4))
    got += until_steady(simple.source)
    got += blocks(simple.source, 8)
    for block in got[-8:]:
        state = block.drive
        assert state.steady and state.index == block.start_index
        n = np.arange(block.samples)
        expected = 1.5 * np.cos(state.phase + 2 * np.pi * 11 * n / simple.source.rate)
        assert np.abs(block.data[0] - expected).max() < 1e-9
    assert [b.start_index for b in got] == list(range(0, 100 * len(got), 100))


@pytest.mark.parametrize("simple", [None])
def test_given_an_output_on_a_multiple_of_the_clock_then_the_phase_is_as_exact(simple: None) -> None:
    opened = Bench(bench(DRIVE, TABLE, rate=187.5, oversampling=16), WIRES)
    opened.source.start()
    opened.exciter.play(Sine(1.0, 7.5))
    assert opened.source.rate == pytest.approx(187.5, rel=1e-5) and opened.source.rate != 187.5  # as coerced
    until_steady(opened.source, 10)
    (block,) = blocks(opened.source, 1, 10)
    n = np.arange(10)
    expected = np.cos(block.drive.phase + 2 * np.pi * 7.5 * n / opened.source.rate)
    assert block.drive.steady and np.abs(block.data[0] - expected).max() < 1e-9
    opened.close()


def acquired(opened: Bench) -> int:
    """Samples that the device has taken, read or not."""
    assert opened.device.input is not None
    return opened.device.input.acquired


def test_given_a_reader_too_slow_then_the_overrun_is_a_gap_of_exact_length(tmp_path: Path) -> None:
    opened = Bench(bench(DRIVE, TABLE, buffer_seconds=0.25), WIRES)
    opened.source.start()
    opened.exciter.play(Sine(1.0, 5.0))
    before = until_steady(opened.source)
    reached = before[-1].stop_index
    wait_until(lambda: acquired(opened) > reached + 1200)
    earliest = acquired(opened) - 500  # what the buffer holds
    after = blocks(opened.source, 3)
    gap = after[0]
    assert reached + 600 < gap.start_index < acquired(opened) and gap.start_index >= earliest
    assert "overran" in gap.reason
    # the samples behind the gap are those of their index: the drive's own phase proves it
    state = before[-1].drive
    for block in after:
        n = np.arange(block.start_index, block.stop_index)
        expected = np.cos(state.phase + 2 * np.pi * 5 * (n - state.index) / opened.source.rate)
        assert np.abs(block.data[0] - expected).max() < 1e-9
    opened.close()


def test_given_an_overrun_while_recording_then_the_file_has_the_gap(tmp_path: Path) -> None:
    opened = Bench(bench(DRIVE, TABLE, buffer_seconds=0.5), WIRES)

    class Dozing:
        """A source whose reader is late once."""

        name, channels, waits, dozed = "dozing", opened.source.channels, False, False
        rate = opened.source.rate
        start, stop, close = opened.source.start, opened.source.stop, opened.source.close

        def read(self, into: np.ndarray) -> Any:
            block = opened.source.read(into)
            if block.start_index > 500 and not self.dozed:
                self.dozed = True
                wait_until(lambda: acquired(opened) > block.stop_index + 1700)
            return block

    engine = Engine(Dozing(), opened.exciter)
    capture = engine.record(recording_to(tmp_path / "run", engine.source, {}), 3000)
    engine.start()
    assert capture.wait(GUARD)
    engine.stop()
    opened.close()
    record = read(capture.finished[0].path)
    gaps = record.channels["drive"].gaps
    lost = sum(stop - start for start, stop in gaps)
    assert 1 <= len(gaps) <= engine.status.gaps and 300 < lost <= engine.status.lost
    assert np.isnan(record["drive"]).sum() == lost
    assert len(record) == 3000 and not engine.status.failure


BRIDGE = ChannelProfile("e", "strain", kind="bridge", range=0.02, gauge_factor=2.1, bridge_excitation=5.0)


def strain_of(volts: float, bridge: str) -> float:
    """Textbook bridge equations, gauge factor 2.1, excitation 5 V, Poisson's ratio 0.3."""
    ratio, factor = volts / 5.0, 2.1
    return {
        "quarter": -4 * ratio / (factor * (1 + 2 * ratio)),
        "half": -4 * ratio / (factor * (1.3 + 1.4 * ratio)),
        "full": -ratio / factor,
    }[bridge]


@pytest.mark.parametrize("bridge", ["quarter", "half", "full"])
def test_given_a_strain_bridge_then_strain_null_and_shunt_are_right(bridge: str) -> None:
    wires = {"ai0": Wire("drive", 0.0, 0.003, lead=0.97)}  # 3 mV out of balance, leads that lose 3 %
    opened = Bench(bench(replace(BRIDGE, bridge=bridge)), wires)
    opened.source.start()
    assert blocks(opened.source, 1)[0].data.mean() == pytest.approx(strain_of(0.003 * 0.97, bridge), rel=1e-9)
    opened.source.stop()
    assert opened.source.null_bridge("e") == pytest.approx(0.003 * 0.97, rel=1e-9)
    opened.source.start()
    assert abs(blocks(opened.source, 1)[0].data).max() < 1e-12
    opened.source.stop()
    opened.device.wiring["ai0"].offset = 0.008  # now it is strained by 5 mV more
    assert opened.source.shunt_calibrate("e") == pytest.approx(1 / 0.97, rel=1e-9)
    opened.source.start()
    measured = blocks(opened.source, 1)[0].data.mean()
    assert measured == pytest.approx(strain_of(0.005 * 0.97, bridge) / 0.97, rel=1e-6)
    opened.close()


def test_given_calibration_kept_in_the_profile_when_opened_anew_then_it_is_in_force_and_can_be_repeated() -> (
    None
):
    kept = replace(BRIDGE, bridge="quarter", initial_bridge_voltage=0.003 * 0.97, shunt_gain=1 / 0.97)
    opened = Bench(bench(kept), {"ai0": Wire("drive", 0.0, 0.008, lead=0.97)})
    opened.source.start()
    measured = blocks(opened.source, 1)[0].data.mean()
    assert measured == pytest.approx(strain_of(0.005 * 0.97, "quarter") / 0.97, rel=1e-6)
    opened.source.stop()
    assert opened.source.shunt_calibrate("e") == pytest.approx(1 / 0.97, rel=1e-9)  # and not its square
    with pytest.raises(InstrumentError, match="no strain bridge"):
        opened.source.null_bridge("drive")
    opened.close()


@pytest.mark.parametrize(
    ("channel", "volts", "value"),
    [
        (ChannelProfile("a", "g", kind="iepe", sensitivity=0.1, coupling="ac"), 0.25, 2.5),
        (ChannelProfile("a", "m/s^2", kind="iepe", sensitivity=0.01), 0.25, 25.0),
        (ChannelProfile("a", "N", kind="force", sensitivity=0.002), 0.25, 125.0),
        (ChannelProfile("a", "mm", sensitivity=0.5, zero=3.0), 0.25, 3.5),
    ],
)
def test_given_a_sensor_of_each_kind_then_its_value_comes_in_its_unit(
    channel: ChannelProfile, volts: float, value: float
) -> None:
    opened = Bench(bench(channel), {"ai0": Wire("drive", 0.0, volts)})
    opened.source.start()
    assert blocks(opened.source, 1)[0].data == pytest.approx(np.full((1, 100), value), rel=1e-9)
    opened.close()


def test_given_a_signal_beyond_the_range_then_overloads_are_flagged() -> None:
    opened = Bench(bench(ChannelProfile("a", "V", range=1.0)), {"ai0": Wire("drive")})
    opened.source.start()
    opened.exciter.play(Sine(2.0, 10.0))
    until_steady(opened.source)
    for block in blocks(opened.source, 6):
        flagged = np.zeros(100, dtype=bool)
        for span in block.overloads:
            flagged[span.start - block.start_index : span.stop - block.start_index] = True
        assert np.array_equal(flagged, np.abs(block.data[0]) >= 1.0)
        assert flagged.any()
    opened.close()


def test_given_stop_then_the_output_is_zero_within_100_ms(simple: Bench) -> None:
    simple.source.start()
    simple.exciter.play(Sine(2.0, 20.0))
    until_steady(simple.source)
    with Heart() as heart:
        time.sleep(0.05)
        pressed = last_loud = now = time.monotonic()
        simple.exciter.stop("STOP")
        while now < last_loud + 0.3 and now < pressed + GUARD:
            if simple.device.output != 0.0:
                last_loud = now
            time.sleep(0.001)
            now = time.monotonic()
    assert pressed < last_loud
    assert last_loud - pressed - heart.stalled(pressed, last_loud) < 0.1
    assert simple.exciter.failure == ""


def test_given_the_acquisition_stops_then_the_drive_ramps_down_first(simple: Bench) -> None:
    simple.source.start()
    simple.exciter.play(Sine(2.0, 20.0))
    blocks(simple.source, 12)
    simple.source.stop()
    assert simple.device.output == 0.0
    simple.source.start()
    got = blocks(simple.source, 2)
    assert got[0].start_index == 0 and not got[0].drive.playing


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is not taken for a clock that stands still: what counts here are the samples."""
    monkeypatch.setattr("drivers.instruments.nidaq.STALLED_SECONDS", GUARD)
    monkeypatch.setattr("drivers.instruments.nidaq.COUNT_SLACK", GUARD)  # a simulated device lags behind then


class Timed(DeviceServer):
    """STOP is pressed by the drive's own time, however busy the machine is: when the output is that large."""

    press: Callable[[], None] | None = None
    at = 0.1  # V

    def do_GetWriteAttributeUInt64(self, r: Any) -> dict[str, Any]:
        if self.press is not None and abs(self.device.output) > self.at:
            press, self.press = self.press, None
            press()
        return super().do_GetWriteAttributeUInt64(r)


class Forgetful(Timed):
    """A device that does not tell of a stopped task how many samples it has played."""

    def do_GetWriteAttributeUInt64(self, r: Any) -> dict[str, Any]:
        if not self._find(r.task).running:
            raise DaqFailure(-200983)
        return super().do_GetWriteAttributeUInt64(r)


def stop_and_read_on(bench: Bench, got: list[Any], frequency: float = 20.0) -> tuple[Any, int]:
    """Every sample of the output until it is silent, and where it leaves what it would have played."""
    bench.exciter.request_stop("STOP")
    while got[-1].data[0].any() or not any(block.data[0].any() for block in got):
        got += blocks(bench.source, 1, 20)
    output = np.concatenate([block.data[0] for block in got])
    start = int(np.flatnonzero(output)[0]) - 1  # the first sample of the drive is zero
    free = Player(bench.exciter.limits, RATE)
    free.play(Sine(2.0, frequency))
    played = free.take(len(output) - start)
    return output, start + int(np.flatnonzero(np.abs(output[start:] - played) > 1e-9)[0])


def test_given_stop_while_the_drive_plays_then_what_was_written_ahead_falls_too(patient: None) -> None:
    playing = Bench(bench(DRIVE, TABLE), WIRES, server=Timed)
    calls = playing.calls
    assert isinstance(calls, Timed)
    for _ in range(6):  # a machine that is busy at that moment may be too late for it once
        playing.source.start()
        playing.exciter.play(Sine(2.0, 20.0))
        got = until_steady(playing.source, 20)
        written = playing.exciter._sent.count
        calls.press = playing.exciter.request_stop
        while calls.press is not None:
            written = playing.exciter._sent.count
            got += blocks(playing.source, 1, 20)
        output, falls = stop_and_read_on(playing, got)
        assert np.flatnonzero(output)[-1] - falls <= STOP_RAMP * RATE + 1 and playing.exciter.failure == ""
        playing.source.stop()
        playing.exciter.arm()
        if falls < written:
            break
    else:
        raise AssertionError("what had been written was never replaced")
    playing.close()


@pytest.mark.parametrize(("fifo", "server"), [(0, Timed), (8191, Timed), (8191, Forgetful)])
def test_given_stop_while_the_drive_rises_then_it_falls_at_once_whatever_the_device_has_taken(
    fifo: int, server: type[Timed], patient: None
) -> None:
    rising = Bench(bench(DRIVE, TABLE), WIRES, fifo=fifo, server=server)
    calls = rising.calls
    assert isinstance(calls, Timed)
    calls.press = rising.exciter.request_stop
    rising.source.start()
    rising.exciter.play(Sine(2.0, 1.0))  # no turn within what is written ahead, however late STOP is
    got = blocks(rising.source, 1, 20)
    while calls.press is not None:
        got += blocks(rising.source, 1, 20)
    output, leaves = stop_and_read_on(rising, got, 1.0)
    held = abs(output[leaves - 1])
    assert held > 0 and np.abs(output[leaves:]).max() <= held + 1e-9
    steps = np.abs(np.diff(output))
    natural = 2 * np.pi * 1.0 * 2.0 / RATE + 2.0 * np.pi / 2 / STOP_RAMP / RATE
    if server is Timed:  # told where it stands: no step
        assert steps[leaves - 1 :].max() <= natural
    states = [block.drive for block in got if block.drive is not None]
    assert states[-1].reason == "STOP" and not states[-1].playing and any(s.playing for s in states)
    wait_until(lambda: not rising.exciter.state().playing)
    rising.exciter.arm()
    with pytest.raises(InstrumentError, match="open the rig again"):
        rising.exciter.play(Sine(2.0, 20.0))
    rising.source.stop()
    rising.source.start()
    rising.exciter.play(Sine(2.0, 20.0))
    until_steady(rising.source)
    rising.close()


@pytest.mark.parametrize("order", ["request_stop", "stop"])
def test_given_a_drive_that_ends_within_what_was_written_ahead_then_its_state_ends_with_its_samples(
    order: str, patient: None
) -> None:
    profile = bench(DRIVE, TABLE)
    profile.instruments["exciter"]["ahead_seconds"] = 3 * STOP_RAMP + AHEAD  # more than a stop takes
    long = Bench(profile, WIRES)
    long.source.start()
    long.exciter.play(Sine(2.0, 20.0))
    got = until_steady(long.source, 20)
    getattr(long.exciter, order)("STOP")
    while got[-1].data[0].any():
        got += blocks(long.source, 1, 20)
    assert not got[-1].drive.playing and got[-1].drive.reason == "STOP"
    assert got[-2].drive.playing
    long.close()


def test_given_a_device_with_a_deep_memory_then_no_more_is_written_ahead_and_stop_is_as_quick(
    patient: None,
) -> None:
    """The driver's buffer seems empty all the time: the device has taken thousands of samples out of it."""
    deep = Bench(bench(DRIVE, TABLE), WIRES, fifo=8191)
    deep.source.start()
    deep.exciter.play(Sine(2.0, 20.0))
    got = until_steady(deep.source, 20)
    written = deep.exciter._sent.count
    assert written - got[-1].start_index < 2 * deep.exciter._ahead + 20
    output, falls = stop_and_read_on(deep, got)
    assert written <= falls  # cannot be replaced: the ramp follows behind
    assert np.flatnonzero(output)[-1] - falls <= STOP_RAMP * RATE + 1 and deep.exciter.failure == ""
    deep.close()


def test_given_a_sweep_then_the_time_of_the_drive_is_that_of_its_samples(simple: Bench) -> None:
    sweep = Sweep(1.5, 5.0, 60.0, 3.0)
    simple.source.start()
    simple.exciter.play(sweep)
    got = [b for b in until_driven(simple.source) + blocks(simple.source, 18, 37) if b.drive.playing][1:]
    assert len(got) > 10
    for block in got:
        state = block.drive
        phase = sweep.phase_at(np.array([state.time]))[0]
        if state.level < 1:  # it changes within a piece: only where the state itself was taken
            continue
        assert block.data[0, 0] == pytest.approx(1.5 * np.cos(phase), abs=1e-9)
    times = np.array([b.drive.time - b.start_index / RATE for b in got])
    assert np.ptp(times) < 1e-9


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ("ReadAnalogF64", -200284, "not yet been acquired"),
        ("ReadAnalogF64", -88999, "Unknown error"),
        ("StartTask", -50103, "reserved"),
    ],
)
def test_given_an_error_of_the_device_then_one_sentence_with_its_number(
    simple: Bench, call: str, code: int, words: str
) -> None:
    simple.calls.fail_next.append((call, code))
    with pytest.raises(InstrumentError) as error:
        simple.source.start()
        blocks(simple.source, 2)
    assert words in str(error.value) and str(code) in str(error.value) and "\n" not in str(error.value)


def test_given_a_device_unplugged_then_said_and_closing_is_harmless(simple: Bench) -> None:
    simple.source.start()
    blocks(simple.source, 2)
    simple.device.unplugged = True
    with pytest.raises(InstrumentError, match=r"Device identifier is invalid.*plugged in"):
        blocks(simple.source, 50)


def test_given_a_device_that_is_gone_while_it_drives_then_the_drive_counts_as_playing_until_it_is_zeroed(
    simple: Bench,
) -> None:
    simple.source.start()
    simple.exciter.play(Sine(2.0, 20.0))
    until_driven(simple.source)
    simple.device.unplugged = True
    wait_until(lambda: simple.exciter.failure)
    assert simple.exciter.state().playing
    wait_until(lambda: simple.exciter.lost)
    assert "Dev1/ao0 may still stand at a voltage" in simple.exciter.lost
    simple.device.unplugged = False
    wait_until(lambda: not simple.exciter.state().playing)
    assert simple.device.output == 0.0 and simple.exciter.lost == ""


@pytest.mark.parametrize("hanging", ["GetWriteAttributeUInt64", "WriteAnalogF64"])
def test_given_calls_of_the_driver_that_hang_then_the_drive_is_given_up_and_does_not_go_on(
    simple: Bench, hanging: str
) -> None:
    simple.source.start()
    simple.exciter.play(Sine(2.0, 20.0))
    until_driven(simple.source)
    began, frozen = time.monotonic(), threading.Event()
    simple.calls.slow[hanging] = lambda: float(frozen.wait(GUARD))
    wait_until(lambda: simple.exciter.failure)
    assert STILL_SECONDS < time.monotonic() - began < 3.0
    assert "the device has played nothing for 1." in simple.exciter.failure
    with pytest.raises(InstrumentError, match="has failed"):
        simple.exciter.play(Sine(1.0, 20.0))
    frozen.set()
    simple.calls.slow.clear()
    wait_until(lambda: not simple.exciter.state().playing and simple.device.output == 0.0)
    for _ in range(20):
        time.sleep(0.01)
        assert simple.device.output == 0.0


def test_given_calls_that_are_slow_when_stopped_then_nobody_says_silent_before_the_ramp_is_played(
    simple: Bench,
) -> None:
    """The device runs dry between two writes: the end of the ramp is on its way and has not been played."""
    simple.source.start()
    simple.exciter.play(Sine(2.0, 20.0))
    until_driven(simple.source)
    said, write = [], simple.calls.do_WriteAnalogF64

    def written(request: Any) -> dict[str, Any]:
        if any(request.write_array):
            said.append(simple.exciter.state().playing)
        return write(request)

    simple.calls.slow["GetWriteAttributeUInt64"] = lambda: 0.05
    simple.calls.do_WriteAnalogF64 = written  # type: ignore[method-assign]
    time.sleep(0.2)
    simple.exciter.request_stop("STOP")
    wait_until(lambda: not simple.exciter.state().playing and simple.device.output == 0.0)
    assert len(said) > 2 and all(said)


@pytest.mark.parametrize(
    "odd", [{"ahead_seconds": 5.0}, {"ahead_seconds": float("nan")}, {"oversampling": 0}]
)
def test_given_a_profile_whose_stop_would_take_seconds_then_refused(
    simple: Bench, odd: dict[str, Any]
) -> None:
    profile = bench(DRIVE, TABLE)
    profile.instruments["exciter"].update(odd)
    with pytest.raises(RigError, match="ahead_seconds"):
        NidaqExciter(profile, simple.source)


def test_given_wrong_names_then_said_in_words() -> None:
    device = SimulatedDevice(still_plant, WIRES)
    session = GrpcSessionOptions(InProcessChannel(DeviceServer(device)), "")
    profile = bench(DRIVE)
    for terminal, words in (("Dev2/ai0", "identifier is invalid"), ("Dev1/ai9", "does not exist")):
        wrong = replace(profile, instruments={"source": {"wiring": {"drive": terminal}}})
        with pytest.raises(InstrumentError, match=words):
            NidaqSource(wrong, session)
    with pytest.raises(ShakedownError, match="g or m/s"):
        NidaqSource(bench(ChannelProfile("a", "V", kind="iepe")), session)
    device.close()


def test_given_a_hardware_watchdog_when_the_program_hangs_then_the_output_goes_to_zero() -> None:
    opened = Bench(bench(DRIVE, TABLE, watchdog=1.5), WIRES)
    assert opened.exciter.watchdog is not None
    opened.source.start()
    opened.exciter.play(Sine(2.0, 20.0))
    blocks(opened.source, 12)
    assert not opened.device.expired
    opened.exciter._streaming.clear()  # the thread that feeds the output hangs
    wait_until(lambda: opened.device.expired)
    assert opened.device.output == 0.0
    opened.device.expired = False
    opened.close()


def test_given_a_watchdog_is_asked_for_and_absent_then_refused_or_said_if_the_profile_allows_it() -> None:
    with pytest.raises(RigError, match=r"asks for a hardware watchdog.*watchdog_optional = true"):
        Bench(bench(DRIVE, TABLE, watchdog=0.15), WIRES, watchdog=False)
    opened = Bench(bench(DRIVE, TABLE, watchdog=0.15, watchdog_optional=True), WIRES, watchdog=False)
    assert opened.exciter.watchdog is None
    assert "no hardware watchdog" in opened.exciter.notices[0]
    opened.close()


def test_given_the_output_is_not_fed_then_the_drive_is_off_and_samples_go_on(simple: Bench) -> None:
    simple.source.start()
    simple.exciter.play(Sine(2.0, 20.0))
    blocks(simple.source, 12)
    simple.calls.fail_next.append(("WriteAnalogF64", -200290))
    wait_until(lambda: simple.exciter.failure)
    assert "regeneration" in simple.exciter.failure
    wait_until(lambda: simple.device.output == 0.0)
    (block,) = blocks(simple.source, 1)
    assert block.drive.reason == simple.exciter.failure
    with pytest.raises(InstrumentError, match="has failed"):
        simple.exciter.play(Sine(1.0, 20.0))


# -- over the network: a server on the loopback, the whole rig in its own process


class Server:
    """The device server on a loopback port, with a trace of what its output really did."""

    def __init__(self, trace: Path | None = None) -> None:
        self.trace = trace
        self.profile = load_rig("two_well_beam_modern")
        self.device = device_of(self.profile, trace)
        self.grpc, self.port, self.calls = serve(self.device)
        self.rig = hardware(self.profile, server=f"127.0.0.1:{self.port}")

    def close(self) -> None:
        self.grpc.stop(0).wait()
        self.device.close()


def test_given_a_server_on_the_loopback_then_the_virtual_beam_is_an_ni_rig(tmp_path: Path) -> None:
    server = Server()
    rig = open_rig(server.rig)
    engine = Engine(rig.source, rig.exciter)
    queue = engine.subscribe()
    engine.start()
    rig.play()
    wait_until(lambda: any(block.drive.steady for block in queue.read() if block.drive is not None))
    engine.advance(0.5)
    capture = engine.record(recording_to(tmp_path / "run", rig.source, {}), 1000)
    assert capture.wait(GUARD)
    record = read(capture.finished[0].path)
    assert record.excitation is not None and record.excitation.phase is not None
    expected = 1.5 * np.cos(2 * np.pi * 7.5 * record.times + record.excitation.phase)
    assert np.abs(record["drive"] - expected).max() < 1e-6
    assert np.abs(record["x"]).max() > 0.5 and engine.status.gaps == 0
    server.grpc.stop(0).wait()  # the server dies
    wait_until(lambda: not engine.status.running)
    assert "cannot be reached" in engine.status.failure
    engine.stop()
    with pytest.raises(RigError, match="switch off the amplifier by hand"):
        rig.close()
    server.close()


def test_given_an_address_without_a_server_then_said_in_words() -> None:
    profile = hardware(load_rig("two_well_beam"), server="127.0.0.1:1")
    with pytest.raises(LinkLost, match="cannot be reached"):
        open_rig(profile)
    assert connect({}) is None


def test_given_the_server_as_documented_then_it_still_serves_after_seconds() -> None:
    command = [sys.executable, "-m", "drivers.virtual.nidaq_server", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split(";")[0].split()[-1]
        time.sleep(1.5)  # one that nobody holds has been collected by then
        try:
            found, problem = list_devices(connect({"server": address}))
            assert [name for name, _ in found] == ["Dev1"] and problem == ""
            process.send_signal(signal.SIGINT)
            assert process.wait(GUARD) == 0
        finally:
            process.kill()


def silent_after(trace: Path, since: float) -> float:
    """Seconds from ``since`` until the device's output was zero for good."""
    lines = [line.split() for line in trace.read_text().splitlines() if line.count(" ") == 1]
    loud = [float(t) for t, volts in lines if float(volts) != 0.0]
    return max(loud) - since


def test_given_the_rig_process_is_killed_then_the_output_is_set_to_zero(tmp_path: Path) -> None:
    server = Server(tmp_path / "output.log")
    rig = open_guarded(server.rig, patience=60)
    engine = Engine(rig.source, rig.exciter)
    engine.start()
    rig.play()
    wait_until(lambda: rig.link.output > 1.4)
    os.kill(rig.link.pid or 0, signal.SIGKILL)
    wait_until(lambda: not engine.status.running)
    engine.stop()
    assert "the drive is off" in engine.status.failure and server.device.output == 0.0
    rig.close()
    server.close()


def test_given_stop_on_a_guarded_ni_rig_then_the_device_itself_is_silent_within_100_ms(
    tmp_path: Path,
) -> None:
    server = Server(tmp_path / "output.log")
    rig = open_guarded(server.rig, patience=60)
    engine = Engine(rig.source, rig.exciter)
    engine.start()
    rig.play()
    wait_until(lambda: rig.link.output > 1.4 and abs(server.device.output) > 0.5)
    with Heart() as heart, Heart(rig.link.pid) as theirs:
        time.sleep(0.05)
        pressed = time.monotonic()
        rig.emergency_stop()
        wait_until(lambda: rig.link.output == 0.0)
        time.sleep(0.1)
        wait_until(lambda: server.device.output == 0.0)
        time.sleep(AHEAD + 0.3)  # and stays so
    taken = silent_after(tmp_path / "output.log", pressed)
    stalled = heart.stalled(pressed, pressed + taken) + theirs.stalled(pressed, pressed + taken)
    assert taken - stalled < AHEAD + 0.1
    engine.stop()
    assert engine.status.gaps == 0 and engine.status.failure == ""
    rig.close()
    server.close()
