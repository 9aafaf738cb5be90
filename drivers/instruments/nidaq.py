"""NI-DAQmx through the real nidaqmx package: analogue input, and analogue output on the same clock.

The analogue output runs on the input's sample clock (or an exact multiple of it) and starts with the input's
start trigger, so the drive's sample that belongs to each measured sample is known. It is streamed without
regeneration: what was not written is never played again. ``server`` in the profile reaches a device server
over the network (NI's own, or :mod:`drivers.virtual.nidaq_server`); without it the driver on this machine is
used.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from analysis import EXTRAS, ShakedownError, missing_extra, need_extra
from drivers.base.clock import Clock
from drivers.base.limits import STOP_RAMP
from drivers.base.overload import overloads
from drivers.base.protocols import (
    Block,
    ChannelSpan,
    DriveState,
    Exciter,
    InstrumentError,
    LinkLost,
    LoopStatus,
    Samples,
)
from drivers.base.standstill import Standstill
from drivers.base.waveform import Waveform
from drivers.instruments import nidaq_channels
from drivers.instruments.nidaq_channels import conversion
from drivers.instruments.nidaq_errors import (
    OLDER_FIRMWARE_OVERRUN,
    OVERRUN,
    PLAYED_ALREADY,
    UNSUPPORTED,
    first_sentence,
    in_words,
    patiently,
)
from drivers.instruments.nidaq_input import InputTasks
from drivers.instruments.nidaq_output import ZERO_PACE, OutputTerminal, Standing
from drivers.instruments.teds import SensorData
from drivers.instruments.written_samples import WrittenSamples, fall_from
from drivers.rig.player import PlayedOutput, Player, PlayerMark
from drivers.rig.profile import RigError, RigProfile, positive

BUFFER_SECONDS = 10.0  # of the input: what may pile up before samples are lost
AHEAD_SECONDS = 0.04  # of the output: what is written and not yet played
SHORTEST_AHEAD, LONGEST_AHEAD = 0.005, 0.5  # s, of a profile
# Of that, what STOP leaves because it is played while the rest is replaced: so long, and two calls of the
# driver; more at each further attempt.
REPLACE_SECONDS = (0.001, 0.008, 0.02)
CALLS, SLOW_CALL = 8, 5  # so many are remembered; by its place among them, in order, one that is slow
PACE_SECONDS = 0.001  # between two looks at STOP while nothing is to be written
COUNT_SLACK = 0.005  # s, by which a count of the device may run ahead of the time that it is asked at
STALLED_SECONDS = 0.04  # beyond what a stop takes: then the output's clock is taken for stalled
STILL_SECONDS = 1.0  # beyond what is written ahead, that a drive may stand still: then the device is frozen
LOOK_SECONDS = 0.05  # between two looks whether it does
NO_LOOP = (
    "The output of this rig plays ahead of time: a table [instruments.source.loop] in its profile lets it "
    "answer every sample. Nothing was moved."
)
READ_TIMEOUT = 5.0  # s beyond the time that the samples take


def list_devices(session: Any = None) -> tuple[list[tuple[str, str]], str]:
    """Name and description of each NI device, and a sentence if none could be looked for."""
    if not EXTRAS["ni"].installed:
        return [], missing_extra("ni")
    from nidaqmx.errors import DaqNotFoundError, DaqNotSupportedError, Error
    from nidaqmx.system import System

    try:
        system = System.local() if session is None else System.remote(session)
        found = [(d.name, f"{d.product_type}, serial number {d.serial_num:X}") for d in system.devices]
    except (DaqNotFoundError, DaqNotSupportedError):
        return [], "The NI-DAQmx driver is not installed, so NI devices were not looked for."
    except Error as error:
        return [], f"NI devices could not be listed: {first_sentence(error)}"
    return found, "" if found else "No NI device was found."


def terminals(address: str, session: Any = None) -> tuple[list[str], list[str]]:
    """Analogue inputs and outputs of a device; of a chassis, or of one of its modules, those of all modules.

    They share the chassis' clock, and seldom has one module both inputs and outputs.
    """
    need_extra("ni")
    from nidaqmx.system import System

    with in_words(f"asking {address} for its inputs"):
        system = System.local() if session is None else System.remote(session)
        devices = _on_one_clock(system.devices[address])
        inputs = [name for d in devices for name in d.ai_physical_chans.channel_names]
        outputs = [name for d in devices for name in d.ao_physical_chans.channel_names]
    return [name for name in inputs if name], [name for name in outputs if name]


def _on_one_clock(device: Any) -> list[Any]:
    """The modules of a chassis, the one that was asked for first; any other device is alone."""
    from nidaqmx.errors import DaqError

    chassis = device
    with contextlib.suppress(DaqError):  # only a module is in one
        chassis = device.compact_daq_chassis_device
    try:
        return sorted(chassis.chassis_module_devices, key=lambda module: module != device)
    except DaqError:
        return [device]


def sensor_data(terminal: str, source: Mapping[str, Any], session: Any = None) -> SensorData:
    """What the sensor at an input tells of itself (TEDS)."""
    need_extra("ni")
    with in_words(f"asking the sensor at {terminal}"):
        return nidaq_channels.sensor_data(terminal, session or connect(source))


def connect(table: Mapping[str, Any]) -> Any:
    """The session options of a profile's instrument: None for the driver on this machine."""
    address = table.get("server")
    if not address:
        return None
    import grpc
    from nidaqmx import GrpcSessionOptions

    megabytes = 256 << 20  # the default of 4 MB is less than a second of eight fast channels
    options = [("grpc.max_receive_message_length", megabytes), ("grpc.max_send_message_length", megabytes)]
    return GrpcSessionOptions(grpc.insecure_channel(str(address), options), "")


