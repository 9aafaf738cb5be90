"""What NI-DAQmx refuses when a task is verified, reserved or started: in the order in which it does so."""

from __future__ import annotations

from collections.abc import Iterable

from drivers.virtual.simulated_device import (
    BAD_VALUE,
    BUSY,
    MULTI_DEVICE,
    NETWORK_TAKEN,
    NETWORK_UNRESERVED,
    NO_LINES,
    NO_TERMINAL,
    AnalogInput,
    AnalogOutput,
    DaqFailure,
    SimulatedDevice,
    Task,
)


def verify(device: SimulatedDevice, task: Task) -> None:
    """Check a task's settings against what its products can do."""
    if device.rack.network and device.network_holder != "us":
        raise DaqFailure(NETWORK_TAKEN if device.network_holder else NETWORK_UNRESERVED)
    if isinstance(task, AnalogInput):
        _verify_devices(device, task)
        _verify_rate(device, task)
        _verify_currents(device, task)
        _verify_route(device, task.source, task.devices[0])
    elif isinstance(task, AnalogOutput):
        _verify_route(device, task.source, device.rack.drive)
        _verify_route(device, task.trigger, device.rack.drive)


def reserve(device: SimulatedDevice, task: Task, others: Iterable[Task]) -> None:
    """Take the hardware of a task; each device has one timing engine for inputs, each output one task."""
    verify(device, task)
    if isinstance(task, AnalogOutput) and any(
        isinstance(other, AnalogOutput) and other is not task and other.running for other in others
    ):
        raise DaqFailure(BUSY)
    if isinstance(task, AnalogInput):
        held = {
            name
            for other in others
            if isinstance(other, AnalogInput) and other is not task and (other.reserved or other.running)
            for name in other.devices
        }
        if held.intersection(task.devices):
            raise DaqFailure(BUSY)
    task.reserved = True


def _verify_devices(device: SimulatedDevice, task: AnalogInput) -> None:
    rack = device.rack
    clocks = {rack.clock_of(name) for name in task.devices}
    if len(clocks) > 1 and not all(rack.devices[name].shares_a_task for name in task.devices):
        raise DaqFailure(MULTI_DEVICE)


def _verify_rate(device: SimulatedDevice, task: AnalogInput) -> None:
    for name in task.devices if task.rate and not task.source else ():
        lowest, highest = device.rack.devices[name].rates
        if not lowest <= task.rate <= highest:
            words, end = ("Maximum", highest) if task.rate > highest else ("Minimum", lowest)
            raise DaqFailure(
                BAD_VALUE,
                details=f"Property: DAQmx_SampClk_Rate\nRequested Value: {task.rate:e}\n"
                f"{words} Value: {end:e}",
            )


def _verify_currents(device: SimulatedDevice, task: AnalogInput) -> None:
    for channel in task.channels:
        if channel.kind not in ("accel", "force"):
            continue
        offered, asked = device.rack.devices[channel.device].currents, channel.settings.current_excit_val
        if asked not in offered:
            possible = ", ".join(f"{c:e}" for c in offered)
            raise DaqFailure(
                BAD_VALUE,
                details=f"Property: DAQmx_AI_Excit_Val\nRequested Value: {asked:e}\n"
                f"Possible Values: {possible}\nChannel Name: {channel.name}",
            )


def _verify_route(device: SimulatedDevice, terminal: str, to: str) -> None:
    """A clock or trigger must exist and reach the device that is to follow it."""
    if not terminal:
        return
    rack = device.rack
    owner, _, name = terminal.lstrip("/").partition("/")
    known = owner in rack.devices and terminal == rack.terminal(owner, name.rpartition("/")[2])
    if not known or (rack.chassis and owner != rack.chassis and rack.clock_of(owner) == rack.chassis):
        raise DaqFailure(NO_TERMINAL, details=f"Device: {owner}\nSource Terminal: {terminal}")
    if owner != rack.clock_of(to) and not rack.reach(owner, to):
        raise DaqFailure(NO_LINES, details=f"Source Device: {owner}\nDestination Device: {to}")
