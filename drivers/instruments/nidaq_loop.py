"""The control loop of an NI rig: every sample of the inputs is answered by one value of the output.

    [instruments.source.loop]
    timed = "hardware"          # or "software"; left out: hardware where the device can

Nothing is written ahead. The inputs run on their clock into a buffer as ever, so that no sample is lost to a
busy machine; they are read one by one, and where several wait only the last of them is answered. The output
is a hardware-timed single point where the device has that: a value that is written before the next edge of
the inputs' clock goes out with it, the delay is one sample and does not jitter. Otherwise a value goes out as
soon as it is written, and how late that is, is measured.

Drive and correction pass the player, with its limits, slew and STOP. A thread of its own watches: where no
sample is answered (a controller or a call of the driver that hangs, a clock that stands still) it takes the
output away from the loop and brings it to zero (:mod:`drivers.instruments.nidaq_fall`), in a STOP within
100 ms even where one of the calls for that hangs.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

from analysis import ShakedownError
from drivers.base.limits import STOP_RAMP
from drivers.base.overload import overloads
from drivers.base.protocols import (
    Block,
    ChannelInfo,
    DriveState,
    InstrumentError,
    LoopStatus,
    Samples,
)
from drivers.base.waveform import Waveform
from drivers.instruments.nidaq import NidaqSource
from drivers.instruments.nidaq_errors import UNSUPPORTED, in_words
from drivers.instruments.nidaq_fall import HANGING_CALL, Fall
from drivers.instruments.nidaq_output import ZERO_PACE, OutputTerminal, Standing
from drivers.rig.loop import CHANNELS, ControlLoop
from drivers.rig.player import PlayedOutput, Player
from drivers.rig.profile import RigError, RigProfile

SLOWEST = 100.0  # samples a second: a STOP that waits for the next one takes its time from the 100 ms
UNANSWERED_STOP = 0.03  # s without an answered sample in a STOP, after which the output is taken away
UNANSWERED = 0.2  # s, at any other time: the shaker must not stand under a voltage
PACE = 0.002  # s between two looks of the watch
SLOWEST_CALL = 0.02  # s that a value may take to be written
CALLS = 101  # of the last ones, the middle one counts
WATCHDOG_SECONDS = 0.01  # between two signs of life for the device's watchdog
WINDOW = 2.0  # s, of which the earliest arrival of a sample is kept
TWO_PI = 2 * math.pi


class NidaqLoopSource(NidaqSource):
    """Inputs that are read sample by sample; target, correction and state of the loop beside them."""

    companion: NidaqLoopExciter | None  # type: ignore[assignment]

    def __init__(self, profile: RigProfile, session: Any = None) -> None:
        super().__init__(profile, session)
        self._sensors = len(self.channels)
        self._newest = 0  # the last sample that has come: only that one is answered
        self.channels += tuple(ChannelInfo(name, unit, sensor="control loop") for name, unit in CHANNELS)
        if self.rate < SLOWEST:
            raise RigError(
                f"A control loop needs {SLOWEST:g} samples a second at least, for STOP's sake; the rig has "
                f"{self.rate:g}."
            )

    def read(self, into: Samples) -> Block:
        if not self._running:
            raise InstrumentError("The NI device is not running.")
        start, loop, sensors = self._expected, self.companion, self._sensors
        drive = None if loop is None else loop.state_at(start)
        done = 0
        while done < into.shape[1]:
            fresh = self._fresh(into.shape[1] - done)
            count = fresh.shape[1]
            into[:sensors, done : done + count] = fresh
            into[sensors:, done : done + count] = 0.0
            for i in range(count if loop is not None else 0):
                index = self._expected - count + i
                shown = loop.answer(fresh[:, i], index, index == self._newest)  # type: ignore[union-attr]
                into[sensors:, done + i] = shown
            done += count
        found = overloads(into[:sensors], self.channels[:sensors], start) + self._flagged(start, done)
        return Block(start, into, found, drive=drive)

    def _fresh(self, most: int) -> Samples:
        """The samples that wait to be read, in the channels' units: at least one, for which it waits."""
        try:
            return self._waiting(most)
        except InstrumentError as error:
            if self.companion is None or not self.companion.failure:
                raise
            raise InstrumentError(f"The drive was taken away: {self.companion.failure}. ({error})") from None

    def _waiting(self, most: int) -> Samples:
        with in_words("reading"):
            self._newest = max(self.inputs.acquired() - 1, self._expected)
        data = np.empty((self._sensors, min(self._newest - self._expected + 1, most)))
        start, reason = self._fill(data)
        if start != self._expected:
            raise InstrumentError(f"Samples of the closed loop were lost: {reason}.")
        self._expected += data.shape[1]
        if self.companion is not None:
            self.companion.seen(self._expected - 1)
        return data * self._gains[:, :1] + self._gains[:, 1:]


