"""A multifunction device in software: inputs that see a virtual specimen, an output that drives it.

It keeps time as a device does: samples come whether they are read or not, a full buffer overruns, an output
that is not fed holds its last value and fails, a watchdog expires. :mod:`drivers.virtual.nidaq_server` puts
the
NI-DAQmx interface in front of it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.base.clock import RealClock
from drivers.virtual.ni_products import PXIE_6363, Rack, Teds
from drivers.virtual.plant import Plant

UPDATE_SECONDS = 0.002
DRY_LOOKS = 250  # of UPDATE_SECONDS, that the clock stands still for a program kept from writing

# What the package's numbers mean (nidaqmx.constants); only those that matter here.
CURRENT_POSITION = 10425
_METRES = 12470  # m/s^2 among the units of acceleration
_QUARTER, _HALF, _FULL = 10271, 10188, 10183

RESET = -88709  # the task was aborted because its device was reset
OVERRUN, TIMED_OUT, UNSUPPORTED, UNDERFLOW = -200279, -200284, -200452, -200290
PLAYED_ALREADY = -200289
NO_DEVICE, NO_CHANNEL, BUSY, NO_ROOM, EXPIRED, INVALID_TASK = (
    -200220,
    -200170,
    -50103,
    -200292,
    -200680,
    -200088,
)

BAD_VALUE, MULTI_DEVICE, NOT_RESERVED = -200077, -200558, -200983
NO_TERMINAL, NO_LINES = -89120, -89125
NO_TEDS, TEDS_UNSUPPORTED, OTHER_SENSOR, NO_TEDS_FILE = -200709, -200741, -200756, -200784
NETWORK_UNRESERVED, NETWORK_TAKEN = -201388, -201420

MESSAGES = {
    RESET: "Task has been aborted because the device was reset.",
    OVERRUN: "The application is not able to keep up with the hardware acquisition.",
    TIMED_OUT: "Some or all of the samples requested have not yet been acquired.",
    UNSUPPORTED: "Specified property is not supported by the device or is not applicable to the task.",
    UNDERFLOW: "The generation has stopped to prevent the regeneration of old samples.",
    PLAYED_ALREADY: "Attempted to write samples that can no longer be written.",
    NO_DEVICE: "Device identifier is invalid.",
    NO_CHANNEL: "Physical channel specified does not exist on this device.",
    BUSY: "The specified resource is reserved. The operation could not be completed as specified.",
    BAD_VALUE: "Requested value is not a supported value for this property. The property value may be "
    "invalid because it conflicts with another property.",
    MULTI_DEVICE: "All channels of this task must be on one device.",
    NOT_RESERVED: "Cannot get property unless the task is reserved, committed or running.",
    NO_TERMINAL: "Source terminal to be routed could not be found on the device.",
    NO_LINES: "No registered trigger lines could be found between the devices in the route.",
    NO_TEDS: "TEDS sensor not detected.",
    OTHER_SENSOR: "TEDS sensor is not compatible with the measurement type.",
    NO_TEDS_FILE: "Virtual TEDS data file was not found.",
    TEDS_UNSUPPORTED: "TEDS are not supported on the given device.",
    NETWORK_UNRESERVED: "Network device is not reserved by the host.",
    NETWORK_TAKEN: "Network device is reserved by another host.",
    NO_ROOM: "Some or all of the samples to write could not be written to the buffer yet.",
    EXPIRED: "Watchdog timer has expired: outputs are locked.",
    INVALID_TASK: "Task specified is invalid or does not exist.",
}


class DaqFailure(Exception):
    """An error of the device, with its number and how many samples came before it."""

    def __init__(
        self, code: int, read: int | None = None, written: int | None = None, details: str = ""
    ) -> None:
        """``details``: the lines of the driver's message that name the setting."""
        super().__init__("\n".join(filter(None, (MESSAGES.get(code, "Unknown error."), details))))
        self.code, self.read, self.written = code, read, written


@dataclass
class Wire:
    """What a terminal carries: volts = sensitivity * quantity + offset; ``lead``: loss in its leads."""

    quantity: str
    sensitivity: float = 1.0
    offset: float = 0.0
    lead: float = 1.0
    teds: Teds | None = None  # that the sensor carries


