"""Recording: blocks of samples into a journal, the journal into a finished file when it stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis import SILENT, DataError, Excitation, Progress
from drivers.recording.finishing import Finished, finish, with_suffix
from drivers.recording.journal import SUFFIX as JOURNAL_SUFFIX
from drivers.recording.journal import ChannelSpec, JournalWriter
from drivers.recording.lazy import MARKER, Description


class Recorder:
    """Writes a recording while it is being made. One thread appends; notes may come from any thread.

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

    def mark(self, number: int, text: str, index: int) -> None:
        """Keep a moment that a person marked; the same number again gives it another word."""
        at = int(index) - (self._origin or 0)
        self._journal.event({"kind": MARKER, "index": at, "text": text, "number": number})

    def describe(self, **metadata: Any) -> None:
        """Add to the metadata, or change what is there."""
        self._journal.event({"kind": "metadata", "metadata": metadata})

    def drive(self, excitation: Excitation | None, drive_time: float | None = None) -> None:
        """Set the drive, and its own time in seconds, as seen from the recording's first sample."""
        known = None if excitation is None else asdict(excitation)
        self._journal.event({"kind": "excitation", "excitation": known, "drive_time": drive_time})

    def close(self, progress: Progress = SILENT) -> Finished:
        """Stop and turn the journal into the finished file.

        Never raises for a disk that is full or gone: then the journal stays, is a recording by itself, and
        ``Finished.problem`` says so.
        """
        if self._finished is None:
            failure = self._journal.close()
            self._finished = self._finish(None if failure is None else str(failure), progress)
        return self._finished

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _finish(self, problem: str | None, progress: Progress) -> Finished:
        try:
            finished = finish(self._journal.path, progress=progress)
        except DataError as error:
            if not self._journal.path.exists() and self.path.exists():
                # a window that started meanwhile found the closed journal first and has finished it
                return Finished(self.path, self.samples, problem)
            words = " ".join(filter(None, [problem, str(error)]))
            return Finished(self._journal.path, self.samples, words)
        return replace(finished, problem=problem or finished.problem)

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
