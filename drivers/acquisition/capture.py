"""A recording under way: the bounded queue, the trigger and the thread that feeds a recorder.

The queue never drops: its length is the lag that is shown, and when it is full the recording ends loudly with
everything in it saved.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from analysis import Excitation, ShakedownError
from drivers.acquisition.stream_clock import WRONG_RATE, StreamClock
from drivers.base.protocols import Block, ChannelSpan, DriveState, Source
from drivers.base.trigger import Trigger, TriggerFinder
from drivers.recording import ChannelSpec, Finished, Recorder

_log = logging.getLogger(__name__)

QUEUE_SECONDS = 30.0  # what the recorder may lag behind before the recording is stopped
QUEUE_BYTES = 512 << 20
LOST_AT_END = "shorter than asked"  # begins the note in a recording that is shorter than it was to be
WARNINGS = (LOST_AT_END, WRONG_RATE)  # how notes begin that whoever recorded should read at once


def queue_capacity(source: Source, seconds: float = QUEUE_SECONDS) -> int:
    """Samples a channel that may wait for the recorder."""
    return int(min(seconds * source.rate, QUEUE_BYTES / (8 * len(source.channels))))


class Sink(Protocol):
    """What the engine needs of a recorder (drivers.recording.Recorder has it)."""

    def append(self, samples: Any, first_index: int) -> None: ...
    def gap(self, start: int, stop: int, channel: str | None = None) -> None: ...
    def overload(self, channel: str | None, start: int, stop: int) -> None: ...
    def note(self, text: str, index: int | None = None) -> None: ...
    def mark(self, number: int, text: str, index: int) -> None: ...
    def drive(self, excitation: Excitation | None, drive_time: float | None) -> None: ...
    def describe(self, **metadata: Any) -> None: ...
    def close(self) -> Any: ...


@dataclass(frozen=True)
class CaptureState:
    """How far a recording has come, as its process tells it to another one."""

    recorded: int = 0
    triggered: bool = False
    lag: float = 0.0  # s
    queue: float = 0.0  # filling, 0 to 1
    failed: str = ""
    journals: tuple[Path, ...] = ()
    finished: tuple[Finished, ...] = ()
    done: bool = False
    drive_stop: DriveStop | None = None


@dataclass(frozen=True)
class DriveStop:
    """A STOP or a trip: what a recording under way keeps of it."""

    reason: str
    kind: str  # "stop": by a person; "trip": by a limit, a failure, a missing sign of life
    time: str  # of day
    sample: int  # of the stream
    drive: str = ""  # what played, such as "SINE 7.5 Hz 1.50 V"
    values: Mapping[str, float] = field(default_factory=dict)  # of the channels that tripped it


class Capture:
    """One recording under way, or a series of them behind a trigger. Runs the recorder in its own thread."""

    def __init__(
        self,
        source: Source,
        make_sink: Callable[[int], Sink],
        length: int | None,
        trigger: Trigger | None,
        captures: int,
        capacity: int,
        clock: StreamClock | None = None,
        real: bool = False,
    ) -> None:
        """``real``: the samples are measured, so their rate can be checked by the clock."""
        self._source, self._make_sink, self._clock, self._real = source, make_sink, clock, real
        self._length, self._captures, self._capacity = length, captures, capacity
        self._names = [c.name for c in source.channels]
        self._finder = None if trigger is None else TriggerFinder(trigger, source.rate)
        self._row = 0 if trigger is None else trigger.row(self._names)
        self._before = 0 if trigger is None else round(trigger.before * source.rate)
        self._queue: deque[Block] = deque()
        self._queued = 0
        self._notes: deque[tuple[str, int]] = deque()
        self._marks: dict[int, int] = {}  # sample of each marker, by its number
        self._unmarked: deque[tuple[int, str, int]] = deque()  # markers that are still to be written
        self._stops: deque[DriveStop] = deque()
        self.drive_stop: DriveStop | None = None  # the first one while this was recorded, in its samples
        self._state = threading.Condition()
        self._closing = False
        self.failed = ""
        self.finished: list[Any] = []  # what each recorder's close gave
        self.recorded = 0  # samples of the current capture
        self.journals: list[Path] = []  # where each recorder keeps its samples until it is closed
        self._past: deque[Block] = deque()  # pre-trigger
        self._writing: _Writing | None = None
        self._opened = 0
        self._finisher = ThreadPoolExecutor(1, "recording finisher")
        self._done = threading.Event()  # not Thread.join: Ctrl-C during a join takes a thread for ended
        threading.Thread(target=self._run, name="recorder", daemon=True).start()

    # -- from the reading thread

    def offer(self, block: Block) -> None:
        """Queue a block. A full queue ends the recording loudly, unless the source can wait."""
        with self._state:
            if self._closing:
                return
            if self._source.waits:
                self._state.wait_for(lambda: self._queued < self._capacity or self._closing)
            elif self._queued + block.samples > self._capacity:
                behind = self._queued / self._source.rate
                self.failed = (
                    f"The disk is too slow: the recorder fell {behind:.1f} s behind, so the recording was "
                    f"ended at sample {block.start_index}; everything up to there is saved. "
                    "Record fewer channels, a lower rate, or to a faster disk."
                )
                self._closing = True
                self._state.notify_all()
                return
            self._queue.append(block)
            self._queued += block.samples
            self._state.notify_all()

    def note(self, text: str, index: int) -> None:
        with self._state:
            self._notes.append((text, index))

    def mark(self, number: int, text: str, index: int) -> int:
        """A person marks a moment; of a number that is known already only the word is new. Its sample."""
        with self._state:
            sample = self._marks.setdefault(number, index)
            self._unmarked.append((number, text, sample))
        return sample

    def mark_stop(self, stop: DriveStop) -> None:
        """The drive was stopped: the recording says so, whatever becomes of it. Waits for nothing."""
        self._stops.append(stop)

    def backlog(self) -> tuple[float, float, str]:
        """Seconds behind, filling 0 to 1, and what went wrong if anything did."""
        with self._state:
            return self._queued / self._source.rate, self._queued / self._capacity, self.failed

    def state(self) -> CaptureState:
        """Everything that somebody elsewhere may want to know."""
        done = self.done  # first: what is told beside it is then complete
        lag, fill, failed = self.backlog()
        return CaptureState(
            self.recorded, self.triggered, lag, fill, failed, tuple(self.journals), tuple(self.finished),
            done, self.drive_stop,
        )  # fmt: skip

    # -- for the user

    def end(self, failure: str = "") -> None:
        """No more blocks: what is queued is still written; wait until all is on disk."""
        self.ask_to_end(failure)
        self._done.wait()

    def ask_to_end(self, failure: str = "") -> None:
        """No more blocks; does not wait."""
        with self._state:
            if failure and not self.failed and not self.done:
                self.failed = failure
            self._closing = True
            self._state.notify_all()

    stop = end

    @property
    def done(self) -> bool:
        return self._done.is_set()

    @property
    def triggered(self) -> bool:
        """True while samples are being written (with a trigger: after it has fired)."""
        return self._writing is not None

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the recording is complete; True if it is."""
        return self._done.wait(seconds)

    # -- the recording thread

    def _run(self) -> None:
        try:
            self._record()
        finally:
            self._done.set()

    def _record(self) -> None:
        try:
            while (block := self._next()) is not None:
                if self._write(block):
                    break
        except ShakedownError as error:
            self._fail(str(error))
        except Exception as error:
            _log.exception("the recording failed")
            self._fail(f"The recording failed ({type(error).__name__}: {error}).")
        with self._state:
            self._closing = True
            self._queue.clear()
            self._queued = 0
            self._state.notify_all()
        self._close_sink()
        self._finisher.shutdown()

    def _fail(self, message: str) -> None:
        with self._state:
            self.failed = self.failed or message

    def _next(self) -> Block | None:
        with self._state:
            self._state.wait_for(lambda: self._queue or self._closing)
            if not self._queue:
                return None
            block = self._queue.popleft()
            self._queued -= block.samples
            self._state.notify_all()
            return block

    def _write(self, block: Block) -> bool:
        """Write what belongs to a capture; True when the last capture is complete."""
        if self._finder is None:
            if self._writing is None:
                self._open(block)
            return self._append(block) is not None and self._complete()
        rest: Block | None = block
        while rest is not None:
            if self._writing is None:
                rest = self._arm(rest)
            if rest is not None and self._writing is not None:
                rest = self._append(rest)
                if rest is not None and self._complete():
                    return True
        return False

    def _arm(self, block: Block) -> Block | None:
        """Look for the trigger; where it fires open a capture and give the samples still to be written."""
        assert self._finder is not None
        index = self._finder.find(block.data[self._row], block.start_index)
        if index is None:
            self._remember(block)
            return None
        start = index - self._before
        head = _from(block, start)
        earlier = [part for b in self._past if (part := _from(b, start)) is not None]
        first = earlier[0] if earlier else head
        assert first is not None
        self._open(first)
        assert self._writing is not None
        self._writing.sink.describe(trigger_index=index - first.start_index)
        for part in earlier:
            self._append(part)
        self._past.clear()
        return head

    def _remember(self, block: Block) -> None:
        self._past.append(block)
        while len(self._past) > 1 and self._past[1].start_index <= block.stop_index - self._before:
            self._past.popleft()

    def _open(self, first: Block) -> None:
        make_sink = self._make_sink
        if isinstance(make_sink, RecordingTo) and make_sink.start is None and self._clock is not None:
            make_sink = replace(make_sink, start=self._clock.moment(first.start_index))
        sink = make_sink(self._opened)
        if isinstance(sink, Recorder):
            self.journals.append(sink.journal_path)
        self._opened += 1
        self._writing = _Writing(sink, first.start_index, self._source.rate, self._names)

    def _append(self, block: Block) -> Block | None:
        """Append; give what lies behind the end of the capture (perhaps empty), None if it goes on."""
        writing = self._writing
        assert writing is not None
        stop = None if self._length is None else writing.origin + self._length
        self._write_stops(writing)
        while self._notes and self._notes[0][1] <= block.stop_index:
            writing.sink.note(*self._notes.popleft())
        self._write_marks(writing, block.stop_index)
        if stop is None or block.stop_index < stop:
            writing.write(block)
            self.recorded = block.stop_index - writing.origin
            return None
        inside = _until(block, stop)
        if inside.samples:
            writing.write(inside)
        writing.end(stop)
        self.recorded = stop - writing.origin
        rest = _from(block, stop)
        return (
            rest
            if rest is not None
            else replace(block, start_index=stop, data=block.data[:, :0], overloads=())
        )

    def _write_marks(self, writing: _Writing, until: int) -> None:
        """Markers up to a sample of the stream; one from before the recording began belongs to none."""
        with self._state:
            due = [m for m in self._unmarked if m[2] <= until]
            self._unmarked = deque(m for m in self._unmarked if m[2] > until)
        for number, text, index in due:
            if index >= writing.origin:
                writing.sink.mark(number, text, index)

    def _write_stops(self, writing: _Writing) -> None:
        while self._stops:
            stop = self._stops.popleft()
            writing.sink.note(f"drive stopped: {stop.reason}", stop.sample)
            stop = replace(stop, sample=stop.sample - writing.origin)
            self.drive_stop = self.drive_stop or stop
            if not writing.stopped:
                writing.stopped = True
                writing.sink.describe(drive_stopped=asdict(stop))

    def _describe_clock(self, writing: _Writing) -> None:
        if self._clock is None or self._source.waits:
            return
        if self._real and (doubt := self._clock.doubt()):
            _log.warning("%s", doubt)
            writing.sink.note(doubt)
        drift = self._clock.drift()
        if drift is not None:
            writing.sink.describe(
                clock_drift={"ppm": drift.ppm, "error_ppm": drift.error, "seconds": drift.seconds}
            )

    def _complete(self) -> bool:
        self._close_sink()
        return self._opened >= self._captures

    def _close_sink(self) -> None:
        """Finish the recording, in order and beside the stream: turning it into its file takes a while."""
        writing, self._writing = self._writing, None
        if writing is not None:
            with contextlib.suppress(ShakedownError):  # a disk that failed has been told already
                self._write_stops(writing)
                self._write_marks(writing, writing.origin + self.recorded)
                self._describe_clock(writing)
            self._finisher.submit(self._finish, writing)

    def _finish(self, writing: _Writing) -> None:
        if self.failed:
            with contextlib.suppress(ShakedownError):  # the disk that failed cannot take the note either
                writing.sink.note(f"recording ended early: {self.failed}")
        try:
            finished = writing.sink.close()
        except Exception as error:
            _log.exception("the recording could not be finished")
            self._fail(f"The recording could not be finished, its journal is kept ({error}).")
            return
        problem = getattr(finished, "problem", None)
        if problem:
            self._fail(problem)
        self.finished.append(finished)


