"""The acquisition engine: source -> blocks -> recorder and live queues.

One thread reads the source and does nothing else. Live queues drop their oldest block when nobody looks, and
count. The queue to the recorder is bounded and never drops (see :mod:`drivers.acquisition.capture`).
The reasons are in docs/decisions/0003-threads-and-processes.md.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from analysis import ShakedownError
from drivers.acquisition.capture import QUEUE_SECONDS, Capture, Sink, queue_capacity
from drivers.acquisition.counting import StreamCounter
from drivers.base.protocols import (
    ActiveRecording,
    Block,
    CountsItself,
    Exciter,
    InstrumentError,
    Records,
    Source,
)
from drivers.base.trigger import Trigger

_log = logging.getLogger(__name__)

BLOCK_SECONDS = 0.02  # a block each 20 ms: live views at 30 frames a second always have something new
PATIENCE = 0.5  # s to wait for the block under way when stopping


@dataclass(frozen=True)
class Status:
    """What the engine has seen since it was started."""

    running: bool = False
    samples: int = 0  # read, lost ones not counted
    seconds: float = 0.0  # of the source's time
    gaps: int = 0
    lost: int = 0  # samples in gaps
    overloads: int = 0
    overloaded: int = 0  # samples, summed over channels
    late: int = 0  # blocks
    lag: float = 0.0  # s that the recorder is behind
    queue: float = 0.0  # filling of the recorder's queue, 0 to 1
    dropped: int = 0  # blocks that live queues let go
    failure: str = ""  # in words; empty while all is well


class BlockQueue:
    """A live view's window on the stream: keeps the newest ``seconds`` and counts what it had to drop."""

    def __init__(self, blocks: int) -> None:
        self._blocks: deque[Block] = deque(maxlen=blocks)
        self._lock = threading.Lock()
        self.dropped = 0

    def offer(self, block: Block) -> None:
        with self._lock:
            if len(self._blocks) == self._blocks.maxlen:
                self.dropped += 1
            self._blocks.append(block)

    def read(self) -> list[Block]:
        """The blocks since the last call, oldest first. The arrays are shared: do not write to them."""
        with self._lock:
            blocks = list(self._blocks)
            self._blocks.clear()
        return blocks


