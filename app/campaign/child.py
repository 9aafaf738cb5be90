"""A process that does jobs one after the other, and its parent's end of the pipe.

Messages are JSON with their length in front. The process may crash, be killed or hang: its parent notices,
says what happened to the one job that was under way, and starts another. It has one thread for the numerics.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from app.campaign.jobs import Call, Task, task
from app.campaign.version import full_version
from drivers.base import system
from drivers.base.child import command, environment
from drivers.base.drive_page import alive
from drivers.base.logs import begin_log, flush_log

ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
# Freed memory stays with the process: the next step asks for as much again, and getting it back from the
# system took 7 % of the time of a job (20 % where Dask has its workers return it at once).
KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(256 << 20)}  # bytes
STARTING = 120.0  # s until a new process must have spoken
COMPILING = 300.0  # s to wait for another process of this machine that compiles the same model
WATCHING = 1.0  # s between two looks whether the parent is still there
_LENGTH = struct.Struct("<Q")
_log = logging.getLogger(__name__)

DONE, FAILED, LOST = "done", "failed", "lost"


@dataclass(frozen=True)
class Outcome:
    """What became of a job: done, failed for a reason of its own, or lost with its process or its file."""

    key: str
    status: str
    result: str = ""  # JSON of the identification
    sentence: str = ""  # why there is none
    seconds: float = 0.0
    first: bool = False  # of its model in its process: the time includes loading and compiling
    unseen: bool = False  # it was lost because the process did not see the file


class Child:
    """One process for jobs, started when the first one comes. Not for several threads at once."""

    def __init__(self, limit: float) -> None:
        self.limit = limit  # s that a job may take
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def perform(self, job: Task, version: str) -> Outcome:
        """Have a job done; whatever happens to the process, there is an outcome."""
        begun = time.monotonic()
        try:
            process = self._running()
            expired = threading.Event()
            timer = threading.Timer(self.limit, _expire, (process, expired))
            timer.daemon = True
            timer.start()
            try:
                _send(process.stdin, {"job": job.to_dict(), "key": job.key, "version": version})
                answer = _receive(process.stdout)
                if answer is not None and answer["key"] != job.key:
                    process.kill()
                    process.wait()
                    raise ValueError("its process answered to another job")
            finally:
                timer.cancel()
        except (OSError, ValueError, EOFError) as error:
            words = str(error) or "its process ended"
            answer = {"status": LOST, "sentence": f"It could not be done: {words}."}
            expired = threading.Event()
        if answer is None:
            answer = {"status": LOST, "sentence": self._obituary(expired.is_set())}
        return Outcome(
            job.key, answer["status"], answer.get("result", ""), answer.get("sentence", ""),
            answer.get("seconds", time.monotonic() - begun), answer.get("first", False),
            answer.get("unseen", False),
        )  # fmt: skip

    def close(self) -> None:
        """End the process; a job under way is lost. May be called from any thread."""
        with self._lock:
            self._closed = True
            process = self._process
        if process is not None:
            with contextlib.suppress(OSError):
                process.kill()

    def rest(self) -> None:
        """End the process, which has nothing to do; the next job starts another."""
        if self._process is not None:
            self._process.kill()
        self.join()

    def join(self) -> None:
        """Let go of a process that has ended."""
        if self._process is not None:
            _let_go(self._process)
            self._process = None

    def _running(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise ValueError("the campaign was ended")
            if self._process is not None and self._process.poll() is None:
                return self._process
            if self._process is not None:
                _let_go(self._process)
            self._process = subprocess.Popen(
                command("app.campaign.child"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**environment(), **ONE_THREAD, **KEPT_MEMORY},  # the same for every engine
                **system.own_session(),  # Ctrl-C is for the program, which ends its processes itself
            )
            process = self._process
        timer = threading.Timer(STARTING, process.kill)
        timer.daemon = True
        timer.start()
        try:
            if _receive(process.stdout) is None:
                raise ValueError("a process for it could not be started")
        finally:
            timer.cancel()
        return process

    def _obituary(self, expired: bool) -> str:
        process, self._process = self._process, None
        code = None
        if process is not None:
            process.kill()
            _let_go(process)
            code = process.returncode
        if expired:
            return f"It was not done after {self.limit:g} s, the limit for one job, and was ended."
        how = f"signal {-code}" if code is not None and code < 0 else f"code {code}"
        return f"Its process ended unexpectedly ({how}): it crashed, was killed, or the memory was full."


def _expire(process: subprocess.Popen[bytes], expired: threading.Event) -> None:
    expired.set()
    with contextlib.suppress(OSError):
        process.kill()


def _let_go(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    process.wait()


def _send(stream: BinaryIO | Any, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode()
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _receive(stream: BinaryIO | Any) -> dict[str, Any] | None:
    """The next message; None when the other end is gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    data = stream.read(_LENGTH.unpack(head)[0])
    if len(data) < _LENGTH.unpack(head)[0]:
        return None
    message: dict[str, Any] = json.loads(data)
    return message


