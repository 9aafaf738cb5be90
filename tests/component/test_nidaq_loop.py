"""The control loop of an NI rig: the real package against the device server, with calls that are late."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from nidaqmx import GrpcSessionOptions

from analysis import Model
from drivers.base.limits import Limits
from drivers.base.protocols import InstrumentError, Modulated
from drivers.base.waveform import Sine
from drivers.instruments.nidaq import NO_LOOP, NidaqExciter, NidaqSource
from drivers.instruments.nidaq_loop import UNANSWERED, NidaqLoopExciter, NidaqLoopSource
from drivers.rig.profile import ChannelProfile, RigError, RigProfile
from drivers.virtual.ni_products import PXIE_6363, USB_6211, Product, Rack
from drivers.virtual.nidaq_server import DeviceServer, InProcessChannel
from drivers.virtual.plant import Plant, Shaker, Specimen
from drivers.virtual.simulated_device import SimulatedDevice, Wire
from tests.heart import Heart
from tests.unit.drivers.test_loop import Given
from tests.waiting import GUARD, wait_until

RATE = 250.0
LIMITS = Limits(5.0, slew=500.0)
WRITE, READ = "WriteAnalogScalarF64", "ReadAnalogF64"
STOPPED = 0.3  # s: three times what STOP may take, for a busy machine; whatever hangs here hangs for 1 s


def follower(rate: float, oversampling: int) -> Plant:
    """A specimen that does nothing but follow the table."""
    model = Model.from_equations({"x": "y - x"}, inputs={"y": "measured"}, name="follower")
    return Plant(Specimen(model, inputs={"y": "table"}), Shaker(1.0, 1e-3), rate, 12)


class LoopBench:
    """A device with the loop's source and exciter, and somebody who reads."""

    def __init__(
        self, product: Product = PXIE_6363, rate: float = RATE, speed: float = 1.0, slew: float = 500.0,
        **loop: Any,
    ) -> None:  # fmt: skip
        channels = (ChannelProfile("drive", "V"), ChannelProfile("table", "mm", sensitivity=2.0))
        wiring = {"drive": "Dev1/ai0", "table": "Dev1/ai1"}
        source = {"wiring": wiring, "loop": {"channels": True, **loop}}
        instruments: dict[str, dict[str, Any]] = {"source": source, "exciter": {"output": "Dev1/ao0"}}
        self.profile = RigProfile("bench", "bench", rate, channels, Limits(5.0, slew=slew), instruments)
        wires = {"ai0": Wire("drive"), "ai1": Wire("table", 2.0)}
        self.device = SimulatedDevice(follower, wires, speed=speed, rack=Rack({"Dev1": product}))
        self.server = DeviceServer(self.device)
        self.values: list[float] = []
        put = self.device.set_output
        self.device.set_output = lambda v: (self.values.append(v), put(v))[1]  # type: ignore[method-assign]
        self.session = GrpcSessionOptions(InProcessChannel(self.server), "")
        try:
            self.source = NidaqLoopSource(self.profile, self.session)
            self.exciter = NidaqLoopExciter(self.profile, self.source)
        except BaseException:
            self.device.close()
            raise
        self.blocks: list[Any] = []
        self.error = ""
        self._reading = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self.source.start()
        self._reading.set()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            while self._reading.is_set():
                self.blocks.append(self.source.read(np.empty((5, 5))))
        except InstrumentError as error:
            self.error = str(error)

    def let_reader_go(self) -> None:
        self._reading.clear()
        if self._thread is not None:
            self._thread.join()

    def drive(self, frequency: float = 10.0) -> None:
        """A risen drive of 2 V."""
        self.start()
        wait_until(lambda: len(self.blocks) > 2)
        self.exciter.play(Sine(2.0, frequency))
        wait_until(lambda: self.blocks[-1].drive is not None and self.blocks[-1].drive.steady)

    def seconds_to_silence(self) -> float:
        """After a STOP, without the time for which the machine kept this process from running."""
        with Heart() as heart:
            began = time.monotonic()
            self.exciter.request_stop("STOP")
            wait_until(lambda: self.device.output == 0 and not self.exciter.state().playing)
            ended = time.monotonic()
        return ended - began - heart.stalled(began, ended)

    def channel(self, row: int) -> np.ndarray[Any, Any]:
        return np.concatenate([b.data[row] for b in self.blocks])

    def close(self) -> None:
        self.server.slow.clear()
        self.device.unplugged = False
        self.let_reader_go()
        self.source.close()
        self.exciter.close()
        self.device.close()


