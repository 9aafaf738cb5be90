"""Long work in processes of its own: the window never waits.

A :class:`Job` runs a function in a warm worker process (spawned, low priority). The function must live in a
module of the program and takes its arguments and a :class:`Progress` as last argument. A thread passes
messages between the pipe and Qt's signals, so that even sending a long record costs the window nothing.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from PyQt6.QtCore import QObject, QTimer, pyqtSignal

from analysis import Cancelled, Progress, ShakedownError, Step
from drivers.base.logs import begin_log
from drivers.base.system import set_priority

_log = logging.getLogger(__name__)
PATIENCE = 3.0  # seconds that cancelled work may take to end by itself
REPORTS = 0.05  # seconds between reports sent to the window
NICENESS = 5  # acquisition and window come first; at 15 a busy machine left the work 3 % of a core


class Job(QObject):
    """One piece of long work, as the window sees it. Signals arrive in the window's thread."""

    stepped = pyqtSignal(object)  # Step
    done = pyqtSignal(object)  # whatever the function returned
    failed = pyqtSignal(str)  # one sentence
    cancelled = pyqtSignal()
    over = pyqtSignal()  # after any of the three: for the pool, which hears it whoever is let go of
    ended = pyqtSignal()  # after that

    def __init__(self, title: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.title = title
        self.started = time.monotonic()
        self.fraction = 0.0
        self.message = ""
        self.running = True
        self._cancel = threading.Event()
        self._asked: float | None = None
        self.stepped.connect(self._note)

    def cancel(self) -> None:
        """Ask the work to end; it is ended by force when it does not."""
        if self._asked is None:
            self._asked = time.monotonic()
        self._cancel.set()

    @property
    def cancelling(self) -> bool:
        """Whether it was asked to end."""
        return self._cancel.is_set()

    def silence(self) -> None:
        """Let go of all listeners but the pool, also of what is on its way to them."""
        for signal in (self.stepped, self.done, self.failed, self.cancelled, self.ended):
            with contextlib.suppress(TypeError, RuntimeError):  # nobody listened
                signal.disconnect()

    @property
    def time_left(self) -> float | None:
        """Seconds, judged from the pace so far; None while that says nothing."""
        if self.fraction < 0.02:
            return None
        return (time.monotonic() - self.started) * (1 - self.fraction) / self.fraction

    def _note(self, step: Step) -> None:
        self.fraction, self.message = step.fraction, step.message

    def _overdue(self) -> bool:
        return self._asked is not None and time.monotonic() - self._asked > PATIENCE


class _Process:
    """A spawned process that waits for work at the end of a pipe."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.stop = context.Event()
        self.process = context.Process(target=_serve, args=(theirs, self.stop, NICENESS), daemon=True)
        self.process.start()
        theirs.close()

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self.pipe.close()
        if self.process.is_alive():
            self.process.terminate()
        self.process.join(2)
        if self.process.is_alive():  # suspended: it would keep its ends of pipes open
            self.process.kill()


class Workers(QObject):
    """The pool: hands jobs to warm processes and starts new ones when all are busy."""

    started = pyqtSignal(object)  # Job

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._lock = threading.Lock()
        self._closed = False
        self.jobs: list[Job] = []

    def warm(self, warm_up: Callable[..., Any] | None = None) -> None:
        """Start a process now, so that the first job need not wait for its imports."""
        if warm_up is not None:
            self.run("Preparing", warm_up, quiet=True)

    def run(self, title: str, function: Callable[..., Any], *args: Any, quiet: bool = False) -> Job:
        """Run ``function(*args, progress)`` elsewhere; returns at once."""
        job = Job(title, self)
        self.jobs.append(job)
        job.over.connect(lambda: self._forget(job))
        carrier = threading.Thread(target=self._carry, args=(job, function, args), daemon=True)
        # Not before the caller has connected: a short job is over at once. (A lambda keeps the thread alive.)
        QTimer.singleShot(0, lambda: carrier.start())
        if not quiet:
            self.started.emit(job)
        return job

    def close(self) -> None:
        """End every process. Unfinished work is lost, so ask first."""
        with self._lock:
            self._closed = True
            for job in self.jobs:
                job.silence()  # nobody is left to hear of it
            processes = list(self._all)
            self._all.clear()
            self._idle.clear()
        for process in processes:
            process.end()

    def _forget(self, job: Job) -> None:
        job.running = False
        if job in self.jobs:
            self.jobs.remove(job)

    def _take(self) -> _Process:
        with self._lock:
            if self._closed:
                raise Cancelled("The program is closing.")
            while self._idle:
                process = self._idle.pop()
                if process.process.is_alive():
                    return process
                self._all.discard(process)
        process = _Process()
        with self._lock:
            self._all.add(process)
        return process

    def _carry(self, job: Job, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """In a thread: send the work, pass on its reports, return the process to the pool."""
        process: _Process | None = None
        try:
            process = self._take()
            process.stop.clear()
            process.pipe.send((function, args))
            kind, payload = self._listen(job, process)
        except Cancelled:
            kind, payload = "cancelled", None
        except (EOFError, OSError, ValueError):
            if process is not None:
                process.end()  # whatever is left of it must not get the next job
            reason = (
                "The work ended unexpectedly; its process is gone. Nothing recorded is affected: try again."
            )
            kind, payload = (
                ("cancelled", None) if self._closed or job._cancel.is_set() else ("failed", reason)
            )
        except Exception as error:  # such as arguments that cannot be sent
            kind, payload = "failed", f"The work could not be started: {error}."
        self._give_back(process)
        if self._closed:
            return
        # the job's C++ side may be gone when the window closed in between
        with contextlib.suppress(RuntimeError):
            if kind == "done":
                job.done.emit(payload)
            elif kind == "failed":
                job.failed.emit(payload)
            else:
                job.cancelled.emit()
            job.over.emit()
            job.ended.emit()

    def _listen(self, job: Job, process: _Process) -> tuple[str, Any]:
        while True:
            if job._cancel.is_set():
                process.stop.set()
            if process.pipe.poll(0.05):
                kind, payload = process.pipe.recv()
                if kind != "step":
                    return kind, payload
                job.stepped.emit(payload)
            elif job._overdue():
                process.end()
                raise Cancelled("Ended by force.")

    def _give_back(self, process: _Process | None) -> None:
        if process is None:
            return
        with self._lock:
            if process.process.is_alive() and not self._closed:
                self._idle.append(process)
            else:
                self._all.discard(process)


def _serve(pipe: Connection, stop: Any, niceness: int) -> None:
    """In the worker process: do what comes through the pipe until the window is gone."""
    import signal

    begin_log("worker")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the window
    set_priority(niceness)
    while True:
        try:
            function, args = pipe.recv()
        except (EOFError, OSError):
            return
        except Exception as error:
            answer: tuple[str, Any] = ("failed", f"The work could not be understood: {error}.")
        else:
            answer = _perform(function, args, pipe, stop)
        try:
            pipe.send(answer)
        except (BrokenPipeError, OSError):
            return


def _perform(
    function: Callable[..., Any], args: tuple[Any, ...], pipe: Connection, stop: Any
) -> tuple[str, Any]:
    last = 0.0

    def tell(step: Step) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= REPORTS or step.fraction >= 1 or step.values:
            last = now
            pipe.send(("step", Step(step.fraction, step.message, dict(step.values))))

    try:
        return "done", function(*args, Progress(tell, stop.is_set))
    except Cancelled:
        return "cancelled", None
    except ShakedownError as error:
        return "failed", str(error)
    except (BrokenPipeError, EOFError):
        raise SystemExit(0) from None
    except MemoryError:
        return "failed", "There is not enough memory for this; use a shorter piece of the record."
    except Exception as error:
        import traceback

        _log.exception("%s failed", getattr(function, "__name__", function))
        detail = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(detail.filename).name}:{detail.lineno}"
        return "failed", f"This should not happen: {type(error).__name__}: {error} ({where})."
