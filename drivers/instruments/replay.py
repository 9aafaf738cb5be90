"""Replay of a recording as a source: at real speed, faster, or as fast as it can be read; pause and seek."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import numpy as np

from analysis import Span
from drivers.base.clock import Clock, RealClock
from drivers.base.protocols import (
    Block,
    ChannelInfo,
    ChannelSpan,
    DriveState,
    InstrumentError,
    Samples,
)
from drivers.recording import Recording


class ReplaySource:
    """A recording that plays once. Recording it again gives the same samples, gaps, overloads and drive.

    Lost stretches of the file come as missing samples; a seek is marked by one lost sample.
    """

    def __init__(self, recording: Recording, name: str = "replay", clock: Clock | None = None) -> None:
        self.name = name
        self._recording = recording
        about = recording.about
        calibration = about.metadata.get("calibration", {})
        self.channels = tuple(
            ChannelInfo(c.name, c.unit, calibration=dict(calibration.get(c.name, {}))) for c in about.channels
        )
        self.rate = about.rate
        self._clock = clock or RealClock()
        self._state = threading.Condition()
        self._running = self._paused = False
        self._overloads = _spans(about.clipped, about.names)
        self._missing = _spans(about.gaps, about.names)
        self._position = self._index = 0
        self._zero = self._held = self._clock.now()
        self._reason = ""

    @property
    def waits(self) -> bool:
        return self._clock.waits

    @property
    def position(self) -> int:
        """The sample of the recording that is read next."""
        return self._position

    @property
    def samples(self) -> int:
        """Length of the recording."""
        return len(self._recording)

    def start(self) -> None:
        with self._state:
            self._position = self._index = 0
            self._zero = self._clock.now()
            self._running, self._paused, self._reason = True, False, ""

    def read(self, into: Samples) -> Block:
        with self._state:
            self._state.wait_for(lambda: not (self._paused and self._running))
            if not self._running:
                raise InstrumentError("The replay is not running.")
            start, index = self._position, self._index
            count = min(into.shape[1], self.samples - start)
            reason, self._reason = self._reason, ""
            self._position, self._index = start + count, index + count
            due = self._zero + self._index / self.rate
        self._clock.wait_until(due)
        data = into[:, :count]
        for row, channel in enumerate(self._recording.names):
            data[row] = self._recording.values(channel, start, start + count)
        shift = index - start
        return Block(
            index,
            data,
            _within(self._overloads, start, count, shift),
            _within(self._missing, start, count, shift),
            reason,
            self._drive(start, index),
            ended=start + count >= self.samples,
        )

    def pause(self) -> None:
        with self._state:
            if not self._paused:
                self._paused, self._held = True, self._clock.now()

    def resume(self) -> None:
        with self._state:
            if self._paused:
                self._paused = False
                self._zero += self._clock.now() - self._held
                self._state.notify_all()

    def seek(self, index: int) -> None:
        """Go on from another sample of the recording."""
        with self._state:
            self._position = min(max(0, index), self.samples)
            if self._index == 0:
                return  # nothing was played yet: it just begins there
            self._index += 1
            self._zero -= 1 / self.rate
            self._reason = f"moved to sample {self._position} of the recording"

    def stop(self) -> None:
        with self._state:
            self._running = False
            self._state.notify_all()

    def close(self) -> None:
        self.stop()
        self._recording.close()

    def _drive(self, position: int, index: int) -> DriveState | None:
        drive, time = self._recording.about.excitation, self._recording.about.drive_time
        since = np.nan if time is None else time + position / self.rate
        if drive is None:
            return None if time is None else DriveState(index, time=since)
        known = np.nan if drive.phase is None else drive.phase
        phase = known + 2 * np.pi * drive.frequency * position / self.rate
        return DriveState(
            index, True, drive.waveform, drive.frequency, drive.amplitude or 0.0, 1.0, phase, steady=True,
            time=since,
        )  # fmt: skip


def _spans(spans: Mapping[str, tuple[Span, ...]], names: tuple[str, ...]) -> tuple[ChannelSpan, ...]:
    found = [ChannelSpan(names.index(n), a, b) for n, parts in spans.items() for a, b in parts]
    return tuple(sorted(found, key=lambda s: s.start))


def _within(spans: tuple[ChannelSpan, ...], start: int, count: int, shift: int) -> tuple[ChannelSpan, ...]:
    """The part of each span that lies in a block, in the stream's indices."""
    stop = start + count
    return tuple(
        ChannelSpan(s.channel, max(s.start, start) + shift, min(s.stop, stop) + shift)
        for s in spans
        if s.start < stop and s.stop > start
    )
