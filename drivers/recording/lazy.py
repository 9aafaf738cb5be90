"""A recording on disk, read piece by piece: it never needs to fit in memory to be plotted or cut."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import (
    SILENT,
    Channel,
    DataError,
    Excitation,
    Marker,
    Progress,
    Record,
    Span,
    moment_after,
    time_after,
)
from drivers.recording.guesses import Guesses
from drivers.recording.journal import ChannelSpec

NOISE = "noise"  # entry of the metadata: channels' noise by name, where it is known
MARKER = "marker"  # kind of the events that a person marked
BLOCK = 1 << 18  # samples read at once when a whole recording is walked through


@dataclass(frozen=True)
class Description:
    """All that is known of a recording but its samples. Spans and events count samples from its start."""

    rate: float  # Hz
    channels: tuple[ChannelSpec, ...]
    samples: int
    start: str | None = None  # ISO 8601 with zone
    excitation: Excitation | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    gaps: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)  # by channel name
    clipped: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    events: tuple[Mapping[str, Any], ...] = ()  # notes and what else happened, with "kind" and "index"
    drive_time: float | None = None  # the drive's own time at the first sample, s; None: unknown
    clock_time: float | None = None  # the first sample's time by the file's own clock, s; None: it has none

    def __post_init__(self) -> None:
        if not (np.isfinite(self.rate) and self.rate > 0):
            raise DataError(f"The sample rate must be a positive number, not {self.rate}.")
        names = [c.name for c in self.channels]
        repeated = {n for n in names if names.count(n) > 1}
        if repeated:
            raise DataError(f"The channel name '{min(repeated)}' is used more than once.")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.channels)

    @property
    def markers(self) -> tuple[Marker, ...]:
        """What a person marked while recording, by time; what is no such thing is passed over."""
        found = [
            Marker(event["index"], str(event.get("text", "")))
            for event in self.events
            if event.get("kind") == MARKER and isinstance(event.get("index"), int)
        ]
        return tuple(sorted(found, key=lambda marker: marker.index))


def marker_events(markers: Iterable[Marker]) -> tuple[Mapping[str, Any], ...]:
    """Markers as a recording keeps them."""
    return tuple({"kind": MARKER, "index": m.index, "text": m.text} for m in markers)


@dataclass(frozen=True)
class Verdict:
    """What the checksums say: ``ok`` True or False, None where the format has none; ``text`` for people."""

    ok: bool | None
    text: str


class Recording(ABC):
    """Lazy view of a recording. Use as a context manager, or call ``close``."""

    title: str | None = None  # what kind of file it is, where that is more than its format says
    guesses: Guesses | None = None  # how a file of another program was read

    def __init__(self, about: Description) -> None:
        self.about = about

    @abstractmethod
    def raw(self, channel: int, start: int, stop: int) -> NDArray[Any]:
        """Stored numbers of a channel (by position), samples start to stop, both inside the recording."""

    def close(self) -> None:
        """Let go of the file."""
        return

    def verify(self) -> Verdict:
        """Read everything once and check it against the stored checksums."""
        return Verdict(None, "this format stores no checksums")

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self.about.samples

    @property
    def rate(self) -> float:
        return self.about.rate

    @property
    def names(self) -> tuple[str, ...]:
        return self.about.names

    @property
    def duration(self) -> float:
        return len(self) / self.rate

    def unit(self, channel: str) -> str:
        return self.about.channels[self.position(channel)].unit

    def position(self, channel: str) -> int:
        """Position of the channel of that name; an unknown name is an error that lists those there are."""
        try:
            return self.names.index(channel)
        except ValueError:
            there = ", ".join(self.names) or "none"
            raise DataError(f"No channel '{channel}': the recording has {there}.") from None

    def values(self, channel: str, start: int, stop: int) -> NDArray[np.float64]:
        """Samples start to stop of one channel in its unit."""
        position = self.position(channel)
        start, stop, _ = slice(start, stop).indices(len(self))
        spec = self.about.channels[position]
        values = spec.physical(self.raw(position, start, max(start, stop)))
        if spec.dtype[0] != "f":  # integers have no sign for "not there"
            for first, last in moved(self.about.gaps.get(channel, ()), start, stop):
                values[first:last] = np.nan
        return values

    def slice(self, start: int, stop: int, channels: Sequence[str] | None = None) -> Record:
        """Samples start to stop as a record; spans, the drive's phase and all times move along."""
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        about = self.about
        parts = {}
        noise = _known_noise(about.metadata)
        for name in channels if channels is not None else self.names:
            unit = self.unit(name)
            parts[name] = Channel(
                self.values(name, start, stop),
                unit,
                moved(about.gaps.get(name, ()), start, stop),
                moved(about.clipped.get(name, ()), start, stop),
                noise.get(name),
            )
        drive = about.excitation
        drive = drive and drive.seen_from(start / about.rate, (stop - start) / about.rate)
        begun = moment_after(about.start, start / about.rate)
        time = time_after(about.drive_time, start / about.rate)
        clock = time_after(about.clock_time, start / about.rate)
        markers = tuple(
            Marker(marker.index - start, marker.text)
            for marker in about.markers
            if start <= marker.index < stop
        )
        return Record(about.rate, parts, begun, drive, time, dict(about.metadata), clock, markers)

    def read(self) -> Record:
        """The whole recording in memory."""
        return self.slice(0, len(self))

    def blocks(self, channel: str, start: int, stop: int) -> Iterator[NDArray[np.float64]]:
        """Samples start to stop of one channel, a piece at a time."""
        for first in range(start, stop, BLOCK):
            yield self.values(channel, first, min(first + BLOCK, stop))

    def envelope(
        self, channel: str, start: int, stop: int, bins: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lowest and highest value in each of ``bins`` equal parts of samples start to stop, for plotting.

        With fewer samples than bins there is one bin a sample. Bins without any number are NaN.
        """
        start, stop, _ = slice(start, stop).indices(len(self))
        edges = bin_edges(start, stop, bins)
        return self._fine_envelope(channel, edges)

    def _fine_envelope(
        self, channel: str, edges: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """From the samples themselves, as many whole bins at a time as fit in a block."""
        count = len(edges) - 1
        low, high = np.full(count, np.nan), np.full(count, np.nan)
        first = 0
        while first < count:
            last = max(first + 1, int(np.searchsorted(edges, edges[first] + BLOCK, side="right")) - 1)
            for values, begin in self._pieces(channel, int(edges[first]), int(edges[last])):
                cuts = np.clip(edges[first : last + 1] - begin, 0, len(values))
                _merge_extremes(values, cuts, low[first:last], high[first:last])
            first = last
        return low, high

    def _pieces(self, channel: str, start: int, stop: int) -> Iterator[tuple[NDArray[np.float64], int]]:
        for first in range(start, stop, BLOCK):
            yield self.values(channel, first, min(first + BLOCK, stop)), first


class Part(Recording):
    """Some channels and a stretch of another recording, still read from there piece by piece.

    ``progress`` hears how much of it has been read, whoever reads it.
    """

    def __init__(
        self,
        whole: Recording,
        start: int,
        stop: int,
        channels: Sequence[str],
        progress: Progress = SILENT,
    ) -> None:
        start, stop, _ = slice(start, stop).indices(len(whole))
        about = whole.about
        self._whole = whole
        self._start = start
        self._positions = [whole.position(name) for name in channels]
        self._progress = progress
        self._read = 0
        samples = max(0, stop - start)
        super().__init__(
            Description(
                about.rate,
                tuple(about.channels[i] for i in self._positions),
                samples,
                moment_after(about.start, start / about.rate),
                about.excitation and about.excitation.seen_from(start / about.rate, samples / about.rate),
                about.metadata,
                _moved_each(about.gaps, channels, start, start + samples),
                _moved_each(about.clipped, channels, start, start + samples),
                tuple(
                    {**e, "index": e["index"] - start} if isinstance(e.get("index"), int) else e
                    for e in about.events
                    if not isinstance(e.get("index"), int) or start <= e["index"] <= start + samples
                ),
                time_after(about.drive_time, start / about.rate),
                time_after(about.clock_time, start / about.rate),
            )
        )

    def raw(self, channel: int, start: int, stop: int) -> NDArray[Any]:
        self._read += stop - start
        done = self._read / max(1, len(self) * len(self._positions))
        self._progress.report(done, f"{self.names[channel]}, {stop / self.rate:.0f} s")
        return self._whole.raw(self._positions[channel], self._start + start, self._start + stop)


class MemoryRecording(Recording):
    """A record in memory with the face of a recording on disk."""

    def __init__(self, record: Record) -> None:
        self._arrays = [c.data for c in record.channels.values()]
        super().__init__(describe(record))

    def raw(self, channel: int, start: int, stop: int) -> NDArray[Any]:
        return self._arrays[channel][start:stop]


def describe(record: Record) -> Description:
    """The description of a record in memory."""
    noise = {name: c.noise for name, c in record.channels.items() if c.noise is not None}
    return Description(
        rate=record.rate,
        channels=tuple(ChannelSpec(name, c.unit) for name, c in record.channels.items()),
        samples=len(record),
        start=record.start,
        excitation=record.excitation,
        metadata={**record.metadata, NOISE: noise} if noise else dict(record.metadata),
        gaps={name: c.gaps for name, c in record.channels.items() if c.gaps},
        clipped={name: c.clipped for name, c in record.channels.items() if c.clipped},
        events=marker_events(record.markers),
        drive_time=record.drive_time,
        clock_time=record.clock_time,
    )


def _known_noise(metadata: Mapping[str, Any]) -> dict[str, float]:
    """Noise of channels by name; an entry of that name that means something else is none."""
    given = metadata.get(NOISE)
    pairs = given.items() if isinstance(given, Mapping) else ()
    return {str(k): float(v) for k, v in pairs if isinstance(v, int | float) and 0 < v < np.inf}


def moved(spans: Sequence[Span], start: int, stop: int) -> tuple[Span, ...]:
    """The parts of the spans inside samples start to stop, counted from start."""
    inside = ((max(a, start) - start, min(b, stop) - start) for a, b in spans)
    return tuple((a, b) for a, b in inside if b > a)


def _moved_each(
    spans: Mapping[str, tuple[Span, ...]], names: Sequence[str], start: int, stop: int
) -> dict[str, tuple[Span, ...]]:
    each = {name: moved(spans.get(name, ()), start, stop) for name in names}
    return {name: found for name, found in each.items() if found}


def merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """The same samples as spans in order that neither touch nor overlap."""
    result: list[Span] = []
    for start, stop in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(stop, result[-1][1]))
        elif stop > start:
            result.append((start, stop))
    return tuple(result)


def bin_edges(start: int, stop: int, bins: int) -> NDArray[np.int64]:
    """Sample indices that part start to stop into equal bins of at least one sample each."""
    count = max(0, min(int(bins), stop - start))
    return start + (np.arange(count + 1, dtype=np.int64) * (stop - start)) // max(count, 1)


def _merge_extremes(
    values: NDArray[np.float64],
    cuts: NDArray[np.int64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> None:
    """Widen low and high by the extremes of values between the cuts; NaN counts as nothing."""
    filled = np.flatnonzero(cuts[1:] > cuts[:-1])
    if len(filled) == 0:
        return
    end = cuts[filled[-1] + 1]
    starts = cuts[filled]
    low[filled] = np.fmin(low[filled], np.fmin.reduceat(values[:end], starts))
    high[filled] = np.fmax(high[filled], np.fmax.reduceat(values[:end], starts))