class SimulatedDevice:
    """One multifunction device whose inputs see a plant and whose output drives it, in real time."""

    def __init__(
        self,
        make_plant: Callable[[float, int], Plant],
        wiring: Mapping[str, Wire],
        name: str = "Dev1",
        watchdog: bool = True,
        overload_flags: bool = False,
        speed: float = 1.0,
        trace: Path | None = None,
        fifo: int = 0,
        switch: Path | None = None,
        rack: Rack | None = None,
    ) -> None:
        """``rack``: several devices or modules; their wires are named with them, as in cDAQ1Mod1/ai0."""
        self.rack = Rack({name: PXIE_6363}) if rack is None else rack
        self.name, self.wiring = name if rack is None else next(iter(rack.devices)), dict(wiring)
        self.network_holder: str | None = "us"  # the computer for which a chassis on the network is reserved
        self.has_watchdog, self.overload_flags = watchdog, overload_flags
        self.make_plant = make_plant
        self.fifo = fifo  # samples of the output that the device takes out of the driver's buffer at once
        self._switch = switch  # on port0/line0: open while this file exists
        self._clock = RealClock(speed)
        self._plant: Plant | None = None
        self.lock = threading.Condition()
        self.output = 0.0  # volts at ao0 now
        self._trace = None if trace is None else trace.open("w", encoding="utf-8")
        self._fifo: deque[float] = deque()
        self._dry_looks = 0  # in which nothing had been written for the output to play
        self.input: AnalogInput | None = None
        self.followers: list[AnalogInput] = []  # tasks on the clock of ``input``
        self.generator: AnalogOutput | None = None
        self.watchdog_until: float | None = None
        self.expired = False
        self.unplugged = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="simulated device", daemon=True)
        self._thread.start()

    def now(self) -> float:
        return self._clock.now()

    @property
    def line(self) -> bool:
        """The digital input port0/line0: high while the switch is closed."""
        return self._switch is None or not self._switch.exists()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()
        if self._trace is not None:
            self._trace.close()

    def tap(self, strength: float = 1.0) -> None:
        with self.lock:
            if self._plant is not None:
                self._plant.tap(strength)

    def begin(self, task: AnalogInput, rate: float, oversampling: int) -> None:
        """The input's clock starts, and with it an output that waits for the start trigger."""
        trial = self.make_plant(rate, oversampling)
        trial.advance(np.zeros(4 * trial.steps))  # compiles what is not compiled yet, before the clock runs
        self._plant = self.make_plant(rate, oversampling)
        self._zero, self._done, self._rate, self._oversampling = self.now(), 0, rate, oversampling
        self._dry_looks = 0
        self.input = task
        if self.generator is not None:
            self.generator.waiting = False
        for follower in self.followers:
            follower.rewind()

    def end(self) -> None:
        self.update()
        self.input = None

    def set_output(self, value: float) -> None:
        """A single value for ao0; the plant sees it with the next edge of the inputs' clock."""
        self.update()
        self.output = value

    def _run(self) -> None:
        while not self._closing.wait(UPDATE_SECONDS):
            with self.lock:
                self.update()
                self._check_watchdog()
                if self._trace is not None:
                    self._trace.write(f"{time.monotonic():.4f} {self.output:.6g}\n")
                    self._trace.flush()
                self.lock.notify_all()

    def _check_watchdog(self) -> None:
        if self.watchdog_until is not None and time.monotonic() > self.watchdog_until:
            self.watchdog_until, self.expired, self.output = None, True, 0.0
            self._fifo.clear()
            if self.generator is not None:
                self.generator.failure = EXPIRED

    def update(self) -> None:
        """Let the plant catch up with the clock; inputs and the output move together."""
        if self.input is None or self._plant is None:
            return
        due = int((self.now() - self._zero) * self._rate) - self._done
        if due <= 0:
            return
        generator = self.generator
        if generator is not None and (generator.waiting or not generator.running):
            generator = None
        if generator is not None:
            # A simulation that was kept from running must not empty the buffer at one stroke: the program
            # gets its turns to write in between, as it has with a device that never pauses.
            due = min(due, max(1, generator.size // (4 * self._oversampling)))
            due = self._fed(generator, due)
            if not due:
                return
        drive = np.full(due * self._oversampling, self.output)
        if generator is not None:
            drive = generator.play(len(drive), self.output)
        self.output = float(drive[-1])
        per_value = 2 * self._plant.steps // self._oversampling
        quantities = self._plant.advance(np.repeat(drive, per_value))
        self._done += due
        volts = {
            terminal: w.sensitivity * quantities[self._plant.row(w.quantity)] + w.offset
            for terminal, w in self.wiring.items()
        }
        for task in (self.input, *self.followers):
            task.acquire(volts, due)

    def _fed(self, generator: AnalogOutput, due: int) -> int:
        """How many of the samples that are due can be played: the clock waits a while for one that runs dry.

        Both sides share this machine's cores, unlike those of a real device, which fails at once. Looks are
        counted, not seconds: a simulation that was kept from running looks at nothing.
        """
        if generator.finite:
            return due
        ready = generator.queued // self._oversampling
        if ready or generator.regenerate:
            self._dry_looks = 0
            return due if generator.regenerate else min(due, ready)
        self._dry_looks += 1
        return 0 if self._dry_looks < DRY_LOOKS else due


@dataclass
class AiChannel:
    """A virtual channel of an input task: scales terminal volts to what the program asked for."""

    name: str
    terminal: str
    kind: str
    settings: Any
    wire: Wire
    device: str
    gain: float = 1.0  # of the bridge, from shunt calibration
    sensitivity: float = 0.0  # mV per g or N, as stated or as the sensor's own data say

    def __post_init__(self) -> None:
        self.initial: float = self.settings.initial_bridge_voltage if self.kind == "strain" else 0.0  # V
        self.ends = [self.settings.min_val, self.settings.max_val]

    def scaled(self, volts: NDArray[np.float64]) -> NDArray[np.float64]:
        s = self.settings
        if self.kind == "voltage":
            return np.clip(volts, *self.ends)
        if self.kind == "accel":
            value = volts * 1000 / self.sensitivity * (9.80665 if s.units_raw == _METRES else 1.0)
        elif self.kind == "force":
            value = volts * 1000 / self.sensitivity
        else:
            value = self.gain * bridge_strain(volts * self.wire.lead - self.initial, s)
        return np.clip(value, *self.ends)


def bridge_strain(volts: NDArray[np.float64], settings: Any) -> NDArray[np.float64]:
    """Strain from a bridge's output beyond that at rest (NI's formulas for bridge types I)."""
    ratio = volts / settings.voltage_excit_val
    factor, poisson = settings.gage_factor, settings.poisson_ratio
    if settings.strain_config_raw == _QUARTER:
        return -4 * ratio / (factor * (1 + 2 * ratio))
    if settings.strain_config_raw == _HALF:
        return -4 * ratio / (factor * ((1 + poisson) - 2 * ratio * (poisson - 1)))
    return -ratio / factor


@dataclass
class Task:
    """What every task has."""

    device: SimulatedDevice
    rate: float = 0.0
    running: bool = False
    reserved: bool = False
    source: str = ""  # terminal of the clock; empty: its own
    attributes: dict[int, Any] = field(default_factory=dict)


@dataclass
class AnalogInput(Task):
    channels: list[AiChannel] = field(default_factory=list)
    size: int = 0  # of the buffer, samples per channel
    position: int = 0
    acquired: int = 0
    relative_to: int = CURRENT_POSITION
    offset: int = 0
    parts: deque[NDArray[np.float64]] = field(default_factory=deque)
    held: int = 0

    def rewind(self) -> None:
        """A new start: nothing is acquired."""
        self.position = self.acquired = self.held = 0
        self.parts.clear()

    @property
    def devices(self) -> list[str]:
        return list(dict.fromkeys(c.device for c in self.channels))

    def acquire(self, volts: Mapping[str, NDArray[np.float64]], count: int) -> None:
        self.parts.append(np.array([c.scaled(volts[c.terminal]) for c in self.channels]))
        self.acquired += count
        self.held += count
        while self.parts and self.held - self.parts[0].shape[1] >= self.size:
            self.held -= self.parts.popleft().shape[1]

    def take(self, start: int, count: int) -> NDArray[np.float64]:
        oldest = self.acquired - self.held
        everything = np.concatenate(self.parts, axis=1)
        while self.parts and oldest + self.parts[0].shape[1] <= start:
            oldest += self.parts[0].shape[1]
            self.held -= self.parts.popleft().shape[1]
        first = self.acquired - everything.shape[1]
        return everything[:, start - first : start - first + count]


@dataclass
class AnalogOutput(Task):
    terminal: str = ""
    trigger: str = ""
    size: int = 0
    regenerate: bool = True
    single: bool = False  # every value goes out with the next edge of the clock
    finite: bool = False  # it ends with what was written; the converter stays at the last value
    waiting: bool = False  # for its start trigger
    stopped: bool = False  # since the last write: the next one is the first of a new start
    written: int = 0
    failure: int = 0
    queue: deque[NDArray[np.float64]] = field(default_factory=deque)
    queued: int = 0
    offset: int = 0  # of the next write from the end of what was written

    @property
    def played(self) -> int:
        return self.written - self.queued

    def discard(self) -> None:
        """Stopped: what was not played never will be; how many were played can still be asked."""
        self.written, self.queued, self.stopped = self.played, 0, True
        self.queue.clear()

    def overwrite(self, samples: NDArray[np.float64], taken: int) -> NDArray[np.float64]:
        """Replace what was written and not played from the offset on; what is left of ``samples`` behind it.

        ``taken``: samples that the device has in its own memory, out of reach.
        """
        at = self.queued + self.offset
        if self.offset == 0:
            return samples
        if at < min(taken, self.queued):
            raise DaqFailure(PLAYED_ALREADY, written=0)
        waiting = np.concatenate([*self.queue, np.empty(0)])
        count = min(len(samples), len(waiting) - at)
        waiting[at : at + count] = samples[:count]
        self.queue = deque([waiting])
        return samples[count:]

    def play(self, count: int, last: float) -> NDArray[np.float64]:
        """The next values of the converter; it holds the last one when nothing new was written in time."""
        out = np.empty(count)
        done = 0
        while done < count and self.queue:
            part = self.queue.popleft()
            now = min(len(part), count - done)
            out[done : done + now] = part[:now]
            if now < len(part):
                self.queue.appendleft(part[now:])
            done += now
        self.queued -= done
        if done < count:
            out[done:] = out[done - 1] if done else last
            if not self.regenerate and not self.finite:
                self.failure, self.running = UNDERFLOW, False
        return out


@dataclass
class DigitalInput(Task):
    name: str = ""
    failure: int = 0


@dataclass
class Watchdog(Task):
    timeout: float = 1.0
