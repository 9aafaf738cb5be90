"""What an instrument can do: each protocol is one thing, and support is shown by which methods exist.

A new instrument is one new file that meets one of these: here in drivers/instruments, or in a package of its
own (docs/how-to/add-an-instrument.md). Real hardware, the virtual rig and replay meet the same protocols; the
rest of the program cannot tell which one it has.

* :class:`Source` streams blocks of samples, each with the index of its first sample.
* :class:`Exciter` plays a waveform inside limits that it cannot be talked out of.
* :class:`SensorController` is the box beside a sensor: ranges, decoder, filter, signal strength.
* :class:`Records`: a source that makes recordings by itself, in the process in which it lives.
* :class:`Modulated`: an exciter that takes corrections from a control loop.
* :class:`Stoppable`, :class:`Perturbable`, :class:`Seekable` are what some of them can do besides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from analysis import Excitation, ShakedownError
from drivers.base.drive_page import DriveStatus, StreamCounts
from drivers.base.latch import Latch
from drivers.base.limits import Limits
from drivers.base.trigger import Trigger
from drivers.base.waveform import Waveform

Samples = NDArray[np.float64]  # [channels, samples], in each channel's unit


class InstrumentError(ShakedownError):
    """An instrument that cannot do what was asked, or does not answer."""


class LinkLost(InstrumentError):
    """The connection to an instrument is gone; what was recorded so far is safe."""


@dataclass(frozen=True)
class ChannelInfo:
    """One measured signal as it leaves the source: calibrated, in its own unit."""

    name: str
    unit: str = ""
    lower: float = -np.inf  # measuring range, in the unit; beyond it the channel is overloaded
    upper: float = np.inf
    sensor: str = ""  # in words, such as "strain gauge, full bridge"
    calibration: Mapping[str, Any] = field(default_factory=dict)  # sensitivity, offset, gauge factor ...


@dataclass(frozen=True)
class ChannelSpan:
    """Samples start (included) to stop (excluded) of a channel (by position). Absolute indices."""

    channel: int
    start: int
    stop: int


@dataclass(frozen=True)
class DriveState:
    """What the exciter does at sample ``index``: level * amplitude * cos(phase), for a sine.

    From there on the phase of a steady sine at sample n is phase + 2 pi frequency (n - index) / rate.
    """

    index: int = 0
    playing: bool = False
    waveform: str = "none"
    frequency: float = 0.0  # Hz
    amplitude: float = 0.0  # target, in the exciter's unit
    level: float = 0.0  # 0 to 1: soft start and stop
    phase: float = 0.0  # rad; not a number: not known (a generator on its own clock)
    steady: bool = False  # neither ramping nor on its way to another frequency or amplitude
    reason: str = ""  # why the drive is off, in words; empty while it plays
    # s since a waveform other than a sine began, its own time; not a number: not known, or told by the phase
    time: float = np.nan
    correction: float = 0.0  # of a control loop: its largest size lately, before ``level``

    def excitation(self) -> Excitation | None:
        """The drive as a record keeps it, its time zero at ``index``; None while nothing plays."""
        if not self.playing:
            return None
        known = bool(self.frequency) and np.isfinite(self.phase)
        phase = float(self.phase % (2 * np.pi)) if known else None
        return Excitation(self.frequency, self.amplitude, phase, self.waveform)


@dataclass(frozen=True, eq=False)
class Block:
    """Samples that belong together, with the index of the first of them.

    Indices count from ``Source.start`` and count lost samples too: a gap is a fact and not a guess.
    """

    start_index: int
    data: Samples
    overloads: tuple[ChannelSpan, ...] = ()  # beyond the measuring range
    missing: tuple[ChannelSpan, ...] = ()  # lost on single channels: not a number in the data
    reason: str = ""  # why samples were lost before this block, when its index shows that some were
    drive: DriveState | None = None  # at the first sample of the block; None: not known
    ended: bool = False  # no more samples will come (end of a replayed recording)
    lost: int = 0  # samples lost just before this block, as the engine found from the indices

    @property
    def samples(self) -> int:
        return int(self.data.shape[1])

    @property
    def stop_index(self) -> int:
        """Index of the sample that comes next."""
        return self.start_index + self.samples


@runtime_checkable
class Source(Protocol):
    """Streams samples of several channels on one clock.

    Life: ``start``, ``read`` again and again, ``stop`` (and perhaps ``start`` again, indices from 0),
    ``close``. ``stop`` and ``close`` may be called at any time and any number of times.
    """

    @property
    def name(self) -> str: ...

    @property
    def channels(self) -> tuple[ChannelInfo, ...]: ...

    @property
    def rate(self) -> float:
        """The true sample rate in Hz, which hardware may have rounded from the one asked for."""
        ...

    @property
    def waits(self) -> bool:
        """True if its clock stands still until it is read (virtual time): a slow reader loses nothing."""
        ...

    def start(self) -> None: ...

    def read(self, into: Samples) -> Block:
        """Wait for ``into.shape[1]`` samples and fill them in; the block's data is a view of ``into``.

        Fewer samples come only at the end of the data, before a gap, or before an error: what is in hand
        when the source cannot go on is returned first, and the next call raises InstrumentError. A call
        that waits is woken by ``stop``; one that brings nothing for 10 s ends the acquisition.
        """
        ...

    def stop(self) -> None: ...

    def close(self) -> None: ...


class ActiveRecording(Protocol):
    """A recording under way, here (:class:`drivers.acquisition.capture.Capture`) or in the rig's own
    process.
    """

    @property
    def done(self) -> bool: ...

    @property
    def triggered(self) -> bool: ...

    @property
    def recorded(self) -> int: ...

    @property
    def failed(self) -> str: ...

    @property
    def finished(self) -> Sequence[Any]: ...

    def offer(self, block: Block) -> None: ...

    def note(self, text: str, index: int) -> None: ...

    def mark(self, number: int, text: str, index: int) -> int:
        """Keep this moment, about sample ``index`` of the stream; the same number again: another word.

        Which sample of the stream was kept.
        """
        ...

    def backlog(self) -> tuple[float, float, str]: ...

    @property
    def drive_stop(self) -> Any:
        """The first STOP or trip while this was recorded (drivers.acquisition.capture.DriveStop), or None."""
        ...

    def ask_to_end(self, failure: str = "") -> None: ...

    def end(self, failure: str = "") -> None: ...

    def wait(self, seconds: float | None = None) -> bool: ...


@runtime_checkable
class Records(Protocol):
    """A source that records where it lives: the recording outlives the process that asked for it."""

    def record(
        self, make_sink: Callable[[int], Any], length: int | None, trigger: Trigger | None, captures: int
    ) -> ActiveRecording: ...


@runtime_checkable
class CountsItself(Protocol):
    """A source that is read in another process, which counts gaps and overloads itself."""

    def counts(self) -> tuple[StreamCounts, float]:
        """What was counted since the stream was started, and the source's time in s."""
        ...


