"""A device server that speaks the nidaqmx package's gRPC interface and serves the virtual rig.

The real ``nidaqmx`` package runs against it unchanged: over loopback TCP (:func:`serve`), or in the same
process through an object given as ``grpc_channel`` (:class:`InProcessChannel`). An attribute that the
simulated device does not have answers -200452, as a real one does. Try it:

    python -m drivers.virtual.nidaq_server two_well_beam --port 31763
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray

from drivers.virtual import ni_checks
from drivers.virtual.ni_products import C_MODULE, CHASSIS, Teds
from drivers.virtual.plant import Plant
from drivers.virtual.simulated_device import (
    BAD_VALUE,
    CURRENT_POSITION,
    EXPIRED,
    INVALID_TASK,
    MESSAGES,
    NETWORK_TAKEN,
    NO_CHANNEL,
    NO_DEVICE,
    NO_ROOM,
    NO_TEDS,
    NO_TEDS_FILE,
    NOT_RESERVED,
    OTHER_SENSOR,
    OVERRUN,
    RESET,
    TEDS_UNSUPPORTED,
    TIMED_OUT,
    UNSUPPORTED,
    AiChannel,
    AnalogInput,
    AnalogOutput,
    DaqFailure,
    DigitalInput,
    SimulatedDevice,
    Task,
    Watchdog,
    Wire,
)

MEGABYTES = 256 << 20
# What some of the package's numbers mean (nidaqmx.constants).
_DONT_REGENERATE = 10158
_FINITE, _CONTINUOUS, _SINGLE_POINT = 10178, 10123, 12522
_VERIFY, _COMMIT, _RESERVE, _UNRESERVE = 2, 3, 4, 5
_RESET_TIMER, _CLEAR_EXPIRATION = 0, 1


class DeviceServer:
    """The calls of the gRPC interface by name: a request in, the fields of the response out."""

    def __init__(self, device: SimulatedDevice) -> None:
        self.device = device
        self._tasks: dict[str, Task] = {}
        self._count = 0
        self._teds_read: dict[str, Teds] = {}  # by input; kept until it is asked again
        self.fail_next: deque[tuple[str, int]] = deque()  # (call, error number): errors on request
        self.slow: dict[str, Callable[[], float]] = {}  # by call: the seconds that it takes to arrive

    def call(self, name: str, request: Any) -> dict[str, Any]:
        """Do a call; DaqFailure if the device refuses, LookupError if the call is unknown."""
        method = getattr(self, "do_" + name, None)
        if method is None:
            raise LookupError(name)
        if self.fail_next and self.fail_next[0][0] == name:
            raise DaqFailure(self.fail_next.popleft()[1])
        if self.device.unplugged and name not in ("ClearTask", "StopTask"):
            raise DaqFailure(NO_DEVICE)
        if name in self.slow:
            time.sleep(self.slow[name]())
        with self.device.lock:
            result: dict[str, Any] = method(request) or {}
        return {"status": 0, **result}

    # -- the system

    def do_GetSystemInfoAttributeUInt32(self, r: Any) -> dict[str, Any]:
        versions = {0x1272: 24, 0x1923: 0, 0x2F22: 0}
        return {"value": _known(versions, r.attribute_raw)}

    def do_GetSystemInfoAttributeString(self, r: Any) -> dict[str, Any]:
        return {"value": _known({0x193B: ", ".join(self.device.rack.devices)}, r.attribute_raw)}

    def do_GetDeviceAttributeString(self, r: Any) -> dict[str, Any]:
        name, rack = r.device_name, self.device.rack
        self._check_device(name)
        every = [t if "/" in t else f"{self.device.name}/{t}" for t in self.device.wiring]
        known = {
            0x631: rack.devices[name].name,
            0x231E: ", ".join(t for t in every if t.startswith(f"{name}/")),
            0x231F: f"{name}/ao0" if name == rack.drive else "",
        }
        if rack.devices[name].category == C_MODULE:
            known[0x29B7] = rack.chassis
        if rack.devices[name].category == CHASSIS:
            known[0x29B6] = ", ".join(d for d in rack.devices if d != name and rack.clock_of(d) == name)
        return {"value": _known(known, r.attribute_raw)}

    def do_GetDeviceAttributeInt32(self, r: Any) -> dict[str, Any]:
        self._check_device(r.device_name)
        category = self.device.rack.devices[r.device_name].category
        return {"value_raw": _known({0x29A9: category}, r.attribute_raw)}

    def do_GetDeviceAttributeInt32Array(self, r: Any) -> dict[str, Any]:
        self._check_device(r.device_name)
        modes = [_FINITE, _CONTINUOUS]
        if self.device.rack.devices[r.device_name].single_points:
            modes.append(_SINGLE_POINT)
        return {"value_raw": _known({0x2FDD: modes}, r.attribute_raw)}

    def do_GetDeviceAttributeDoubleArray(self, r: Any) -> dict[str, Any]:
        self._check_device(r.device_name)
        currents = self.device.rack.devices[r.device_name].currents
        return {"value": _known({0x29CB: list(currents)} if currents else {}, r.attribute_raw)}

    def do_ReserveNetworkDevice(self, r: Any) -> None:
        self._check_device(r.device_name)
        if not self.device.rack.network or r.device_name != self.device.rack.chassis:
            raise DaqFailure(UNSUPPORTED)
        if self.device.network_holder not in (None, "us") and not r.override_reservation:
            raise DaqFailure(NETWORK_TAKEN)
        self.device.network_holder = "us"

    def do_GetPhysicalChanAttributeUInt32(self, r: Any) -> dict[str, Any]:
        teds = self._teds(r.physical_channel)
        return {
            "value": _known({0x21DA: teds.maker, 0x21DB: teds.model, 0x21DC: teds.serial}, r.attribute_raw)
        }

    def do_GetPhysicalChanAttributeBytes(self, r: Any) -> dict[str, Any]:
        return {"value": _known({0x21DF: self._teds(r.physical_channel).memory()}, r.attribute_raw)}

    def do_ConfigureTEDS(self, r: Any) -> None:
        """Read the sensor that is plugged in; a file in its place is not there."""
        if r.file_path:
            raise DaqFailure(NO_TEDS_FILE)
        self._teds_read.pop(r.physical_channel, None)
        self._teds_read[r.physical_channel] = self._plugged_in(r.physical_channel)

    def do_GetDeviceAttributeUInt32(self, r: Any) -> dict[str, Any]:
        self._check_device(r.device_name)
        return {"value": _known({0x632: 0x5AFE}, r.attribute_raw)}

    def do_GetErrorString(self, r: Any) -> dict[str, Any]:
        return {"error_string": MESSAGES.get(r.error_code, "Unknown error.")}

    def do_ResetDevice(self, r: Any) -> None:
        """Every task of the device is aborted, whoever started it, and the output is zero."""
        self._check_device(r.device_name)
        for task in self._tasks.values():
            task.running = task.reserved = False
            if isinstance(task, AnalogOutput | DigitalInput):
                task.failure = RESET
        self.device.input = self.device.generator = None
        self.device.output = 0.0

    # -- tasks

    def do_CreateTask(self, r: Any) -> dict[str, Any]:
        return self._new(Task(self.device), r.session_name)

    def do_ClearTask(self, r: Any) -> None:
        self._stop(self._tasks.pop(r.task.name, None))

    def do_StartTask(self, r: Any) -> None:
        task = self._find(r.task)
        if not task.reserved:
            ni_checks.reserve(self.device, task, self._tasks.values())
        if isinstance(task, AnalogInput) and task.source:  # its clock comes from another task
            task.rewind()
            self.device.followers.append(task)
        elif isinstance(task, AnalogInput):
            output = self.device.generator
            ready = output is not None and output.running
            over = max(1, round(output.rate / task.rate)) if ready and output is not None else 1
            task.rewind()
            self.device.begin(task, task.rate, over)
        elif isinstance(task, AnalogOutput):
            if self.device.expired:
                raise DaqFailure(EXPIRED)
            if task.rate and not task.single:  # else it goes where each value sends it
                self.device.generator = task
                task.waiting = bool(task.trigger)  # the trigger of an input that runs already has passed
        elif isinstance(task, Watchdog):
            self.device.watchdog_until = time.monotonic() + task.timeout
        task.running = True

    def do_TaskControl(self, r: Any) -> None:
        task = self._find(r.task)
        if r.action_raw == _VERIFY:
            ni_checks.verify(self.device, task)
        elif r.action_raw in (_COMMIT, _RESERVE):
            ni_checks.reserve(self.device, task, self._tasks.values())
        elif r.action_raw == _UNRESERVE:
            self._stop(task)
            task.reserved = False
        else:
            raise DaqFailure(UNSUPPORTED)

    def do_StopTask(self, r: Any) -> None:
        self._stop(self._find(r.task))

    def do_GetTaskAttributeUInt32(self, r: Any) -> dict[str, Any]:
        task = self._find(r.task)
        channels = len(task.channels) if isinstance(task, AnalogInput) else 1
        return {"value": _known({0x2181: channels}, r.attribute_raw)}

    def do_GetTaskAttributeString(self, r: Any) -> dict[str, Any]:
        task = self._find(r.task)
        names = ", ".join(c.name for c in task.channels) if isinstance(task, AnalogInput) else "ao0"
        return {
            "value": _known(
                {0x1273: names, 0x1276: r.task.name, 0x230E: self._devices(task)}, r.attribute_raw
            )
        }

    def _devices(self, task: Task) -> str:
        """The devices of a task; those of modules with the chassis in front."""
        names = task.devices if isinstance(task, AnalogInput) else [self.device.rack.drive]
        return ", ".join(dict.fromkeys(owner for n in names for owner in (self.device.rack.clock_of(n), n)))

    # -- input channels

    def do_CreateAIVoltageChan(self, r: Any) -> None:
        self._add_input(r, "voltage")

    def do_CreateAIAccelChan(self, r: Any) -> None:
        self._add_input(r, "accel")

    def do_CreateAIForceIEPEChan(self, r: Any) -> None:
        self._add_input(r, "force")

    def do_CreateAIStrainGageChan(self, r: Any) -> None:
        self._add_input(r, "strain")

    def do_CreateTEDSAIAccelChan(self, r: Any) -> None:
        self._add_input(r, "accel", self._teds(r.physical_channel, "accel").sensitivity)

    def do_CreateTEDSAIForceIEPEChan(self, r: Any) -> None:
        self._add_input(r, "force", self._teds(r.physical_channel, "force").sensitivity)

    def _teds(self, physical: str, kind: str = "") -> Teds:
        """The data that were read of the sensor at an input, which is of the kind that is asked for."""
        teds = self._teds_read.get(physical)
        if teds is None:
            raise DaqFailure(NO_TEDS, details=f"Physical Channel Name: {physical}")
        if kind not in ("", teds.kind):
            raise DaqFailure(OTHER_SENSOR, details=f"Physical Channel Name: {physical}")
        return teds

    def _plugged_in(self, physical: str) -> Teds:
        terminal = self._terminal(physical, self.device.wiring)
        if not self.device.rack.devices[physical.partition("/")[0]].reads_teds:
            raise DaqFailure(TEDS_UNSUPPORTED)
        teds = self.device.wiring[terminal].teds
        if teds is None:
            raise DaqFailure(NO_TEDS, details=f"Physical Channel Name: {physical}")
        return teds

    def _add_input(self, r: Any, kind: str, sensitivity: float | None = None) -> None:
        terminal = self._terminal(r.physical_channel, self.device.wiring)
        task = self._find(r.task)
        if not isinstance(task, AnalogInput):
            task = AnalogInput(self.device)
            self._tasks[r.task.name] = task
        name = r.name_to_assign_to_channel or r.physical_channel
        if sensitivity is None and kind in ("accel", "force"):
            sensitivity = r.sensitivity
        owner = r.physical_channel.partition("/")[0]
        wire = self.device.wiring[terminal]
        task.channels.append(AiChannel(name, terminal, kind, r, wire, owner, sensitivity=sensitivity or 0.0))

    def do_SetChanAttributeInt32(self, r: Any) -> None:
        _known({0x64: 0, 0x17F4: 0, 0x1097: 0}, r.attribute_raw)  # coupling, excitation, terminals
        self._find(r.task).attributes[r.attribute_raw] = r.value_raw

    def do_GetChanAttributeInt32(self, r: Any) -> dict[str, Any]:
        task = self._find(r.task)
        # digital input, analogue output, analogue input
        kind = 10151 if isinstance(task, DigitalInput) else 10102 if isinstance(task, AnalogOutput) else 10100
        units = {0x219C: 12509, 0x2F82: 15891}  # of sensitivities: mV/g, mV/N
        known = {0x187F: kind, 0x1108: 10322, **units, **task.attributes}
        return {"value_raw": _known(known, r.attribute_raw)}

    def do_GetChanAttributeDouble(self, r: Any) -> dict[str, Any]:
        if r.attribute_raw in (0x692, 0x2F81):
            (channel,) = self._named(r)
            return {"value": channel.sensitivity}
        (channel,) = self._bridges(r)
        return {"value": _known({0x17ED: channel.initial, 0x193F: channel.gain}, r.attribute_raw)}

    def do_SetChanAttributeDouble(self, r: Any) -> None:
        if r.attribute_raw in (0x17DD, 0x17DE):  # maximum, minimum
            (channel,) = self._named(r)
            channel.ends[1 if r.attribute_raw == 0x17DD else 0] = r.value
            return
        (channel,) = self._bridges(r)
        setattr(channel, _known({0x17ED: "initial", 0x193F: "gain"}, r.attribute_raw), r.value)

    def do_PerformBridgeOffsetNullingCalEx(self, r: Any) -> None:
        for channel in self._bridges(r):
            channel.initial = self._rest_volts(channel) * channel.wire.lead

    def do_PerformStrainShuntCalEx(self, r: Any) -> None:
        for channel in self._bridges(r):
            channel.gain = 1 / channel.wire.lead

    def _named(self, r: Any) -> list[AiChannel]:
        task = self._find(r.task)
        assert isinstance(task, AnalogInput)
        return [c for c in task.channels if c.name == r.channel or not r.channel]

    def _bridges(self, r: Any) -> list[AiChannel]:
        found = self._named(r)
        if not found or any(c.kind != "strain" for c in found):
            raise DaqFailure(UNSUPPORTED)
        return found

    def _rest_volts(self, channel: AiChannel) -> float:
        plant = self.device.make_plant(1000.0, 1)
        rest = plant.advance(np.zeros(2 * plant.steps))[plant.row(channel.wire.quantity), 0]
        return float(channel.wire.sensitivity * rest + channel.wire.offset)

    # -- timing, triggers, buffers

    def do_CfgSampClkTiming(self, r: Any) -> None:
        task = self._find(r.task)
        task.source = r.source
        if isinstance(task, AnalogInput):
            product = self.device.rack.devices[task.devices[0]]
            lowest, highest = product.rates
            task.rate = product.clock(r.rate) if lowest <= r.rate <= highest else r.rate
            task.size = max(int(r.samps_per_chan), 10)
        elif isinstance(task, AnalogOutput):
            task.size = int(r.samps_per_chan)
            task.rate = self.device.rack.devices[self.device.rack.drive].clock(r.rate)
            task.finite = r.sample_mode_raw == _FINITE
            task.single = r.sample_mode_raw == _SINGLE_POINT
            if task.single and not self.device.rack.devices[self.device.rack.drive].single_points:
                raise DaqFailure(BAD_VALUE, details="Property: DAQmx_SampQuant_SampMode")
            running = [t for t in self._tasks.values() if isinstance(t, AnalogInput) and t.rate]
            if r.source.endswith("/SampleClock") and running:
                task.rate = running[-1].rate
            elif running:  # an exact multiple comes from the same timebase
                task.rate = running[-1].rate * round(r.rate / running[-1].rate)

    def do_GetTimingAttributeDouble(self, r: Any) -> dict[str, Any]:
        return {"value": _known({0x1344: self._find(r.task).rate}, r.attribute_raw)}

    def do_GetTimingAttributeString(self, r: Any) -> dict[str, Any]:
        return {"value": self._timing_terminal(r, {0x2F1B: "SampleClock"})}

    def do_GetTrigAttributeString(self, r: Any) -> dict[str, Any]:
        return {"value": self._timing_terminal(r, {0x2F1E: "StartTrigger"})}

    def _timing_terminal(self, r: Any, names: Mapping[int, str]) -> str:
        """A terminal of an input task; which of a chassis it is, is decided when the task is reserved."""
        task, name = self._find(r.task), _known(names, r.attribute_raw)
        if not isinstance(task, AnalogInput):
            raise DaqFailure(UNSUPPORTED)
        if not task.reserved and not task.running:
            raise DaqFailure(NOT_RESERVED)
        return self.device.rack.terminal(task.devices[0], name)

    def do_GetTimingAttributeInt32(self, r: Any) -> dict[str, Any]:
        return {
            "value_raw": _known({0x1347: 10388, 0x1300: 10123}, r.attribute_raw)
        }  # sample clock, continuous

    def do_GetTimingAttributeUInt64(self, r: Any) -> dict[str, Any]:
        return {"value": _known({0x1310: getattr(self._find(r.task), "size", 0)}, r.attribute_raw)}

    def do_CfgDigEdgeStartTrig(self, r: Any) -> None:
        task = self._find(r.task)
        if isinstance(task, AnalogOutput):
            task.trigger = r.trigger_source

    def do_DisableStartTrig(self, r: Any) -> None:
        task = self._find(r.task)
        if isinstance(task, AnalogOutput):
            task.trigger = ""

    def do_SetBufferAttributeUInt32(self, r: Any) -> None:
        _known({0x186D: 0, 0x186C: 0}, r.attribute_raw)
        task = self._find(r.task)
        if isinstance(task, AnalogInput | AnalogOutput):
            task.size = int(r.value)

    # -- reading

    def do_SetReadAttributeInt32(self, r: Any) -> None:
        task = self._find(r.task)
        assert isinstance(task, AnalogInput)
        value = r.value_raw
        if r.attribute_raw == 0x190A:
            task.relative_to = value
        elif r.attribute_raw == 0x190B:
            task.offset = value
        else:
            _known({0x1211: 0}, r.attribute_raw)
            task.attributes[r.attribute_raw] = value

    def do_GetReadAttributeUInt64(self, r: Any) -> dict[str, Any]:
        task = self._find(r.task)
        assert isinstance(task, AnalogInput)
        self.device.update()
        return {"value": _known({0x192A: task.acquired, 0x1221: task.position}, r.attribute_raw)}

    def do_GetReadAttributeUInt32(self, r: Any) -> dict[str, Any]:
        task = self._find(r.task)
        if isinstance(task, DigitalInput):
            return {"value": _known({0x217B: 1, 0x217C: 1}, r.attribute_raw)}
        assert isinstance(task, AnalogInput)
        return {
            "value": _known(
                {0x217B: len(task.channels), 0x1223: task.acquired - task.position}, r.attribute_raw
            )
        }

    def do_GetReadAttributeBool(self, r: Any) -> dict[str, Any]:
        return {"value": _known({0x1215: False}, r.attribute_raw)}

    def do_GetReadAttributeString(self, r: Any) -> dict[str, Any]:
        task = self._find(r.task)
        known = {0x1823: task.name} if isinstance(task, DigitalInput) else {}
        return {"value": _known(known, r.attribute_raw)}

    def do_ReadAnalogF64(self, r: Any) -> dict[str, Any]:
        task = self._find(r.task)
        if not isinstance(task, AnalogInput) or not task.running:
            raise DaqFailure(INVALID_TASK)
        start = task.position if task.relative_to == CURRENT_POSITION else 0
        start += task.offset
        count = r.num_samps_per_chan if r.num_samps_per_chan >= 0 else max(0, task.acquired - start)
        deadline = time.monotonic() + r.timeout
        while task.acquired < start + count and task.running and not self.device.unplugged:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self.device.lock.wait(min(left, 0.05))
        if self.device.unplugged:
            raise DaqFailure(NO_DEVICE, read=0)
        if start < task.acquired - task.size or start < task.acquired - task.held:
            raise DaqFailure(OVERRUN, read=0)
        got = max(0, min(count, task.acquired - start))
        data = task.take(start, got) if got else np.empty((len(task.channels), 0))
        task.position = start + got
        if r.fill_mode_raw == 1:  # scan by scan
            data = data.T
        return {
            "status": 0 if got == count else TIMED_OUT,
            "read_array": data.ravel(),
            "samps_per_chan_read": got,
        }

    # -- the digital line

    def do_CreateDIChan(self, r: Any) -> None:
        self._terminal(r.lines, {"port0/line0": None})
        self._tasks[r.task.name] = DigitalInput(self.device, name=r.name_to_assign_to_lines or r.lines)

    def do_ReadDigitalLines(self, r: Any) -> dict[str, Any]:
        task = self._find(r.task)
        if not isinstance(task, DigitalInput):
            raise DaqFailure(INVALID_TASK)
        if task.failure:
            raise DaqFailure(task.failure, read=0)
        return {"read_array": bytes([self.device.line]), "samps_per_chan_read": 1, "num_bytes_per_samp": 1}

    # -- writing

    def do_CreateAOVoltageChan(self, r: Any) -> None:
        terminal = self._terminal(r.physical_channel, {"ao0": None, f"{self.device.rack.drive}/ao0": None})
        self._tasks[r.task.name] = AnalogOutput(self.device, terminal=terminal)

    def do_SetWriteAttributeInt32(self, r: Any) -> None:
        task = self._find(r.task)
        assert isinstance(task, AnalogOutput)
        if r.attribute_raw == 0x190D:
            task.offset = r.value_raw
        else:
            _known({0x1453: 0}, r.attribute_raw)
            task.regenerate = r.value_raw != _DONT_REGENERATE

    def do_GetWriteAttributeUInt32(self, r: Any) -> dict[str, Any]:
        task = self._find(r.task)
        assert isinstance(task, AnalogOutput)
        room = min(task.size, task.size + self.device.fifo - task.queued)
        return {"value": _known({0x217E: 1, 0x1460: room}, r.attribute_raw)}

    def do_GetWriteAttributeUInt64(self, r: Any) -> dict[str, Any]:
        task = self._find(r.task)
        assert isinstance(task, AnalogOutput)
        return {"value": _known({0x1458: task.written, 0x192B: task.played}, r.attribute_raw)}

    def do_GetWriteAttributeBool(self, r: Any) -> dict[str, Any]:
        raise DaqFailure(UNSUPPORTED)

    def do_WriteAnalogScalarF64(self, r: Any) -> None:
        self._set_output(self._find(r.task), np.array([r.value]))

    def do_WriteAnalogF64(self, r: Any) -> dict[str, Any]:
        task = self._find(r.task)
        assert isinstance(task, AnalogOutput)
        samples = np.array(r.write_array, dtype=np.float64)
        if not task.rate:
            self._set_output(task, samples)
            return {"samps_per_chan_written": len(samples)}
        self.device.update()
        if task.stopped:
            task.written, task.stopped = 0, False
        samples = task.overwrite(samples, self.device.fifo)
        deadline = time.monotonic() + r.timeout
        while task.queued + len(samples) > task.size + self.device.fifo and not task.failure:
            left = deadline - time.monotonic()
            if left <= 0 or self.device.unplugged:
                raise DaqFailure(NO_ROOM, written=0)
            self.device.lock.wait(min(left, 0.05))
        if task.failure:
            raise DaqFailure(task.failure, written=0)
        task.queue.append(samples)
        task.queued += len(samples)
        task.written += len(samples)
        return {"samps_per_chan_written": r.num_samps_per_chan}

    def _set_output(self, task: Task, samples: NDArray[np.float64]) -> None:
        if isinstance(task, AnalogOutput) and task.failure:
            raise DaqFailure(task.failure)
        ni_checks.reserve(self.device, task, self._tasks.values())
        if self.device.expired:
            raise DaqFailure(EXPIRED)
        self.device.set_output(float(samples[-1]))

    # -- the watchdog

    def do_CreateWatchdogTimerTaskEx(self, r: Any) -> dict[str, Any]:
        if not self.device.has_watchdog:
            raise DaqFailure(UNSUPPORTED)
        self._check_device(r.device_name)
        return self._new(Watchdog(self.device, timeout=r.timeout), r.session_name)

    def do_CfgWatchdogAOExpirStates(self, r: Any) -> None:
        if list(r.expir_state_array) != [0.0]:
            raise DaqFailure(UNSUPPORTED)

    def do_ControlWatchdogTask(self, r: Any) -> None:
        task = self._find(r.task)
        assert isinstance(task, Watchdog)
        if r.action_raw == _RESET_TIMER and not self.device.expired:
            self.device.watchdog_until = time.monotonic() + task.timeout
        elif r.action_raw == _CLEAR_EXPIRATION:
            self.device.expired = False

    def do_GetWatchdogAttributeBool(self, r: Any) -> dict[str, Any]:
        return {"value": _known({0x21A8: self.device.expired}, r.attribute_raw)}

    # -- helpers

    def _new(self, task: Task, wanted: str) -> dict[str, Any]:
        from session_pb2 import Session

        self._count += 1
        name = wanted or f"task{self._count}"
        self._tasks[name] = task
        return {"task": Session(name=name), "new_session_initialized": True}

    def _find(self, session: Any) -> Task:
        if session.name not in self._tasks:
            raise DaqFailure(INVALID_TASK)
        return self._tasks[session.name]

    def _stop(self, task: Task | None) -> None:
        if task is None:
            return
        if isinstance(task, AnalogInput) and self.device.input is task:
            self.device.end()
        if isinstance(task, AnalogInput) and task in self.device.followers:
            self.device.followers.remove(task)
        if isinstance(task, AnalogOutput) and self.device.generator is task:
            self.device.update()
            self.device.generator = None
            task.discard()
        if isinstance(task, Watchdog):
            self.device.watchdog_until = None
        task.running = False

    def _check_device(self, name: str) -> None:
        if name not in self.device.rack.devices:
            raise DaqFailure(NO_DEVICE)

    def _terminal(self, physical: str, known: Mapping[str, Any]) -> str:
        """The name by which a physical channel is known here: without its device if that is the first."""
        device, _, terminal = physical.partition("/")
        self._check_device(device)
        name = terminal if device == self.device.name and terminal in known else physical
        if name not in known:
            raise DaqFailure(NO_CHANNEL)
        return name


def _known(values: Mapping[int, Any], attribute: int) -> Any:
    """An attribute's value; one that the device does not have must be refused, never answered with 0."""
    if attribute not in values:
        raise DaqFailure(UNSUPPORTED)
    return values[attribute]


