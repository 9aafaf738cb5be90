"""Function generators as exciters: Stanford DS345, and Agilent/Keysight SCPI (RS-232, or a TCP socket).

They play sines only, and on their own clock: the phase at a sample is not known, so record the drive as a
channel. Amplitudes go up and down in small steps; frequency changes keep the phase (digital synthesis).
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from analysis.base.errors import ShakedownError
from drivers.base.limits import LimitError, Limits
from drivers.base.protocols import DriveState, InstrumentError, LinkLost
from drivers.base.waveform import Sine, Waveform
from drivers.instruments.serial_link import LinkSettings, SerialLink
from drivers.rig.player import SOFT_START
from drivers.rig.profile import RigError, RigProfile

STEPS_UP = 12  # of a soft start
STOP_SECONDS = 0.05
STEPS_DOWN = 2  # of a stop, before zero: a line at 9600 baud takes 15 ms


def open_ds345(profile: RigProfile, source: Any) -> DS345:
    return DS345(_port(profile), profile.limits)


def open_scpi(profile: RigProfile, source: Any) -> ScpiGenerator:
    return ScpiGenerator(_port(profile), profile.limits)


def _port(profile: RigProfile) -> str:
    table: Mapping[str, Any] = profile.instruments["exciter"]
    if "port" not in table:
        raise RigError(
            "[instruments.exciter]: 'port' is missing, such as /dev/ttyUSB0 or socket://host:5025."
        )
    return str(table["port"])


class Generator(ABC):
    """A sine generator on a line. Silent after opening; ramps; refuses what the limits forbid."""

    unit = "V"

    def __init__(self, link: SerialLink, limits: Limits) -> None:
        self.link, self.limits = link, limits
        self._lock = threading.RLock()
        self._frequency = self._amplitude = self._level = 0.0
        self._reason = "not started"
        self._ramp = 0  # number of the ramp that is under way; a newer one ends an older
        link.hello = self.identify
        self.identify()
        self._silence()

    # -- the instrument's own words

    @abstractmethod
    def identify(self) -> str: ...

    @abstractmethod
    def _set_frequency(self, hertz: float) -> None: ...

    @abstractmethod
    def _set_amplitude(self, peak: float) -> None: ...

    @abstractmethod
    def _begin(self) -> None:
        """Sine, no offset, output on."""

    @abstractmethod
    def _silence(self) -> None:
        """Output at zero."""

    @abstractmethod
    def _check(self) -> None:
        """Ask for errors; InstrumentError if there was one."""

    # -- the exciter

    def play(self, waveform: Waveform) -> None:
        if not isinstance(waveform, Sine):
            raise InstrumentError(f"This generator plays sines only, no {waveform.kind}.")
        self._allow(waveform.frequency, waveform.amplitude)
        with self._lock:
            if self._amplitude:
                self._down("another drive")
            self._set_amplitude(0.0)
            self._set_frequency(waveform.frequency)
            self._begin()
            self._check()
            self._frequency, self._amplitude, self._reason = waveform.frequency, waveform.amplitude, ""
            self._ramp += 1
            ramp = self._ramp
        threading.Thread(target=self._up, args=(ramp, 0.0, waveform.amplitude), daemon=True).start()

    def change(self, frequency: float | None = None, amplitude: float | None = None) -> None:
        with self._lock:
            if not self._amplitude:
                return
            f = self._frequency if frequency is None else frequency
            a = self._amplitude if amplitude is None else amplitude
            self._allow(f, a)
            if f != self._frequency:
                self._set_frequency(f)
                self._frequency = f
            begin = self._level * self._amplitude
            self._amplitude = a
            self._ramp += 1
            ramp = self._ramp
        self._up(ramp, begin, a)

    def stop(self, reason: str = "stopped") -> None:
        self._ramp += 1  # an upward ramp gives way at once, before the lock is ours
        with self._lock:
            if self._amplitude:
                self._down(reason)

    def state(self) -> DriveState:
        playing = self._amplitude > 0
        return DriveState(
            0,
            playing,
            "sine" if playing else "none",
            self._frequency if playing else 0.0,
            self._amplitude,
            self._level,
            math.nan,
            steady=playing and self._level == 1.0,
            reason=self._reason,
        )

    def close(self) -> None:
        with contextlib.suppress(ShakedownError):
            self.stop("closed")
            self._silence()
        self.link.close()

    def _allow(self, frequency: float, amplitude: float) -> None:
        self.limits.check_frequency(frequency)
        self.limits.check_amplitude(amplitude)
        self.limits.check_slew(2 * math.pi * frequency * amplitude)
        if amplitude == 0:
            raise LimitError("An amplitude of 0 is no drive: stop it instead.")

    def _up(self, ramp: int, begin: float, target: float) -> None:
        try:
            for step in range(1, STEPS_UP + 1):
                with self._lock:
                    if ramp != self._ramp:
                        return
                    value = begin + (target - begin) * step / STEPS_UP
                    self._set_amplitude(value)
                    self._level = value / target if step < STEPS_UP else 1.0
                time.sleep(SOFT_START / STEPS_UP)
        except ShakedownError as error:
            self._reason = str(error)

    def _down(self, reason: str) -> None:
        begin, steps = self._level * self._amplitude, STEPS_DOWN
        self._amplitude = self._level = 0.0
        self._reason = reason
        try:
            for step in range(1, steps + 1):
                self._set_amplitude(begin * (1 - step / (steps + 1)))
                time.sleep(STOP_SECONDS / (steps + 1))
            self._silence()
        except LinkLost:
            self._silence()  # opens the line again: the generator must not play on


class DS345(Generator):
    """Stanford Research DS345: 9600 baud, 8N2, LF. Amplitudes are peak to peak on its side."""

    def __init__(self, port: str, limits: Limits) -> None:
        super().__init__(SerialLink(port, LinkSettings(9600, 2)), limits)

    def identify(self) -> str:
        name = self.link.query("*IDN?")
        if "DS345" not in name:
            raise InstrumentError(f"The instrument on {self.link.port} is no DS345: it says '{name}'.")
        return name

    def _set_frequency(self, hertz: float) -> None:
        self.link.write(f"FREQ {hertz:.6f}")

    def _set_amplitude(self, peak: float) -> None:
        self.link.write(f"AMPL {2 * peak:.3f}VP")

    def _begin(self) -> None:
        self.link.write("FUNC 0")
        self.link.write("OFFS 0.0")

    def _silence(self) -> None:
        self.link.write("AMPL 0.000VP")

    def _check(self) -> None:
        status = self.link.query("*ESR?")
        if not re.fullmatch(r"\d+", status) or int(status) & 0b0011_0000:  # execution or command error
            raise InstrumentError(f"The DS345 refused a setting (event status {status}).")


class ScpiGenerator(Generator):
    """Agilent 33120A, 33250A and relatives: FUNC, FREQ, VOLT (peak to peak), VOLT:OFFS, OUTP, SYST:ERR?."""

    def __init__(self, port: str, limits: Limits) -> None:
        super().__init__(SerialLink(port, LinkSettings(9600, 2)), limits)

    def identify(self) -> str:
        name = self.link.query("*IDN?")
        if name.count(",") < 2:
            raise InstrumentError(f"The instrument on {self.link.port} does not introduce itself: '{name}'.")
        return name

    def _set_frequency(self, hertz: float) -> None:
        self.link.write(f"FREQ {hertz:.6f}")

    def _set_amplitude(self, peak: float) -> None:
        if peak == 0:
            self.link.write("OUTP OFF")
        else:
            self.link.write(f"VOLT {2 * peak:.4f}")

    def _begin(self) -> None:
        self.link.write("FUNC SIN")
        self.link.write("VOLT:OFFS 0")
        self.link.write("VOLT MIN")
        self.link.write("OUTP ON")

    def _silence(self) -> None:
        self.link.write("OUTP OFF")

    def _check(self) -> None:
        answer = self.link.query("SYST:ERR?")
        if not re.match(r"[+-]?0\b", answer):
            raise InstrumentError(f"The generator refused a setting: {answer}.")
