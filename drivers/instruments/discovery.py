"""What is connected: every driver is asked, ours and those of other packages."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from analysis import ShakedownError
from drivers.rig import registry

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Device:
    """Something that a rig profile can name."""

    kind: str  # the driver that found it: nidaqmx, serial, virtual ...
    address: str
    description: str


def find_devices() -> tuple[list[Device], list[str]]:
    """The devices found, each once, and sentences about what could not be looked for."""
    devices: dict[tuple[str, str], Device] = {}
    notes: list[str] = []
    for kind in registry.names("devices"):
        try:
            found, note = registry.driver("devices", kind)()
            for address, description in found:
                devices.setdefault((kind, address), Device(kind, str(address), str(description)))
        except ShakedownError as error:
            note = str(error)
        except Exception as error:  # a driver that fails must not hide what the others found
            _log.exception("%s could not look for devices", kind)
            note = f"{kind} could not look for devices ({type(error).__name__}: {error})."
        notes += [note] if note else []
    return list(devices.values()), notes
