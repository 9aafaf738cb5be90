"""After a crash: find the recordings that were never finished, and finish them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from analysis.errors import DataError
from drivers.journal import SUFFIX as JOURNAL_SUFFIX
from drivers.journal import lock_file, read_journal
from drivers.recording.container import SUFFIX, ContainerRecording, same_content
from drivers.recording.recorder import Finished, JournalRecording, finish, with_suffix


def find_unfinished(folder: Path | str) -> list[Path]:
    """Journals in the folder that no living process is writing."""
    return [p for p in sorted(Path(folder).glob("*" + JOURNAL_SUFFIX)) if not _being_written(p)]


def recover(path: Path | str, seconds: float | None = None) -> Finished:
    """Finish what a crash left behind, in a process of its own with a time limit (by default by size).

    Whatever happens the journal is deleted only after the finished file has been proven.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path} is not there.")
    limit = seconds if seconds is not None else 30 + path.stat().st_size / 2e6
    command = [sys.executable, "-m", "drivers.recording", str(path)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise DataError(f"{path.name} could not be recovered within {limit:.0f} s; it is kept.") from None
    if run.returncode != 0:
        last = run.stderr.strip().splitlines()[-1:] or ["the process ended unexpectedly"]
        raise DataError(f"{path.name} could not be recovered and is kept: {last[0]}")
    finished, samples = run.stdout.rstrip("\n").rsplit("\t", 1)
    return Finished(Path(finished), int(samples))


def recover_here(journal_path: Path) -> Finished:
    """Finish a journal in this process; it stays locked meanwhile, so nobody else tries the same."""
    handle = os.open(journal_path, os.O_RDONLY)
    try:
        lock_file(handle)
        path = _finished_name(journal_path)
        if path.exists():  # the crash came between the last two steps of finishing
            journal_path.unlink()
            with ContainerRecording(path) as done:
                return Finished(path, len(done))
        return finish(journal_path, path)
    finally:
        os.close(handle)


def _finished_name(journal_path: Path) -> Path:
    """The recording's own name if that is free or holds this very recording, else the next free one."""
    base = journal_path.name.removesuffix(JOURNAL_SUFFIX).removesuffix(SUFFIX)
    path = with_suffix(journal_path.with_name(base))
    number = 2
    while path.exists() and not _holds(path, journal_path):
        path = journal_path.with_name(f"{base}-{number}{SUFFIX}")
        number += 1
    return path


def _holds(path: Path, journal_path: Path) -> bool:
    try:
        with ContainerRecording(path) as done, JournalRecording(read_journal(journal_path)) as source:
            return same_content(done, source)
    except DataError:
        return False


def _being_written(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        lock_file(handle)
    except DataError:
        return True
    finally:
        os.close(handle)
    return False
