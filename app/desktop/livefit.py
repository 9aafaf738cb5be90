"""Identification while the rig runs: parameters with error bars from all the data so far, twice a second.

The recursive weak form runs in a process of its own, so that neither its compiling nor its work is felt by
the window; a thread passes blocks one way and estimates the other.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection

import numpy as np
from PyQt6.QtCore import QObject, pyqtSignal

from analysis.base.errors import ShakedownError
from drivers.base.protocols import Block

PACE = 0.4  # s between estimates
QUEUE = 6000  # blocks that may wait while the equations are compiled


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
                pipe.send(joined(blocks))
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


def serve(pipe: Connection, text: str, rate: float, channels: list[str]) -> None:
    """In the process: take what has come, estimate, until the window is gone."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(5)
    try:
        from analysis.estimate.weak.recursive import RecursiveWeak
        from analysis.model import Model

        fit = RecursiveWeak(Model.from_toml(text), rate, channels)
        samples = functions = 0
        while True:
            for start, data in pipe.recv():
                functions += fit.update(data, start)
                samples += data.shape[1]
            if functions > 4 * len(fit.model.free) and not pipe.poll(0):
                pipe.send(("estimate", (fit.estimate(), samples / rate)))
    except (EOFError, OSError):
        return
    except ShakedownError as error:
        pipe.send(("failed", str(error)))
    except Exception as error:
        pipe.send(("failed", f"The live fit ended: {type(error).__name__}: {error}."))


def joined(blocks: list[Block]) -> list[tuple[int, np.ndarray]]:
    """Blocks that follow one another, made one: fewer and larger updates."""
    runs: list[tuple[int, list[np.ndarray], int]] = []
    for block in blocks:
        if runs and runs[-1][2] == block.start_index:
            start, parts, _ = runs[-1]
            parts.append(block.data)
            runs[-1] = (start, parts, block.stop_index)
        else:
            runs.append((block.start_index, [block.data], block.stop_index))
    return [(start, np.concatenate(parts, axis=1)) for start, parts, _ in runs]
