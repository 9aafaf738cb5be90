"""Counts what a stream brings, in the process that reads the source and nowhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from drivers.acquisition.stream_clock import StreamClock
from drivers.base.drive_page import StreamCounts
from drivers.base.protocols import Block, InstrumentError, Source


class StreamCounter:
    """Samples, gaps, overloads and late blocks since the stream was started."""

    def __init__(self, source: Source, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._waits = source.rate, source.waits
        self.clock = StreamClock(source.rate, now)
        self.counts = StreamCounts()
        self.expected = 0  # index of the sample that comes next
        self._absent: set[int] = set()  # channels that were missing up to there

    @property
    def seconds(self) -> float:
        """Of the source's time."""
        return self.expected / self._rate

    def count(self, block: Block) -> tuple[int, float]:
        """Samples lost before the block, and by how many seconds it is late (0: it is not)."""
        if not self.counts.samples:  # what a source counted before its first sample was never in the stream
            self.expected = max(self.expected, block.start_index)
        lost = block.start_index - self.expected
        if lost < 0:
            raise InstrumentError(
                f"The source went back from sample {self.expected} to {block.start_index}: "
                "its clock is wrong."
            )
        lateness = self.clock.arrived(block.stop_index)
        if self._waits:
            lateness = 0.0
        counts = self.counts
        self.counts = replace(
            counts,
            samples=counts.samples + block.samples,
            lost=counts.lost + lost,
            gaps=counts.gaps + (lost > 0) + self._new_gaps(block),
            overloads=counts.overloads + len(block.overloads),
            overloaded=counts.overloaded + sum(o.stop - o.start for o in block.overloads),
            late=counts.late + (lateness > 0),
        )
        self.expected = block.stop_index
        self._absent = {m.channel for m in block.missing if m.stop == block.stop_index}
        return lost, lateness

    def _new_gaps(self, block: Block) -> int:
        """Gaps of single channels that begin in the block; those of several at one time are one."""
        going_on = self._absent if block.start_index == self.expected else set()
        begun = {
            (m.start, m.stop)
            for m in block.missing
            if not (m.start == block.start_index and m.channel in going_on)
        }
        return len(begun)
