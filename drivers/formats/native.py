"""Shakedown's own finished recordings, and journals that were never finished."""

from __future__ import annotations

from pathlib import Path

from drivers.formats.options import Options
from drivers.recording.container import ContainerRecording, write_container
from drivers.recording.lazy import Recording


def open_file(path: Path, options: Options) -> Recording:
    return ContainerRecording(path)


def write_file(recording: Recording, path: Path) -> None:
    write_container(recording, path)
