"""Function generators as exciters: Stanford DS345, and Agilent/Keysight SCPI (RS-232, or a TCP socket).

They play sines only, and on their own clock: the phase at a sample is not known, so record the drive as a
channel. Amplitudes go up and down in small steps; frequency changes keep the phase (digital synthesis).

A generator plays on by itself, and a line takes what is written to it whether somebody listens at its other
end or not. So it is asked once a second whether it is still there, and it has stopped when it says so.

Its output has 50 ohm: an amplifier's input gets twice what a load of 50 ohm gets. So the profile says what it
feeds, ``load = "high"`` (an amplifier, the default) or ``load = 50``, and amplitudes are volts at that load.

A step upwards is withdrawn if STOP comes while it is on the line: until the line ends the instrument does
nothing, and an exponent at the end of the number makes it smaller than what is set.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analysis import ShakedownError
from drivers.base.latch import DriveLatched, Latch
from drivers.base.limits import LimitError, Limits
from drivers.base.protocols import DriveState, InstrumentError, LinkLost
from drivers.base.waveform import Sine, Waveform
from drivers.instruments.serial_link import LinkSettings, SerialLink
from drivers.rig.player import SOFT_START
from drivers.rig.profile import RigError, RigProfile

FIRST_STEP = 0.05  # of the target: where a soft start begins
GROWTH = 1.05  # from step to step upwards
WITHDRAW = "E-9"  # behind a number: as good as zero
CHANGE_STEPS = 12  # of a change to a smaller amplitude
STOP_SECONDS = 0.05
STEPS_DOWN = 2  # of a stop, before zero: a line at 9600 baud takes 15 ms
LATCH_SECONDS = 0.003  # between two looks at the latch
END_SECONDS = 0.5  # to wait for the ramp down of an ordinary end
ORDER_SECONDS = 8.0  # for the instrument to take a setting, with a repetition after a lost answer
CLOSE_SECONDS = 3.0
AGAIN_SECONDS = 0.1  # before a generator that cannot be reached is tried again
LOOK_SECONDS = 0.2  # between two looks whether its line is still there
HEAR_SECONDS = 1.0  # between two questions whether the generator is
OFF = re.compile(r"\s*([+-]?0*\.?0+ *(VP)?|OFF)\s*", re.IGNORECASE)  # an answer that says so
BELIEVED = 2  # such answers in a row: one may be late
LOST_SECONDS = 2.0  # out of reach: then its drive is to end, for nobody could stop it


def open_ds345(profile: RigProfile, source: Any) -> DS345:
    return DS345(_port(profile), profile.limits, _into_50(profile))


def open_scpi(profile: RigProfile, source: Any) -> ScpiGenerator:
    return ScpiGenerator(_port(profile), profile.limits, _into_50(profile))


def _port(profile: RigProfile) -> str:
    table: Mapping[str, Any] = profile.instruments["exciter"]
    if "port" not in table:
        raise RigError(
            "[instruments.exciter]: 'port' is missing, such as /dev/ttyUSB0 or socket://host:5025."
        )
    return str(table["port"])


def _into_50(profile: RigProfile) -> bool:
    load = profile.instruments["exciter"].get("load", "high")
    if isinstance(load, bool) or load not in ("high", 50):
        raise RigError(
            f'[instruments.exciter]: load is what the generator feeds: "high" (an amplifier\'s input) or 50 '
            f"(ohm), not {load!r}."
        )
    return load == 50


@dataclass
class _Order:
    """Something that the drive's thread is to do, and what came of it."""

    frequency: float | None
    amplitude: float | None
    begin: bool  # play; otherwise change what plays
    done: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None