def _trailers(failure: DaqFailure) -> tuple[tuple[str, str], ...]:
    found = [("ni-error", str(failure.code))]
    if failure.read is not None:
        found.append(("ni-samps-per-chan-read", str(failure.read)))
    if failure.written is not None:
        found.append(("ni-samps-per-chan-written", str(failure.written)))
    return tuple(found)


class InProcessError(grpc.RpcError):
    """What a failed call raises when there is no network between."""

    def __init__(
        self, code: grpc.StatusCode, details: str, trailers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(details)
        self._code, self._details = code, details
        self._trailers = [SimpleNamespace(key=k, value=v) for k, v in trailers]

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> Any:
        return self._trailers


class InProcessChannel:
    """Stands where the package wants a gRPC channel; calls go straight to the server, arrays uncopied."""

    def __init__(self, server: DeviceServer) -> None:
        self._server = server

    def unary_unary(self, path: str, *_: Any, **__: Any) -> Callable[..., SimpleNamespace]:
        name = path.rsplit("/", 1)[1]

        def call(request: Any, metadata: Any = None, timeout: Any = None) -> SimpleNamespace:
            try:
                return SimpleNamespace(**self._server.call(name, request))
            except DaqFailure as failure:
                raise InProcessError(grpc.StatusCode.UNKNOWN, str(failure), _trailers(failure)) from None
            except LookupError:
                raise InProcessError(grpc.StatusCode.UNIMPLEMENTED, name) from None

        return call

    def unary_stream(self, path: str, *_: Any, **__: Any) -> Callable[..., Any]:
        def call(*_: Any, **__: Any) -> Any:
            raise InProcessError(grpc.StatusCode.UNIMPLEMENTED, path)

        return call


class _Servicer:
    """Every call of the interface, for gRPC's registration."""

    def __init__(self, server: DeviceServer) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Callable[..., Any]:
        from nidaqmx._stubs import nidaqmx_pb2

        def call(request: Any, context: grpc.ServicerContext) -> Any:
            try:
                found = self._server.call(name, request)
            except DaqFailure as failure:
                context.set_trailing_metadata(_trailers(failure))
                context.abort(grpc.StatusCode.UNKNOWN, str(failure))
            except LookupError:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, name)
            if isinstance(found.get("read_array"), np.ndarray):
                found["read_array"] = found["read_array"].tolist()
            return getattr(nidaqmx_pb2, f"{name}Response")(**found)

        return call


