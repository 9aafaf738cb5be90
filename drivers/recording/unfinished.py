"""A journal read as a recording, whatever state it was left in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import DataError, Excitation, Span, read_as
from drivers.recording.journal import Journal
from drivers.recording.lazy import MARKER, Description, Recording, Verdict, merged

MOST_MISSING = 100  # times the samples that are there: more than 99 % lost is no gap but a lie
HARMLESS_GAP = 10_000_000  # samples that may be missing in any case


class JournalRecording(Recording):
    """A journal read as a recording: lost stretches are NaN (0 in integer channels) and marked as gaps."""

    title = "Shakedown recording that was never finished (journal)"

    def __init__(self, journal: Journal) -> None:
        super().__init__(_describe(journal))
        self._journal = journal
        self._first = np.ascontiguousarray(journal.frames["first"])
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
            first, count, position = self._journal.frames[at].item()
            begin, end = max(start, first), min(stop, first + count)
            if end > begin:
                part = self._journal.read_channel(self._file, position, count, channel)
                result[begin - start : end - start] = part[begin - first : end - first]
            at += 1
        return result

    def verify(self) -> Verdict:
        if self._journal.complete:
            return Verdict(True, "every checksum agrees")
        return Verdict(
            None if self._journal.damaged_bytes == 0 else False,
            f"unfinished recording; {self._journal.damaged_bytes} bytes belong to no whole frame",
        )


def _describe(journal: Journal) -> Description:
    """Header, later events and the holes between frames as one description."""
    header = journal.header
    names = [c.name for c in journal.channels]
    spans: dict[str, dict[str, list[Span]]] = {
        "gap": {n: [] for n in names},
        "overload": {n: [] for n in names},
    }
    metadata = dict(header.get("metadata") or {})
    drive, drive_time = header.get("excitation"), None
    events: list[Mapping[str, Any]] = []
    marked: dict[int, dict[str, Any]] = {}
    for event in journal.events:
        kind = event.get("kind")
        if kind in spans:
            for name in names if event.get("channel") is None else [event["channel"]]:
                spans[kind][name].append((event["start"], event["stop"]))
        elif kind == "metadata":
            metadata |= event["metadata"]
        elif kind == "excitation":
            drive, drive_time = event["excitation"], event.get("drive_time")
        elif kind == MARKER:  # the last word for each counts
            marked[event.get("number", -1)] = {k: v for k, v in event.items() if k != "number"}
        else:
            events.append(event)
    events += marked.values()
    ends = journal.frames["first"] + journal.frames["count"]
    samples = int(ends.max()) if len(ends) else 0
    holes = _holes(journal)

    def inside(found: list[Span]) -> tuple[Span, ...]:
        return merged([(max(0, a), min(b, samples)) for a, b in found])

    gaps = {n: inside(spans["gap"][n] + holes) for n in names}
    clipped = {n: inside(spans["overload"][n]) for n in names}
    if not journal.complete:
        events.append(
            {"kind": "recovered", "index": samples, "text": "recovered after the recording was cut off"}
        )
    stored = int(journal.frames["count"].sum())
    if samples > MOST_MISSING * stored + HARMLESS_GAP:
        raise DataError(
            f"{journal.path.name} claims {samples} samples of which only {stored} are there: it is damaged."
        )
    return Description(
        rate=read_as(float, header["rate"], "rate"),
        channels=journal.channels,
        samples=samples,
        start=read_as(str | None, header.get("start"), "start"),  # type: ignore[arg-type]
        excitation=None if drive is None else read_as(Excitation, drive, "excitation"),
        metadata=metadata,
        gaps={n: g for n, g in gaps.items() if g},
        clipped={n: c for n, c in clipped.items() if c},
        events=tuple(events),
        drive_time=read_as(float | None, drive_time, "drive_time"),  # type: ignore[arg-type]
    )


def _holes(journal: Journal) -> list[Span]:
    """Stretches between frames that no frame holds."""
    starts = journal.frames["first"]
    reached = np.maximum.accumulate(starts + journal.frames["count"])
    before = np.concatenate([[0], reached[:-1]]) if len(starts) else reached
    return [(int(a), int(b)) for a, b in zip(before[starts > before], starts[starts > before], strict=True)]
