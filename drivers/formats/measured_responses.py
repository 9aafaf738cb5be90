"""Frequency responses out of universal files (dataset 58, in text or binary)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import DataError
from drivers.base.files import open_regular
from drivers.formats.timing import simplest
from drivers.formats.uff58 import (
    Binary,
    Header,
    axis_unit,
    bytes_left,
    datasets,
    doubt,
    header_of,
    skip_dataset,
)

Array = NDArray[np.float64]

RESPONSE_FUNCTIONS = {4, 5}  # frequency response function, transmissibility
_COMPLEX_SINGLE, _COMPLEX_DOUBLE = 5, 6


@dataclass(frozen=True, eq=False)
class MeasuredFunction:
    """One response of a file."""

    name: str
    unit: str  # of what was seen over the drive; empty if the file does not tell
    hz: Array
    values: NDArray[np.complex128]


def read_responses(path: Path) -> list[MeasuredFunction]:
    """The complex frequency responses in a file of datasets 58, in text or binary."""
    found = []
    with open_regular(path) as file:
        for binary in datasets(file):
            header, lines = header_of(file, path.name)
            kept = header.function in RESPONSE_FUNCTIONS and header.kind in (_COMPLEX_SINGLE, _COMPLEX_DOUBLE)
            if kept:
                rows = _text_rows(file, header, path.name) if binary is None else _rows(file, header, binary)
                unit = _ratio(axis_unit(lines[8]), axis_unit(lines[9]))
                found.append(MeasuredFunction(header.name, unit, rows[0], rows[1] + 1j * rows[2]))
            elif binary is not None:
                file.seek(max(binary.size, header.size), 1)
            skip_dataset(file)
    if not found:
        raise DataError(f"{path.name} holds no frequency response (dataset 58, function 4, complex).")
    return found


def _even(header: Header) -> Array:
    step = 1.0 / simplest(1.0 / header.step, doubt(header.step))
    return np.asarray(header.first + step * np.arange(header.count), dtype=np.float64)


def _text_rows(file: Any, header: Header, source: str) -> Array:
    """Frequencies, real and imaginary parts [3, count] of values in text."""
    each = 2 if header.even else 3
    widths = [20] if header.kind == _COMPLEX_DOUBLE else [13]
    widths = widths * 2 if header.even else [13, *widths * 2]
    numbers: list[float] = []
    while len(numbers) < each * header.count:
        line = file.readline(400).decode("latin-1").rstrip()
        try:
            numbers += [float(part) for part in _cut(line, widths)]
        except ValueError:
            raise DataError(f"{source} is damaged: '{line[:40].strip()}' is no row of numbers.") from None
        if not line:
            raise DataError(f"{source} is cut short: a response lacks values.")
    table = np.array(numbers[: each * header.count]).reshape(-1, each).T
    return np.vstack([_even(header), table]) if header.even else table


def _cut(line: str, widths: list[int]) -> Iterator[str]:
    """Numbers between blanks, or by the columns of the format where they touch."""
    parts = line.split()
    if all(part.count("E") + part.count("e") <= 1 for part in parts):
        yield from parts
        return
    at, k = 0, 0
    while at < len(line):
        yield line[at : at + widths[k % len(widths)]]
        at, k = at + widths[k % len(widths)], k + 1


def _rows(file: Any, header: Header, binary: Binary) -> Array:
    """The same of binary values."""
    number = f"{binary.order}f{4 if header.kind == _COMPLEX_SINGLE else 8}"
    fields = [("re", number), ("im", number)]
    item = np.dtype(fields if header.even else [("x", f"{binary.order}f4"), *fields])
    size = header.count * item.itemsize  # some writers note half of it for complex values
    there = bytes_left(file)
    if header.count < 1 or size > there:
        raise DataError("A binary response is damaged or cut short: its values are not all there.")
    values = np.frombuffer(file.read(size), item, header.count)
    file.seek(min(max(binary.size - size, 0), there - size), 1)
    hz = _even(header) if header.even else values["x"].astype(np.float64)
    return np.stack([hz, values["re"].astype(np.float64), values["im"].astype(np.float64)])


def _ratio(seen: str, drive: str) -> str:
    return f"{seen}/{drive}" if drive else seen