class Generator(ABC):
    """A sine generator on a line. Silent after opening; ramps; refuses what the limits forbid.

    One thread owns the line and sends every command; before each one it looks at the latch. So STOP waits
    for at most the command under way, and whoever asks for it waits for nothing.
    """

    unit = "V"

    def __init__(self, link: SerialLink, limits: Limits, into_50: bool = False) -> None:
        self.link, self.limits, self.into_50 = link, limits, into_50
        self.latch = Latch()
        self._frequency = self._amplitude = 0.0  # of the drive that plays; amplitude 0: none
        self._output = 0.0  # V, what the instrument was told last
        self._reason = "not started"
        self._end = ""  # why the drive is to end, asked for from outside
        self._orders: deque[_Order] = deque()
        self._wake = threading.Condition()
        self._closed = False
        self._taking = False  # an order is under way: the output may be on
        self._errors_expected = False  # another process has spoken to it, or a step was withdrawn
        self._planned: deque[float] = deque()  # amplitudes still to be set, on the way to the target
        self._next_step = self._pace = 0.0  # time.monotonic() of the next one; s between two at least
        self._next_look = self._next_question = 0.0  # time.monotonic(), at the line and to the generator
        self._confirming = False  # it was told to be silent, and is asked whether it is
        self._told_off = 0  # how often in a row it has said so while it should play
        self._lost_since = math.inf  # time.monotonic() since when it cannot be reached
        self.lost = ""
        link.identify_again = self.identify
        link.in_a_hurry = self._must_fall
        self.identify()
        with contextlib.suppress(InstrumentError):
            self._check()  # an error that somebody else has left is not ours
        self._silence()
        self._confirm_silence()
        self._thread = threading.Thread(target=self._run, name="generator", daemon=True)
        self._thread.start()

    # -- the instrument's own words

    @abstractmethod
    def identify(self) -> str: ...

    @abstractmethod
    def _set_frequency(self, hertz: float) -> None: ...

    @abstractmethod
    def _amplitude_line(self, peak: float) -> tuple[str, str]:
        """The line that sets an amplitude, up to the end of its number and behind it."""

    def _set_amplitude(self, peak: float) -> None:
        self.link.write("".join(self._amplitude_line(peak)))

    @abstractmethod
    def _begin(self) -> None:
        """Sine, no offset, output on."""

    silence_command: str = ""  # output at zero, whatever it was
    silence_question: str = ""  # whether it is

    @abstractmethod
    def _sounds(self, answer: str) -> bool:
        """Whether the answer to that says that the output is on."""

    @abstractmethod
    def _check(self) -> None:
        """Ask for errors; InstrumentError if there was one."""

    # -- the exciter

    def play(self, waveform: Waveform) -> None:
        if not isinstance(waveform, Sine):
            raise InstrumentError(f"This generator plays sines only, no {waveform.kind}.")
        self._allow(waveform.frequency, waveform.amplitude)
        self._order(_Order(waveform.frequency, waveform.amplitude, begin=True))

    def change(self, frequency: float | None = None, amplitude: float | None = None) -> None:
        if self._amplitude:
            self._allow(
                self._frequency if frequency is None else frequency,
                self._amplitude if amplitude is None else amplitude,
            )
        self._order(_Order(frequency, amplitude, begin=False))

    def stop(self, reason: str = "stopped") -> None:
        with self._wake:
            if self._amplitude or self._orders:
                self._end = reason
                self._wake.notify_all()
            ended = self._wake.wait_for(lambda: not self._end or self._closed, END_SECONDS)
        if not ended:  # the thread goes on trying
            raise LinkLost(f"The drive does not end: {self._reason}")

    def request_stop(self, reason: str = "STOP") -> None:
        self.latch.set(reason)  # the thread looks at it every few milliseconds, without being woken

    def arm(self) -> None:
        self.latch.release()

    def zeroing(self) -> Mapping[str, Any]:
        how = self.link.settings
        return {
            "kind": "line", "port": self.link.port, "baudrate": how.baudrate, "stopbits": how.stopbits,
            "commands": [self.silence_command], "withdraw": WITHDRAW, "question": self.silence_question,
        }  # fmt: skip

    def state(self) -> DriveState:
        amplitude, output, latched = self._amplitude, self._output, self.latch.reason
        playing = amplitude > 0 or output > 0
        level = min(output / amplitude, 1.0) if amplitude else float(output > 0)
        return DriveState(
            0,
            playing,
            "sine" if playing else "none",
            self._frequency if playing else 0.0,
            amplitude or output,
            level,
            math.nan,
            steady=playing and output == amplitude,
            reason=self._reason or (latched if not playing else ""),
        )

    def close(self) -> None:
        with self._wake:
            self._closed = True
            self._wake.notify_all()
        self._thread.join(CLOSE_SECONDS)
        try:
            self._silence()
            if self._amplitude or self._output:
                self._confirm_silence()
            self._output = self._amplitude = 0.0
        except ShakedownError:
            if self._amplitude or self._output:  # else it has been silent, as far as anybody knows
                raise
        finally:
            self.link.close()

    def _allow(self, frequency: float, amplitude: float) -> None:
        self.limits.check_frequency(frequency)
        self.limits.check_amplitude(amplitude)
        self.limits.check_slew(2 * math.pi * frequency * amplitude)
        if amplitude == 0:
            raise LimitError("An amplitude of 0 is no drive: stop it instead.")

    def _order(self, order: _Order) -> None:
        """Hand over to the thread; returns when the instrument has taken it and the ramp has begun."""
        self.latch.check()
        with self._wake:
            if self._closed:
                raise InstrumentError("The generator was closed: open the rig again.")
            self._orders.append(order)
            self._wake.notify_all()
        if not order.done.wait(ORDER_SECONDS):
            raise InstrumentError(f"The generator on {self.link.port} did not take the setting in time.")
        if order.error is not None:
            raise order.error

    # -- the thread that owns the line

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._closed or self._end or self._orders, LATCH_SECONDS)
                order = self._orders.popleft() if self._orders and not self._halting() else None
            if reason := self._halting():
                self._abandon_orders(reason)
                if self._go_down(reason):
                    self._tell_ended()
                if self._closed:
                    return
            elif order is not None:
                self._take(order)
            elif self._amplitude and self._output != self._amplitude:
                self._step()
            elif self._amplitude and time.monotonic() > self._next_look:
                self._look()

    def _halting(self) -> str:
        """Why the drive must be at zero; empty while it may play."""
        return self.latch.reason or self._end or ("closed" if self._closed else "")

    def _must_fall(self) -> bool:
        """Whether STOP, or an end of the drive, waits for what is being sent."""
        return (
            bool(self._halting())
            and not self._confirming
            and (self._taking or self._output > 0 or self._amplitude > 0)
        )

    def _take(self, order: _Order) -> None:
        self._taking = True
        try:
            if order.begin:
                self._start_sine(order)
            elif self._amplitude:
                self._move_sine(order)
        except Exception as error:
            order.error = error
            if not isinstance(error, DriveLatched):
                self._reason = str(error)
        finally:
            self._taking = False
            order.done.set()

    def _start_sine(self, order: _Order) -> None:
        assert order.frequency is not None and order.amplitude is not None
        if self._amplitude:
            self._go_down("another drive")
        frequency = order.frequency
        if self._errors_expected:
            self.link.distrust()
            with contextlib.suppress(InstrumentError):
                self._check()  # reads and so clears what may have been left
            self._errors_expected = False
        try:
            for setting in (
                lambda: self._set_amplitude(0.0),
                lambda: self._set_frequency(frequency),
                self._begin,
                self._check,
                lambda: None,
            ):
                self.latch.check()  # before each command, and before the ramp
                setting()
        except ShakedownError:
            with contextlib.suppress(ShakedownError):
                self._silence()  # the output may have been switched on already
            raise
        self._reason = ""
        self._told_off = 0
        self._frequency, self._amplitude = order.frequency, order.amplitude
        self._ramp(self._output, order.amplitude)

    def _move_sine(self, order: _Order) -> None:
        if order.frequency is not None and order.frequency != self._frequency:
            self.latch.check()
            self._set_frequency(order.frequency)
            self._frequency = order.frequency
        if order.amplitude is not None:
            self._ramp(self._output, order.amplitude)
            self._amplitude = order.amplitude

    def _ramp(self, begin: float, target: float) -> None:
        """Plan the steps of a soft start or of a change of amplitude."""
        self._planned = deque(_steps(begin, target))
        self._pace = SOFT_START / len(self._planned)
        self._next_step = time.monotonic()
        self._next_question = self._next_step + HEAR_SECONDS

    def _step(self) -> None:
        """The next step of the ramp, when it is due."""
        if time.monotonic() < self._next_step or not self._planned:
            return
        value = self._planned.popleft()
        try:
            if self.latch.reason:
                return
            before = self._output
            self._output = self._move_to(value)
            change = abs(self._output - before)
            self._note_reached()
        except ShakedownError as error:
            self._note_lost(error)
            self._planned.appendleft(value)
            change = 0.0
        self._next_step = time.monotonic() + max(self._pace, change / self.limits.ramp)

    def _look(self) -> None:
        """Is the line still there, and the generator at its other end? It plays by itself."""
        now = time.monotonic()
        self._next_look = now + LOOK_SECONDS
        try:
            self.link.check()
            if self._lost_since < math.inf or now > self._next_question:
                self._next_question = now + HEAR_SECONDS
                self._hear(self.link.ask_now(self.silence_question))  # STOP does not wait for the answer
            self._note_reached()
        except ShakedownError as error:
            self._note_lost(error)

    def _hear(self, answer: str) -> None:
        """Switched off by hand it is not to be believed to play, nor to go on by itself."""
        self._told_off = self._told_off + 1 if OFF.fullmatch(answer) else 0
        if self._told_off >= BELIEVED:
            self._output = 0.0  # from there a step down would be one up
            self.lost = (
                f"the generator on {self.link.port} says that its output is off: somebody else did that"
            )

    def _note_lost(self, error: ShakedownError) -> None:
        now = time.monotonic()
        self._reason = str(error)
        self._lost_since = min(self._lost_since, now)
        if now - self._lost_since > LOST_SECONDS:
            self.lost = f"the generator could not be reached for {LOST_SECONDS:g} s ({error})"

    def _note_reached(self) -> None:
        if self._lost_since < math.inf:
            self._lost_since, self._reason = math.inf, ""

    def _move_to(self, peak: float) -> float:
        """Set an amplitude, or one far below the present if STOP comes while a step upwards is on the line.

        The amplitude that was set.
        """
        if peak <= self._output:
            self._set_amplitude(peak)
            return peak
        begin, end = self._amplitude_line(peak)
        shrink = "E-1" if self._output else WITHDRAW
        if self.link.write_if(self._may_play, begin, end, shrink + end):
            return peak
        self._errors_expected = True  # an instrument may find the amplitude too small: then it keeps its own
        return 0.1 * peak if self._output else 0.0

    def _may_play(self) -> bool:
        return not self._halting()

    def _go_down(self, reason: str) -> bool:
        """Ramp to zero in a few steps; False if the generator cannot be reached (it is tried again)."""
        begin = self._output
        if begin == 0 and not self._amplitude:
            return True
        self._reason = reason
        with contextlib.suppress(ShakedownError):
            for step in range(1, STEPS_DOWN + 1):
                value = begin * (1 - step / (STEPS_DOWN + 1))
                if self.latch.output_taken_over:
                    self._errors_expected = True
                    break  # it is at zero: a step down from what it was would be a step up
                self.link.send_now("".join(self._amplitude_line(value)))
                self._output = value
                time.sleep(STOP_SECONDS / (STEPS_DOWN + 1))
        try:
            self._silence()  # opens a line that was lost again
            self._confirm_silence()
        except ShakedownError as error:
            self._reason = f"{reason}; the generator cannot be reached ({error})"
            time.sleep(AGAIN_SECONDS)
            return False
        self._output = self._amplitude = 0.0
        self._reason, self.lost, self._lost_since = reason, "", math.inf
        return True

    def _abandon_orders(self, reason: str) -> None:
        with self._wake:
            orders, self._orders = list(self._orders), deque()
        for order in orders:
            order.error = DriveLatched(f"The drive was stopped before it could begin ({reason}).")
            order.done.set()

    def _tell_ended(self) -> None:
        with self._wake:
            self._end = ""
            self._wake.notify_all()

    def _silence(self) -> None:
        self.link.send_now(self.silence_command)

    def _confirm_silence(self) -> None:
        """InstrumentError if the generator does not answer, or says that it sounds."""
        self._confirming = True
        try:
            answer = self.link.ask_now(self.silence_question)
        finally:
            self._confirming = False
        if self._sounds(answer):
            self.link.distrust()  # perhaps the late answer to a question before
            raise InstrumentError(f"The generator on {self.link.port} says that its output is on: {answer}.")


