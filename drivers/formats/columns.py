"""Columns found in a file, and which of them make a recording: the rate, the times, the channels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import Channel, DataError, Marker, Record, Span
from drivers.formats.drive import clock_from, drive_from, markers_from, without_drive
from drivers.formats.names import distinct
from drivers.formats.options import Options
from drivers.formats.timing import (
    BLOCK,
    SECONDS,
    Grid,
    checked_rate,
    grid_of_times,
    in_seconds,
    is_plain_time,
    is_time,
    resampled,
    simplest,
)
from drivers.recording.guesses import Guesses
from drivers.recording.journal import SAMPLE_TYPES, ChannelSpec
from drivers.recording.lazy import Description, MemoryRecording, Recording, marker_events

Reader = Callable[[int, int], NDArray[Any]]  # samples start to stop, as stored
Place = tuple[str, ...]  # names of the groups around a column, the outermost first

RATE_NAMES = {"fs", "rate", "samplerate", "samplingrate", "samplingfrequency", "samplefrequency", "srate"}
STEP_NAMES = {
    "dt",
    "ts",
    "deltat",
    "deltax",
    "sampleinterval",
    "samplinginterval",
    "sampletime",
    "wfincrement",
}
SLOW = 1.0  # Hz: steps of whole seconds could be of milliseconds or of samples as well
NO_UNIT = "the times tell no unit and are taken as seconds"


@dataclass(frozen=True)
class Column:
    """A one-dimensional signal in a file, read when asked for."""

    name: str
    length: int
    dtype: np.dtype[Any]
    read: Reader
    unit: str = ""
    rate: float | None = None  # Hz, where the file says it for this column
    scale: float = 1.0
    offset: float = 0.0
    group: str = ""  # put before the name where that alone is not unique
    clipped: tuple[Span, ...] = ()  # samples beyond the range
    stamped: bool = False  # times of day, by whatever name
    relative: bool = False  # times that were counted from the first sample on reading: no clock

    @property
    def stored_as(self) -> str | None:
        """The type code under which the samples can be kept; None for what is no real number."""
        code = f"{self.dtype.kind}{self.dtype.itemsize}"
        return {"b1": "u1", "f2": "f4"}.get(code, code if code in SAMPLE_TYPES else None)


def column_of(name: str, array: NDArray[Any], unit: str = "", rate: float | None = None) -> Column:
    """A column that is in memory already."""
    return Column(name, len(array), array.dtype, lambda start, stop: array[start:stop], unit, rate)


@dataclass
class Found:
    """What a reader found in a file."""

    source: str
    columns: list[Column] = field(default_factory=list)
    rate: float | None = None  # Hz, where the file says it for all
    start: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    close: Callable[[], None] | None = None

    def touch(self) -> None:
        """Read both ends of each column, then close the file."""
        try:
            for column in self.columns:
                column.read(0, min(1, column.length))
                column.read(max(0, column.length - 1), column.length)
        finally:
            if self.close is not None:
                self.close()


class ColumnRecording(Recording):
    """Columns of a file as a recording, read from the file piece by piece."""

    def __init__(
        self, about: Description, columns: Sequence[Column], close: Callable[[], None] | None
    ) -> None:
        super().__init__(about)
        self._columns = columns
        self._close = close

    def raw(self, channel: int, start: int, stop: int) -> NDArray[Any]:
        try:
            data = np.asarray(self._columns[channel].read(start, stop))
        except MemoryError:
            raise
        except Exception as error:  # a damaged file may fail in its reader only here
            raise DataError(
                f"The file is damaged: samples {start} to {stop} of '{self.names[channel]}' cannot be read "
                f"({str(error) or type(error).__name__})."
            ) from error
        if data.shape != (stop - start,):
            raise DataError(f"The file ends before sample {stop} of '{self.names[channel]}'.")
        return data.astype(self.about.channels[channel].numpy_type, copy=False)

    def close(self) -> None:
        if self._close is not None:
            self._close()
            self._close = None


def recording_from(found: Found, options: Options) -> Recording:
    """The largest group of equal length and rate as one recording; the metadata name what was left out."""
    usable = [c for c in found.columns if c.stored_as is not None and c.length > 0]
    if not usable:
        _close(found)
        if any(c.stored_as is not None for c in found.columns):
            raise DataError(f"{found.source} has channels but not one sample.")
        raise DataError(f"{found.source} holds no signal: no vector of real numbers.")
    groups = _groups(usable)
    try:
        chosen = _chosen_group(groups, options, found.source)
        times = _times(chosen, options, found.source)
    except DataError:
        _close(found)
        raise
    channels = [c for c in chosen if c not in times]
    if not channels:
        _close(found)
        raise DataError(f"{found.source} has times but no channel.")
    length = channels[0].length
    declared = found.rate or channels[0].rate
    try:
        grid = _grid(times[0] if times else None, declared, length, options, found.source)
        if options.resample is not None:
            recording = _resampled(found, channels, times, grid.rate, options.resample)
            recording.guesses = _guesses(groups, chosen, times, grid.rate)
            return recording
        drive, drive_time = drive_from(found.metadata)
        metadata = (
            _metadata(found, chosen) | _words_on_holes(grid.holes) | _words_on_rates(declared, grid.rate)
        )
        if grid.rows is not None:
            channels = [_with_holes(column, grid.rows) for column in channels]
        labels = _labels(channels)
        about = Description(
            rate=grid.rate,
            channels=tuple(
                ChannelSpec(label, c.unit, str(c.stored_as), c.scale, c.offset)
                for label, c in zip(labels, channels, strict=True)
            ),
            samples=channels[0].length,
            start=found.start,
            excitation=drive,
            metadata=metadata,
            gaps=dict.fromkeys(labels, grid.holes) if grid.holes else {},
            clipped={label: c.clipped for label, c in zip(labels, channels, strict=True) if c.clipped},
            drive_time=drive_time,
            clock_time=_clock(found, times),
            events=marker_events(m for m in markers_from(found.metadata) if m.index < length),
        )
    except BaseException:
        _close(found)
        raise
    result = ColumnRecording(about, channels, found.close)
    result.guesses = _guesses(groups, chosen, times, grid.rate)
    return result


def _guesses(groups: list[list[Column]], chosen: list[Column], times: list[Column], rate: float) -> Guesses:
    words = [f"{len(g)} columns of {g[0].length} samples: {_few(c.name for c in g)}" for g in groups]
    names = tuple(c.name for c in chosen)
    told = not times or times[0].unit.strip() or times[0].stamped or times[0].name.lower() == "seconds"
    notes = () if told or rate > SLOW else (NO_UNIT,)
    return Guesses(groups.index(chosen) + 1, tuple(words), names, times[0].name if times else "", notes=notes)


def _few(names: Iterable[str]) -> str:
    """The first names of several."""
    known = list(names)
    return ", ".join(known[:4]) + (", …" if len(known) > 4 else "")


def _labels(columns: Sequence[Column]) -> list[str]:
    """A different name for each column, with its group's where needed."""
    names = [c.name for c in columns]
    return distinct(
        [f"{c.group}/{c.name}" if c.group and names.count(c.name) > 1 else c.name for c in columns]
    )