class _Writing:
    """A recorder that has been opened, and the drive as it was told last."""

    def __init__(self, sink: Sink, origin: int, rate: float, names: list[str]) -> None:
        self.sink, self.origin, self._rate, self._names = sink, origin, rate, names
        self._drive: DriveState | None = None
        self._told: Excitation | None = None  # what the recording says of it
        self._expected = origin
        self.stopped = False  # whether a stop of the drive has been written down

    def write(self, block: Block) -> None:
        if block.start_index > self._expected and block.reason:
            self.sink.note(
                f"{block.start_index - self._expected} samples lost: {block.reason}", self._expected
            )
        self.sink.append(block.data, block.start_index)
        self._expected = block.stop_index
        for o in block.overloads:
            self.sink.overload(self._names[o.channel], o.start, o.stop)
        for m in block.missing:
            self.sink.gap(m.start, m.stop, self._names[m.channel])
        if block.drive is not None:
            self._follow(block.drive)

    def end(self, stop: int) -> None:
        """Samples lost up to the end leave no gap in the file: it is shorter than it was to be."""
        if stop > self._expected:
            self.sink.note(
                f"{LOST_AT_END}: of the samples asked for the last {stop - self._expected} are lost"
            )

    def _follow(self, drive: DriveState) -> None:
        """Store the drive with the phase at the recording's first sample, and every change of it."""
        if drive.playing and drive.waveform == "sine" and not drive.steady:
            return  # told when it has arrived
        previous, self._drive = self._drive, drive
        if previous is not None and _same_drive(previous, drive, self._rate):
            return
        excitation = drive.excitation()
        since = (drive.index - self.origin) / self._rate  # s from the recording's first sample
        drive_time = float(drive.time - since) if np.isfinite(drive.time) else None
        if excitation is None:
            if drive_time is not None:
                self.sink.drive(None, drive_time)
            if previous is not None and previous.playing:
                self.sink.note(f"drive off ({drive.reason or 'stopped'})", drive.index)
                if drive_time is None and self._told is not None:
                    self.sink.drive(replace(self._told, until=since), None)
            return
        if previous is not None and previous.playing:
            text = f"{excitation.waveform} {excitation.amplitude:g} at {excitation.frequency:g} Hz"
            self.sink.note(f"drive changed to {text}", drive.index)
        if excitation.phase is not None:
            turned = excitation.phase - 2 * np.pi * excitation.frequency * since
            excitation = replace(excitation, phase=float(turned % (2 * np.pi)))
        self._told = excitation
        self.sink.drive(excitation, drive_time)


