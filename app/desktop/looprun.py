"""Work with the rig's control loop from the window: a process beside it computes, the window has the rig.

The rig is opened anew with target, correction and state of its loop as channels, and again without them when
the work is over. STOP, limits and signs of life are those of the rig in the window, as ever. If the drive was
stopped the rig stays as it is, latched, until a person arms it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from multiprocessing import Pipe
from typing import Any

from PyQt6.QtCore import QObject, QTimer, pyqtSignal

from analysis import Cancelled, ShakedownError
from app.desktop.rigdesk import RigDesk
from app.desktop.worker import Job, Workers
from app.loop_pipe import BenchServer, PickledController
from drivers.base.protocols import NOT_MODULATED, ActiveRecording, InstrumentError, Modulated
from drivers.rig.loop import CHANNELS

_log = logging.getLogger(__name__)
WINDOW_SECONDS = 10.0  # for the window to begin a recording


class LoopRun(QObject):
    """One piece of work beside a closed loop. Signals arrive in the window's thread."""

    told = pyqtSignal(object)  # news of the work
    stepped = pyqtSignal(object)  # Step
    done = pyqtSignal(object)  # what the work found
    failed = pyqtSignal(str)  # one sentence
    ended = pyqtSignal()  # after either; the rig is on its way back
    returned = pyqtSignal()  # after that: others may have it
    _recording_wanted = pyqtSignal(object)  # Future of an ActiveRecording
    _served = pyqtSignal()

    def __init__(
        self, desk: RigDesk, workers: Workers, title: str, recording: str, task: Callable[..., Any],
        *args: Any,
    ) -> None:  # fmt: skip
        """``task(link, *args, progress)`` runs elsewhere; ``recording``: the name of what is recorded."""
        super().__init__(desk)
        self._desk, self._workers, self._title, self._name = desk, workers, title, recording
        self._task, self._args = task, args
        self._state = "new"  # opening, running, returning, over
        self._job: Job | None = None
        self._cancel = threading.Event()
        self._working = 0  # of process and thread, those that have not ended
        self._recording_wanted.connect(self._record)
        self._served.connect(self._one_ended)

    def begin(self) -> None:
        """Take the rig; refused in a sentence where it cannot be had. Nothing moves yet."""
        rig, _ = self._desk.in_hand()
        if not isinstance(rig.exciter, Modulated):
            raise InstrumentError(NOT_MODULATED)
        self._desk.use(self._title)
        self._desk.opened.connect(self._opened)
        self._desk.closed.connect(self._closed)
        self._desk.failed.connect(self._not_opened)
        self._desk.end_asked.connect(self.cancel)
        self._state = "opening"
        if self._has_loop_channels():
            QTimer.singleShot(0, self._opened)
        else:
            self._desk.open_again(loop=True)

    def cancel(self) -> None:
        """End softly: the loop lets go, the drive ramps down, what was found so far is kept."""
        self._cancel.set()

    def _has_loop_channels(self) -> bool:
        names = [c.name for c in self._desk.channels]
        return all(name in names for name, _ in CHANNELS)

    # -- the rig comes and goes

    def _opened(self) -> None:
        if self._state == "opening":
            self._state = "running"
            self._go()
        elif self._state == "returning":
            QTimer.singleShot(0, self._give_back)  # after who would start a drive by itself has seen it

    def _not_opened(self, text: str) -> None:
        if self._state == "opening":
            self.failed.emit(text)
            self.ended.emit()
            self._give_back()
        elif self._state == "returning":
            self._give_back()

    def _closed(self) -> None:
        """Somebody has let go of the rig: the stream ends, and with it the work."""
        if self._state == "running":
            self._state = "left"
            self._cancel.set()

    def _give_back(self) -> None:
        self._state = "over"
        self._desk.in_use = ""
        for signal, slot in (
            (self._desk.opened, self._opened), (self._desk.closed, self._closed),
            (self._desk.failed, self._not_opened), (self._desk.end_asked, self.cancel),
        ):  # fmt: skip
            with contextlib.suppress(TypeError):
                signal.disconnect(slot)
        self.returned.emit()

    # -- the work

    def _go(self) -> None:
        from app.loop_bench import RigBench

        try:
            rig, engine = self._desk.in_hand()
        except InstrumentError as error:
            self._not_opened(str(error))
            return
        ours, theirs = Pipe()
        self._job = job = self._workers.run(self._title, self._task, theirs, *self._args)
        job.stepped.connect(self.stepped)
        job.done.connect(self.done)
        job.failed.connect(self.failed)
        job.cancelled.connect(lambda: self.failed.emit("Cancelled."))
        job.ended.connect(self._one_ended)
        self._working = 2

        def watch() -> None:
            rig.check_drive()
            if self._cancelled():
                raise Cancelled("Cancelled.")

        def serve() -> None:
            bench = RigBench(rig, engine, self._start_recording, watch)
            try:
                BenchServer(
                    ours, bench, self._cancelled, self.told.emit, theirs.close,
                    unpacked=PickledController, stuck=job.cancel,
                ).run()  # fmt: skip
            except Exception:
                _log.exception("the bench of a control loop did not end well")
            finally:
                with contextlib.suppress(RuntimeError):  # the window may be gone
                    self._served.emit()

        job.ended.connect(theirs.close)  # it died before it had its end: nothing will come
        threading.Thread(target=serve, name="loop bench", daemon=True).start()

    def _cancelled(self) -> bool:
        return self._cancel.is_set() or (self._job is not None and self._job.cancelling)

    def _start_recording(self) -> ActiveRecording:
        """From the bench's thread: the window begins the recording, as any other."""
        wanted: Future[ActiveRecording] = Future()
        self._recording_wanted.emit(wanted)
        try:
            return wanted.result(WINDOW_SECONDS)
        except NotInTime:
            raise InstrumentError("The window did not begin the recording: nothing was driven.") from None

    def _record(self, wanted: Future[ActiveRecording]) -> None:
        try:
            wanted.set_result(self._desk.record_use(self._name))
        except (ShakedownError, OSError) as error:
            wanted.set_exception(InstrumentError(str(error)))

    def _one_ended(self) -> None:
        self._working -= 1
        if self._working:
            return
        self.ended.emit()
        if self._state != "running" or self._desk.drive_status().latched or not self._desk.running:
            self._give_back()
            return
        self._state = "returning"
        self._desk.open_again(loop=False)
