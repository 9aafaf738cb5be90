"""After a crash: find the recordings that were never finished, and finish them."""

from __future__ import annotations

import os
from pathlib import Path

from analysis import SILENT, DataError, Progress
from drivers.recording.finishing import Finished, finish
from drivers.recording.journal import SUFFIX as JOURNAL_SUFFIX
from drivers.recording.journal import lock_file


def find_unfinished(folder: Path | str) -> list[Path]:
    """Journals in the folder that no living process is writing."""
    return [p for p in sorted(Path(folder).glob("*" + JOURNAL_SUFFIX)) if not _being_written(p)]


def recover(path: Path | str, seconds: float | None = None, progress: Progress = SILENT) -> Finished:
    """Finish what a crash left behind, in a process of its own with a time limit (by default by size)."""
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path} is not there.")
    return finish(path, seconds, progress)


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