# -- in the process itself


def main() -> None:
    """Do what comes in until nobody is left to send more."""
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not run into the messages
    begin_log("campaign", logging.WARNING)
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True).start()
    _send(answers, {"version": full_version()})
    while (order := _receive(orders)) is not None:
        try:
            answer = _answer(task(order["job"]), order["version"])
            _send(answers, {**answer, "key": order["key"]})
        except OSError:  # nobody waits for it any more
            return


def _answer(job: Task, version: str) -> dict[str, Any]:
    from analysis import ShakedownError
    from app.campaign.work import OutOfReach, Unseen

    if version != full_version():
        import platform

        words = f"The worker on {platform.node()} runs {full_version()}, the campaign {version}"
        return {"status": LOST, "sentence": f"{words}: install the same."}
    begun = time.monotonic()
    first = not (isinstance(job, Call) or job.model in _compiled)
    try:
        found = _result(job)
        return {"status": DONE, "result": found, "seconds": time.monotonic() - begun, "first": first}
    except OutOfReach as error:
        return {"status": LOST, "sentence": str(error), "unseen": isinstance(error, Unseen)}
    except ShakedownError as error:
        return {"status": FAILED, "sentence": str(error), "seconds": time.monotonic() - begun}
    except MemoryError:
        return {"status": LOST, "sentence": "There was not enough memory for it: use shorter recordings."}
    except Exception as error:  # a mistake of the program in one job must not cost the others
        import traceback

        _log.error("a job failed: %s", job, exc_info=error)
        flush_log()  # the process may be killed as soon as its answer is there
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        words = f"This should not have happened: {type(error).__name__} in {place} ({error})."
        return {"status": FAILED, "sentence": words}


def _result(job: Task) -> str:
    """What becomes of a job, as JSON."""
    from analysis import Progress
    from app.campaign.work import perform

    if isinstance(job, Call):
        module, _, name = job.function.partition(":")
        found = getattr(import_module(module), name)(**job.arguments)
        return json.dumps(found, default=lambda value: value.tolist())  # arrays and numbers of NumPy
    with _compiled_once(job.model):
        return perform(job, Progress()).to_json()


_compiled: set[str] = set()  # models of which this process has done a job


@contextlib.contextmanager
def _compiled_once(model: str) -> Iterator[None]:
    """The first job of a model on a machine is done while the others wait: they find its code on the disk."""
    if model in _compiled:
        yield
        return
    lock = _lock_file(model)
    if lock is not None and (not _take(lock) or lock.tell() > 0):  # waited in vain, or compiled before
        lock.close()
        lock = None
    try:
        yield
        if lock is not None:
            lock.write(b"compiled\n")
            lock.flush()
    finally:
        _compiled.add(model)
        if lock is not None:
            lock.close()


def _lock_file(model: str) -> BinaryIO | None:
    """A file of this machine and this version for the model; None where there is no place for it."""
    import tempfile

    name = hashlib.sha256(f"{full_version()}\n{model}".encode()).hexdigest()[:20]
    owner = os.getuid() if hasattr(os, "getuid") else "own"  # on Windows each user has a folder
    folder = Path(tempfile.gettempdir()) / f"shakedown-compiled-{owner}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        return (folder / name).open("ab")
    except OSError:
        return None


def _take(lock: BinaryIO) -> bool:
    """Take the lock, or give up waiting: compiling twice costs time, not answers."""
    deadline = time.monotonic() + COMPILING
    while not system.lock(lock.fileno()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    lock.seek(0, os.SEEK_END)
    return True


def _watch_parent(parent: int) -> None:
    """End with the program, also in the middle of a job: nobody is left to take its result."""
    while os.getppid() == parent and alive(parent):  # Windows keeps the number of a parent that is gone
        time.sleep(WATCHING)
    os._exit(1)


if __name__ == "__main__":
    main()