@pytest.fixture
def made() -> Iterator[Callable[..., LoopBench]]:
    benches: list[LoopBench] = []

    def make(*args: Any, **options: Any) -> LoopBench:
        benches.append(LoopBench(*args, **options))
        return benches[-1]

    yield make
    for opened in benches:
        opened.close()


def test_given_single_points_then_a_value_goes_out_with_the_next_sample(
    made: Callable[..., LoopBench],
) -> None:
    bench = made(speed=0.4)
    bench.drive()
    assert isinstance(bench.exciter, Modulated)
    bench.exciter.control(Given(lambda i: 0.5 * (i % 7 == 0), channels=("drive",)))
    first = len(bench.blocks) + 1
    wait_until(lambda: len(bench.blocks) > first + 30)
    bench.let_reader_go()
    drive, sent = bench.channel(0), bench.channel(3)
    at = bench.blocks[first].drive
    phase = at.phase + 2 * np.pi * at.frequency / RATE * (np.arange(len(drive)) - at.index)
    extra = (drive - 2.0 * np.cos(phase))[at.index :]
    answered = np.flatnonzero(sent[at.index : -1] == 0.5)
    status = bench.exciter.loop_status()
    assert len(answered) > 10 and status.state == "holding"
    in_time = np.abs(extra[answered + 1] - 0.5) < 0.05
    assert np.mean(in_time) > 0.7  # the others were written too late for that edge
    rounding = 1 - 1e-9
    assert status.delay >= rounding / RATE and status.longest >= rounding * status.delay
    assert set(np.unique(bench.channel(4))) <= {0.0, 2.0}


def test_given_no_single_points_then_the_delay_is_measured_and_the_person_is_told(
    made: Callable[..., LoopBench],
) -> None:
    bench = made(USB_6211)
    assert "no hardware-timed single points" in bench.exciter.notices[0]
    bench.server.slow[WRITE] = lambda: 0.01
    bench.drive()
    assert 0.01 < bench.exciter.loop_status().delay < 0.05
    with pytest.raises(RigError, match="has no hardware-timed single points"):
        made(USB_6211, timed="hardware")


@pytest.mark.parametrize(
    "values", [[1e308, -1e308], [np.nan], [np.inf, 0.0], [7.0, 7.0, -7.0], [0.0, 4.9, -4.9]], ids=str
)
def test_when_a_controller_goes_wild_then_no_value_is_beyond_the_limits(
    made: Callable[..., LoopBench], values: list[float]
) -> None:
    bench = made()
    bench.drive()
    bench.exciter.control(Given(lambda i: values[i % len(values)], channels=("drive",)))
    asked = len(bench.blocks)
    wait_until(lambda: len(bench.blocks) > asked + 8)
    assert bench.seconds_to_silence() < STOPPED
    out = np.array(bench.values)
    assert np.isfinite(out).all() and np.abs(out).max() <= LIMITS.peak
    assert np.abs(np.diff(out)).max() <= LIMITS.slew / RATE * (1 + 1e-9)


def _hangs(bench: LoopBench, state: str) -> None:
    """Bring the loop into a state in which STOP must find it."""
    once, hanging = iter([1.0]), threading.Event()

    def seconds() -> float:
        hanging.set()
        return next(once, 0.0)

    if state == "controller hangs":
        bench.exciter.control(Given(lambda i: time.sleep(1.0) or 0.1 if i == 3 else 0.1, channels=("drive",)))
        time.sleep(0.05)
    elif state in ("write hangs", "read hangs"):
        bench.server.slow[WRITE if state == "write hangs" else READ] = seconds
        assert hanging.wait(GUARD)  # else the first call of STOP itself would hang
    elif state == "nobody reads":
        bench.let_reader_go()
    elif state == "correcting":
        bench.exciter.control(Given(lambda i: 0.5 * (-1) ** i, channels=("drive",)))
        time.sleep(0.05)
    elif state == "letting go":
        bench.exciter.control(Given(lambda i: 0.5, channels=("drive",)))
        time.sleep(0.05)
        bench.exciter.control(None, "asked for")
    elif state == "slow calls":
        bench.server.slow[WRITE] = lambda: 0.015