def leaf(name: str) -> str:
    """The part of a path-like name that tells what it is: ``run1.t`` and ``run1/t{2}`` give ``t``."""
    return re.split(r"[./]", name)[-1].split("{")[0]


def declared_rate(scalars: Mapping[str, Any]) -> float | None:
    """The rate in Hz from entries such as fs or dt, however they are spelt."""
    for name, value in scalars.items():
        plain = re.sub(r"[^a-z]", "", name.lower())
        if plain not in RATE_NAMES | STEP_NAMES:
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            continue
        if np.isfinite(number) and number > 0:
            return number if plain in RATE_NAMES else simplest(1 / number, 1e-12)
    return None


def _groups(columns: Sequence[Column]) -> list[list[Column]]:
    """Columns of equal length and rate together, the group with most numbers first."""
    groups: dict[tuple[int, float | None], list[Column]] = {}
    for column in columns:
        groups.setdefault((column.length, column.rate), []).append(column)
    apart = [part for group in groups.values() for part in _by_times(group)]
    return sorted(apart, key=lambda g: -g[0].length * len(g))


def _by_times(columns: list[Column]) -> list[list[Column]]:
    """Columns of equal length, apart where they have times of their own that differ: other runs."""
    parts: list[tuple[Column, set[Place]]] = []  # times, and the places of all that are equal to them
    for times in (c for c in columns if is_plain_time(leaf(c.name)) and _increases(c)):
        same = next((places for first, places in parts if _same_times(first, times)), None)
        if same is None:
            parts.append((times, {_place(times)}))
        else:
            same.add(_place(times))
    if len({place for _, places in parts for place in places}) < 2:
        return [columns]
    told: list[list[Column]] = [[] for _ in parts]
    for column in columns:
        here = _place(column)
        shared = [max((len(p) for p in places if here[: len(p)] == p), default=-1) for _, places in parts]
        told[int(np.argmax(shared))].append(column)  # those that belong to none: to the first
    return [part for part in told if part]