@runtime_checkable
class Exciter(Protocol):
    """Drives the shaker. It starts silent, ramps always, never steps, and refuses what its limits forbid."""

    @property
    def unit(self) -> str: ...

    @property
    def limits(self) -> Limits: ...

    def play(self, waveform: Waveform) -> None:
        """Ramp up to the waveform; another one that plays is ramped down first. LimitError if forbidden."""
        ...

    def change(self, frequency: float | None = None, amplitude: float | None = None) -> None:
        """Go to another frequency or amplitude of the sine that plays, without a phase jump."""
        ...

    def stop(self, reason: str = "stopped") -> None:
        """End the drive: ramp to zero within 100 ms, from any state. Something else may be played next."""
        ...

    def request_stop(self, reason: str = "STOP") -> None:
        """STOP: returns within a millisecond whatever the instrument does; the ramp is the driver's own.

        From then on the drive never goes above its value at that moment, and nothing plays until ``arm``.
        """
        ...

    def arm(self) -> None:
        """Allow the drive to be played again after STOP; for a person to ask."""
        ...

    @property
    def latch(self) -> Latch:
        """Holds after STOP, with the reason, until ``arm``."""
        ...

    def zeroing(self) -> Mapping[str, Any]:
        """How another process sets the output to zero when this one cannot (see drivers.base.zeroing)."""
        ...

    def state(self) -> DriveState:
        """What it does now; waits for no instrument."""
        ...

    def close(self) -> None:
        """Ramp to zero, then let go of the instrument."""
        ...