class Engine:
    """Runs a source. ``start``, look through queues, ``record`` as often as wanted, ``stop``.

    When the source or a recording fails the drive is stopped, everything read is saved, and ``status``
    says what happened.
    """

    def __init__(
        self,
        source: Source,
        exciter: Exciter | None = None,
        block_seconds: float = BLOCK_SECONDS,
        queue_seconds: float = QUEUE_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source = source
        self._now = now  # by which blocks are judged to be late
        self._exciter = exciter
        self._block = max(1, round(block_seconds * source.rate))
        self._capacity = queue_capacity(source, queue_seconds)
        self._lock = threading.Lock()
        self._queues: list[BlockQueue] = []
        self._capture: ActiveRecording | None = None
        self._alarmed: ActiveRecording | None = None
        self._ended = threading.Event()  # not Thread.join: Ctrl-C during a join takes a thread for ended
        self._ended.set()
        self._stopping = threading.Event()
        self._over = False  # the stream has run and ended
        self._status = Status()
        self._counter = StreamCounter(source, now)
        self._expected = 0
        self._goal: int | None = None  # read no further; None: free running
        self._moved = threading.Condition()

    # -- life

    def start(self, held: bool = False) -> None:
        """Start the source and the thread that reads it.

        ``held``: a source that can wait is read only as far as :meth:`advance` says, so that what is done
        between two calls happens at a known sample.
        """
        if not self._ended.is_set():
            raise InstrumentError("The acquisition runs already.")
        self._stopping.clear()
        self._expected = 0
        self._counter = StreamCounter(self.source, self._now)
        self._goal = 0 if held and self.source.waits else None
        self._status = Status(running=True)
        self._over = False
        self.source.start()
        self._ended.clear()
        threading.Thread(target=self._run, name="acquisition", daemon=True).start()

    def advance(self, seconds: float, watch: Callable[[float], None] | None = None) -> None:
        """Wait until the stream has moved on by ``seconds``; ``watch`` is told how far it is, 0 to 1.

        InstrumentError if the stream ends before.
        """
        with self._moved:
            start, count = self._expected, max(1, round(seconds * self.source.rate))
            if self._goal is not None:
                self._goal = start + count
                self._moved.notify_all()
        while self._expected < start + count:
            if not self.status.running:
                raise InstrumentError(self.status.failure or "The source has ended.")
            if watch is not None:
                watch((self._expected - start) / count)
            with self._moved:
                self._moved.wait(0.05)

    def stop(self) -> None:
        """End the stream: finish a running recording, stop the source."""
        with self._moved:
            self._stopping.set()
            self._moved.notify_all()
        if not self._ended.wait(PATIENCE):
            self.source.stop()  # a source that waits for something lets its reader go
        self._ended.wait()

    def subscribe(self, seconds: float = 4.0) -> BlockQueue:
        """A live view that keeps up to ``seconds`` of blocks between two looks."""
        queue = BlockQueue(max(2, round(seconds * self.source.rate / self._block)))
        with self._lock:
            self._queues.append(queue)
        return queue

    def unsubscribe(self, queue: BlockQueue) -> None:
        with self._lock:
            if queue in self._queues:
                self._queues.remove(queue)

    def record(
        self,
        make_sink: Callable[[int], Sink],
        length: int | None = None,
        trigger: Trigger | None = None,
        captures: int = 1,
    ) -> ActiveRecording:
        """Record ``length`` samples (None: until stopped) from now, or from each firing of the trigger.

        ``make_sink(number)`` gives the recorder of capture 0, 1, ...: with a trigger that re-arms each
        capture is a recording of its own. The queue starts with the next block. A rig in a process of its
        own records there: its recording outlives this process.
        """
        with self._lock:
            if self._over:
                raise InstrumentError(
                    self._status.failure
                    or "The acquisition has ended, so nothing can be recorded: start it again."
                )
            if self._capture is not None and not self._capture.done:
                raise InstrumentError("A recording is being made already: stop it first.")
            if isinstance(self.source, Records):
                self._capture = self.source.record(make_sink, length, trigger, captures)
            else:
                self._capture = Capture(
                    self.source, make_sink, length, trigger, captures, self._capacity, self._counter.clock
                )
            return self._capture

    def mark(self, number: int, text: str) -> int:
        """Mark this moment of the recording under way; the same number again gives it another word.

        Which sample of the stream it is.
        """
        capture = self._capture
        if capture is None or capture.done:
            raise InstrumentError("Nothing is being recorded: there is nothing to mark.")
        return capture.mark(number, text, self._counter.expected)

    @property
    def status(self) -> Status:
        """What has been counted where the source is read: over there for a rig in a process of its own."""
        with self._lock:
            capture, dropped = self._capture, sum(t.dropped for t in self._queues)
            status = self._status
        if isinstance(self.source, CountsItself):
            counts, seconds = self.source.counts()
        else:
            counts, seconds = self._counter.counts, self._counter.seconds
        lag, fill, problem = (0.0, 0.0, "") if capture is None else capture.backlog()
        return replace(
            status, **vars(counts), seconds=seconds, lag=lag, queue=fill, dropped=dropped,
            failure=status.failure or problem,
        )  # fmt: skip

    # -- the reading thread

    def _run(self) -> None:
        try:
            self._end(self._read())
        finally:
            self._ended.set()

    def _read(self) -> str:
        """Read until the end; what went wrong, in words."""
        try:
            while count := self._due():
                block = self.source.read(np.empty((len(self.source.channels), count)))
                self._take(block)
                with self._moved:
                    self._expected = block.stop_index
                    self._moved.notify_all()
                if block.ended:
                    break
        except ShakedownError as error:
            return "" if self._stopping.is_set() else str(error)
        except Exception as error:
            _log.exception("the acquisition failed")
            return f"The acquisition failed ({type(error).__name__}: {error})."
        return ""

    def _due(self) -> int:
        """How many samples to read next; 0 when asked to stop."""
        with self._moved:
            self._moved.wait_for(
                lambda: self._stopping.is_set() or self._goal is None or self._goal > self._expected
            )
            if self._stopping.is_set():
                return 0
            return self._block if self._goal is None else min(self._block, self._goal - self._expected)

    def _take(self, block: Block) -> None:
        lost, late = self._counter.count(block)
        if lost:
            block = replace(block, lost=lost)
        with self._lock:
            queues, capture = list(self._queues), self._capture
        for queue in queues:
            queue.offer(block)
        if capture is not None and block.samples:
            if late:
                capture.note(f"block came {late:.2f} s late", block.start_index)
            capture.offer(block)
            if capture.failed and capture is not self._alarmed:
                self._alarmed = capture  # once: the drive may be started again after it
                self._silence(capture.failed)

    def _silence(self, reason: str) -> str:
        """Stop the drive; what went wrong with that, in words."""
        try:
            if self._exciter is not None:
                self._exciter.request_stop(reason)
        except Exception as error:
            return f" The drive could not be stopped from here either ({error})."
        return ""

    def _end(self, failure: str) -> None:
        if failure:
            failure += self._silence(failure)
        with self._lock:
            capture = self._capture
            self._over = True
            self._status = replace(self._status, running=False, failure=failure)
        if capture is not None:
            capture.end(failure)
        try:
            self.source.stop()
        except Exception as error:
            with self._lock:
                self._status = replace(self._status, failure=failure or f"The source did not stop: {error}.")
