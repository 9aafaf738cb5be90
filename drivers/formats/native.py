"""Shakedown's own recordings: finished ones (plain HDF5), and journals that were never finished."""

from __future__ import annotations

from pathlib import Path

from drivers.base.files import open_regular
from drivers.formats import hdf5
from drivers.formats.options import Options
from drivers.recording.container import write_container
from drivers.recording.journal import MAGIC, read_journal
from drivers.recording.lazy import Recording
from drivers.recording.unfinished import JournalRecording

KEEPS_DRIVE = True  # and what a person marked


def open_file(path: Path, options: Options) -> Recording:
    with open_regular(path) as file:
        unfinished = file.read(len(MAGIC)) == MAGIC
    return JournalRecording(read_journal(path)) if unfinished else hdf5.open_file(path, options)


def write_file(recording: Recording, path: Path) -> None:
    write_container(recording, path)