def open_source(profile: RigProfile, clock: Clock | None, seed: int) -> NidaqSource:
    need_extra("ni")
    table = profile.instruments["source"]
    if _closes_loop(table):
        from drivers.instruments.nidaq_loop import NidaqLoopSource

        return NidaqLoopSource(profile, connect(table))
    return NidaqSource(profile, connect(table))


def _closes_loop(table: Mapping[str, Any]) -> bool:
    """Whether the rig is opened for a controller: then nothing is written ahead."""
    return bool(dict(table.get("loop", {})).get("channels"))


def open_exciter(profile: RigProfile, source: Any) -> Exciter:
    if not isinstance(source, NidaqSource):
        raise RigError(
            "[instruments.exciter]: an nidaqmx exciter needs an nidaqmx source to share its clock."
        )
    if _closes_loop(profile.instruments["source"]):
        from drivers.instruments.nidaq_loop import NidaqLoopExciter

        return NidaqLoopExciter(profile, source)  # type: ignore[arg-type]
    return NidaqExciter(profile, source)


class NidaqSource:
    """Analogue input of one or more NI devices on one clock."""

    waits = False

    def __init__(self, profile: RigProfile, session: Any = None) -> None:
        self.session = session
        self.name = profile.name
        table = profile.instruments["source"]
        self._buffer_seconds = positive(
            "[instruments.source]: buffer_seconds", table.get("buffer_seconds", BUFFER_SECONDS)
        )
        self.companion: NidaqExciter | None = None
        self._running = self._closed = False
        self._overload_flags = True
        self.inputs = InputTasks(session, profile.rate, max(2, round(self._buffer_seconds * profile.rate)))
        with in_words("opening the input"):
            self.inputs.open(profile.channels, table["wiring"])
        self.rate, self.notices = self.inputs.rate, self.inputs.notices
        self.channels = tuple(c.info() for c in self.inputs.channels)
        self._gains = np.array([conversion(c) for c in self.inputs.channels])
        self._expected = 0

    def start(self) -> None:
        if self._closed:
            raise InstrumentError("The NI device was closed: open the rig again.")
        with in_words("starting"):
            patiently(self.inputs.reserve)
            if self.companion is not None:
                self.companion.prepare()  # waits for our start trigger
            self.inputs.start()
        self._running, self._expected = True, 0
        if self.companion is not None:
            self.companion.begin()

    def read(self, into: Samples) -> Block:
        if not self._running:
            raise InstrumentError("The NI device is not running.")
        start, reason = self._fill(into)
        count = into.shape[1]
        into *= self._gains[:, :1]
        into += self._gains[:, 1:]
        self._expected = start + count
        found = overloads(into, self.channels, start) + self._flagged(start, count)
        drive = None if self.companion is None else self.companion.state_at(start)
        return Block(start, into, found, reason=reason, drive=drive)

    def _fill(self, into: Samples) -> tuple[int, str]:
        """Read one block; the index of its first sample, and why samples before it were lost if some were."""
        from nidaqmx.errors import DaqReadError

        start, reason = self._expected, ""
        with in_words("reading"):
            for _ in range(3):
                try:
                    self.inputs.read(into, into.shape[1] / self.rate + READ_TIMEOUT)
                    break
                except DaqReadError as error:
                    if error.error_code not in (OVERRUN, OLDER_FIRMWARE_OVERRUN):
                        raise
                    start = self._skip_lost()
                    reason = "the device's buffer overran: the program read too slowly"
            else:
                raise InstrumentError("The NI device's buffer overran three times in a row: lower the rate.")
            if reason:
                self.inputs.read_on()
        return start, reason

    def _skip_lost(self) -> int:
        """Go on at a sample that is certainly still there; its index, counted by the device itself."""
        kept = round(0.5 * self._buffer_seconds * self.rate)
        resume = max(self._expected, self.inputs.acquired() - kept)
        self.inputs.go_to(resume)
        return resume

    def _flagged(self, start: int, count: int) -> tuple[ChannelSpan, ...]:
        """Overloads that the device itself reports, where it can."""
        from nidaqmx.errors import DaqError

        if not self._overload_flags:
            return ()
        with in_words("asking for overloads"):
            try:
                rows = self.inputs.overloaded()
            except DaqError:
                self._overload_flags = False  # this device has no such flags
                return ()
        return tuple(ChannelSpan(row, start, start + count) for row in rows)

    def null_bridge(self, channel: str) -> float:
        """Take a bridge's present output as zero strain; that output, in V. The task must not be running."""
        task = self._bridge(channel)
        with in_words(f"nulling '{channel}'"):
            task.perform_bridge_offset_nulling_cal(channel)
            return float(task.ai_channels[channel].ai_bridge_initial_voltage)

    def shunt_calibrate(self, channel: str, resistor: float = 100_000.0) -> float:
        """Correct a strain channel's gain with a shunt resistor (ohm) across one arm of its bridge; the gain.

        The task must not be running.
        """
        task = self._bridge(channel)
        with in_words(f"shunt calibration of '{channel}'"):
            task.perform_strain_shunt_cal(channel, shunt_resistor_value=resistor)
            return float(task.ai_channels[channel].ai_bridge_shunt_cal_gain_adjust)

    def _bridge(self, channel: str) -> Any:
        """The task of a strain bridge."""
        if not any(c.name == channel and c.kind == "bridge" for c in self.inputs.channels):
            raise InstrumentError(f"Channel '{channel}' is no strain bridge, so it has nothing to calibrate.")
        if self._closed:
            raise InstrumentError("The NI device was closed: open the rig again.")
        return self.inputs.task_of(channel)

    def stop(self) -> None:
        if not self._running:
            return
        self._running = False
        if self.companion is not None:
            self.companion.rest()
        with contextlib.suppress(LinkLost), in_words("stopping"):
            self.inputs.stop()

    def close(self) -> None:
        with contextlib.suppress(ShakedownError):
            self.stop()
        self._closed = True
        with contextlib.suppress(ShakedownError), in_words("closing"):
            self.inputs.close()