def serve(device: SimulatedDevice, port: int = 0) -> tuple[Any, int, DeviceServer]:
    """Serve the device on the loopback; the gRPC server (call ``stop`` on it), its port, and the calls."""
    from concurrent.futures import ThreadPoolExecutor

    from nidaqmx._stubs import nidaqmx_pb2_grpc

    calls = DeviceServer(device)
    options = [
        ("grpc.max_receive_message_length", MEGABYTES),
        ("grpc.max_send_message_length", MEGABYTES),
        ("grpc.so_reuseport", 0),
    ]
    server = grpc.server(ThreadPoolExecutor(8), options=options)
    nidaqmx_pb2_grpc.add_NiDAQmxServicer_to_server(_Servicer(calls), server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, bound, calls


def device_of(profile: Any, trace: Path | None = None, **options: Any) -> SimulatedDevice:
    """A device wired to a virtual rig's specimen: channel i of the profile on ai<i>, the drive on ao0."""
    from dataclasses import replace

    from drivers.virtual.parts import open_plant

    table = profile.instruments["source"]
    wiring = {
        f"ai{i}": Wire(
            table["wiring"][c.name], c.sensitivity, dict(table.get("offsets", {})).get(c.name, 0.0)
        )
        for i, c in enumerate(profile.channels)
    }

    def make_plant(rate: float, oversampling: int) -> Plant:
        steps = max(1, round(float(table.get("steps_a_second", 3000)) / rate / oversampling)) * oversampling
        return open_plant(replace(profile, rate=rate), {**table, "steps_a_second": steps * rate})

    return SimulatedDevice(make_plant, wiring, trace=trace, **options)


def main() -> None:
    import argparse
    import sys

    from drivers.rig.profile import load_rig

    parser = argparse.ArgumentParser(description="Serve a virtual rig as an NI device on the loopback.")
    parser.add_argument("rig", nargs="?", default="two_well_beam")
    parser.add_argument("--port", type=int, default=31763)
    parser.add_argument("--trace", type=Path, help="write the output's voltage to this file")
    parser.add_argument("--switch", type=Path, help="port0/line0 is high until there is such a file")
    args = parser.parse_args()
    device = device_of(load_rig(args.rig), args.trace, switch=args.switch)
    server, port, _ = serve(device, args.port)  # kept: a server that nobody holds stops serving
    sys.stdout.write(f"Dev1 on 127.0.0.1:{port}; Ctrl-C ends.\n")
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        server.wait_for_termination()
    server.stop(0)
    device.close()


if __name__ == "__main__":
    main()
