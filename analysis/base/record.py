"""A record: uniformly sampled, named channels with units, and what is known about their making."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError

Span = tuple[int, int]  # samples start (included) to stop (excluded)


@dataclass(frozen=True, eq=False)
class Channel:
    """One signal. ``gaps`` and ``clipped`` are the sample ranges that were lost or overloaded.

    ``noise`` is the standard deviation of its samples' noise where that is known: of a mean of many periods,
    of a sensor that was measured at rest. None: to be found.
    """

    data: NDArray[np.float64]
    unit: str = ""
    gaps: tuple[Span, ...] = ()
    clipped: tuple[Span, ...] = ()
    noise: float | None = None

    def __post_init__(self) -> None:
        if self.noise is not None and not (np.isfinite(self.noise) and self.noise > 0):
            raise DataError(f"The noise of a channel must be a positive number, not {self.noise}.")

    def valid(self) -> NDArray[np.bool_]:
        """True where the sample is finite and neither lost nor clipped."""
        good = np.isfinite(self.data)
        for start, stop in (*self.gaps, *self.clipped):
            good[start:stop] = False
        return good


@dataclass(frozen=True)
class Excitation:
    """The drive: amplitude * cos(2 pi frequency t + phase), t = 0 at the first sample."""

    frequency: float  # Hz
    amplitude: float | None = None  # in the drive channel's unit; None: unknown
    phase: float | None = None  # rad at the first sample; None: unknown
    waveform: str = "sine"
    until: float | None = None  # s after the first sample at which it was switched off; None: it went on

    def seen_from(self, seconds: float, duration: float) -> Excitation | None:
        """As a stretch has it that begins so much later; None if it was off by then."""
        until = None if self.until is None else self.until - seconds
        if until is not None and until <= 0:
            return None
        phase = self.phase
        if phase is not None and seconds:
            phase = float((phase + 2 * np.pi * self.frequency * seconds) % (2 * np.pi))
        return replace(self, phase=phase, until=until if until is not None and until < duration else None)


@dataclass(frozen=True)
class Marker:
    """A moment that a person marked while recording, with a word."""

    index: int  # sample
    text: str


@dataclass(frozen=True, eq=False)
class Record:
    """Channels sampled together at ``rate`` (Hz). Immutable: every change gives a new record."""

    rate: float
    channels: Mapping[str, Channel]
    start: str | None = None  # ISO 8601 with zone
    excitation: Excitation | None = None
    drive_time: float | None = None  # the drive's own time at the first sample (a model's t); None: unknown
    metadata: Mapping[str, Any] = field(
        default_factory=dict
    )  # rig, operator, notes, tags, calibration, versions
    clock_time: float | None = None  # the first sample's time by the file's own clock, s; None: it has none
    markers: tuple[Marker, ...] = ()

    def __post_init__(self) -> None:
        if not (np.isfinite(self.rate) and self.rate > 0):
            raise DataError(f"The sample rate must be a positive number, not {self.rate}.")
        lengths = {len(c.data) for c in self.channels.values()}
        if len(lengths) > 1:
            raise DataError(f"The channels have different lengths ({sorted(lengths)} samples).")

    @classmethod
    def from_arrays(
        cls,
        rate: float,
        arrays: Mapping[str, Iterable[float]],
        units: Mapping[str, str] | None = None,
        noise: Mapping[str, float] | None = None,
        **fields: Any,
    ) -> Record:
        """A record from plain arrays, one per channel name; ``noise`` where it is known."""
        units, noise = units or {}, noise or {}
        channels = {
            name: Channel(
                np.ascontiguousarray(data, dtype=np.float64), units.get(name, ""), noise=noise.get(name)
            )
            for name, data in arrays.items()
        }
        return cls(rate, channels, **fields)

    def __len__(self) -> int:
        return len(next(iter(self.channels.values())).data) if self.channels else 0

    def __contains__(self, name: str) -> bool:
        return name in self.channels

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """The samples of a channel; an unknown name is an error that lists the channels there are."""
        try:
            return self.channels[name].data
        except KeyError:
            raise DataError(
                f"No channel '{name}': the record has {', '.join(self.channels) or 'none'}."
            ) from None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.channels)

    @property
    def dt(self) -> float:
        """Sample interval in seconds (or the record's unit of time)."""
        return 1.0 / self.rate

    @property
    def duration(self) -> float:
        return len(self) / self.rate

    @property
    def times(self) -> NDArray[np.float64]:
        """Time of each sample from the first, in seconds."""
        return np.arange(len(self)) / self.rate

    def cut(self, start: int, stop: int) -> Record:
        """Samples start to stop; gaps, clipping, markers, the drive's phase and all times move along."""
        start, stop, _ = slice(start, stop).indices(len(self))

        def moved(spans: tuple[Span, ...]) -> tuple[Span, ...]:
            inside = ((max(a, start) - start, min(b, stop) - start) for a, b in spans)
            return tuple((a, b) for a, b in inside if b > a)

        channels = {
            name: replace(c, data=c.data[start:stop], gaps=moved(c.gaps), clipped=moved(c.clipped))
            for name, c in self.channels.items()
        }
        passed = start / self.rate
        drive = self.excitation and self.excitation.seen_from(passed, (stop - start) / self.rate)
        begun = moment_after(self.start, passed)
        return replace(
            self,
            channels=channels,
            excitation=drive,
            start=begun,
            drive_time=time_after(self.drive_time, passed),
            clock_time=time_after(self.clock_time, passed),
            markers=tuple(Marker(m.index - start, m.text) for m in self.markers if start <= m.index < stop),
        )

    def with_channels(self, **arrays: NDArray[np.float64]) -> Record:
        """A copy with channels added or their samples replaced (units and spans of replaced ones kept)."""
        channels = dict(self.channels)
        for name, data in arrays.items():
            old = channels.get(name, Channel(data))
            channels[name] = replace(old, data=np.ascontiguousarray(data, dtype=np.float64))
        return replace(self, channels=channels)

    def marked(self, times: NDArray[np.float64]) -> tuple[tuple[float, str], ...]:
        """Time and word of the markers; ``times`` of the first samples, in whatever unit they are wanted."""
        return tuple((float(times[m.index]), m.text) for m in self.markers if 0 <= m.index < len(times))


def time_after(time: float | None, seconds: float) -> float | None:
    """A clock's time at a first sample that is later by that many seconds; None stays unknown."""
    return None if time is None else time + seconds


def moment_after(start: str | None, seconds: float) -> str | None:
    """The ISO 8601 moment that many seconds later; what is no such moment stays as it is."""
    if start is None or seconds == 0:
        return start
    try:
        return (datetime.fromisoformat(start) + timedelta(seconds=seconds)).isoformat()
    except (ValueError, OverflowError):
        return start
