"""Files whose library may loop or crash on damage are first opened by a process of their own.

HDF5 and TDMS keep tables of offsets that a damaged or crafted file can tie into knots; with HDF5 2.0 eight
zeroed bytes in a recording of ours were enough to keep it busy for minutes. So a helper process opens such a
file first and touches each of its parts, with a limit of processor time and memory; only if that went well
does this process open it too. The helper serves one file after the other; one that hangs is ended.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import IO

from analysis import DataError
from drivers.base import system
from drivers.base.child import command, environment
from drivers.base.logs import begin_log

PROCESSOR_SECONDS = 2.0  # of the helper for one file; most take milliseconds
BYTES_A_SECOND = 2e10  # that it gets besides: the list of parts of 100 GB takes two seconds
STARTING_SECONDS = 60.0  # of processor time, to import what it needs
WALL_SECONDS = 60.0  # for one file where the helper only waits, for a disk or its turn
MEMORY = 8 << 30  # bytes of address space of the helper
REMEMBERED = 10_000  # files that need not be checked again as long as they stay as they are
MOST_OBJECTS = 50_000

Identity = tuple[int, int, int, int, int]


class Helper:
    """The process that opens files first."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._process = subprocess.Popen(
            command("drivers.formats.guard"),
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            **system.own_session(),  # Ctrl-C is ours to answer
        )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        assert self._process.stdout is not None
        threading.Thread(
            target=_pass_on, args=(self._process.stdout, self._answers), name="file guard", daemon=True
        ).start()
        self._wait(STARTING_SECONDS)  # until it has imported what it needs

    def check(self, path: Path, reader: str) -> str:
        """ "" if the file can be opened; otherwise why not. The helper may be gone afterwards."""
        assert self._process.stdin is not None
        allowed = PROCESSOR_SECONDS + path.stat().st_size / BYTES_A_SECOND
        try:
            self._process.stdin.write(json.dumps([reader, os.fspath(path.absolute())]) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise EOFError from None
        return str(json.loads(self._wait(allowed)))

    def end(self) -> None:
        self._process.kill()
        with contextlib.suppress(OSError):
            self._process.communicate()

    def _wait(self, processor_seconds: float) -> str:
        """The helper's next line; TimeoutError if it takes too long, EOFError if it is gone."""
        import psutil

        begun, used = time.monotonic(), None
        while True:
            try:
                line = self._answers.get(timeout=0.05)
            except queue.Empty:
                with contextlib.suppress(psutil.Error):
                    now = sum(psutil.Process(self._process.pid).cpu_times()[:2])
                    used = now if used is None else used
                    if now - used > processor_seconds:
                        raise TimeoutError from None
                if time.monotonic() - begun > WALL_SECONDS + processor_seconds:
                    raise TimeoutError from None
                continue
            if not line:
                raise EOFError
            return line


_helper: Helper | None = None
_lock = threading.Lock()
_checked: OrderedDict[Identity, None] = OrderedDict()


def check_first(path: Path, reader: str) -> None:
    """DataError if opening the file and touching each of its parts fails, crashes or takes too long."""
    global _helper
    identity = _identity(path)
    with _lock:
        if identity in _checked:
            return
        _start()
        assert _helper is not None
        try:
            problem = _helper.check(path, reader)
        except (TimeoutError, EOFError) as error:
            _helper.end()
            _helper = None
            late = isinstance(error, TimeoutError)
            raise DataError(
                f"{path.name} is damaged: opening it "
                + ("does not come to an end." if late else "makes its reader crash.")
            ) from None
        if problem:
            raise DataError(problem)
        _checked[identity] = None
        if len(_checked) > REMEMBERED:
            _checked.popitem(last=False)


def warm() -> None:
    """Start the helper now, so that the first file need not wait for it."""
    with _lock:
        _start()


def _start() -> None:
    global _helper
    if _helper is None or _helper.owner != os.getpid():
        _helper = Helper()


@atexit.register
def _end() -> None:
    if _helper is not None and _helper.owner == os.getpid():
        _helper.end()


def _identity(path: Path) -> Identity:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _pass_on(lines: IO[str], answers: queue.SimpleQueue[str]) -> None:
    with contextlib.suppress(ValueError, OSError):
        for line in lines:
            answers.put(line)
    answers.put("")


# -- in the helper


def problem_of(reader: str, path: Path) -> str:
    """Open the file as its reader will; "" or why that fails."""
    from drivers.formats import hdf5, tdms

    try:
        {"hdf5": hdf5.touch, "tdms": tdms.touch}[reader](path)
    except DataError as error:
        return str(error)
    except Exception as error:  # a damaged file may fail anywhere in the library
        text = " ".join(str(error).split())[:120] or type(error).__name__
        return f"{path.name} is damaged or cut short ({text})."
    return ""


def _end_by_itself_after(processor_seconds: float) -> None:
    """A helper whose owner was killed while a file kept it busy ends, even inside the library's own code."""
    if sys.platform != "win32":
        import signal

        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, processor_seconds)


def main() -> int:
    import h5py  # noqa: F401 (before the first file asks for it)

    begin_log("file guard")
    if sys.platform != "win32":
        import resource  # noqa: TID251 (not reached on Windows)

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        if hard == resource.RLIM_INFINITY or hard > MEMORY:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        reader, path = json.loads(line)
        _end_by_itself_after(2 * PROCESSOR_SECONDS)
        sys.stdout.write(json.dumps(problem_of(reader, Path(path))) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