def status_of(exciter: Exciter, tripped: bool = False) -> DriveStatus:
    """An exciter's state in the words that are shown. ``tripped``: its latch was not set by a person."""
    state, latched = exciter.state(), exciter.latch.reason
    if latched:
        name = "tripped" if tripped else "latched"
    elif not state.playing:
        name = "armed"
    else:
        moving = state.level < 1 or (state.waveform == "sine" and not state.steady)
        name = "ramping" if moving else "playing"
    return DriveStatus(
        name, state.waveform if state.playing else "", state.frequency, state.amplitude, state.level,
        exciter.unit, latched or state.reason, time.monotonic(), correction=state.correction,
    )  # fmt: skip


NOT_MODULATED = (
    "The drive of this rig cannot be corrected sample by sample (a generator on a line plays by itself): "
    "nothing was moved."
)


@dataclass(frozen=True)
class LoopStatus:
    """What a control loop does, and how late it is."""

    state: str = "open"  # open | watching | holding | letting go
    reason: str = ""  # why it was let go, in words
    delay: float = 0.0  # s from a sample to its correction at the converter, mean
    jitter: float = 0.0  # s, standard deviation of it
    longest: float = 0.0  # s, the longest delay
    ticks: int = 0  # samples for which a correction was asked
    missed: int = 0  # deadlines
    clipped: int = 0  # corrections at their bound


@runtime_checkable
class Modulated(Protocol):
    """An exciter whose drive takes a correction at every sample (see drivers.rig.loop)."""

    def control(self, controller: Any, reason: str = "") -> None:
        """Let a controller decide from now on; None lets go of the drive softly, with the reason."""
        ...

    def loop_status(self) -> LoopStatus: ...


@runtime_checkable
class Losable(Protocol):
    """An exciter that plays by itself and may get out of reach: then nobody could stop it."""

    lost: (
        str  # for how long it cannot be reached and why, once that is more than a moment; empty: all is well
    )


@runtime_checkable
class Stoppable(Protocol):
    """Anything that can be asked to end at once and leave everything safe."""

    def stop(self, reason: str = "stopped") -> None: ...


@runtime_checkable
class Perturbable(Protocol):
    """A specimen that can be tapped to throw it into another state of motion."""

    def tap(self, strength: float = 1.0) -> None: ...


@runtime_checkable
class Seekable(Protocol):
    """A source whose time can be moved: replay of a recording."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def seek(self, index: int) -> None: ...


@dataclass(frozen=True)
class Setting:
    """One adjustable property of a sensor's controller and the values it accepts."""

    value: str
    choices: Sequence[str] = ()
    unit: str = ""


@runtime_checkable
class SensorController(Protocol):
    """The electronics of a sensor, such as a laser vibrometer's decoder."""

    def identify(self) -> str:
        """Maker, type and firmware as the instrument tells them."""
        ...

    def settings(self) -> Mapping[str, Setting]:
        """Range, decoder, filter ... by name, with the values it accepts."""
        ...

    def set(self, name: str, value: str) -> None:
        """Change a setting and check that the instrument took it."""
        ...

    def signal_strength(self) -> float:
        """Strength of the sensor's signal, 0 (none) to 1 (full)."""
        ...

    def over_range(self) -> bool:
        """Whether the decoder is or was overdriven: then its output is wrong."""
        ...

    def sensitivity(self) -> tuple[float, str]:
        """What one volt at the output means now, such as (0.01, "m/s")."""
        ...

    def close(self) -> None: ...