class NidaqLoopExciter(PlayedOutput):
    """An output of which every value answers a sample of the inputs (see the module)."""

    def __init__(self, profile: RigProfile, source: NidaqLoopSource) -> None:
        table = profile.instruments["exciter"]
        self._output = OutputTerminal.of(profile.instruments, profile.limits, source.session)
        self._source, self._rate = source, source.rate
        self._player = Player(profile.limits, source.rate)
        self._loop = ControlLoop(source.rate, [c.name for c in profile.channels])
        self.notices = self._output.notices
        self._hardware = self._choose(profile.instruments["source"]["loop"].get("timed"))
        self._writing = threading.Lock()  # held by who has the output's task
        self._task: Any = None
        self._writer: Any = None
        self._watch: threading.Thread | None = None
        self._streaming = threading.Event()
        self.failure = ""
        self._standing = Standing(self._output)
        self._unreached = False  # the output could not be brought to zero: the watch tries again
        self._last_fall: Fall | None = None
        self._stop_asked = False
        self._restart()
        self._output.zero_at_opening()
        self.watchdog = self._output.open_watchdog(
            table.get("watchdog"), bool(table.get("watchdog_optional"))
        )
        source.companion = self

    def _restart(self) -> None:
        self._base = self._player.state().index  # the player's count at the input's sample 0
        self._unanswered = 0  # samples that the player has not moved on for
        self._answered_at = time.monotonic()
        self._fed_at = 0.0  # time.monotonic() of the watchdog's last sign of life
        self._earliest = (math.inf, math.inf)  # of two windows: s from a sample's own time to its arrival
        self._window = 0
        self._delays: deque[float] = deque(maxlen=CALLS)  # s from the last samples to the values for them
        self._call_seconds: deque[float] = deque(maxlen=CALLS)  # that those took to be written
        self._lag = 1.0 / self._rate  # s by which the drive's phase at the output lags the player's

    def _choose(self, wanted: str | None) -> bool:
        """Whether the output is timed by hardware."""
        if wanted not in (None, "hardware", "software"):
            raise RigError('[instruments.source.loop]: timed is "hardware" or "software".')
        able = self._has_single_points()
        if wanted == "hardware" and not able:
            raise RigError(
                f"{self._output.device} has no hardware-timed single points for its output: "
                "leave 'timed' out of [instruments.source.loop]."
            )
        if not able:
            self.notices.append(
                f"{self._output.device} has no hardware-timed single points: the loop's values go out as "
                "soon as they are written, and their delay jitters."
            )
        return able and wanted != "software"

    def _has_single_points(self) -> bool:
        from nidaqmx.constants import AcquisitionType
        from nidaqmx.errors import DaqError
        from nidaqmx.system.device import Device

        session, name = self._output.session, self._output.device
        device = Device(name, grpc_options=session) if session else Device(name)
        with in_words("asking the output for its kinds of timing"):
            try:
                return AcquisitionType.HW_TIMED_SINGLE_POINT in device.ao_samp_modes
            except DaqError as error:
                if error.error_code != UNSUPPORTED:
                    raise
                return False

    # -- the exciter

    def play(self, waveform: Waveform) -> None:
        if self.failure:
            raise InstrumentError(f"The drive has failed, start the acquisition again: {self.failure}")
        slow = median(self._call_seconds or (0.0,))
        if slow > SLOWEST_CALL:
            raise InstrumentError(
                f"A value reaches the output of {self._output.device} after {1e3 * slow:.0f} ms: in a loop "
                "STOP would take longer than 100 ms, so nothing is played."
            )
        self._lag = median(self._delays or (1.0 / self._rate,))
        if not self._sounding:
            self._answered_at = time.monotonic()  # what was not answered in silence does not count
        self._player.play(waveform)
        self._stop_asked = False
        if self.failure:  # meanwhile: nobody answers samples any more
            self._player.silence(self.failure)
            raise InstrumentError(f"The drive has failed, start the acquisition again: {self.failure}")

    def stop(self, reason: str = "stopped") -> None:
        self._stop_asked = True
        self._player.stop(reason)
        self._loop.end()
        self._skip_ramp_if_idle()

    def request_stop(self, reason: str = "STOP") -> None:
        self._player.request_stop(reason)
        self._loop.end()

    def control(self, controller: Any, reason: str = "") -> None:
        if controller is None:
            self._loop.let_go(reason or "asked for")
        else:
            self._loop.close(controller)

    def loop_status(self) -> LoopStatus:
        return self._loop.status()

    def zeroing(self) -> Mapping[str, Any]:
        return self._output.zeroing()

    def state(self) -> DriveState:
        if self._player.latch.reason:
            self._skip_ramp_if_idle()
        state = self._standing.drive or self._player.state()
        return replace(state, index=state.index - self._base)

    @property
    def lost(self) -> str:
        """Why the output may stand at a voltage that nobody can take away from here."""
        return self._standing.lost

    @property
    def _sounding(self) -> bool:
        """Whether something plays, or the slew limit has not let the output come down yet."""
        return self._player.state().playing or self._player.output != 0.0

    def _skip_ramp_if_idle(self) -> None:
        if not self._streaming.is_set():
            self._player.take(round(2 * STOP_RAMP * self._rate) + 1)  # nothing is connected to the player now

    def close(self) -> None:
        self.stop("closed")
        self.rest()
        if self._standing.last_zero() and self.watchdog is not None:  # else the watchdog sees to it
            with contextlib.suppress(ShakedownError), in_words("closing the watchdog"):
                self.watchdog.close()
            self.watchdog = None

    # -- called by the source, in its reading thread

    def prepare(self) -> None:
        """Take the output: on the clock of the inputs, which starts next, or without one."""
        from nidaqmx.constants import AcquisitionType
        from nidaqmx.stream_writers import AnalogSingleChannelWriter

        if self._last_fall is not None and not self._last_fall.over():
            raise InstrumentError(
                f"A call of the driver of {self._output.device} has not come back yet: nothing is started."
            )
        self._last_fall = None
        self.failure = ""
        self._end_task()  # of a start that failed half way
        self._standing.zero()
        self._unreached = False
        task = self._output.task()
        try:
            if self._hardware:
                mode = AcquisitionType.HW_TIMED_SINGLE_POINT
                task.timing.cfg_samp_clk_timing(self._rate, self._source.inputs.clock, sample_mode=mode)
            task.start()
            self._writer = AnalogSingleChannelWriter(task.out_stream, auto_start=False)
        except BaseException:
            task.close()
            raise
        self._task = task
        self._loop.let_go("the stream was started again")
        self._restart()

    def begin(self) -> None:
        if self.watchdog is not None:
            with in_words("starting the watchdog"):
                self.watchdog.start()
        self._answered_at = time.monotonic()
        self._streaming.set()
        self._watch = threading.Thread(target=self._look, name="watch of the loop", daemon=True)
        self._watch.start()

    def rest(self) -> None:
        """The clock is about to stop and nobody answers any more: bring the output to zero first."""
        watch, self._watch = self._watch, None
        if watch is None:  # a start that failed half way may have left its task
            self._end_task()
            return
        if self._sounding:
            self._fall("the acquisition was stopped")
        self._streaming.clear()
        watch.join()
        with contextlib.suppress(ShakedownError), in_words("stopping the watchdog"):
            if self.watchdog is not None:
                self.watchdog.stop()
        self._end_task()
        self._standing.try_zero()

    def state_at(self, index: int) -> DriveState:
        """The drive at the sample that is answered next, as it stands at the output."""
        if self.failure:
            return DriveState(index, reason=self.failure)
        state = self._player.state()
        since = self._unanswered / self._rate - self._lag
        phase = (state.phase + TWO_PI * state.frequency * since) % TWO_PI
        return replace(state, index=index, phase=phase, time=state.time + since)

    def seen(self, index: int) -> None:
        """A sample has come: the earliest arrivals tell when samples are taken by this machine's clock."""
        if index / self._rate > WINDOW * (self._window + 1):
            self._window += 1
            self._earliest = (math.inf, self._earliest[0])
        behind = time.monotonic() - index / self._rate
        self._earliest = (min(self._earliest[0], behind), self._earliest[1])

    def answer(self, samples: Samples, index: int, newest: bool) -> tuple[float, float, float]:
        """Answer a sample with a value of the output if no newer one has come; what is recorded of it."""
        if self.failure:
            return self._loop.shown
        state = self.state_at(index)
        room = self._player.limits.peak - state.amplitude
        correction = self._loop.step(samples, state.phase, room, state.playing)
        self._unanswered += 1
        if newest:
            self._send(index, correction)
        elif self._loop.deciding:
            self._loop.missed_deadline()
        return self._loop.shown

    def _send(self, index: int, correction: float) -> None:
        with self._writing:
            if self.failure:  # the output was taken away meanwhile
                return
            value = self._player.take_last(self._unanswered, correction)
            self._unanswered = 0
            began = time.monotonic()
            with in_words("driving"):
                self._writer.write_one_sample(value, 1.0)
                self._answered_at = moment = time.monotonic()
                self._call_seconds.append(moment - began)
                if self._hardware:  # it goes out with the next sample
                    delay = (self._source.inputs.acquired() - index) / self._rate
                else:
                    delay = max(0.0, moment - min(self._earliest) - index / self._rate)
                if self.watchdog is not None and moment - self._fed_at > WATCHDOG_SECONDS:
                    self._fed_at = moment
                    self.watchdog.reset_timer()
        self._delays.append(delay)
        self._loop.went_out(correction, delay)

    # -- the watch

    def _look(self) -> None:
        """In a thread of its own: samples that nobody answers must not leave the shaker under a voltage."""
        tried = 0.0
        while self._streaming.is_set():
            time.sleep(PACE)
            now = time.monotonic()
            if self._unreached and now - tried > ZERO_PACE:
                tried = now
                self._unreached = bool(self._standing.try_zero())
            silent = now - self._answered_at
            stopping = self._stop_asked or bool(self._player.latch.reason)
            if silent > (UNANSWERED_STOP if stopping else UNANSWERED) and self._sounding:
                self._fall(f"the loop answered no sample for {1e3 * silent:.0f} ms")

    def _fall(self, reason: str) -> None:
        """Take the output away from the loop and bring it to zero: the drive needs a new start."""
        held = self._writing.acquire(timeout=HANGING_CALL)  # or the call that has it hangs, and is ended
        try:
            if self.failure:
                return
            value = self._player.output
            self._standing.begin(self._player.state(), reason)
            self.failure = reason
            self._loop.end()
            self._player.silence(self._player.latch.reason or reason)
            self._bring_down(value)
        finally:
            if held:
                self._writing.release()

    def _bring_down(self, value: float) -> None:
        """From the value at which the output stands to zero; the drive is shown as playing until then."""
        task, self._task = self._task, None
        latch = self._player.latch
        self._last_fall = fall = Fall(self._output, task, self.limits, value, lambda: latch.output_taken_over)
        if problem := fall.run():
            self.failure += f"; the output could not be brought to zero from here ({problem})"
            self._unreached = True
            return
        if fall.was_reset:
            self.failure += "; a call of the driver hung as well, so the device was reset"
        self._standing.end()

    def _end_task(self) -> None:
        """End the output's task, whatever the driver says of it: what follows must not depend on that."""
        task, self._task = self._task, None
        if task is None:
            return
        for end in (task.stop, task.close):
            with contextlib.suppress(Exception):
                end()
