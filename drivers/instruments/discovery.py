"""What is connected: every driver is asked, ours and those of other packages."""

from __future__ import annotations

import logging
import queue
import threading
from dataclasses import dataclass
from importlib import import_module

from analysis import ShakedownError
from drivers.base.foreign_error import in_words
from drivers.base.protocols import InstrumentError
from drivers.rig import registry

PATIENCE = 15.0  # s for one driver to look for its devices

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Device:
    """Something that a rig profile can name."""

    kind: str  # the driver that found it: nidaqmx, serial, virtual ...
    address: str
    description: str


@dataclass(frozen=True)
class Terminals:
    """Where something can be connected to an instrument, by the names that its wiring takes."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


# Drivers that can ask an instrument for its terminals: module; its function ``terminals`` gets the address.
ASKED = {
    "nidaqmx": "drivers.instruments.nidaq",
    "opendaq": "drivers.instruments.opendaq",
    "sound": "drivers.instruments.sound",
}


def terminals_of(device: Device) -> Terminals:
    """Inputs and outputs as the instrument itself tells them; InstrumentError where it does not."""
    inputs, outputs = import_module(ASKED[device.kind]).terminals(device.address)
    if not inputs:
        raise InstrumentError(f"{device.address} has no input.")
    return Terminals(tuple(inputs), tuple(outputs))


def find_devices() -> tuple[list[Device], list[str]]:
    """The devices found, each once, and sentences about what could not be looked for."""
    devices: dict[tuple[str, str], Device] = {}
    notes: list[str] = []
    for kind in registry.names("devices"):
        answer: queue.SimpleQueue[tuple[list[Device], str]] = queue.SimpleQueue()
        asking = threading.Thread(target=lambda k, a: a.put(_ask(k)), args=(kind, answer), daemon=True)
        asking.start()
        try:
            found, note = answer.get(timeout=PATIENCE)
        except queue.Empty:  # a driver that hangs must not keep the answers of the others
            found, note = [], f"{kind} did not answer within {PATIENCE:g} s when it looked for devices."
        for device in found:
            devices.setdefault((kind, device.address), device)
        notes += [note] if note else []
    return list(devices.values()), notes + registry.names_taken()


def _ask(kind: str) -> tuple[list[Device], str]:
    """What one driver finds, and its note."""
    try:
        found, note = registry.driver("devices", kind)()
        devices = [Device(kind, _line(address), _line(description)) for address, description in found]
        return devices, _line(note or "")
    except ShakedownError as error:
        return [], str(error)
    except BaseException as error:  # a driver that fails must not hide what the others found
        _log.exception("%s could not look for devices", kind)
        return [], f"{kind} could not look for devices ({in_words(error)})."


def _line(words: object) -> str:
    """What a driver tells, as one line."""
    return " ".join(str(words).split())
