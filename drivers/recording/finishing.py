"""From the journal to the finished file, in a process of its own.

A disk that fails under HDF5 can take the whole process with it (seen with HDF5 2.0: a segmentation fault when
the disk fills up), so the process that records, shows and drives never writes HDF5 itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from analysis import SILENT, DataError, Progress, Step
from drivers.base import system
from drivers.base.child import command, environment
from drivers.recording.container import SUFFIX, ContainerRecording, same_content, write_container
from drivers.recording.journal import SUFFIX as JOURNAL_SUFFIX
from drivers.recording.journal import lock_file, read_journal, sync_folder
from drivers.recording.lazy import Recording
from drivers.recording.unfinished import JournalRecording

SLOWEST = 2e6  # bytes a second that finishing is given before it is given up


@dataclass(frozen=True)
class Finished:
    """A recording that has ended: where it is, how long, and what went wrong on the way if anything did."""

    path: Path
    samples: int
    problem: str | None = None


def finish(journal_path: Path, seconds: float | None = None, progress: Progress = SILENT) -> Finished:
    """Finish a journal in another process with a time limit (by default by size); DataError if that fails.

    Whatever happens, the journal is deleted only after the finished file has been proven.
    """
    try:
        limit = seconds if seconds is not None else 30 + journal_path.stat().st_size / SLOWEST
        child = subprocess.Popen(
            command("drivers.recording", str(journal_path)),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise DataError(f"{journal_path.name} could not be finished: {error.strerror}.") from None
    late = threading.Event()

    def give_up() -> None:
        late.set()
        child.kill()

    timer = threading.Timer(limit, give_up)
    timer.start()
    last = ""
    try:
        with child:
            assert child.stdout is not None
            assert child.stderr is not None
            for line in child.stdout:
                last = line.rstrip("\n")
                kind, _, rest = last.partition("\t")
                if kind == "progress":
                    progress.report(float(rest), "finishing the recording")
            complaint = child.stderr.read().strip().splitlines()[-1:]
    except BaseException:  # cancelled: the journal stays as it is
        child.kill()
        raise
    finally:
        timer.cancel()
        timer.join()
    kind, _, rest = last.partition("\t")
    if child.returncode == 0 and kind == "finished":
        samples, _, path = rest.partition("\t")
        nothing = "Nothing had been recorded." if int(samples) == 0 else None
        return Finished(Path(json.loads(path)), int(samples), nothing)
    if late.is_set():
        raise DataError(f"{journal_path.name} could not be finished within {limit:.0f} s; it is kept.")
    reason = complaint[0] if complaint else "the process that finishes it died"
    raise DataError(f"{journal_path.name} could not be finished and is kept: {reason}")


def finish_here(journal_path: Path) -> Finished:
    """Finish a journal in this process; it stays locked meanwhile, so nobody else tries the same."""
    handle: int | None = os.open(journal_path, os.O_RDONLY)
    try:
        assert handle is not None
        lock_file(handle)
        if _is_empty(journal_path):
            held, handle = handle, None
            system.remove(journal_path, held)
            return Finished(journal_path, 0)
        with JournalRecording(read_journal(journal_path)) as source:
            path = _free_name(journal_path, source)
            if not path.exists():  # otherwise the crash came between the last two steps
                write_container(source, path, Progress(on_step=_tell))
        held, handle = handle, None
        system.remove(journal_path, held)
        sync_folder(journal_path.parent)
        return Finished(path, len(source))
    finally:
        if handle is not None:
            os.close(handle)


def with_suffix(path: Path) -> Path:
    """The finished file's name: ``run1`` and ``run1.h5`` both give ``run1.h5``."""
    if not path.name:
        raise DataError(f"{path} is not the name of a file.")
    return path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)


def _is_empty(journal_path: Path) -> bool:
    """Whether the crash came before the first sample, so that there is nothing to keep."""
    if journal_path.stat().st_size == 0:
        return True
    journal = read_journal(journal_path)
    return len(journal.frames) == 0 and journal.damaged_bytes == 0


def _tell(step: Step) -> None:
    sys.stdout.write(f"progress\t{step.fraction:.4f}\n")
    sys.stdout.flush()


def _free_name(journal_path: Path, source: Recording) -> Path:
    """The recording's own name if that is free or holds this very recording, else the next free one."""
    base = journal_path.name.removesuffix(JOURNAL_SUFFIX).removesuffix(SUFFIX)
    path = journal_path.with_name(base + SUFFIX)
    number = 2
    while path.exists() and not _holds(path, source):
        path = journal_path.with_name(f"{base}-{number}{SUFFIX}")
        number += 1
    return path


def _holds(path: Path, source: Recording) -> bool:
    try:
        with ContainerRecording(path) as done:
            return same_content(done, source)
    except DataError:
        return False
