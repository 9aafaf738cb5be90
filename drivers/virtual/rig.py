"""The virtual rig: a specimen of equations behind virtual sensors and a virtual converter.

It meets the same protocols as hardware and runs in real time or as fast as it can, by the clock it is given.
The same seed gives the same samples, whatever the sizes of the blocks.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from drivers.base.clock import Clock, RealClock
from drivers.base.limits import STOP_RAMP, Limits
from drivers.base.overload import overloads
from drivers.base.protocols import Block, ChannelInfo, DriveState, InstrumentError, Samples
from drivers.base.waveform import Waveform
from drivers.rig.player import Player
from drivers.virtual.plant import Plant


@dataclass(frozen=True)
class VirtualSensor:
    """A sensor on one of the plant's quantities, its amplifier and its converter.

    volts = sensitivity * quantity + offset + noise, limited to the range, rounded to the converter's steps;
    what is read is volts / sensitivity + zero, as the profile says.
    """

    quantity: str
    sensitivity: float = 1.0  # V per unit
    zero: float = 0.0  # reading at 0 V, of the calibration
    offset: float = 0.0  # V at quantity 0, of the amplifier: what nulling is for
    noise: float = 0.0  # V rms, white
    range: float = 10.0  # V, plus and minus
    bits: int = 24

    @property
    def step(self) -> float:
        """One count of the converter, in V."""
        return float(2 * self.range / 2**self.bits)

    def measure(self, quantity: Samples, rng: np.random.Generator) -> Samples:
        """The values that are read, in the quantity's unit."""
        volts = self.sensitivity * quantity + self.offset
        if self.noise:
            volts = volts + self.noise * rng.standard_normal(len(volts))
        half = 2 ** (self.bits - 1)
        counts = np.clip(np.rint(volts / self.step), -half, half - 1)
        return np.asarray(counts * self.step / self.sensitivity + self.zero)

    def span(self) -> tuple[float, float]:
        """The lowest and highest value that can be told from an overload."""
        ends = np.array([-self.range, self.range - self.step]) / self.sensitivity + self.zero
        return float(ends.min()), float(ends.max())


class VirtualRig:
    """Source, shaker and specimen in one: they share one clock, as on a real rig with one time base."""

    def __init__(
        self,
        name: str,
        plant: Plant,
        channels: Sequence[ChannelInfo],
        sensors: Sequence[VirtualSensor],
        limits: Limits,
        seed: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.rate = plant.rate
        self._plant = plant
        self._sensors = tuple(sensors)
        spans = [s.span() for s in sensors]
        self.channels = tuple(
            replace(c, lower=low, upper=high) for c, (low, high) in zip(channels, spans, strict=True)
        )
        self._rows = [plant.row(s.quantity) for s in sensors]
        self._clock = clock or RealClock()
        self._player = Player(limits, plant.drive_rate)
        self._lock = threading.RLock()
        self._noise = [np.random.default_rng((seed, i)) for i in range(len(sensors))]
        self._running = False
        self._index = 0
        self._zero = 0.0
        self.exciter = VirtualExciter(self)

    @property
    def waits(self) -> bool:
        return self._clock.waits

    def start(self) -> None:
        with self._lock:
            self._running, self._index = True, 0
            self._zero = self._clock.now()

    def read(self, into: Samples) -> Block:
        count = into.shape[1]
        if not self._running:
            raise InstrumentError("The virtual rig is not running.")
        self._clock.wait_until(self._zero + (self._index + count) / self.rate)
        with self._lock:
            drive = self._drive_state()
            quantities = self._plant.advance(self._player.take(count * 2 * self._plant.steps))
            start, self._index = self._index, self._index + count
        for row, sensor in enumerate(self._sensors):
            into[row] = sensor.measure(quantities[self._rows[row]], self._noise[row])
        return Block(start, into, overloads(into, self.channels, start), drive=drive)

    def stop(self) -> None:
        self._running = False

    def close(self) -> None:
        self.stop()

    def tap(self, strength: float = 1.0) -> None:
        """Tap the specimen, so that it may fall into another well."""
        with self._lock:
            self._plant.tap(strength)

    def _drive_state(self) -> DriveState:
        return replace(self._player.state(), index=self._index)


class VirtualExciter:
    """The drive of a virtual rig. While the rig's clock stands still nothing moves, and STOP is immediate."""

    unit = "V"

    def __init__(self, rig: VirtualRig) -> None:
        self._rig = rig

    @property
    def limits(self) -> Limits:
        return self._rig._player.limits

    def play(self, waveform: Waveform) -> None:
        self._rig._player.play(waveform)

    def change(self, frequency: float | None = None, amplitude: float | None = None) -> None:
        self._rig._player.change(frequency, amplitude)

    def stop(self, reason: str = "stopped") -> None:
        rig = self._rig
        rig._player.stop(reason)
        with rig._lock:
            if not rig._running:
                rig._player.take(round(2 * STOP_RAMP * rig._player.rate) + 1)

    def state(self) -> DriveState:
        with self._rig._lock:
            return self._rig._drive_state()

    def close(self) -> None:
        self.stop("closed")
