"""The journal: what a recording is while it is being made.

A file of frames, only ever appended to. Each frame carries its sequence number, the index of its first sample
and checksums, so whatever a crash, a full disk or a power cut leaves behind, every frame that reached the
disk is told from what did not. Frame 0 is a JSON header; the others are samples and events (gaps, overloads,
notes).
See docs/decisions/0001-journal-then-hdf5.md for the measurements behind this.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import secrets
import shutil
import struct
import threading
import zlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import DataError, ShakedownError, parse_json, read_as
from drivers.base import system
from drivers.base.files import open_regular

MAGIC = b"SHKJ"
VERSION = 1
SUFFIX = ".journal"
SYNC_SECONDS = 0.5  # a power cut loses at most this, one block and the time of a sync: below one second
LARGEST_PAYLOAD = 16 << 20  # bytes; larger blocks are split, so one torn frame costs little
LARGEST_HEADER = 64 << 20
LATEST = 1 << 60  # index of a sample that no recording reaches

# magic, kind, sequence, first sample, samples, payload bytes, payload CRC32, CRC32 of this header up to here
_FRAME = struct.Struct("<4sB3xQQIIII")
_HEADER, _SAMPLES, _EVENT, _END = b"HDEZ"

SAMPLE_TYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")


class RecordingStopped(ShakedownError):
    """The disk refused to take more; what was written before is kept. The message says where and why."""


@dataclass(frozen=True)
class ChannelSpec:
    """A channel as recorded: value in ``unit`` = scale * stored number + offset, stored as ``dtype``."""

    name: str
    unit: str = ""
    dtype: str = "f8"  # little-endian numpy type code, one of SAMPLE_TYPES
    scale: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if self.dtype not in SAMPLE_TYPES:
            raise DataError(f"Channel '{self.name}' cannot be stored as '{self.dtype}'.")
        if not (np.isfinite(self.scale) and self.scale != 0 and np.isfinite(self.offset)):
            raise DataError(f"Channel '{self.name}' has an impossible calibration.")

    @property
    def numpy_type(self) -> np.dtype[Any]:
        return np.dtype("<" + self.dtype)

    def physical(self, raw: NDArray[Any]) -> NDArray[np.float64]:
        """Stored numbers as values in ``unit``."""
        values = np.array(raw, dtype=np.float64)
        if self.scale != 1.0:
            values *= self.scale
        if self.offset != 0.0:
            values += self.offset
        return values


# Where the samples of a frame lie: index of the first from the recording's start, how many, byte in the file.
# An array of these, because a day of recording has millions.
FRAME = np.dtype([("first", np.int64), ("count", np.int64), ("position", np.int64)])


class JournalWriter:
    """Appends frames and forces them to the disk twice a second, from a thread of its own.

    Every method may be called from any thread. After an error of the disk every ``append`` raises
    :class:`RecordingStopped`, and the file ends with the last whole frame.
    """

    def __init__(self, path: Path, header: Mapping[str, Any], channels: Sequence[ChannelSpec]) -> None:
        self.path = path
        self.channels = tuple(channels)
        self.bytes_written = 0
        self._sequence = 0
        self._lock = threading.Lock()
        self._failure: RecordingStopped | None = None
        self._session = secrets.randbits(
            32
        )  # seeds the checksums: stale disk blocks of another file fail them
        self._stop = threading.Event()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            self._file = os.open(path, flags, 0o644)
        except FileExistsError:
            raise DataError(
                f"{path.name} is already there: choose another name or recover it first."
            ) from None
        except OSError as error:
            raise DataError(f"Cannot record to {path}: {error.strerror}.") from None
        self._identity = _identity(os.fstat(self._file))
        try:
            lock_file(self._file)
            content = {
                "format": "shakedown journal",
                "version": VERSION,
                **header,
                "session": self._session,
                "channels": [vars(c) for c in self.channels],
            }
            self._put(_HEADER, 0, 0, [_json_bytes(content)])
            os.fsync(self._file)
            sync_folder(path.parent)
        except BaseException:
            os.close(self._file)
            path.unlink(missing_ok=True)
            raise
        self._thread = threading.Thread(target=self._sync_forever, name="journal sync", daemon=True)
        self._thread.start()

    def samples(self, first: int, arrays: Sequence[NDArray[Any]]) -> None:
        """Append one array per channel, all of one length, in the channels' own types."""
        total = len(arrays[0])
        step = max(1, LARGEST_PAYLOAD // sum(c.numpy_type.itemsize for c in self.channels))
        for start in range(0, total, step):
            parts = [np.ascontiguousarray(a[start : start + step]).data.cast("B") for a in arrays]
            with self._lock:
                self._put(_SAMPLES, first + start, min(step, total - start), parts)

    def event(self, event: Mapping[str, Any]) -> None:
        """Append an event: a JSON object with the key ``kind``."""
        payload = _json_bytes(event)
        with self._lock:
            self._put(_EVENT, 0, 0, [payload])

    def close(self) -> RecordingStopped | None:
        """End the journal and force it to the disk; the failure that stopped it, if there was one."""
        if self._stop.is_set():
            return self._failure
        self._stop.set()
        self._thread.join()
        with self._lock:
            if self._failure is None:
                try:
                    self._put(_END, 0, 0, [])
                    sync_data(self._file)
                except (RecordingStopped, OSError) as error:
                    self._failure = error if isinstance(error, RecordingStopped) else self._failed(error)
            if os.fstat(self._file).st_nlink == 0:
                self._rescue()
            os.close(self._file)
        return self._failure

    def _rescue(self) -> None:
        """The file was deleted under us but lives until it is closed: copy it to the nearest folder."""
        for folder in self.path.parents:
            if not folder.is_dir():
                continue
            target = folder / f"rescued-{self._session:08x}-{self.path.name}"
            try:
                with os.fdopen(os.dup(self._file), "rb") as source, target.open("xb") as copy:
                    source.seek(0)
                    shutil.copyfileobj(source, copy, 1 << 20)
                    copy.flush()
                    os.fsync(copy.fileno())
            except OSError:
                target.unlink(missing_ok=True)
                continue
            self.path = target
            self._failure = RecordingStopped(
                f"The recording's file was deleted while it was written: it ended and was saved as {target}."
            )
            return

    def _put(self, kind: int, first: int, count: int, parts: Sequence[bytes | memoryview]) -> None:
        if self._failure is not None:
            raise self._failure
        crc = self._session if kind != _HEADER else 0
        for part in parts:
            crc = zlib.crc32(part, crc)
        length = sum(len(p) for p in parts)
        head = _FRAME.pack(MAGIC, kind, self._sequence, first, count, length, crc, 0)[:-4]
        head += struct.pack("<I", zlib.crc32(head))
        try:
            _write_all(self._file, [head, *parts])
        except OSError as error:
            self._failure = self._failed(error)
            # A torn frame is harmless, but gone is better.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self.bytes_written)
                sync_data(self._file)
            raise self._failure from None
        self.bytes_written += _FRAME.size + length
        self._sequence += 1

    def _sync_forever(self) -> None:
        while not self._stop.wait(SYNC_SECONDS):
            try:
                sync_data(self._file)
                if _identity(self.path.stat()) != self._identity:
                    raise FileNotFoundError
            except OSError as error:
                with self._lock:
                    self._failure = self._failure or self._failed(error)
                return

    def _failed(self, error: OSError) -> RecordingStopped:
        if isinstance(error, FileNotFoundError):
            what = "The recording's file has gone from its folder (drive removed or folder deleted)"
        else:
            what = f"The disk takes no more data ({error.strerror or error})"
        return RecordingStopped(f"{what}: the recording ended, what was written before is in {self.path}.")


@dataclass(frozen=True)
class Journal:
    """What can be read of a journal: header, whole frames in order of time, events, and how it ended."""

    path: Path
    header: Mapping[str, Any]
    channels: tuple[ChannelSpec, ...]
    frames: NDArray[np.void]  # of FRAME, in order of time
    events: tuple[Mapping[str, Any], ...]
    complete: bool  # the end frame is there and no frame is missing before it
    damaged_bytes: int  # bytes that belong to no whole frame

    def read_channel(self, file: int, position: int, count: int, channel: int) -> NDArray[Any]:
        """The stored numbers of one channel in the frame at that place of the journal's open file."""
        before = sum(c.numpy_type.itemsize for c in self.channels[:channel])
        kind = self.channels[channel].numpy_type
        os.lseek(file, position + before * count, os.SEEK_SET)
        return np.frombuffer(_read_all(file, kind.itemsize * count), kind)


def read_journal(path: Path) -> Journal:
    """Everything intact in a journal, however it ended; DataError if even its header is gone."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size < _FRAME.size:
            raise DataError(f"{path.name} is no recording: it ends before its header.")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _scan(path, content)


def _scan(path: Path, content: mmap.mmap) -> Journal:
    head = _frame_at(content, 0)
    if head is None or head.kind != _HEADER or not head.intact(content, 0) or head.length > LARGEST_HEADER:
        raise DataError(f"{path.name} is no recording, or its header is damaged.")
    header, channels = _parse_header(path, content[head.start : head.stop])
    session = int(header["session"])
    per_sample = sum(c.numpy_type.itemsize for c in channels)
    frames = array("Q")
    events: list[Mapping[str, Any]] = []
    good = head.stop
    damaged = 0
    ended = False
    expected_sequence = 1
    missing = False
    effort = 4 * len(content) + LARGEST_PAYLOAD  # bytes to checksum before a crafted file is given up
    position = head.stop
    while position < len(content):
        frame = _frame_at(content, position)
        if frame is not None:
            effort -= frame.length
        if frame is None or not frame.intact(content, session):
            position = content.find(MAGIC, position + 1)
            if position < 0 or effort < 0:
                break
            continue
        damaged += position - good
        good = position = frame.stop
        missing |= frame.sequence != expected_sequence
        expected_sequence = frame.sequence + 1
        if frame.kind == _SAMPLES and frame.count * per_sample == frame.length and frame.count:
            frames.extend((frame.first, frame.count, frame.start))
        elif frame.kind == _EVENT:
            events.append(_parse_event(content[frame.start : frame.stop]))
        ended = frame.kind == _END
    damaged += len(content) - good
    table = np.frombuffer(frames, FRAME) if frames else np.empty(0, FRAME)  # beyond 2**63: negative
    table = _without_overlap(table[np.argsort(table["first"], kind="stable")])
    found = tuple(e for e in events if e)
    return Journal(path, header, channels, table, found, ended and not missing, damaged)


def _without_overlap(frames: NDArray[np.void]) -> NDArray[np.void]:
    """Frames in order of time, without those that a recorder cannot have written: what is there counts."""
    sane = (frames["first"] >= 0) & (frames["first"] <= LATEST) & (frames["count"] <= LATEST)
    frames = frames[sane]
    ends = np.maximum.accumulate(frames["first"] + frames["count"])
    return frames[frames["first"] >= np.concatenate([[0], ends[:-1]])] if len(frames) else frames


@dataclass(frozen=True)
class _FrameHead:
    kind: int
    sequence: int
    first: int
    count: int
    length: int
    crc: int
    start: int  # of the payload

    @property
    def stop(self) -> int:
        return self.start + self.length

    def intact(self, content: mmap.mmap, session: int) -> bool:
        if self.stop > len(content):
            return False
        with memoryview(content) as view, view[self.start : self.stop] as payload:
            return zlib.crc32(payload, session) == self.crc


def _frame_at(content: mmap.mmap, position: int) -> _FrameHead | None:
    head = content[position : position + _FRAME.size]
    if len(head) < _FRAME.size:
        return None
    magic, kind, sequence, first, count, length, crc, own = _FRAME.unpack(head)
    if magic != MAGIC or zlib.crc32(head[:-4]) != own:
        return None
    return _FrameHead(kind, sequence, first, count, length, crc, position + _FRAME.size)


def _parse_header(path: Path, text: bytes) -> tuple[dict[str, Any], tuple[ChannelSpec, ...]]:
    try:
        header = parse_json(text.decode())
        channels = read_as(tuple[ChannelSpec, ...], header["channels"], "channels")
        if not channels or not isinstance(header["session"], int) or header["version"] > VERSION:
            raise ValueError
    except (ValueError, TypeError, KeyError):
        raise DataError(f"{path.name} has a header that this version cannot read.") from None
    return header, channels


def _parse_event(text: bytes) -> Mapping[str, Any]:
    try:
        event = parse_json(text.decode())
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _json_bytes(content: Mapping[str, Any]) -> bytes:
    return to_json(content).encode()


def to_json(content: Any) -> str:
    """JSON of header, metadata and events; numpy numbers and arrays are taken as plain ones."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            return value.tolist()
        if isinstance(value, Path):
            return str(value)
        raise DataError(
            f"Metadata must be plain text, numbers, lists and tables, not {type(value).__name__}."
        )

    return json.dumps(content, default=plain, ensure_ascii=False)


def _write_all(file: int, parts: Sequence[bytes | memoryview]) -> None:
    """Write every byte; a short write (disk nearly full) is continued until it succeeds or raises."""
    if hasattr(os, "writev") and len(parts) < 512:
        written = os.writev(file, parts)
        if written == sum(len(p) for p in parts):
            return
        content = memoryview(b"".join(parts))[written:]
    else:
        content = memoryview(b"".join(parts))
    while content:
        content = content[os.write(file, content) :]


def _read_all(file: int, size: int) -> bytes:
    content = os.read(file, size)
    while len(content) < size:
        part = os.read(file, size - len(content))
        if not part:
            raise DataError("The journal became shorter while it was read.")
        content += part
    return content


def sync_data(file: int) -> None:
    getattr(os, "fdatasync", os.fsync)(file)


def sync_folder(folder: Path) -> None:
    """Force the folder's list of names to the disk, where the system has a way to."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def lock_file(file: int) -> None:
    """Mark the open journal as being written by a living process; the system forgets it when that dies."""
    if not system.lock(file):
        raise DataError("Another process is writing this recording.")


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
