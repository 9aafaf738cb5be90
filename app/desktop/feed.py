"""The newest samples of the rig, kept for the eye: a ring of raw samples and what is drawn from it.

Thirty times a second the feed takes the blocks that have arrived and tells the pages. The recorder does not
depend on it: what the feed misses is missing on the screen only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PyQt6.QtCore import QObject, Qt, QTimer, pyqtSignal

from analysis import RecentMoments, sample_at, strobe_positions
from app.desktop.rigdesk import RigDesk
from drivers.base.protocols import Block, DriveState

Samples = NDArray[np.float64]

FRAME = 30  # ms: a little more often than thirty times a second, so that it stays so on a busy machine
SECONDS = 60.0  # kept, if memory allows
BUDGET = 12_000_000  # samples of all channels together kept at most
SECTION_POINTS = 20_000
MEASURED = 6  # statistics every so many frames


@dataclass
class ChannelStats:
    """What a channel did during the last second."""

    mean: float = np.nan
    rms: float = np.nan  # about the mean
    low: float = np.nan
    high: float = np.nan
    overloaded: bool = False  # during the last second
    overloads: int = 0  # since the start


class Ring:
    """The newest samples of a stream, addressed by their index since its start."""

    def __init__(self, channels: int, capacity: int) -> None:
        self._data = np.full((channels, capacity), np.nan)
        self.stop = 0  # index of the sample that comes next
        self.start = 0  # oldest index still held

    def append(self, index: int, data: Samples) -> None:
        """Samples from ``index`` on; lost ones before them become not-a-number."""
        capacity = self._data.shape[1]
        if index > self.stop:
            lost = min(index - self.stop, capacity)
            self._put(index - lost, np.full((len(self._data), lost), np.nan))
        self._put(index, data)
        self.stop = index + data.shape[1]
        self.start = max(self.start, self.stop - capacity)

    def last(self, count: int, row: int | None = None, step: int = 1) -> Samples:
        return self.between(self.stop - count, self.stop, row, step)

    def between(self, start: int, stop: int, row: int | None = None, step: int = 1) -> Samples:
        """Every ``step``-th sample from start to stop as far as they are held, of all channels or of one."""
        return np.concatenate(self.parts(start, stop, row, step), axis=-1)

    def parts(self, start: int, stop: int, row: int | None = None, step: int = 1) -> list[Samples]:
        """As :meth:`between`, not copied: up to the seam of the ring and from it. For use at once."""
        start, stop = max(start, self.start), min(stop, self.stop)
        source = self._data if row is None else self._data[row]
        if stop <= start:
            return [source[..., :0]]
        capacity = self._data.shape[1]
        a, b = start % capacity, (stop - 1) % capacity + 1
        if a < b:
            return [source[..., a:b:step]]
        skip = (a - capacity) % step  # the rhythm goes on behind the seam
        return [source[..., a::step], source[..., skip:b:step]]

    def _put(self, index: int, data: Samples) -> None:
        capacity = self._data.shape[1]
        skipped = max(0, data.shape[1] - capacity)
        data = data[:, skipped:]
        a = (index + skipped) % capacity
        first = min(data.shape[1], capacity - a)
        self._data[:, a : a + first] = data[:, :first]
        self._data[:, : data.shape[1] - first] = data[:, first:]


class Feed(QObject):
    """Takes the rig's blocks thirty times a second and keeps what the live pages draw."""

    restarted = pyqtSignal()  # other channels or another rate: rebuild the plots
    advanced = pyqtSignal(list)  # the blocks that have arrived

    def __init__(self, rig: RigDesk) -> None:
        super().__init__()
        self.rig = rig
        self.ring = Ring(1, 16)
        self._moments = RecentMoments(2)
        self.stats: list[ChannelStats] = []
        self.section = np.empty((1, 0))  # channels by strobed points, oldest first
        self.section_phase = 0.0  # rad of the drive at which the section is taken
        self.drive = DriveState()
        self._frames = 0
        self._pending: list[float] = []  # strobe positions whose neighbours have not arrived
        self._overloads: list[int] = []
        self._overloaded_at: list[int] = []
        self._timer = QTimer(self)
        self._timer.setInterval(FRAME)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.advance)
        rig.opened.connect(self.restart)
        rig.closed.connect(self._timer.stop)

    def restart(self) -> None:
        """Begin anew with the channels of the rig that has just been opened."""
        channels = len(self.rig.channels)
        capacity = int(min(SECONDS * self.rig.rate, BUDGET / max(channels, 1)))
        self.ring = Ring(channels, max(capacity, 1024))
        self._moments = RecentMoments(max(int(self.rig.rate), 2))
        self.stats = [ChannelStats() for _ in range(channels)]
        self._overloads, self._overloaded_at = [0] * channels, [-(10**12)] * channels
        self.drive = DriveState()
        self.clear_section()
        self.restarted.emit()
        self._timer.start()

    @property
    def phase_known(self) -> bool:
        """Whether the drive tells its phase; a generator on its own clock does not."""
        return bool(np.isfinite(self.drive.phase))

    def clear_section(self) -> None:
        """Forget the strobed points and begin again, such as after the drive has changed."""
        self.section = np.empty((len(self.stats), 0))
        self._pending = []

    def advance(self) -> None:
        """Take what has arrived."""
        blocks = self.rig.blocks()
        if not blocks:
            return
        for block in blocks:
            self._take(block)
        self._strobe()
        if self._frames % MEASURED == 0:
            self._measure()
        self._frames += 1
        self.advanced.emit(blocks)

    def _take(self, block: Block) -> None:
        if block.start_index < self.ring.stop:  # the source has been started again
            self.ring.stop = self.ring.start = block.start_index
            self._moments.forget()
            self.clear_section()
        self.ring.append(block.start_index, block.data)
        self._moments.append(block.stop_index, block.data)
        for overload in block.overloads:
            self._overloads[overload.channel] += 1
            self._overloaded_at[overload.channel] = overload.stop
        drive = block.drive
        if drive is None:
            return
        changed = (drive.frequency, drive.amplitude, drive.waveform) != (
            self.drive.frequency,
            self.drive.amplitude,
            self.drive.waveform,
        )
        if changed:
            self.clear_section()
        self.drive = drive
        if drive.playing and drive.waveform == "sine" and drive.steady and self.phase_known:
            turned = (
                drive.phase + 2 * np.pi * drive.frequency * (block.start_index - drive.index) / self.rig.rate
            )
            at = strobe_positions(turned, drive.frequency, self.rig.rate, block.samples, self.section_phase)
            self._pending.extend(block.start_index + at)

    def _strobe(self) -> None:
        """Read the samples at the positions whose neighbours have arrived."""
        ready = [p for p in self._pending if p < self.ring.stop - 2]
        if not ready:
            return
        self._pending = self._pending[len(ready) :]
        start = max(int(ready[0]) - 1, self.ring.start)
        data = self.ring.between(start, self.ring.stop)
        positions = np.array(ready) - start
        positions = positions[positions >= 1]
        if positions.size:
            points = sample_at(data, positions)
            points = points[:, np.isfinite(points).all(axis=0)]  # beside a gap there is nothing to read
            self.section = np.concatenate([self.section, points], axis=1)[:, -SECTION_POINTS:]

    def _measure(self) -> None:
        """Statistics of the last second."""
        now = self._moments.now()
        if now is None:
            return
        mean, spread, low, high = now.mean, now.spread, now.low, now.high
        for i in range(len(self.stats)):
            recent = self.ring.stop - self._overloaded_at[i] < self.rig.rate
            self.stats[i] = ChannelStats(
                float(mean[i]), float(spread[i]), float(low[i]), float(high[i]), recent, self._overloads[i]
            )
