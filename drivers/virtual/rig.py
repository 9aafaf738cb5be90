"""The virtual rig: a specimen of equations behind virtual sensors and a virtual converter.

It meets the same protocols as hardware and runs in real time or as fast as it can, by the clock it is given.
The same seed gives the same samples, whatever the sizes of the blocks.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drivers.base.clock import Clock, RealClock
from drivers.base.limits import STOP_RAMP, Limits
from drivers.base.overload import overloads
from drivers.base.protocols import Block, ChannelInfo, DriveState, InstrumentError, LoopStatus, Samples
from drivers.base.waveform import Waveform
from drivers.rig.loop import CHANNELS, ControlLoop, LoopTiming
from drivers.rig.player import PlayedOutput, Player
from drivers.virtual.plant import Plant

UNREAD_SECONDS = 0.03  # without a sample being taken: then the ramp of a STOP goes on by itself


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
        loop: LoopTiming | None = None,
    ) -> None:
        self.name = name
        self.rate = plant.rate
        self._plant = plant
        self._sensors = tuple(sensors)
        spans = [s.span() for s in sensors]
        self.channels = tuple(
            replace(c, lower=low, upper=high) for c, (low, high) in zip(channels, spans, strict=True)
        )
        self._timing = loop
        self._loop = ControlLoop(plant.rate, [c.name for c in channels])
        self._corrections = DelayedCorrections(loop, plant, limits, seed) if loop is not None else None
        if loop is not None and loop.channels:
            self.channels += tuple(ChannelInfo(name, unit, sensor="control loop") for name, unit in CHANNELS)
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
            self._plant.prepare()  # not with the first samples: a drive may play by then
            self._running, self._index = True, 0
            if self._corrections is not None:
                self._loop.let_go("the stream was started again")
                self._corrections.forget()
            self._zero = self._clock.now()

    def read(self, into: Samples) -> Block:
        count = into.shape[1]
        if not self._running:
            raise InstrumentError("The virtual rig is not running.")
        self._clock.wait_until(self._zero + (self._index + count) / self.rate)
        with self._lock:
            drive = self._drive_state()
            if self._corrections is not None and (self._loop.busy or self._corrections.on_their_way):
                start, self._index = self._index, self._read_closed(into, self._corrections)
            else:
                quantities = self._plant.advance(self._player.take(count * 2 * self._plant.steps))
                start, self._index = self._index, self._index + count
                self._measure(quantities, into)
                into[len(self._sensors) :] = 0.0
        return Block(start, into, overloads(into, self.channels, start), drive=drive)

    def _measure(self, quantities: Samples, into: Samples) -> None:
        for row, sensor in enumerate(self._sensors):
            into[row] = sensor.measure(quantities[self._rows[row]], self._noise[row])

    def _read_closed(self, into: Samples, corrections: DelayedCorrections) -> int:
        """With the loop closed; the index of the sample that comes next.

        The plant is moved on in pieces no longer than the delay: what is decided in a piece acts behind it.
        """
        sensors, limits, count = len(self._sensors), self._player.limits, into.shape[1]
        for first in range(0, count, corrections.ahead):
            piece = into[:, first : first + corrections.ahead]
            index, state = self._index + first, self._player.state()
            wanted = corrections.over(index, piece.shape[1])
            drive = corrections.converted(self._player.take(len(wanted), wanted))
            self._measure(self._plant.advance(drive), piece)
            turn, room = 2 * np.pi * state.frequency / self.rate, limits.peak - state.amplitude
            for i in range(piece.shape[1]):
                phase = (state.phase + turn * i) % (2 * np.pi)
                correction = self._loop.step(piece[:sensors, i], phase, room, state.playing)
                corrections.send(index + i, correction, self._loop)
                if len(piece) > sensors:
                    piece[sensors:, i] = self._loop.shown
        return self._index + count

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


class DelayedCorrections:
    """Corrections on their way to the virtual shaker: each holds from its arrival until the next.

    It arrives ``delay`` and an exponential jitter after its sample, or never where its deadline is missed.
    """

    def __init__(self, timing: LoopTiming, plant: Plant, limits: Limits, seed: int) -> None:
        if not timing.delay >= (1 - 1e-9) / plant.rate:
            raise InstrumentError(
                f"A loop delay of {timing.delay:g} s is shorter than a sample ({1 / plant.rate:g} s)."
            )
        self._timing, self._rate, self._values = timing, plant.rate, 2 * plant.steps
        self.ahead = max(1, int(timing.delay * plant.rate + 1e-9))  # samples that no new decision reaches
        self._step = 2 * limits.amplitude / 2**timing.bits
        self._rng = np.random.default_rng((seed, 7919))
        self._waiting: deque[tuple[float, float]] = deque()  # moment (samples), volts
        self.forget()

    def forget(self) -> None:
        """Nothing is on its way, and the samples are counted from zero again."""
        self._waiting.clear()
        self._now = self._latest = 0.0

    @property
    def on_their_way(self) -> bool:
        """Whether a correction stands at the shaker or will."""
        return bool(self._waiting) or self._now != 0.0

    def over(self, index: int, count: int) -> Samples:
        """The correction over ``count`` samples from ``index``, at the times at which the drive is known."""
        values = np.full(count * self._values, self._now)
        while self._waiting and (place := (self._waiting[0][0] - index) * self._values) < len(values):
            self._now = self._waiting.popleft()[1]
            values[max(0, int(np.ceil(place - 1e-9))) :] = self._now
        return values

    def send(self, index: int, correction: float, loop: ControlLoop) -> None:
        """A correction has been decided at sample ``index``."""
        delay = self._timing.delay + self._timing.jitter * self._rng.standard_exponential()
        if self._rng.random() < self._timing.missed and loop.deciding:
            loop.missed_deadline()
            return
        self._latest = max(self._latest, index + delay * self._rate)
        self._waiting.append((self._latest, correction))
        loop.went_out(correction, delay)

    def converted(self, drive: Samples) -> Samples:
        """The drive in the steps of its converter."""
        return np.asarray(np.rint(drive / self._step) * self._step)


class VirtualExciter(PlayedOutput):
    """The drive of a virtual rig. While the rig's clock stands still nothing moves, and STOP is immediate.

    STOP does not depend on anybody who reads the samples: if they are not taken any more (a reader that
    hangs), a thread of its own moves the drive on to zero.
    """

    def __init__(self, rig: VirtualRig) -> None:
        self._rig, self._player = rig, rig._player
        self._stopping = threading.Event()
        self._closed = False
        if not rig.waits:
            threading.Thread(target=self._see_to_silence, name="virtual amplifier", daemon=True).start()

    def play(self, waveform: Waveform) -> None:
        self._player.play(waveform)

    def stop(self, reason: str = "stopped") -> None:
        self._player.stop(reason)
        self._rig._loop.end()
        self._stopping.set()
        if not self._rig._running:
            self._skip_ramp()

    def request_stop(self, reason: str = "STOP") -> None:
        self._player.request_stop(reason)
        self._rig._loop.end()
        self._stopping.set()

    def control(self, controller: Any, reason: str = "") -> None:
        self._check_loop()
        if controller is None:
            self._rig._loop.let_go(reason or "asked for")
        else:
            self._rig._loop.close(controller)

    def loop_status(self) -> LoopStatus:
        self._check_loop()
        return self._rig._loop.status()

    def _check_loop(self) -> None:
        if self._rig._corrections is None:
            raise InstrumentError(
                f"The rig '{self._rig.name}' has no control loop: [instruments.source.loop] gives it one."
            )

    def zeroing(self) -> Mapping[str, Any]:
        return {"kind": "virtual"}

    def state(self) -> DriveState:
        rig = self._rig
        if not rig._running and rig._player.latch.reason:
            self._skip_ramp()
        return rig._drive_state()

    def close(self) -> None:
        self.stop("closed")
        self._closed = True
        self._stopping.set()

    def _skip_ramp(self) -> None:
        self._rig._player.take(round(2 * STOP_RAMP * self._rig._player.rate) + 1)

    def _see_to_silence(self) -> None:
        """Let the ramp pass in real time where nobody takes the samples."""
        player = self._rig._player
        while True:
            self._stopping.wait()
            self._stopping.clear()
            if self._closed:
                return
            state = player.state()
            while state.playing and not self._closed:
                time.sleep(UNREAD_SECONDS)
                following = player.state()
                if following.index == state.index:
                    player.take(round(UNREAD_SECONDS * player.rate))
                state = player.state()
