"""Recordings on disk: made crash-safe, finished as plain HDF5, read piece by piece.

While recording: :class:`Recorder` (a journal). After a crash: :func:`find_unfinished`, :func:`recover`.
Reading: :func:`drivers.formats.open_lazily` gives a :class:`Recording` for any file the field uses.
"""

from __future__ import annotations

from drivers.recording.finishing import Finished
from drivers.recording.journal import ChannelSpec, RecordingStopped
from drivers.recording.lazy import Description, MemoryRecording, Part, Recording, Verdict
from drivers.recording.recorder import Recorder
from drivers.recording.recovery import find_unfinished, recover

__all__ = [  # noqa: RUF022 (in the order of use)
    "ChannelSpec",
    "Recorder",
    "RecordingStopped",
    "Finished",
    "find_unfinished",
    "recover",
    "Recording",
    "Part",
    "MemoryRecording",
    "Description",
    "Verdict",
]  # fmt: skip
