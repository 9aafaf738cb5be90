"""The input tasks of an NI rig: one for all channels where the hardware allows it, else one for each device.

Modules of a CompactDAQ chassis share a task; the chassis keeps their time, and which of its timing engines
does is decided when the task is reserved. Other devices share a task where their driver allows it. Where it
does not, each has a task of its own on the sample clock of the first: all take their samples on its edges.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drivers.base.protocols import Samples
from drivers.instruments.nidaq_channels import add_channel, teds_notice
from drivers.instruments.nidaq_errors import (
    NETWORK_NOT_RESERVED,
    NOT_RESERVED,
    ONE_DEVICE_A_TASK,
    UNSUPPORTED,
    patiently,
)
from drivers.rig.profile import ChannelProfile

RATE_WORTH_A_WORD = 1e-3  # relative difference of the device's rate from the one asked for


def device_of(terminal: str) -> str:
    """The device in the name of a terminal, such as Dev1 in Dev1/ai0."""
    return terminal.lstrip("/").split("/")[0]


@dataclass
class _Part:
    """One task and the rows of a block that it fills."""

    task: Any
    rows: list[int]
    reader: Any = None


@dataclass
class InputTasks:
    """All input tasks of a rig, which run as one."""

    session: Any
    rate: float  # Hz; as asked for, then as the device makes it
    buffer: int  # samples
    channels: list[ChannelProfile] = field(default_factory=list)  # as the sensors and the device have them
    notices: list[str] = field(default_factory=list)
    clock: str = ""  # terminal of the sample clock
    trigger: str = ""  # terminal of the start trigger
    devices: tuple[str, ...] = ()
    _parts: list[_Part] = field(default_factory=list)

    def open(self, channels: Sequence[ChannelProfile], wiring: Mapping[str, str]) -> None:
        """Make the tasks and check them against the hardware, which may be in use elsewhere."""
        terminals = [str(wiring[c.name]) for c in channels]
        self.devices = tuple(dict.fromkeys(map(device_of, terminals)))
        self.channels = list(channels)
        asked = self.rate
        try:
            self._open_reserving_network(channels, terminals)
            self.rate = float(self._first.timing.samp_clk_rate)
            patiently(self.reserve)
            for part in self._parts:
                self._free(part.task)
        except BaseException:
            self.close()
            raise
        self.notices += [s for a, b in zip(channels, self.channels, strict=True) if (s := teds_notice(a, b))]
        if abs(self.rate / asked - 1) > RATE_WORTH_A_WORD:
            self.notices.append(
                f"The device samples at {self.rate:.8g} Hz: it has no clock of the {asked:.8g} Hz asked for."
            )

    def _open_reserving_network(self, channels: Sequence[ChannelProfile], terminals: list[str]) -> None:
        """Open, and reserve a chassis on the network for this computer if nobody has."""
        from nidaqmx.errors import DaqError
        from nidaqmx.system.device import Device

        try:
            self._open_together_or_apart(channels, terminals)
        except DaqError as error:
            if error.error_code != NETWORK_NOT_RESERVED:
                raise
            self.close()
            for name in self.devices:
                device = Device(name, grpc_options=self.session) if self.session else Device(name)
                with contextlib.suppress(DaqError):  # a module's chassis is what is reserved
                    device = device.compact_daq_chassis_device
                device.reserve_network_device(override_reservation=False)
            self._open_together_or_apart(channels, terminals)

    def _open_together_or_apart(self, channels: Sequence[ChannelProfile], terminals: list[str]) -> None:
        from nidaqmx.errors import DaqError

        rows = range(len(channels))
        try:
            self._add_part(channels, terminals, list(rows), "")
        except DaqError as error:
            if error.error_code not in ONE_DEVICE_A_TASK or len(self.devices) == 1:
                raise
            self.close()
            for number, device in enumerate(self.devices):
                if number == 1:
                    patiently(self.reserve)  # only then has the first a clock that can be named
                mine = [i for i in rows if device_of(terminals[i]) == device]
                self._add_part(channels, terminals, mine, self.clock if number else "")

    def _add_part(
        self, channels: Sequence[ChannelProfile], terminals: list[str], rows: list[int], clock: str
    ) -> None:
        import nidaqmx
        from nidaqmx.constants import AcquisitionType, OverwriteMode, TaskMode
        from nidaqmx.stream_readers import AnalogMultiChannelReader

        task = nidaqmx.Task(grpc_options=self.session) if self.session else nidaqmx.Task()
        part = _Part(task, rows)
        self._parts.append(part)
        for i in rows:
            self.channels[i] = add_channel(task, channels[i], terminals[i], self.session)
        task.timing.cfg_samp_clk_timing(
            self.rate, clock, sample_mode=AcquisitionType.CONTINUOUS, samps_per_chan=self.buffer
        )
        # Lost samples are then a gap of known length and not the end of the task.
        task.in_stream.overwrite = OverwriteMode.OVERWRITE_UNREAD_SAMPLES
        part.reader = AnalogMultiChannelReader(task.in_stream)
        part.reader.verify_array_shape = False
        task.control(TaskMode.TASK_VERIFY)

    @property
    def _first(self) -> Any:
        return self._parts[0].task

    def task_of(self, channel: str) -> Any:
        """The task that has a channel."""
        row = next(i for i, c in enumerate(self.channels) if c.name == channel)
        return next(p.task for p in self._parts if row in p.rows)

    def reserve(self) -> None:
        """Reserve the hardware; the names of clock and trigger are known from then on."""
        from nidaqmx.constants import TaskMode

        for part in self._parts:
            part.task.control(TaskMode.TASK_RESERVE)
        self.clock = self._terminal(lambda task: task.timing.samp_clk_term, "SampleClock")
        self.trigger = self._terminal(lambda task: task.triggers.start_trigger.term, "StartTrigger")

    def _terminal(self, ask: Any, usual: str) -> str:
        """A terminal as the driver names it; older drivers do not, and then it is the device's own."""
        from nidaqmx.errors import DaqError

        try:
            return str(ask(self._first))
        except DaqError as error:
            if error.error_code not in (UNSUPPORTED, NOT_RESERVED):
                raise
            return f"/{self.devices[0]}/ai/{usual}"

    def start(self) -> None:
        """Start all; the first, whose clock the others follow, last."""
        self.read_on()
        for part in reversed(self._parts):
            part.task.start()

    def stop(self) -> None:
        from nidaqmx.constants import TaskMode

        for part in self._parts:
            part.task.stop()
            part.task.control(TaskMode.TASK_UNRESERVE)

    def _free(self, task: Any) -> None:
        from nidaqmx.constants import TaskMode

        task.control(TaskMode.TASK_UNRESERVE)

    def close(self) -> None:
        parts, self._parts = self._parts, []
        for part in parts:
            part.task.close()

    def read(self, into: Samples, timeout: float) -> None:
        """Fill a block; a DaqReadError of any task leaves it undefined."""
        if len(self._parts) == 1 and into.flags.c_contiguous:
            self._parts[0].reader.read_many_sample(into, into.shape[1], timeout)
            return
        for part in self._parts:
            data = np.empty((len(part.rows), into.shape[1]))
            part.reader.read_many_sample(data, into.shape[1], timeout)
            into[part.rows] = data

    def acquired(self) -> int:
        """Samples that every task has taken."""
        return min(int(p.task.in_stream.total_samp_per_chan_acquired) for p in self._parts)

    def go_to(self, index: int) -> None:
        """Read on at a sample, counted from the start."""
        from nidaqmx.constants import ReadRelativeTo

        for part in self._parts:
            part.task.in_stream.relative_to = ReadRelativeTo.FIRST_SAMPLE
            part.task.in_stream.offset = index

    def read_on(self) -> None:
        """Read on behind what was read."""
        from nidaqmx.constants import ReadRelativeTo

        for part in self._parts:
            part.task.in_stream.relative_to = ReadRelativeTo.CURRENT_READ_POSITION
            part.task.in_stream.offset = 0

    def overloaded(self) -> list[int]:
        """Rows of the channels that the devices themselves call overloaded."""
        rows: list[int] = []
        for part in self._parts:
            stream = part.task.in_stream
            if stream.overloaded_chans_exist:
                names = stream.overloaded_chans
                rows += [i for i in part.rows if self.channels[i].name in names]
        return rows
