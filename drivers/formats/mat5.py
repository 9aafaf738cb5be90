"""MATLAB version 5 files, taken apart without trusting them.

After MathWorks' "MAT-File Format" (level 5): a header of 128 bytes, then elements, each a type, a size and
its content; a variable is an element of elements. Our own reader, because SciPy's crashes on damaged files.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import DataError
from drivers.base.files import open_regular

LARGEST = 4 << 30  # bytes, as stored and once unpacked; larger ones are saved as version 7.3 by MATLAB itself
MOST_COMPRESSION = 100  # measured numbers compress three times, counts of a quiet channel twenty times
UNPACKED_ANYWAY = 64 << 20  # bytes, whatever the ratio
DEEPEST = 8
MOST_ELEMENTS = 100_000

STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
MATRIX, COMPRESSED = 14, 15
TEXT = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
CELL, STRUCT, CHARACTERS = 1, 2, 4
NUMBERS = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
COMPLEX = 0x0800


def read_variables(path: Path) -> list[tuple[str, NDArray[Any] | str]]:
    """Every array and text with its name: ``x``, ``run.x`` in a struct, ``Y{2}`` in a cell."""
    if path.stat().st_size > LARGEST:
        raise DataError(
            f"{path.name} is larger than 4 GB: save it as version 7.3, which is read piece by piece."
        )
    with open_regular(path) as file:
        content = memoryview(file.read())
    try:
        room = UNPACKED_ANYWAY + MOST_COMPRESSION * len(content)
        return list(Reader(_byte_order(bytes(content[:128])), room).variables(content[128:]))
    except (struct.error, ValueError, IndexError, KeyError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{path.name} is damaged or cut short ({error}).") from None


@dataclass(frozen=True)
class Element:
    """A piece of the file: what it is and its content."""

    kind: int
    content: memoryview


class Reader:
    """Reads elements in one byte order, counting so that no crafted file can go on forever."""

    def __init__(self, order: str, room: int) -> None:
        self._order = order
        self._room = min(room, LARGEST)  # bytes that compressed variables may unpack to, all together
        self._elements = 0
        self._unpacked = 0

    def variables(self, content: memoryview) -> Iterator[tuple[str, NDArray[Any] | str]]:
        for element in self._split(content):
            if element.kind == COMPRESSED:
                unpacked = self._unpack(element.content)
                yield from self.variables(unpacked)
            elif element.kind == MATRIX:
                yield from self._matrix(element.content, None, 0)

    def _split(self, content: memoryview) -> Iterator[Element]:
        position = 0
        while position + 8 <= len(content):
            self._elements += 1
            if self._elements > MOST_ELEMENTS:
                raise ValueError("too many parts")
            first, size = struct.unpack_from(self._order + "II", content, position)
            if (
                first >> 16
            ):  # a small element: size and type share four bytes, the content is in the next four
                yield Element(first & 0xFFFF, content[position + 4 : position + 4 + min(first >> 16, 4)])
                position += 8
                continue
            if position + 8 + size > len(content):
                raise ValueError("it ends inside a variable")
            yield Element(first, content[position + 8 : position + 8 + size])
            position += 8 + size
            if first != COMPRESSED:
                position += -size % 8

    def _unpack(self, content: memoryview) -> memoryview:
        machine = zlib.decompressobj()
        result = machine.decompress(content, max(1, self._room - self._unpacked))
        self._unpacked += len(result)
        if machine.unconsumed_tail:
            raise ValueError("it unpacks to far more than a measurement would")
        return memoryview(result)

    def _matrix(
        self, content: memoryview, name: str | None, depth: int
    ) -> Iterator[tuple[str, NDArray[Any] | str]]:
        if depth > DEEPEST or len(content) == 0:
            return
        parts = self._split(content)
        try:
            flags, shape_part, name_part = next(parts), next(parts), next(parts)
        except StopIteration:
            raise ValueError("a variable ends too early") from None
        flag = struct.unpack_from(self._order + "I", flags.content)[0]
        shape = [int(n) for n in self._numbers(shape_part)]
        if name is None:
            name = bytes(name_part.content).decode("latin-1")
        kind = flag & 0xFF
        if kind in NUMBERS and not flag & COMPLEX:
            array = self._array(parts, shape, NUMBERS[kind])
            if array is not None:
                yield name, array
        elif kind == CHARACTERS:
            element = next(parts, None)
            if element is not None:
                yield name, _rows_of(self._text(element), shape)
        elif kind == CELL:
            for i, element in enumerate(parts):
                yield from self._matrix(element.content, f"{name}{{{i + 1}}}", depth + 1)
        elif kind == STRUCT:
            yield from self._struct(parts, name, depth)

    def _struct(
        self, parts: Iterator[Element], name: str, depth: int
    ) -> Iterator[tuple[str, NDArray[Any] | str]]:
        width_part, names_part = next(parts, None), next(parts, None)
        if width_part is None or names_part is None:
            return
        width = int(self._numbers(width_part)[0])
        if width <= 0:
            raise ValueError("a struct without field names")
        text = bytes(names_part.content)
        fields = [text[i : i + width].split(b"\0")[0].decode("latin-1") for i in range(0, len(text), width)]
        members = list(parts)
        single = len(members) <= len(fields)
        for i, member in enumerate(members):
            number = "" if single else f"({i // len(fields) + 1})"
            yield from self._matrix(member.content, f"{name}{number}.{fields[i % len(fields)]}", depth + 1)

    def _array(self, parts: Iterator[Element], shape: list[int], kind: str) -> NDArray[Any] | None:
        element = next(parts, None)
        values = np.empty(0, kind) if element is None else self._numbers(element).astype(kind)
        count = 1
        for n in shape:
            count *= n
        if min(shape, default=0) < 0 or len(values) != count:
            raise ValueError(f"{len(values)} numbers where {count} should be")
        return values.reshape(shape, order="F")

    def _numbers(self, element: Element) -> NDArray[Any]:
        kind = np.dtype(self._order + STORED[element.kind])
        return np.frombuffer(element.content, kind)

    def _text(self, element: Element) -> str:
        coding = TEXT.get(element.kind, "latin-1")
        if coding in ("utf-16", "utf-32"):
            coding += "-le" if self._order == "<" else "-be"
        return bytes(element.content).decode(coding, errors="replace")


def _rows_of(text: str, shape: list[int]) -> str:
    """A table of characters, which stands column by column in the file, as its rows; one row as it is."""
    rows = shape[0] if len(shape) == 2 else 1
    if rows < 2 or len(text) != rows * shape[1]:
        return text
    return ", ".join(text[row::rows].rstrip() for row in range(rows))


def _byte_order(head: bytes) -> str:
    if head[126:128] == b"IM":
        return "<"
    if head[126:128] == b"MI":
        return ">"
    raise ValueError(
        "its first 128 bytes are no header of version 5 or later: if it is older, save it with -v7"
    )