def _steps(begin: float, target: float) -> list[float]:
    """Amplitudes on the way: upwards each at most GROWTH times the one before."""
    if target <= begin:
        return [begin + (target - begin) * k / CHANGE_STEPS for k in range(1, CHANGE_STEPS)] + [target]
    steps, value = [], max(begin * GROWTH, FIRST_STEP * target)
    while value < target:
        steps.append(value)
        value *= GROWTH
    return [*steps, target]


class DS345(Generator):
    """Stanford Research DS345: 9600 baud, 8N2, LF. Amplitudes are peak to peak into 50 ohm on its side."""

    silence_command, silence_question = "AMPL 0.000VP", "AMPL? VP"

    def __init__(self, port: str, limits: Limits, into_50: bool = False) -> None:
        super().__init__(SerialLink(port, LinkSettings(9600, 2)), limits, into_50)

    def identify(self) -> str:
        name = self.link.query("*IDN?")
        if "DS345" not in name:
            raise InstrumentError(f"The instrument on {self.link.port} is no DS345: it says '{name}'.")
        return name

    def _sounds(self, answer: str) -> bool:
        volts = re.match(r"\s*[+-]?(\d+\.?\d*)", answer)
        return volts is not None and float(volts[1]) > 0

    def _set_frequency(self, hertz: float) -> None:
        self.link.write(f"FREQ {hertz:.6f}")

    def _amplitude_line(self, peak: float) -> tuple[str, str]:
        return f"AMPL {2 * peak if self.into_50 else peak:.3f}", "VP"

    def _begin(self) -> None:
        self.link.write("FUNC 0")
        self.link.write("OFFS 0.0")

    def _check(self) -> None:
        status = self.link.query("*ESR?")
        if not re.fullmatch(r"\d+", status) or int(status) & 0b0011_0000:  # execution or command error
            raise InstrumentError(f"The DS345 refused a setting (event status {status}).")


