"""What a sensor tells of itself: its transducer electronic data sheet (IEEE 1451.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from drivers.base.protocols import InstrumentError

# Drivers that can ask: module; its function ``sensor_data`` gets the input and the source's table.
ASKED = {"nidaqmx": "drivers.instruments.nidaq"}


@dataclass(frozen=True)
class SensorData:
    """The kind of a sensor as a profile names it, its sensitivity in V per unit, and who made it."""

    kind: str
    unit: str
    sensitivity: float
    maker: int
    model: int
    serial: int

    @property
    def name(self) -> str:
        return f"TEDS {self.maker}-{self.model}, serial number {self.serial}"

    @property
    def words(self) -> str:
        """All that it says, for a person."""
        what = "accelerometer" if self.kind == "iepe" else "force sensor"
        return (
            f"{what} of maker {self.maker}, model {self.model}, serial number {self.serial}, "
            f"{1e3 * self.sensitivity:.4g} mV per {self.unit}"
        )


def sensor_data(kind: str, terminal: str, source: Mapping[str, Any]) -> SensorData:
    """What the sensor at an input says; InstrumentError where it, or the instrument, says nothing.

    ``source``: the table of the instrument in a profile, as far as it is known.
    """
    if kind not in ASKED:
        raise InstrumentError("This instrument does not read what sensors tell of themselves (TEDS).")
    found: SensorData = import_module(ASKED[kind]).sensor_data(terminal, source)
    return found
