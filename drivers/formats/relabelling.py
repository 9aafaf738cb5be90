"""Other names and units for the channels of a record, and blocks of one measurement joined to one record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from analysis import Channel, DataError, Record

APART = 0.5  # sample intervals by which a block may begin beside its place


def relabelled(record: Record, names: Mapping[str, str], units: Mapping[str, str]) -> Record:
    """The record with new names and units, each by the channel's old name; an empty name leaves it out."""
    for name in (*names, *units):
        record[name]  # an unknown one is refused here, in words
    kept: dict[str, Channel] = {}
    for old, channel in record.channels.items():
        new = names.get(old, old).strip()
        if new in kept:
            raise DataError(f"Two channels would be called '{new}'.")
        if new:
            kept[new] = replace(channel, unit=units.get(old, channel.unit).strip())
    if not kept:
        raise DataError("No channel is left.")
    return replace(record, channels=kept)


def joined(records: Sequence[Record]) -> Record:
    """Blocks of one measurement, in this order, as one record; where their clocks tell of a gap, it is kept.

    All have the same channels and the same rate.
    """
    first = records[0]
    for other in records[1:]:
        if other.names != first.names:
            raise DataError(
                f"The blocks do not belong together: {', '.join(first.names)} and {', '.join(other.names)}."
            )
        if abs(other.rate - first.rate) > 1e-9 * first.rate:
            raise DataError(f"The blocks have different rates: {first.rate:g} and {other.rate:g} Hz.")
    starts = _starts(records)
    length = starts[-1] + len(records[-1])
    channels = {}
    for name, channel in first.channels.items():
        data = np.full(length, np.nan)
        gaps = [
            (a + len(r), b) for a, b, r in zip(starts, starts[1:], records, strict=False) if b > a + len(r)
        ]
        clipped = []
        for start, record in zip(starts, records, strict=True):
            own = record.channels[name]
            data[start : start + len(record)] = own.data
            gaps += [(a + start, b + start) for a, b in own.gaps]
            clipped += [(a + start, b + start) for a, b in own.clipped]
        channels[name] = Channel(data, channel.unit, tuple(sorted(gaps)), tuple(clipped))
    metadata = {**first.metadata, "joined": [str(r.metadata.get("source", "")) for r in records]}
    return replace(first, channels=channels, metadata=metadata)


def _starts(records: Sequence[Record]) -> list[int]:
    """Sample at which each block begins: by its clock, or right behind the one before."""
    starts, at = [0], len(records[0])
    first = records[0]
    for record in records[1:]:
        if first.clock_time is not None and record.clock_time is not None:
            place = (record.clock_time - first.clock_time) * first.rate
            if place > at - APART:  # clocks that begin anew with each file tell nothing
                at = max(at, round(place))
        starts.append(at)
        at += len(record)
    return starts
