"""What is connected: NI devices, serial ports, and the rigs that need neither."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """Something that a rig profile can name."""

    kind: str  # nidaqmx, serial, virtual
    address: str
    description: str


def find_devices() -> tuple[list[Device], list[str]]:
    """The devices found, and sentences about what could not be looked for."""
    devices, notes = [], []
    for look in (_ni_devices, _serial_ports, _virtual_rigs):
        found, note = look()
        devices += found
        notes += [note] if note else []
    return devices, notes


def _ni_devices() -> tuple[list[Device], str]:
    from drivers.instruments.nidaq import list_devices

    found, note = list_devices()
    return [Device("nidaqmx", name, text) for name, text in found], note


def _serial_ports() -> tuple[list[Device], str]:
    from serial.tools.list_ports import comports

    ports = [Device("serial", p.device, p.description or "serial port") for p in comports()]
    return ports, "" if ports else "No serial port was found."


def _virtual_rigs() -> tuple[list[Device], str]:
    from drivers.rig.profile import load_rig, rig_files

    profiles = [load_rig(name) for name in rig_files()]
    return [Device("virtual", p.key, p.name) for p in profiles if p.virtual], ""