class ScpiGenerator(Generator):
    """Agilent 33120A, 33250A and relatives: FUNC, FREQ, VOLT, VOLT:OFFS, VOLT:UNIT, OUTP, SYST:ERR?."""

    silence_command, silence_question = "OUTP OFF", "OUTP?"

    def __init__(self, port: str, limits: Limits, into_50: bool = False) -> None:
        super().__init__(SerialLink(port, LinkSettings(9600, 2)), limits, into_50)

    def identify(self) -> str:
        name = self.link.query("*IDN?")
        if name.count(",") < 2:
            raise InstrumentError(f"The instrument on {self.link.port} does not introduce itself: '{name}'.")
        return name

    def _sounds(self, answer: str) -> bool:
        return answer.strip().upper() in ("1", "+1", "ON")

    def _set_frequency(self, hertz: float) -> None:
        self.link.write(f"FREQ {hertz:.6f}")

    def _amplitude_line(self, peak: float) -> tuple[str, str]:
        return ("OUTP OFF" if peak == 0 else f"VOLT {2 * peak:.4f}"), ""

    def _begin(self) -> None:
        self.link.write("FUNC SIN")
        self.link.write("VOLT:OFFS 0")
        # Whatever its front panel says: it wakes up for 50 ohm, and a number may mean volts rms.
        self.link.write(f"OUTP:LOAD {'50' if self.into_50 else 'INF'}")
        self.link.write("VOLT:UNIT VPP")
        self.link.write("VOLT MIN")
        self.link.write_if(self._may_play, "OUTP O", "N", "FF")

    def _check(self) -> None:
        answer = self.link.query("SYST:ERR?")
        if not re.match(r"[+-]?0\b", answer):
            raise InstrumentError(f"The generator refused a setting: {answer}.")
