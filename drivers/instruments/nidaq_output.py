"""The terminal of an NI analogue output: its range, a task on it, a value at once, the device's watchdog."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from drivers.base.limits import Limits
from drivers.base.protocols import DriveState, InstrumentError, LinkLost
from drivers.base.zeroing import zero_output
from drivers.instruments.nidaq_errors import in_words, patiently
from drivers.instruments.nidaq_input import device_of
from drivers.rig.profile import RigError, positive

LOST_SECONDS = 0.5  # that an output may take to fall after its drive has failed
ZERO_PACE = 0.2  # s between two attempts to set an output to zero that could not be reached


@dataclass
class OutputTerminal:
    """Where the drive leaves the device."""

    name: str  # such as Dev1/ao0
    range: float  # V, plus and minus
    session: Any = None
    server: str | None = None  # the device server's address, for who zeroes the output from elsewhere
    notices: list[str] = field(default_factory=list)  # what the person at the rig should know

    @classmethod
    def of(cls, instruments: Mapping[str, Mapping[str, Any]], limits: Limits, session: Any) -> OutputTerminal:
        """The terminal that a profile names; RigError where it cannot carry the drive."""
        table = instruments["exciter"]
        if "output" not in table:
            raise RigError("[instruments.exciter]: 'output' is missing, such as output = \"Dev1/ao0\".")
        span = positive("[instruments.exciter]: range", table.get("range", 10.0))
        if limits.peak > span:
            raise RigError(f"The drive's limit of {limits.peak:g} V is beyond the output's {span:g} V.")
        server = table.get("server", instruments["source"].get("server"))
        return cls(str(table["output"]), span, session, server)

    @property
    def device(self) -> str:
        return device_of(self.name)

    def zeroing(self) -> dict[str, Any]:
        """How another process sets the output to zero (see drivers.base.zeroing)."""
        return {"kind": "nidaqmx", "device": self.device, "server": self.server}

    def task(self) -> Any:
        """A task with this output alone."""
        import nidaqmx

        task = nidaqmx.Task(grpc_options=self.session) if self.session else nidaqmx.Task()
        try:
            task.ao_channels.add_ao_voltage_chan(self.name, min_val=-self.range, max_val=self.range)
        except BaseException:
            task.close()
            raise
        return task

    def write_now(self, value: float) -> None:
        """Set the output without a clock; no other task may have it."""
        with self.task() as task:
            task.write(value, auto_start=True)

    def reset(self) -> None:
        """Reset the device: whatever runs on it ends, and the output is zero.

        A device server is asked over a connection of its own: the one of the driver may be what hangs.
        """
        if self.server:
            zero_output(self.zeroing())
            return
        from nidaqmx.system.device import Device

        device = Device(self.device, grpc_options=self.session) if self.session else Device(self.device)
        with in_words("resetting the device"):
            device.reset_device()

    def zero_at_opening(self) -> None:
        """Set the output to zero; a program that is ending may have it for a moment yet."""
        with in_words("setting the output to zero"):
            patiently(lambda: self.write_now(0.0))

    def open_watchdog(self, seconds: Any, optional: bool) -> Any:
        """The device's own watchdog, which zeroes the output when this program is gone.

        None if the profile asks for none. One that is asked for and absent is a refusal, or a notice if the
        profile says ``watchdog_optional = true``.
        """
        if not seconds:
            return None
        timeout = positive("[instruments.exciter]: watchdog", seconds)
        from nidaqmx.constants import WatchdogAOExpirState
        from nidaqmx.system.watchdog import AOExpirationState, WatchdogTask

        options = {"grpc_options": self.session} if self.session else {}
        try:
            with in_words("setting up the watchdog"):
                task = WatchdogTask(self.device, timeout=timeout, **options)
                state = AOExpirationState(self.name, 0.0, WatchdogAOExpirState.VOLTAGE)
                task.cfg_watchdog_ao_expir_states([state])
        except LinkLost:
            raise
        except InstrumentError as error:
            if not optional:
                raise RigError(
                    f"The profile asks for a hardware watchdog, and {self.device} has none "
                    f"({error}) Use a device that has one, or say watchdog_optional = true."
                ) from None
            self.notices.append(
                "There is no hardware watchdog on this device: if the computer itself fails, the output "
                "keeps its last value."
            )
            return None
        return task


class Standing:
    """A drive that has failed, shown as playing until its output is known to be at zero.

    A converter keeps its last value when its task ends or its server is gone: until a zero has been written
    nobody may be told that the drive is off. The second guard acts on a drive that stays.
    """

    def __init__(self, output: OutputTerminal) -> None:
        self._output = output
        self._since = 0.0  # time.monotonic() of the failure
        self.drive: DriveState | None = None  # as it is shown; None: the output does what the player says

    def begin(self, drive: DriveState, reason: str) -> None:
        """The drive has failed in this state."""
        if self.drive is None:
            self.drive, self._since = replace(drive, playing=True, reason=reason), time.monotonic()

    def end(self) -> None:
        """The output is at zero."""
        self.drive = None

    def zero(self) -> None:
        """Set the output to zero; no other task may have it."""
        with in_words("setting the output to zero"):
            self._output.write_now(0.0)
        self.end()

    def try_zero(self) -> str:
        """As ``zero``, but it never raises: why the output could not be set to zero, or nothing."""
        try:
            self.zero()
        except Exception as error:  # whatever the driver makes of a device that is gone
            return str(error)
        return ""

    def last_zero(self) -> bool:
        """Set the output to zero for the last time; whether it could be. Raises if it may be at a voltage."""
        problem = self.try_zero()
        if problem and self.drive is not None:
            raise InstrumentError(
                f"The output {self._output.name} could not be set to zero ({problem}): switch off the "
                "amplifier by hand."
            )
        return not problem

    @property
    def lost(self) -> str:
        """Why the drive is out of reach, once that is more than a moment."""
        drive = self.drive
        if drive is None or time.monotonic() - self._since < LOST_SECONDS:
            return ""
        return f"{drive.reason.rstrip('.')}; the output {self._output.name} may still stand at a voltage"