@pytest.mark.parametrize(
    "state",
    ["driving", "correcting", "letting go", "slow calls", "controller hangs", "write hangs", "read hangs",
     "nobody reads"],
)  # fmt: skip
def test_when_stopped_in_any_state_then_the_output_is_silent_and_nothing_comes_back(
    made: Callable[..., LoopBench], state: str
) -> None:
    bench = made()
    bench.drive()
    _hangs(bench, state)
    assert bench.seconds_to_silence() < STOPPED
    count = len(bench.values)
    steps = np.abs(np.diff(bench.values))
    assert steps.max() <= LIMITS.slew / RATE * 1.5  # the watch ramps down as well, by its own clock
    time.sleep(1.1 if "hangs" in state else 0.1)  # whatever hung comes back meanwhile
    assert not np.any(bench.values[count:]) and bench.device.output == 0
    with pytest.raises(Exception, match=r"STOP|failed"):
        bench.exciter.play(Sine(1.0, 10.0))


@pytest.mark.parametrize(
    "call", ["StopTask", "ClearTask", "CreateTask", "CreateAOVoltageChan", "StartTask", "WriteAnalogF64"]
)
def test_when_nobody_reads_and_a_call_of_the_driver_hangs_then_stop_does_not_wait_for_it(
    made: Callable[..., LoopBench], call: str
) -> None:
    bench = made()
    bench.drive()
    bench.let_reader_go()
    bench.server.slow[call] = lambda: 1.0
    assert bench.seconds_to_silence() < STOPPED
    assert "the device was reset" in bench.exciter.failure
    count = len(bench.values)
    bench.server.slow.clear()
    time.sleep(1.1)  # whatever hung comes back meanwhile
    assert not np.any(bench.values[count:]) and bench.device.output == 0
    bench.source.stop()
    bench.blocks.clear()
    bench.exciter.arm()
    bench.drive()
    assert bench.blocks[-1].drive.level == 1.0


def test_when_no_sample_is_answered_then_the_output_falls_by_itself_and_a_new_start_is_needed(
    made: Callable[..., LoopBench],
) -> None:
    bench = made()
    bench.drive()
    bench.let_reader_go()
    wait_until(lambda: bench.device.output == 0 and bench.exciter.failure != "")
    assert "answered no sample for" in bench.exciter.failure
    assert int(bench.exciter.failure.split(" for ")[1].split()[0]) >= 1e3 * UNANSWERED
    with pytest.raises(InstrumentError, match="start the acquisition again"):
        bench.exciter.play(Sine(1.0, 10.0))
    bench.source.stop()
    bench.blocks.clear()
    bench.drive()
    assert bench.blocks[-1].drive.level == 1.0


def test_when_deadlines_are_missed_in_a_row_then_the_loop_lets_go_and_the_drive_goes_on(
    made: Callable[..., LoopBench],
) -> None:
    bench = made()
    bench.drive()
    bench.exciter.control(Given(lambda i: 0.4, channels=("drive",)))
    bench.server.slow[WRITE] = lambda: 0.04  # ten samples
    wait_until(lambda: "deadlines in a row" in bench.exciter.loop_status().reason)
    bench.server.slow.clear()
    wait_until(lambda: bench.exciter.loop_status().state == "open")
    assert bench.exciter.state().playing


def test_when_the_device_is_gone_then_the_drive_counts_as_playing_until_a_zero_is_written(
    made: Callable[..., LoopBench],
) -> None:
    bench = made()
    bench.drive()
    bench.exciter.control(Given(lambda i: 0.4, channels=("drive",)))
    bench.device.unplugged = True
    wait_until(lambda: bench.error != "")
    assert "NI-DAQmx" in bench.error
    wait_until(lambda: "could not be brought to zero from here" in bench.exciter.failure)
    assert bench.device.output != 0 and bench.exciter.state().playing
    wait_until(lambda: bench.exciter.lost != "")
    assert "may still stand at a voltage" in bench.exciter.lost
    with pytest.raises(InstrumentError, match="switch off the amplifier by hand"):
        bench.exciter.close()
    assert bench.exciter.state().playing