def _place(column: Column) -> Place:
    """The names above a column's own: ``run1.t`` of the group ``a`` stands in a, run1."""
    return (*filter(None, [column.group]), *re.split(r"[./]", column.name)[:-1])


def _same_times(one: Column, other: Column) -> bool:
    """Whether two columns tell the same times, by their beginnings and ends."""
    if one.length != other.length:
        return False
    for start, stop in ((0, min(one.length, BLOCK)), (one.length - 1, one.length)):
        mine, theirs = (
            np.asarray(c.read(start, stop), dtype=np.float64) * SECONDS[c.unit.strip()] for c in (one, other)
        )
        if not np.allclose(mine, theirs, rtol=1e-9, atol=0.0, equal_nan=True):
            return False
    return True


def _chosen_group(groups: list[list[Column]], options: Options, source: str) -> list[Column]:
    number = options.table or 1
    if not 1 <= number <= len(groups):
        raise DataError(f"{source} has no table {number}: it holds {len(groups)}.")
    return groups[number - 1]


def _times(columns: list[Column], options: Options, source: str) -> list[Column]:
    """The column of times, if there is one; others of such a name that increase are times as well."""
    if options.time is None:
        named = _times_by_name([c for c in columns if is_time(leaf(c.name))])
        return named or [c for c in columns if c.stamped][:1]
    if not options.time:
        return []
    times = [c for c in columns if c.name == options.time]
    if not times:
        raise DataError(f"{source} has no column '{options.time}': it has {_few(c.name for c in columns)}.")
    return times[:1]


def _times_by_name(named: list[Column]) -> list[Column]:
    """Which of the columns that are named like times hold them: a temperature or torque ``T`` does not.

    Where none increases the first is returned, so that what is wrong with it can be said.
    """
    plain = [c for c in named if is_plain_time(leaf(c.name))]
    increasing = [c for c in plain if _increases(c)] or plain[:1]
    return increasing or [c for c in named if _increases(c)]


def _increases(column: Column) -> bool:
    """Whether a column's beginning may be times: in a unit of time, each later than the one before."""
    if column.unit.strip() not in SECONDS:
        return False
    values = np.asarray(column.read(0, min(column.length, BLOCK)), dtype=np.float64)
    return bool(np.all(np.diff(values) > 0))


def _with_holes(column: Column, rows: NDArray[np.int64]) -> Column:
    """A column of which the file holds some rows only, on the whole grid: elsewhere NaN, or 0 in integers."""
    missing = np.nan if column.dtype.kind == "f" else 0

    def read(start: int, stop: int) -> NDArray[Any]:
        first, last = np.searchsorted(rows, [start, stop])
        result = np.full(stop - start, missing, column.dtype)
        result[rows[first:last] - start] = column.read(int(first), int(last))
        return result

    clipped = tuple((int(rows[a]), int(rows[b - 1]) + 1) for a, b in column.clipped)
    return replace(column, length=int(rows[-1]) + 1, read=read, clipped=clipped)


