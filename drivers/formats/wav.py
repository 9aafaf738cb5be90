"""WAV (RIFF and its 64-bit form RF64): integers of 8 to 32 bits and floating point, read piece by piece.

Integers are scaled to full scale = 1. Names and units, which WAV has no place for, are kept in the comment
when we write; values are then stored as 64-bit floating point, bit for bit.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from analysis import DataError
from drivers.base.files import open_regular
from drivers.formats.columns import Column, Found, recording_from
from drivers.formats.options import Options
from drivers.recording.lazy import BLOCK, Recording

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
UNKNOWN_SIZE = 0xFFFFFFFF


@dataclass(frozen=True)
class Layout:
    """What the format chunk says, and where the samples are."""

    coding: int
    channels: int
    rate: int
    bits: int
    position: int
    samples: int

    @property
    def frame(self) -> int:
        return self.channels * self.bits // 8


def open_file(path: Path, options: Options) -> Recording:
    file = open_regular(path)
    try:
        layout, comment = _parse(file, path)
    except BaseException:
        file.close()
        raise
    found = Found(path.name, rate=float(layout.rate), close=file.close)
    titles = _titles(comment, layout.channels)
    integer = layout.coding == PCM
    scale = 2.0 ** (1 - layout.bits) if integer else 1.0
    offset = -1.0 if integer and layout.bits == 8 else 0.0  # 8 bits are unsigned, 128 being zero
    for i, (name, unit) in enumerate(titles):
        found.columns.append(
            Column(name, layout.samples, _stored(layout), _reader(file, layout, i), unit, None, scale, offset)
        )
    return recording_from(found, options)


def write_file(recording: Recording, path: Path) -> None:
    rate = recording.rate
    if rate != int(rate) or rate >= 1 << 32:
        raise DataError(f"WAV holds whole sample rates only, not {rate:.10g} Hz: choose another format.")
    channels = len(recording.names)
    size = len(recording) * channels * 8
    comment = json.dumps({"channels": [[c.name, c.unit] for c in recording.about.channels]}).encode() + b"\0"
    comment += b"\0" * (len(comment) % 2)
    info = (
        b"LIST"
        + struct.pack("<I", 12 + len(comment))
        + b"INFOICMT"
        + struct.pack("<I", len(comment))
        + comment
    )
    form = b"fmt " + struct.pack(
        "<IHHIIHHH", 18, FLOAT, channels, int(rate), int(rate) * channels * 8, channels * 8, 64, 0
    )
    form += b"fact" + struct.pack("<II", 4, min(len(recording), UNKNOWN_SIZE))
    total = 4 + len(form) + len(info) + 8 + size
    with path.open("wb") as file:
        if total < UNKNOWN_SIZE:
            file.write(b"RIFF" + struct.pack("<I", total) + b"WAVE")
        else:
            file.write(b"RF64" + struct.pack("<I", UNKNOWN_SIZE) + b"WAVE")
            file.write(b"ds64" + struct.pack("<IQQQI", 28, total + 36, size, len(recording), 0))
        file.write(form + info + b"data" + struct.pack("<I", min(size, UNKNOWN_SIZE)))
        for start in range(0, len(recording), BLOCK):
            stop = min(start + BLOCK, len(recording))
            block = np.stack([recording.values(n, start, stop) for n in recording.names], axis=1)
            file.write(block.astype("<f8").tobytes())


def _parse(file: BinaryIO, path: Path) -> tuple[Layout, bytes]:
    head = file.read(12)
    if head[:4] not in (b"RIFF", b"RF64") or head[8:12] != b"WAVE":
        raise DataError(f"{path.name} is no WAV file.")
    form: tuple[int, int, int, int] | None = None
    comment = b""
    large_size: int | None = None
    for name, position, size in _chunks(file):
        if name == b"ds64":
            large_size = struct.unpack("<Q", file.read(16)[8:])[0]
        elif name == b"fmt ":
            form = _format(file.read(min(size, 40)))
        elif name == b"LIST":
            comment = _comment(file.read(min(size, 1 << 20)))
        elif name == b"data":
            if form is None:
                break
            file.seek(0, 2)
            there = file.tell() - position
            wanted = large_size if size == UNKNOWN_SIZE and large_size is not None else size
            if wanted > there and wanted != UNKNOWN_SIZE:
                raise DataError(f"{path.name} is cut short: {there} of {wanted} bytes of samples are there.")
            frame = form[1] * form[3] // 8
            return Layout(*form, position, min(wanted, there) // frame), comment
    raise DataError(f"{path.name} has no samples: it is damaged or cut short.")


def _chunks(file: BinaryIO) -> Iterator[tuple[bytes, int, int]]:
    """Name, position and size of each chunk; the file stands at its content."""
    while len(head := file.read(8)) == 8:
        name, size = head[:4], struct.unpack("<I", head[4:])[0]
        position = file.tell()
        yield name, position, size
        file.seek(position + size + size % 2)


def _format(content: bytes) -> tuple[int, int, int, int]:
    if len(content) < 16:
        raise DataError("The WAV file's description is cut short.")
    coding, channels, rate, _, _, bits = struct.unpack("<HHIIHH", content[:16])
    if coding == EXTENSIBLE and len(content) >= 26:
        coding = struct.unpack("<H", content[24:26])[0]
    known = {PCM: (8, 16, 24, 32), FLOAT: (32, 64)}
    if bits not in known.get(coding, ()):
        raise DataError(f"WAV coding {coding} with {bits} bits is compressed or unknown: save it as PCM.")
    if not 0 < channels <= 4096 or rate == 0:
        raise DataError(f"The WAV file claims {channels} channels at {rate} Hz.")
    return coding, channels, rate, bits


def _comment(content: bytes) -> bytes:
    position = 4
    while content[:4] == b"INFO" and position + 8 <= len(content):
        name, size = (
            content[position : position + 4],
            struct.unpack("<I", content[position + 4 : position + 8])[0],
        )
        if name == b"ICMT":
            return content[position + 8 : position + 8 + size].rstrip(b"\0")
        position += 8 + size + size % 2
    return b""


def _titles(comment: bytes, channels: int) -> list[tuple[str, str]]:
    """Names and units from our own comment; otherwise c1, c2 without units."""
    try:
        pairs = json.loads(comment)["channels"]
        if len(pairs) == channels:
            return [(str(name), str(unit)) for name, unit in pairs]
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return [(f"c{i + 1}", "") for i in range(channels)]


def _stored(layout: Layout) -> np.dtype[Any]:
    if layout.coding == FLOAT:
        return np.dtype(f"<f{layout.bits // 8}")
    return np.dtype({8: "u1", 16: "<i2", 24: "<i4", 32: "<i4"}[layout.bits])


def _reader(file: BinaryIO, layout: Layout, channel: int) -> Any:
    def read(start: int, stop: int) -> NDArray[Any]:
        file.seek(layout.position + start * layout.frame)
        content = file.read((stop - start) * layout.frame)
        if layout.bits == 24:
            triples = np.frombuffer(content, np.uint8).reshape(-1, layout.channels, 3)[:, channel]
            wide = np.zeros((len(triples), 4), np.uint8)
            wide[:, 1:] = triples
            return wide.view("<i4")[:, 0] >> 8
        return np.frombuffer(content, _stored(layout)).reshape(-1, layout.channels)[:, channel]

    return read
