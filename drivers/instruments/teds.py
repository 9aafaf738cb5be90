"""What a sensor tells of itself: its transducer electronic data sheet (IEEE 1451.4).

Drivers read maker, model, serial number and sensitivity. When the sensor was calibrated stands in its memory
only, which is read here for accelerometers (template 25 of the standard, one sensitivity): 64 bits of maker,
model and number, then fields of fixed length, each with its lowest bit first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from importlib import import_module
from typing import Any

from drivers.base.protocols import InstrumentError

# Drivers that can ask: module; its function ``sensor_data`` gets the input and the source's table.
ASKED = {"nidaqmx": "drivers.instruments.nidaq"}

FIRST_DAY = date(1998, 1, 1)  # of the standard's days
LARGEST_DAYS = 0xFFFF  # memory that was never written
ACCELEROMETER = 25  # the template
TRANSFER_FUNCTION = 38  # bits that follow where the sensor has one
ROUNDING = 1e-3  # by which the sensitivity in the memory may differ from the driver's; its step is 3e-4


@dataclass(frozen=True)
class SensorData:
    """The kind of a sensor as a profile names it, its sensitivity in V per unit, who made it, calibration.

    ``calibrated``: None where the sensor does not say it; ``valid_days``: 0 where it does not say how long.
    """

    kind: str
    unit: str
    sensitivity: float
    maker: int
    model: int
    serial: int
    calibrated: date | None = None
    valid_days: int = 0

    @property
    def name(self) -> str:
        return f"TEDS {self.maker}-{self.model}, serial number {self.serial}"

    @property
    def words(self) -> str:
        """All that it says, for a person."""
        what = "accelerometer" if self.kind == "iepe" else "force sensor"
        when = "" if self.calibrated is None else f", calibrated on {self.calibrated.isoformat()}"
        return (
            f"{what} of maker {self.maker}, model {self.model}, serial number {self.serial}, "
            f"{1e3 * self.sensitivity:.4g} mV per {self.unit}{when}"
        )


def sensor_data(kind: str, terminal: str, source: Mapping[str, Any]) -> SensorData:
    """What the sensor at an input says; InstrumentError where it, or the instrument, says nothing.

    ``source``: the table of the instrument in a profile, as far as it is known.
    """
    if kind not in ASKED:
        raise InstrumentError("This instrument does not read what sensors tell of themselves (TEDS).")
    found: SensorData = import_module(ASKED[kind]).sensor_data(terminal, source)
    return found


def with_calibration(told: SensorData, memory: Sequence[int], today: date) -> SensorData:
    """What a sensor said, with the day of its calibration if its memory (bytes) tells it.

    A memory whose maker, number or sensitivity is not what the driver says is laid out otherwise: then
    nothing is taken from it. Nor is a day to come, or one that was never written.
    """
    bits = int.from_bytes(bytes(memory), "little")

    def field(start: int, length: int) -> int:
        return bits >> start & (1 << length) - 1

    if (field(0, 14), field(14, 15), field(40, 24)) != (told.maker, told.model, told.serial):
        return told
    # a template of the standard, an accelerometer, one sensitivity
    if (field(64, 2), field(66, 8), field(74, 1), field(75, 1)) != (0, ACCELEROMETER, 0, 0):
        return told
    if abs(5e-7 * 1.0003 ** field(76, 16) / told.sensitivity - 1) > ROUNDING:  # in V per m/s²
        return told
    start = 123 + TRANSFER_FUNCTION * field(109, 1)
    days = field(start, 16)
    found = FIRST_DAY + timedelta(days)
    if 8 * len(memory) < start + 43 or days in (0, LARGEST_DAYS) or found > today:
        return told
    return replace(told, calibrated=found, valid_days=field(start + 31, 12))
