"""The program's log: one file for all its processes, and no failure that leaves no trace there.

``begin_log`` is called once at the start of each process. It writes to ``shakedown.log`` in the state folder
and puts hooks in place of the interpreter's own for what nobody caught: in the main thread, in other threads,
and in places where nothing can be raised. ``SHAKEDOWN_LOG=debug`` (set by ``--verbose``) writes everything,
here and in every process that is started from here.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from drivers.base.state import state_folder

NAME = "shakedown.log"
LARGEST = 1_000_000  # bytes of a log; then it becomes the first of the older ones
FLUSH_SECONDS = 1.0
OLDER = 4  # logs that are kept: shakedown.log.1 is the youngest of them
VERBOSE = "SHAKEDOWN_LOG"
OWN = ("app", "drivers", "analysis", "resources")  # loggers of ours, by the names of their modules

_log = logging.getLogger(__name__)
Crash = Callable[[BaseException], None]
Undo = Callable[[], None]


def log_path() -> Path:
    """The log, in the state folder or, where nobody may write there, among the temporary files."""
    return (state_folder() or Path(tempfile.gettempdir())) / NAME


class LogFile(logging.Handler):
    """Hands entries to a thread that appends them: whoever logs never waits for a disk.

    Each entry is written in one piece, so that several processes share a file; a full file is turned over.
    """

    def __init__(self) -> None:
        super().__init__()
        self._entries: queue.Queue[str] = queue.Queue()
        self._writer: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        self._entries.put(self.format(record))
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_all, name="log", daemon=True)
            self._writer.start()

    def flush(self) -> None:
        """Wait until everything is written, but not for long: the disk may be gone."""
        deadline = time.monotonic() + FLUSH_SECONDS
        while self._entries.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.002)

    def _write_all(self) -> None:
        while True:
            entry = self._entries.get()
            with contextlib.suppress(OSError):  # a log that cannot be written must not cost anything else
                _append(log_path(), f"{entry}\n".encode("utf-8", "replace"))
            self._entries.task_done()


def _append(path: Path, entry: bytes) -> None:
    _turn_over(path)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        os.write(file, entry)
    finally:
        os.close(file)


def flush_log() -> None:
    """Have everything in the file that was logged so far."""
    for handler in logging.getLogger().handlers:
        handler.flush()


def _turn_over(path: Path) -> None:
    """Number the logs anew when the current one is full. Another process may do the same: nothing is lost."""
    if not path.exists() or path.stat().st_size < LARGEST:
        return
    for number in range(OLDER, 0, -1):
        younger = path if number == 1 else path.with_name(f"{NAME}.{number - 1}")
        if younger.exists():
            with contextlib.suppress(OSError):  # Windows: while another process writes
                younger.replace(path.with_name(f"{NAME}.{number}"))


def begin_log(process: str, level: int = logging.INFO, on_crash: Crash | None = None) -> Undo:
    """Log this process under a name of its own; ``on_crash`` is told of exceptions that nobody caught.

    What it returns puts everything back as it was.
    """
    verbose = bool(os.environ.get(VERBOSE))
    root = logging.getLogger()
    before = [h for h in root.handlers if isinstance(h, LogFile)]  # of the command that opened the window
    for other in before:
        root.removeHandler(other)
    handler = LogFile()
    form = f"%(asctime)s {process} {os.getpid()} %(levelname)s %(name)s: %(message)s"
    handler.setFormatter(logging.Formatter(form))
    root.addHandler(handler)
    for name in OWN:
        logging.getLogger(name).setLevel(logging.DEBUG if verbose else level)
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    _hook(on_crash)

    def undo() -> None:
        handler.flush()
        root.removeHandler(handler)
        for other in before:
            root.addHandler(other)
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks

    return undo


def show_log(stream: TextIO) -> Undo:
    """Show entries on a terminal too (``--verbose``); what it returns ends that."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(relativeCreated)6.0f ms %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    return lambda: logging.getLogger().removeHandler(handler)


class _Repeats:
    """A failure that comes again and again must not push out of the log what led to it."""

    def __init__(self) -> None:
        self._times: Counter[tuple[object, ...]] = Counter()

    def note(self, level: int, error: BaseException, where: str) -> None:
        """The traceback the first time; after that a line at the 10th, the 100th ..."""
        last = deque(traceback.walk_tb(error.__traceback__), maxlen=1)
        place = type(error), *((frame.f_code.co_filename, line) for frame, line in last)
        self._times[place] += 1
        times = self._times[place]
        if times == 1:
            _log.log(level, "%s", where, exc_info=error)
        elif str(times).strip("0") == "1":
            _log.log(level, "%s: %s for the %dth time", where, type(error).__name__, times)


def _hook(on_crash: Crash | None) -> None:
    repeats = _Repeats()

    def crashed(error: BaseException, where: str) -> None:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            return
        repeats.note(logging.CRITICAL, error, f"uncaught in {where}")
        if on_crash is not None:
            with contextlib.suppress(Exception):
                on_crash(error)

    def in_main(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        crashed(error, "the main thread")
        if on_crash is None:
            sys.__excepthook__(kind, error, trace)

    def in_thread(args: Any) -> None:
        if args.exc_value is not None:
            crashed(args.exc_value, f"thread {args.thread.name if args.thread else '?'}")

    def unraisable(args: Any) -> None:
        if args.exc_value is not None:
            repeats.note(logging.ERROR, args.exc_value, f"ignored in {args.object!r}")

    sys.excepthook, threading.excepthook, sys.unraisablehook = in_main, in_thread, unraisable