def _same_drive(a: DriveState, b: DriveState, rate: float) -> bool:
    if (a.playing, a.waveform, a.amplitude) != (b.playing, b.waveform, b.amplitude):
        return False
    if not a.playing or a.waveform == "sweep":
        return True
    if a.frequency != b.frequency:
        return False
    if np.isnan(a.phase):
        return bool(np.isnan(b.phase))
    turned = a.phase + 2 * np.pi * a.frequency * (b.index - a.index) / rate
    return bool(abs(np.angle(np.exp(1j * (turned - b.phase)))) < 1e-6)


def _from(block: Block, start: int) -> Block | None:
    """The part of a block at and after an index; None if there is none."""
    if start >= block.stop_index:
        return None
    return block if start <= block.start_index else _cut(block, start, block.stop_index)


def _until(block: Block, stop: int) -> Block:
    """The part of a block before an index."""
    return _cut(block, block.start_index, stop)


def _cut(block: Block, start: int, stop: int) -> Block:
    def moved(spans: tuple[ChannelSpan, ...]) -> tuple[ChannelSpan, ...]:
        cut = (replace(s, start=max(s.start, start), stop=min(s.stop, stop)) for s in spans)
        return tuple(s for s in cut if s.stop > s.start)

    data = block.data[:, start - block.start_index : max(0, stop - block.start_index)]
    return replace(
        block, start_index=start, data=data, overloads=moved(block.overloads), missing=moved(block.missing)
    )


@dataclass(frozen=True)
class RecordingTo:
    """Makes the recorders of a capture: ``run1``, and ``run1-2``, ``run1-3`` for further ones.

    A value and not a function, so that it can be sent to the process in which the rig lives.
    """

    path: Path
    rate: float
    channels: tuple[ChannelSpec, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    start: str | None = None  # None: when the first sample was taken

    def __call__(self, number: int) -> Recorder:
        path = self.path
        name = path if number == 0 else path.with_name(f"{path.stem}-{number + 1}{path.suffix}")
        begun = self.start or datetime.now().astimezone().isoformat(timespec="milliseconds")
        return Recorder(name, self.rate, self.channels, begun, metadata=self.metadata)


def recording_to(
    path: Path | str, source: Source, metadata: Mapping[str, Any], start: str | None = None
) -> RecordingTo:
    """Recorders for ``Engine.record``."""
    channels = tuple(ChannelSpec(c.name, c.unit) for c in source.channels)
    return RecordingTo(Path(path).absolute(), source.rate, channels, dict(metadata), start)