def _words_on_holes(holes: Sequence[Span]) -> dict[str, str]:
    """A sentence on samples that are not in the file."""
    count = sum(stop - start for start, stop in holes)
    if not count:
        return {}
    where = f"{len(holes)} place{'s' * (len(holes) > 1)}"
    return {"holes": f"the times leave out {count} samples in {where}: they are marked as lost"}


def _words_on_rates(declared: float | None, rate: float) -> dict[str, str]:
    """A sentence where the file names another rate than its times tell: they may be in another unit."""
    if declared is None or abs(declared - rate) <= 0.01 * rate:
        return {}
    return {"rates": f"the file names {declared:.6g} Hz, its times tell {rate:.6g} Hz: these are taken"}


def _grid(times: Column | None, declared: float | None, length: int, options: Options, source: str) -> Grid:
    """Rate, and which of its samples are there."""
    if times is not None and options.resample is None and times.length > 1:
        grid = grid_of_times(lambda a, b: _seconds(times, a, b, source), times.length, source, options.rate)
        checked_rate(grid.rate, options.rate, source)
        return grid
    return Grid(_rate(times, declared, length, options, source))


def _rate(times: Column | None, declared: float | None, length: int, options: Options, source: str) -> float:
    """Where times do not tell it, or are to be interpolated."""
    if options.rate is not None and times is None:
        if declared is not None:
            return checked_rate(declared, options.rate, source)
        return checked_rate(options.rate, None, source)
    if times is not None and declared is None and times.length > 1:
        return (length - 1) / _span(times, source)
    if declared is None and times is not None:
        raise DataError(f"{source} has too few samples to tell the sample rate: give it (--rate HZ).")
    if declared is None:
        raise DataError(
            f"{source} does not tell its sample rate, nor has it a column t: give it (--rate HZ)."
        )
    return checked_rate(declared, options.rate, source)


def _seconds(times: Column, start: int, stop: int, source: str) -> NDArray[np.float64]:
    return in_seconds(np.asarray(times.read(start, stop), dtype=np.float64), times.unit, source)


def _clock(found: Found, times: Sequence[Column]) -> float | None:
    """The first sample's time by the file's own clock, s."""
    if not times or times[0].relative or times[0].length == 0:
        return clock_from(found.metadata)
    first = float(_seconds(times[0], 0, 1, found.source)[0])
    return first if np.isfinite(first) else None


def _span(times: Column, source: str) -> float:
    first = _seconds(times, 0, 1, source)[0]
    last = _seconds(times, times.length - 1, times.length, source)[0]
    return float(last - first)


def _resampled(
    found: Found, channels: list[Column], times: list[Column], rate: float, new_rate: float
) -> Recording:
    length = channels[0].length
    grid = _seconds(times[0], 0, length, found.source) if times else np.arange(length) / rate
    labels, clock = _labels(channels), _clock(found, times)
    arrays = [np.asarray(c.read(0, length), dtype=np.float64) * c.scale + c.offset for c in channels]
    _close(found)
    uniform, holes = resampled(grid, arrays, new_rate, found.source)
    drive, drive_time = drive_from(found.metadata)
    record = Record(
        new_rate,
        {label: Channel(a, c.unit, holes) for label, a, c in zip(labels, uniform, channels, strict=True)},
        start=found.start,
        excitation=drive,
        drive_time=drive_time,
        metadata=_metadata(found, [*channels, *times]) | _words_on_holes(holes),
        clock_time=clock,
        markers=tuple(
            Marker(moved, marker.text)
            for marker in markers_from(found.metadata)
            if (moved := round(marker.index * new_rate / rate)) < len(uniform[0])
        ),
    )
    return MemoryRecording(record)


def _metadata(found: Found, chosen: Sequence[Column]) -> dict[str, Any]:
    left_out = [
        f"{c.group}{'/' * bool(c.group)}{c.name} ({c.length} samples)"
        for c in found.columns
        if c not in chosen
    ]
    known = without_drive(found.metadata)
    return {"source": found.source, **known, **({"left out": left_out[:100]} if left_out else {})}


def _close(found: Found) -> None:
    if found.close is not None:
        found.close()