class NidaqExciter(PlayedOutput):
    """Analogue output that follows the input's clock."""

    def __init__(self, profile: RigProfile, source: NidaqSource) -> None:
        table = profile.instruments["exciter"]
        self._output = OutputTerminal.of(profile.instruments, profile.limits, source.session)
        self._source = source
        self._oversampling = int(table.get("oversampling", 1))
        self._rate = source.rate * self._oversampling
        # A device server across a network may need more; STOP may take that much longer.
        self._ahead_seconds = positive(
            "[instruments.exciter]: ahead_seconds", table.get("ahead_seconds", AHEAD_SECONDS)
        )
        if not (SHORTEST_AHEAD <= self._ahead_seconds <= LONGEST_AHEAD and self._oversampling >= 1):
            raise RigError(
                f"[instruments.exciter]: ahead_seconds is a time from {SHORTEST_AHEAD:g} to "
                f"{LONGEST_AHEAD:g} s (STOP may take as long), oversampling a number of at least 1."
            )
        self._check_one_clock()
        self._ahead = max(4, round(self._ahead_seconds * self._rate))
        self._chunk = max(1, self._ahead // 4)
        self._player = Player(profile.limits, self._rate)
        self._states: deque[DriveState] = deque(maxlen=4096)
        self._marks: deque[PlayerMark] = deque()  # before each piece that has not been played
        self._sent = WrittenSamples(self._rate)  # by the output's task
        self._played = 0  # of them, by the device
        self._counted_at = 0.0  # time.monotonic() at which the device had played so many
        self._call_seconds = deque(CALLS * [0.001], CALLS)  # that the last calls of the driver took
        self._silent_from = 0  # the sample of the task with which the last drive was over
        self._latest = DriveState()  # while it still played, as written last
        self._device_counts = True  # it tells how many samples it has played
        self._falling = False  # what STOP could still replace was replaced
        self._base = 0  # the player's count at the input's sample 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._streaming = threading.Event()
        self.failure = ""
        self._dropped = ""  # why the output is no longer in step with the input, after a STOP in a rise
        self._task: Any = None
        self._stopping = threading.Event()
        self._standstill = Standstill()  # of what the device has played
        self._standing = Standing(self._output)
        self._closed = False
        self._output.zero_at_opening()
        self.notices = self._output.notices  # what the person at the rig should know
        self.watchdog = self._output.open_watchdog(
            table.get("watchdog"), bool(table.get("watchdog_optional"))
        )
        source.companion = self
        threading.Thread(target=self._enforce_stop, name="stop of the output", daemon=True).start()

    def _check_one_clock(self) -> None:
        """An output with a clock of its own keeps step with the inputs only on the device that has both."""
        if self._oversampling > 1 and self._source.inputs.devices != (self._output.device,):
            raise RigError(
                "[instruments.exciter]: inputs and output are on different devices or modules, so the output "
                "must run on the inputs' own clock: oversampling = 1."
            )

    # -- the exciter

    def play(self, waveform: Waveform) -> None:
        if self.failure:
            raise InstrumentError(f"The drive has failed, start the acquisition again: {self.failure}")
        if self._dropped:
            raise InstrumentError(self._dropped)
        self._player.play(waveform)
        if self.failure:  # meanwhile: nothing plays any more
            self._player.silence(self.failure)
            raise InstrumentError(f"The drive has failed, start the acquisition again: {self.failure}")

    def stop(self, reason: str = "stopped") -> None:
        self._player.stop(reason)
        self._skip_ramp_if_idle()
        self._stopping.set()

    def request_stop(self, reason: str = "STOP") -> None:
        self._player.request_stop(reason)
        self._stopping.set()

    def control(self, controller: Any, reason: str = "") -> None:
        raise InstrumentError(NO_LOOP)

    def loop_status(self) -> LoopStatus:
        raise InstrumentError(NO_LOOP)

    def zeroing(self) -> Mapping[str, Any]:
        return self._output.zeroing()

    def state(self) -> DriveState:
        if self._player.latch.reason:
            self._skip_ramp_if_idle()
        state = self._standing.drive or self._drive()
        return replace(state, index=(state.index - self._base) // self._oversampling)

    def _drive(self) -> DriveState:
        state = self._player.state()
        if not state.playing and self._is_playing():  # the end of the drive is written, and not yet played
            return replace(self._latest, index=state.index, reason=state.reason)
        return state

    @property
    def lost(self) -> str:
        """Why the output may stand at a voltage that nobody can take away from here."""
        return self._standing.lost

    def _skip_ramp_if_idle(self) -> None:
        if not self._streaming.is_set():
            self._player.take(round(2 * STOP_RAMP * self._rate) + 1)  # nothing is connected to the player now

    def _enforce_stop(self) -> None:
        """Zero an output whose clock does not play the ramp out, as when its input has stalled.

        One that could not be reached is tried again. Between stops it looks whether the device plays at all:
        the calls of the other threads may hang as long as a device or its server does.
        """
        self._standstill.begin(time.monotonic())
        while True:
            asked = self._stopping.wait(LOOK_SECONDS if self._streaming.is_set() else ZERO_PACE)
            self._stopping.clear()
            if self._closed:
                return
            if asked:
                self._see_stop_through()
            elif self._streaming.is_set():
                self._check_standstill()
            elif self._standing.drive is not None:
                self._standing.try_zero()

    def _see_stop_through(self) -> None:
        patience = STOP_RAMP + 1.25 * self._ahead_seconds + STALLED_SECONDS
        deadline = time.monotonic() + patience
        while self._streaming.is_set() and self._is_playing() and not self._closed:
            time.sleep(0.005)
            if time.monotonic() > deadline:
                self._give_up("the output's clock stood still when it was to stop")
                return

    def _check_standstill(self) -> None:
        """Give a drive up that stands still: it would go on, unasked, when the device wakes up."""
        now = time.monotonic()
        still = self._standstill.seconds(self._played, now)
        if not self._is_playing():
            self._standstill.begin(now)
        elif still > STILL_SECONDS + self._ahead_seconds:
            self._give_up(f"the device has played nothing for {still:.1f} s")

    def _is_playing(self) -> bool:
        """Whether the device has not played the end of the drive yet, whatever buffers lie in between."""
        return self._player.state().playing or (self._streaming.is_set() and self._played < self._silent_from)

    def _give_up(self, reason: str) -> None:
        """End the task at once and set the output to zero; the drive needs a new start of the stream."""
        if self._is_playing():
            self._standing.begin(self._drive(), reason)
        self.failure = reason
        self._streaming.clear()
        self._player.silence(reason)  # before calls that may hang: a write that wakes up brings zeros
        with contextlib.suppress(Exception):
            self._end_task()
        self._standing.try_zero()
        self._stopping.set()  # an output that could not be reached is tried again

    def close(self) -> None:
        self.stop("closed")
        self.rest()
        self._closed = True
        self._stopping.set()
        if self._standing.last_zero() and self.watchdog is not None:  # else the watchdog sees to it
            with contextlib.suppress(ShakedownError), in_words("closing the watchdog"):
                self.watchdog.close()
            self.watchdog = None

    # -- called by the source

    def prepare(self) -> None:
        """Prepare the output: it waits for the input's start trigger with some silence in its buffer."""
        from nidaqmx.constants import AcquisitionType, RegenerationMode
        from nidaqmx.stream_writers import AnalogSingleChannelWriter

        self.failure = self._dropped = ""
        if self._standing.drive is not None:
            self._standing.zero()
        task = self._output.task()
        try:
            task.timing.cfg_samp_clk_timing(
                self._rate, self._clock, sample_mode=AcquisitionType.CONTINUOUS, samps_per_chan=self._ahead
            )
            task.out_stream.regen_mode = RegenerationMode.DONT_ALLOW_REGENERATION
            task.out_stream.output_buf_size = self._ahead
            task.triggers.start_trigger.cfg_dig_edge_start_trig(self._source.inputs.trigger)
            self._writer = AnalogSingleChannelWriter(task.out_stream, auto_start=False)
            self._task = task
            self._states.clear()
            self._marks.clear()
            self._base = self._player.state().index
            self._sent = WrittenSamples(self._rate)
            self._played = self._silent_from = 0
            self._device_counts = True
            self._write(self._ahead, 1.0)
            task.start()
        except BaseException:
            task.close()
            self._task = None
            raise

    @property
    def _clock(self) -> str:
        return self._source.inputs.clock if self._oversampling == 1 else ""

    def begin(self) -> None:
        """Keep the output's buffer filled from now on, and the watchdog content."""
        if self.watchdog is not None:
            with in_words("starting the watchdog"):
                self.watchdog.start()
        self._streaming.set()
        self._thread = threading.Thread(target=self._stream, name="analogue output", daemon=True)
        self._thread.start()

    def rest(self) -> None:
        """The clock is about to stop: ramp down first, then end the output."""
        if self._thread is None:
            return
        self._player.stop("the acquisition was stopped")
        deadline = time.monotonic() + 1.0
        while self._is_playing() and not self.failure and time.monotonic() < deadline:
            time.sleep(0.005)
        if self._is_playing():
            self._standing.begin(self._drive(), "the acquisition was stopped, and the output did not fall")
        self._streaming.clear()
        self._thread.join()
        self._thread = None
        with contextlib.suppress(ShakedownError), in_words("stopping the watchdog"):
            if self.watchdog is not None:
                self.watchdog.stop()
        with contextlib.suppress(Exception):
            self._end_task()
        self._standing.try_zero()  # a device that ran late would hold what it played last

    def state_at(self, index: int) -> DriveState | None:
        """The drive at a sample of the input."""
        if self.failure:
            return DriveState(index, reason=self.failure)
        wanted = self._base + index * self._oversampling
        with self._lock:
            earlier = [s for s in self._states if s.index <= wanted]
            if not earlier:
                return None
            while len(self._states) > 1 and self._states[1].index <= wanted:
                self._states.popleft()
        state = earlier[-1]
        since = (wanted - state.index) / self._rate
        phase = state.phase + 2 * np.pi * state.frequency * since
        return replace(state, index=index, phase=float(phase % (2 * np.pi)), time=state.time + since)

    # -- the output's thread

    def _stream(self) -> None:
        """Keep ``ahead`` samples between what is written and what is played, and look at STOP all the time.

        The device is asked what it has played: the room in the driver's buffer says little, for the device
        takes thousands of samples out of it into a memory of its own.
        """
        try:
            while self._streaming.is_set():
                if not self._player.latch.reason:
                    self._falling = False
                elif not self._falling:
                    self._falling = True
                    if self._device_counts and self._sent.rises_after(self._played):
                        self._fall_at_once()
                        return
                    self._replace_written()
                room = self._ahead - (self._sent.count - self._ask_played())
                if room < self._chunk:
                    self._pause((self._chunk - room) / self._rate)
                    continue
                self._write(room if self._device_counts else self._chunk, 2.0)
                if self.watchdog is not None:
                    self.watchdog.reset_timer()
        except Exception as error:  # the drive is off then; the samples go on being recorded
            if not self.failure:
                self._give_up(str(_translated(error, "driving")))

    def _pause(self, seconds: float) -> None:
        """Wait for room, or for STOP."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._streaming.is_set():
            if self._player.latch.reason and not self._falling:
                return
            time.sleep(min(left, PACE_SECONDS))

    def _ask_played(self) -> int:
        """How many samples the device has played; where it does not tell, all but those written ahead."""
        from nidaqmx.errors import DaqError

        if self._device_counts:
            try:
                self._counted_at = time.monotonic()
                self._played = int(self._task.out_stream.total_samp_per_chan_generated)
                self._call_seconds.append(time.monotonic() - self._counted_at)
            except DaqError as error:
                if error.error_code != UNSUPPORTED:
                    raise
                self._device_counts = False
        if not self._device_counts:  # then writing waits until there is room in the buffer
            self._played = max(0, self._sent.count - self._ahead)
        self._sent.forget_before(self._played)
        with self._lock:
            while len(self._marks) > 1 and self._marks[1].count - self._base <= self._played:
                self._marks.popleft()
        return self._played

    def _write(self, count: int, timeout: float) -> None:
        if self._player.state().playing:  # before they are taken: a device that has run dry waits for them
            self._silent_from = self._sent.count + count
        mark, state, samples = self._player.take_with_state(count)
        with self._lock:
            self._add_states(state, samples)
            self._marks.append(mark)
        if state.playing:
            self._silent_from, self._latest = self._sent.count + count, state
        self._writer.write_many_sample(samples, timeout)
        self._sent.add(samples)

    def _add_states(self, state: DriveState, samples: Samples) -> None:
        """The state of the drive at the first of some samples; if it ends among them, that from there on."""
        self._states.append(state)
        after = self._player.state()
        if state.playing and not after.playing:
            ends = int(np.flatnonzero(samples)[-1]) + 1 if samples.any() else 0
            self._states.append(replace(after, index=state.index + ends))

    def _fall_at_once(self) -> None:
        """STOP in a rise: what was written would go on up, and the device may have it in its own memory.

        The task is stopped, which leaves the converter at its last value, and one that falls from there to
        zero is played on the same clock. What is written afterwards would belong to samples of the input that
        nobody knows, so the drive needs a new start of the acquisition.
        """
        reason = self._player.latch.reason or "STOP"
        self._task.stop()
        played = self._count_at_stop(time.monotonic())
        with self._lock:
            while self._states and self._states[-1].index >= self._base + played:
                self._states.pop()
            self._states.append(DriveState(self._base + played, reason=reason))
        samples = fall_from(self._sent.held_after(played), self.limits, self._rate)
        self._played, self._silent_from = 0, len(samples)
        self._dropped = (
            "STOP came while the drive rose, and what had been written ahead was dropped: open the rig "
            "again before anything is played."
        )
        self._player.silence(reason)
        self._play_out(samples)
        self._streaming.clear()
        self._end_task()
        self._output.write_now(0.0)
        if self.watchdog is not None:
            self.watchdog.stop()

    def _count_at_stop(self, stopped: float) -> int:
        """How many samples the device had played when it was stopped, by a call that ended at that time (s).

        If it does not tell, it may stand anywhere between the last count and the present one by the clock (a
        device may lag behind the clock): of those values the smallest is taken, so that the output falls from
        there and never rises.
        """
        from nidaqmx.errors import DaqError

        latest = min(self._played + round((stopped - self._counted_at) * self._rate), self._sent.count)
        try:
            told = int(self._task.out_stream.total_samp_per_chan_generated)
        except DaqError:
            told = -1
        most = self._played + round((time.monotonic() - self._counted_at + COUNT_SLACK) * self._rate)
        if self._played <= told <= min(most, self._sent.count):
            return told
        possible = range(self._played, latest + 1)
        return min(possible, key=lambda count: abs(self._sent.held_after(count)))

    def _play_out(self, samples: Samples) -> None:
        """Play so many samples on the input's clock, which runs; returns when they are played."""
        from nidaqmx.constants import AcquisitionType

        task, count = self._task, len(samples)
        task.timing.cfg_samp_clk_timing(
            self._rate, self._clock, sample_mode=AcquisitionType.FINITE, samps_per_chan=count
        )
        task.out_stream.output_buf_size = count
        task.triggers.start_trigger.disable_start_trig()
        self._writer.write_many_sample(samples, 1.0)
        task.start()
        end = time.monotonic() + count / self._rate + STALLED_SECONDS
        while self._played < count and time.monotonic() < end:
            time.sleep(PACE_SECONDS)
            self._played = int(task.out_stream.total_samp_per_chan_generated)

    def _replace_written(self) -> None:
        """STOP: let what was written and not played yet fall to zero too, where the driver allows that.

        Where the device has taken those samples already they are played, and the ramp follows behind them.
        """
        from nidaqmx.errors import DaqError

        if not self._device_counts:
            return
        reached = self._player.mark()
        calls = 2 * sorted(self._call_seconds)[SLOW_CALL]
        for margin in REPLACE_SECONDS:
            since = time.monotonic() - self._counted_at + calls
            try:
                if self._replace_from(self._played + round((since + margin) * self._rate) + 1):
                    return
                break
            except DaqError as error:
                self._player.return_to(reached)
                if error.error_code != PLAYED_ALREADY:
                    break
        self._player.return_to(reached)

    def _replace_from(self, first: int) -> bool:
        """Replace the samples of the task from one on; False if there are none."""
        count, start = self._sent.count - first, self._base + first
        earlier = [mark for mark in self._marks if mark.count <= start]
        if count <= 0 or not earlier:
            return False
        state, samples = self._player.fall_from(earlier[-1], start - earlier[-1].count, count)
        stream = self._task.out_stream  # writes behind what was written, unless told otherwise
        try:
            stream.offset = -count
            self._writer.write_many_sample(samples, 0.0)
        finally:
            stream.offset = 0
        with self._lock:
            self._marks.clear()
            while self._states and self._states[-1].index >= state.index:
                self._states.pop()
            self._add_states(state, samples)
        self._sent.replace_from(first, samples)
        return True

    def _end_task(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            with contextlib.suppress(LinkLost), in_words("ending the output"):
                try:
                    task.stop()
                finally:
                    task.close()


def _translated(error: Exception, doing: str) -> Exception:
    try:
        with in_words(doing):
            raise error
    except Exception as translated:
        return translated