def test_when_a_device_that_was_gone_comes_back_then_its_output_goes_to_zero(
    made: Callable[..., LoopBench],
) -> None:
    bench = made()
    bench.drive()
    bench.device.unplugged = True
    wait_until(lambda: "could not be brought to zero from here" in bench.exciter.failure)
    bench.device.unplugged = False
    wait_until(lambda: not bench.exciter.state().playing)
    assert bench.device.output == 0 and bench.exciter.lost == ""


def test_when_somebody_else_has_set_the_output_to_zero_meanwhile_then_it_is_not_raised_to_ramp_it_down(
    made: Callable[..., LoopBench],
) -> None:
    """The calls of a device that was frozen come back after the second guard has reached it."""
    bench, frozen = made(), threading.Event()
    bench.drive()
    for call in ("StopTask", "ResetDevice"):
        bench.server.slow[call] = lambda: float(frozen.wait(GUARD))
    bench.let_reader_go()
    wait_until(lambda: bench.exciter.failure != "")
    assert bench.device.output != 0 and bench.exciter.state().playing
    bench.exciter.latch.watch(str, lambda: "the second guard set the output to zero")
    count = len(bench.values)
    frozen.set()
    wait_until(lambda: not bench.exciter.state().playing)
    assert bench.values[count:] == [0.0]


def test_given_the_end_of_a_ramp_that_the_slew_limit_draws_out_when_nobody_answers_then_silence(
    made: Callable[..., LoopBench],
) -> None:
    bench = made(slew=130.0)
    bench.drive(0.2)  # a cosine: it has hardly begun to fall when it has risen
    bench.let_reader_go()
    player = bench.exciter._player
    with bench.exciter._writing:  # the sample that ends the ramp is late by all of it
        bench.exciter.stop("stopped")
        stood = player.output
        value = player.take_last(round(0.1 * RATE), 0.0)
        bench.exciter._writer.write_one_sample(value, 1.0)
        assert not player.state().playing and 0 < abs(value) < abs(stood)
    wait_until(lambda: bench.device.output == 0)
    assert player.output == 0


def test_given_samples_that_nobody_answered_in_silence_then_a_drive_begins_all_the_same(
    made: Callable[..., LoopBench],
) -> None:
    bench = made()
    bench.start()
    wait_until(lambda: len(bench.blocks) > 2)
    bench.exciter._answered_at -= 10.0  # a collection of garbage, before the drive
    bench.exciter.play(Sine(2.0, 10.0))
    wait_until(lambda: bench.blocks[-1].drive is not None and bench.blocks[-1].drive.steady)
    assert bench.exciter.failure == ""


def test_when_the_inputs_do_not_start_then_the_next_start_finds_the_output_free(
    made: Callable[..., LoopBench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = made()

    def refuse() -> None:
        raise InstrumentError("The input does not start.")

    with monkeypatch.context() as context:
        context.setattr(bench.source.inputs, "start", refuse)
        with pytest.raises(InstrumentError):
            bench.source.start()
    bench.drive()


def test_given_an_output_that_answers_late_then_nothing_is_played_and_the_time_is_told(
    made: Callable[..., LoopBench],
) -> None:
    bench = made()
    bench.server.slow[WRITE] = lambda: 0.03
    bench.start()
    wait_until(lambda: len(bench.exciter._call_seconds) >= 5)
    with pytest.raises(InstrumentError, match=r"after 3\d ms: in a loop STOP would take longer than 100 ms"):
        bench.exciter.play(Sine(1.0, 10.0))
    assert not np.any(bench.values)


def test_given_a_rig_that_is_too_slow_or_has_no_loop_then_a_sentence_says_so(
    made: Callable[..., LoopBench],
) -> None:
    with pytest.raises(RigError, match="needs 100 samples a second at least"):
        made(rate=50.0)
    bench = made()
    source = NidaqSource(bench.profile, bench.session)
    exciter = NidaqExciter(bench.profile, source)
    assert isinstance(exciter, Modulated)
    with pytest.raises(InstrumentError, match=r"\[instruments.source.loop\]"):
        exciter.loop_status()
    with pytest.raises(InstrumentError, match="Nothing was moved"):
        exciter.control(None)
    assert "plays ahead of time" in NO_LOOP
    exciter.close()
    source.close()
