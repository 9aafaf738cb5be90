"""Recording: blocks of samples into a journal, the journal into a finished file when it stops."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.errors import DataError
from analysis.progress import SILENT, Progress
from analysis.record import Excitation, Span
from drivers.journal import (
    SUFFIX as JOURNAL_SUFFIX,
)
from drivers.journal import (
    ChannelSpec,
    Journal,
    JournalWriter,
    RecordingStopped,
    read_journal,
    sync_folder,
)
from drivers.recording.container import SUFFIX, write_container
from drivers.recording.lazy import Description, Recording, Verdict, merged


@dataclass(frozen=True)
class Finished:
    """A recording that has ended: where it is, how long, and what went wrong on the way if anything did."""

    path: Path
    samples: int
    problem: str | None = None


class Recorder:
    """Writes a recording while it is being made. Every method may be called from any thread.

    Channels are given as names, or as :class:`ChannelSpec` with unit, stored type and calibration. Indices
    count samples of the source's stream; the first block's index becomes sample 0 of the recording.
    """

    def __init__(
        self,
        path: Path | str,
        rate: float,
        channels: Sequence[ChannelSpec | str],
        start: str | None = None,
        excitation: Excitation | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = with_suffix(Path(path))
        if self.path.exists():
            raise DataError(f"{self.path} is already there: recordings are never overwritten.")
        self.rate = float(rate)
        self.channels = tuple(ChannelSpec(c) if isinstance(c, str) else c for c in channels)
        if not self.channels:
            raise DataError("A recording needs at least one channel.")
        about = Description(self.rate, self.channels, 0, start, excitation, dict(metadata or {}))
        header = {
            "rate": about.rate,
            "start": start,
            "excitation": None if excitation is None else asdict(excitation),
            "metadata": about.metadata,
        }
        self._journal = JournalWriter(self.journal_path, header, self.channels)
        self._origin: int | None = None
        self._next = 0
        self._finished: Finished | None = None

    @property
    def journal_path(self) -> Path:
        return self.path.with_name(self.path.name + JOURNAL_SUFFIX)

    @property
    def samples(self) -> int:
        """Samples so far, gaps included."""
        return self._next - (self._origin or 0)

    @property
    def bytes_written(self) -> int:
        return self._journal.bytes_written

    def append(self, samples: ArrayLike | Sequence[NDArray[Any]], first_index: int) -> None:
        """Append samples [channel, sample] that start at ``first_index``; a jump ahead is stored as a gap.

        Raises :class:`RecordingStopped` when the disk takes no more: call :meth:`close` then.
        """
        arrays = self._arrays(samples)
        first_index = int(first_index)
        if self._origin is None:
            self._origin = self._next = first_index
        if first_index < self._next:
            raise DataError(
                f"The block at sample {first_index} overlaps what is recorded up to sample {self._next}."
            )
        if first_index > self._next:
            self.gap(self._next, first_index)
        if len(arrays[0]):
            self._journal.samples(first_index - self._origin, arrays)
        self._next = first_index + len(arrays[0])

    def gap(self, start: int, stop: int, channel: str | None = None) -> None:
        """Note that samples start to stop were lost (of one channel, or of all)."""
        self._span("gap", start, stop, channel)

    def overload(self, channel: str | None, start: int, stop: int) -> None:
        """Note that samples start to stop were clipped (of one channel, or of all)."""
        self._span("overload", start, stop, channel)

    def note(self, text: str, index: int | None = None) -> None:
        """Note something at a sample, by default at the newest one."""
        at = self.samples if index is None else int(index) - (self._origin or 0)
        self._journal.event({"kind": "note", "index": at, "text": text})

    def describe(self, **metadata: Any) -> None:
        """Add to the metadata, or change what is there."""
        self._journal.event({"kind": "metadata", "metadata": metadata})

    def drive(self, excitation: Excitation) -> None:
        """Set the drive as seen from the recording's first sample."""
        self._journal.event({"kind": "excitation", "excitation": asdict(excitation)})

    def close(self, progress: Progress = SILENT) -> Finished:
        """Stop and turn the journal into the finished file.

        Never raises for a disk that is full or gone: then the journal stays, is a recording by itself, and
        ``Finished.problem`` says so.
        """
        if self._finished is None:
            failure = self._journal.close()
            self._finished = finish(self.journal_path, self.path, self.samples, failure, progress)
        return self._finished

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _span(self, kind: str, start: int, stop: int, channel: str | None) -> None:
        origin = self._origin or 0
        if channel is not None and channel not in [c.name for c in self.channels]:
            raise DataError(f"The recording has no channel '{channel}'.")
        self._journal.event(
            {"kind": kind, "start": int(start) - origin, "stop": int(stop) - origin, "channel": channel}
        )

    def _arrays(self, samples: ArrayLike | Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        rows: list[NDArray[Any]] = [np.asarray(row) for row in samples]  # type: ignore[union-attr]
        if len(rows) != len(self.channels) or len({r.shape for r in rows}) > 1 or rows[0].ndim != 1:
            raise DataError(
                f"A block must have {len(self.channels)} channels of equally many samples each, "
                f"not {len(rows)} of shapes {', '.join(str(r.shape) for r in rows[:8])}."
            )
        result = []
        for row, channel in zip(rows, self.channels, strict=True):
            if not np.can_cast(row.dtype, channel.numpy_type, "safe"):
                raise DataError(
                    f"Channel '{channel.name}' is stored as {channel.dtype}, which cannot hold {row.dtype}."
                )
            result.append(np.ascontiguousarray(row, channel.numpy_type))
        return result


class JournalRecording(Recording):
    """A journal read as a recording: lost stretches are NaN (0 in integer channels) and marked as gaps."""

    title = "Shakedown recording that was never finished (journal)"

    def __init__(self, journal: Journal) -> None:
        super().__init__(_describe(journal))
        self._journal = journal
        self._first = np.array([f.first for f in journal.frames], dtype=np.int64)
        self._file = os.open(journal.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def raw(self, channel: int, start: int, stop: int) -> NDArray[Any]:
        spec = self.about.channels[channel]
        result = np.full(stop - start, np.nan if spec.dtype[0] == "f" else 0, spec.numpy_type)
        at = max(0, int(np.searchsorted(self._first, start, side="right")) - 1)
        while at < len(self._first) and self._first[at] < stop:
            frame = self._journal.frames[at]
            begin, end = max(start, frame.first), min(stop, frame.first + frame.count)
            if end > begin:
                part = self._journal.read_channel(self._file, frame, channel)
                result[begin - start : end - start] = part[begin - frame.first : end - frame.first]
            at += 1
        return result

    def verify(self) -> Verdict:
        if self._journal.complete:
            return Verdict(True, "every checksum agrees")
        return Verdict(
            None if self._journal.damaged_bytes == 0 else False,
            f"unfinished recording; {self._journal.damaged_bytes} bytes belong to no whole frame",
        )


def finish(
    journal_path: Path,
    path: Path,
    samples: int = 0,
    failure: RecordingStopped | None = None,
    progress: Progress = SILENT,
) -> Finished:
    """Turn a journal into the finished file; delete it only when the file has been proven."""
    problem = None if failure is None else str(failure)
    try:
        journal = read_journal(journal_path)
        with JournalRecording(journal) as source:
            samples = len(source)
            write_container(source, path, progress)
    except (DataError, OSError) as error:
        kept = f"The recording stays in {journal_path} and is finished when Shakedown starts next"
        return Finished(journal_path, samples, " ".join(filter(None, [problem, f"{kept} ({error})"])))
    journal_path.unlink()
    sync_folder(journal_path.parent)
    return Finished(path, samples, problem)


def with_suffix(path: Path) -> Path:
    """The finished file's name: ``run1`` and ``run1.h5`` both give ``run1.h5``."""
    return path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)


def _describe(journal: Journal) -> Description:
    """Header, later events and the holes between frames as one description."""
    header = journal.header
    names = [c.name for c in journal.channels]
    spans: dict[str, dict[str, list[Span]]] = {
        "gap": {n: [] for n in names},
        "overload": {n: [] for n in names},
    }
    metadata = dict(header.get("metadata") or {})
    drive = header.get("excitation")
    events = []
    for event in journal.events:
        kind = event.get("kind")
        if kind in spans:
            for name in names if event.get("channel") is None else [event["channel"]]:
                spans[kind][name].append((event["start"], event["stop"]))
        elif kind == "metadata":
            metadata |= event["metadata"]
        elif kind == "excitation":
            drive = event["excitation"]
        else:
            events.append(event)
    samples = max((f.first + f.count for f in journal.frames), default=0)
    holes = _holes(journal)

    def inside(found: list[Span]) -> tuple[Span, ...]:
        return merged([(max(0, a), min(b, samples)) for a, b in found])

    gaps = {n: inside(spans["gap"][n] + holes) for n in names}
    clipped = {n: inside(spans["overload"][n]) for n in names}
    if not journal.complete:
        events.append(
            {"kind": "recovered", "index": samples, "text": "recovered after the recording was cut off"}
        )
    return Description(
        rate=header["rate"],
        channels=journal.channels,
        samples=samples,
        start=header.get("start"),
        excitation=None if drive is None else Excitation(**drive),
        metadata=metadata,
        gaps={n: g for n, g in gaps.items() if g},
        clipped={n: c for n, c in clipped.items() if c},
        events=tuple(events),
    )


def _holes(journal: Journal) -> list[Span]:
    holes, reached = [], 0
    for frame in journal.frames:
        if frame.first > reached:
            holes.append((reached, frame.first))
        reached = max(reached, frame.first + frame.count)
    return holes
