"""What some NI products can do, for the simulated ones: clocks, supply currents, TEDS, one task or several.

Figures from the makers' data sheets; names and numbers as the driver gives them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date

X_SERIES, M_SERIES, USB, C_MODULE, CHASSIS = 15858, 14643, 14646, 14659, 14658  # product categories


@dataclass(frozen=True)
class Product:
    """One model."""

    name: str
    category: int = X_SERIES
    timebase: float = 100e6  # Hz: sample clocks are whole divisions of it
    divisors: tuple[int, int] = (1, 1 << 32)  # the smallest and the largest
    upwards: bool = False  # the next higher clock is taken, as delta-sigma converters do, and not the nearest
    currents: tuple[float, ...] = (0.0, 0.002, 0.004, 0.01)  # A, of the supply of IEPE sensors
    reads_teds: bool = True
    shares_a_task: bool = True  # its channels may be in a task with those of other devices
    lines: bool = True  # clocks and triggers can be routed to and from it
    single_points: bool = False  # its output takes single values on a clock

    @property
    def rates(self) -> tuple[float, float]:
        """The lowest and the highest rate, in Hz."""
        return self.timebase / self.divisors[1], self.timebase / self.divisors[0]

    def clock(self, rate: float) -> float:
        """The clock that the product makes of a rate within its reach."""
        exact = self.timebase / rate
        divisor = math.floor(exact + 1e-9) if self.upwards else round(exact)
        return self.timebase / max(divisor, self.divisors[0])


PXIE_6363 = Product("PXIe-6363 (simulated)", single_points=True)
PXI_6251 = Product(
    "PXI-6251 (simulated)", M_SERIES, 80e6, shares_a_task=False, reads_teds=False, single_points=True
)
USB_6211 = Product("USB-6211 (simulated)", USB, 80e6, shares_a_task=False, reads_teds=False, lines=False)
CDAQ_9178 = Product("cDAQ-9178 (simulated)", CHASSIS)
NI_9234 = Product("NI 9234 (simulated)", C_MODULE, 51200.0, (1, 31), upwards=True, currents=(0.0, 0.002))
NI_9263 = Product("NI 9263 (simulated)", C_MODULE, 80e6, currents=(), reads_teds=False)


@dataclass(frozen=True)
class Teds:
    """The data that a sensor carries about itself."""

    sensitivity: float  # mV per g, or per N
    kind: str = "accel"  # accel or force
    maker: int = 16
    model: int = 352
    serial: int = 4711
    calibrated: date | None = None
    valid_days: int = 365

    def memory(self) -> bytes:
        """What is written in the sensor: template 25 of IEEE 1451.4, without the sensor's dynamics."""
        per_unit = self.sensitivity / 1000 / (9.80665 if self.kind == "accel" else 1.0)
        steps = round(math.log(per_unit / 5e-7) / math.log(1.0003))
        days = 0 if self.calibrated is None else (self.calibrated - date(1998, 1, 1)).days
        fields = (
            (self.maker, 14), (self.model, 15), (1, 5), (0, 6), (self.serial, 24), (0, 2), (25, 8),
            (int(self.kind == "force"), 1), (0, 1), (steps, 16),
            (0, 8 + 2 + 6 + 1 + 1 + 8 + 5),  # corner, direction, mass, sign, no dynamics, reference Hz, °C
            (days, 16), (0, 15), (self.valid_days, 12), (0, 11 + 3),
        )  # fmt: skip
        bits, place = 0, 0
        for value, length in fields:
            bits |= value << place
            place += length
        return bits.to_bytes(-(-place // 8), "little")


@dataclass(frozen=True)
class Rack:
    """Products by the names that the driver has for them; ``chassis``: the one that keeps time for modules.

    ``engine``: the part of it that does so for an input task, chosen when the task is reserved.
    """

    devices: dict[str, Product]
    chassis: str = ""
    engine: str = "ai"
    output: str = ""  # the device that has ao0; empty: the first
    network: bool = False  # the chassis is on the network and must be reserved for a computer

    @property
    def drive(self) -> str:
        """The device that has the output."""
        return self.output or next(iter(self.devices))

    def terminal(self, device: str, name: str) -> str:
        """A terminal of the input's timing, such as SampleClock."""
        engine = self.engine if self.chassis == self.clock_of(device) else "ai"
        return f"/{self.clock_of(device)}/{engine}/{name}"

    def clock_of(self, device: str) -> str:
        """The device in the names of the clocks that a device's tasks run on."""
        return self.chassis if self.devices[device].category == C_MODULE else device

    def reach(self, one: str, other: str) -> bool:
        """Whether a clock of one device can be led to another."""
        same = self.clock_of(one) == self.clock_of(other)
        return same or (self.devices[one].lines and self.devices[other].lines)


def compact_daq() -> Rack:
    """A chassis with two modules of IEPE inputs and one of outputs; its first timing engine is in use."""
    modules = {"cDAQ1Mod1": NI_9234, "cDAQ1Mod2": NI_9234, "cDAQ1Mod4": NI_9263}
    return Rack({"cDAQ1": CDAQ_9178, **modules}, "cDAQ1", "te1", "cDAQ1Mod4")
