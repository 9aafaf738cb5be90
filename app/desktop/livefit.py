"""Identification while the rig runs: parameters with error bars from all the data so far, twice a second.

The recursive weak form runs in a process of its own, so that neither its compiling nor its work is felt by
the window; a thread passes blocks one way and estimates the other.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np
from PyQt6.QtCore import QObject, pyqtSignal

from analysis import DataError, ShakedownError
from drivers.base.logs import begin_log
from drivers.base.protocols import Block
from drivers.base.system import set_priority

_log = logging.getLogger(__name__)

PACE = 0.4  # s between estimates
SAME_PHASE = 1e-3  # of a period, by which two blocks may tell the drive's phase apart and mean the same drive
QUEUE = 6000  # blocks that may wait while the equations are compiled


@dataclass(frozen=True)
class DriveClock:
    """A steady sine of known phase, as seen from sample 0 of the stream."""

    frequency: float  # Hz
    time: float  # s, the drive's time at sample 0, modulo its period


Stretch = tuple[int, np.ndarray, DriveClock | None]  # index of the first sample, samples, drive


class LiveFit(QObject):
    """Feeds the rig's blocks to the recursive weak form and tells its estimates."""

    estimated = pyqtSignal(object, float)  # Identification, seconds of data
    failed = pyqtSignal(str)

    def __init__(self) -> None:
        super().__init__()
        self._blocks: deque[Block] = deque(maxlen=QUEUE)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        return self._thread is not None and not self._stop.is_set()

    def start(self, text: str, rate: float, channels: Sequence[str]) -> None:
        """Begin with the data that come from now on; ``channels`` name the rows of the blocks."""
        self.stop()
        self._stop = threading.Event()
        self._blocks.clear()
        self._thread = threading.Thread(
            target=self._carry, args=((text, rate, list(channels)), self._stop), name="live fit", daemon=True
        )
        self._thread.start()

    def take(self, blocks: list[Block]) -> None:
        """Blocks of the stream, in order."""
        if self.running:
            self._blocks.extend(blocks)

    def stop(self) -> None:
        self._stop.set()
        self._thread = None

    def _carry(self, order: tuple[str, float, list[str]], stop: threading.Event) -> None:
        """In a thread: blocks to the process, its estimates to the window."""
        context = multiprocessing.get_context("spawn")
        pipe, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, *order), name="live fit", daemon=True)
        process.start()
        theirs.close()
        try:
            while not stop.wait(PACE):
                while pipe.poll(0):
                    self._tell(pipe.recv(), stop)
                blocks = [self._blocks.popleft() for _ in range(len(self._blocks))]
                pipe.send(joined(blocks, order[1]))
        except (EOFError, OSError):
            with contextlib.suppress(EOFError, OSError):  # its last words
                while pipe.poll(0):
                    self._tell(pipe.recv(), stop)
            self._tell(("failed", "The live fit ended unexpectedly; start it again."), stop)
        finally:
            pipe.close()
            process.terminate()
            process.join(2)

    def _tell(self, message: tuple[str, object], stop: threading.Event) -> None:
        if stop.is_set():
            return
        kind, content = message
        with contextlib.suppress(RuntimeError):  # the window may be gone
            if kind == "failed":
                stop.set()
                self.failed.emit(content)
            else:
                assert isinstance(content, tuple)
                self.estimated.emit(*content)


class LiveEstimate:
    """The recursive weak form of a model on a stream, a model's t being the drive's time."""

    def __init__(self, text: str, rate: float, channels: list[str]) -> None:
        from analysis import Model, RecursiveWeak

        self.weak = RecursiveWeak(Model.from_toml(text), rate, channels)
        self.samples = 0
        self._functions = 0
        self._clocks: list[DriveClock | None] = []  # of the first block, once it has come

    @property
    def ready(self) -> bool:
        return self._functions > 4 * len(self.weak.model.free)

    def take(self, stretches: list[Stretch]) -> None:
        """What has come, in order, as ``joined`` makes it."""
        for start, data, clock in stretches:
            if self.weak.model.equations.hold_time:
                self._clocks = self._clocks or [clock]
                self.weak.drive_time = same_time(self._clocks[0], clock)
            self._functions += self.weak.update(data, start)
            self.samples += data.shape[1]


def serve(pipe: Connection, text: str, rate: float, channels: list[str]) -> None:
    """In the process: take what has come, estimate, until the window is gone."""
    begin_log("live fit")
    set_priority(5)
    try:
        fit = LiveEstimate(text, rate, channels)
        while True:
            fit.take(pipe.recv())
            if fit.ready and not pipe.poll(0):
                pipe.send(("estimate", (fit.weak.estimate(), fit.samples / rate)))
    except (EOFError, OSError):
        return
    except ShakedownError as error:
        pipe.send(("failed", str(error)))
    except Exception as error:
        _log.exception("the live fit failed")
        pipe.send(("failed", f"The live fit ended: {type(error).__name__}: {error}."))


def drive_clock(block: Block, rate: float) -> DriveClock | None:
    """The drive's time that a block tells: t = phase/(2 pi f) at the drive's index; None: not known."""
    drive = block.drive
    if drive is None or not (drive.playing and drive.steady and drive.waveform == "sine"):
        return None
    if not (drive.frequency > 0 and np.isfinite(drive.phase)):
        return None
    turns = drive.phase / (2 * np.pi) - drive.frequency * drive.index / rate
    return DriveClock(drive.frequency, turns % 1.0 / drive.frequency)


def agree(first: DriveClock | None, now: DriveClock | None) -> bool:
    """Whether two blocks tell the same drive: also neither of them any."""
    if first is None or now is None:
        return first is now
    apart = (now.time - first.time) * first.frequency
    return now.frequency == first.frequency and abs(apart - round(apart)) < SAME_PHASE


def same_time(first: DriveClock | None, now: DriveClock | None) -> float | None:
    """The drive's time at sample 0, the same as when the fit began; a drive that has changed is an error."""
    if not agree(first, now):
        raise DataError(
            "The drive has changed since the live fit began, and the model depends on the drive's time: "
            "start the live fit again."
        )
    return None if first is None else first.time


def joined(blocks: list[Block], rate: float) -> list[Stretch]:
    """Blocks that follow one another under the same drive, made one: fewer and larger updates."""
    runs: list[tuple[int, list[np.ndarray], int, DriveClock | None]] = []
    for block in blocks:
        clock = drive_clock(block, rate)
        if runs and runs[-1][2] == block.start_index and agree(runs[-1][3], clock):
            start, parts, _, first = runs[-1]
            parts.append(block.data)
            runs[-1] = (start, parts, block.stop_index, first)
        else:
            runs.append((block.start_index, [block.data], block.stop_index, clock))
    return [(start, np.concatenate(parts, axis=1), clock) for start, parts, _, clock in runs]
