"""Frequency responses out of UFF58 files, and descriptions that name such a file in place of the numbers.

In a description of a beam ``file = "frf.uff"`` stands for ``hz``, ``real`` and ``imaginary`` of a table
``[[responses]]``; ``function = 2`` takes the second response of the file, ``scale`` turns its unit into the
description's. The numbers are written into the text, so that what is kept of a fit needs no other file.
"""

from __future__ import annotations

import re
import tomllib
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
_UNITS = {"displacement": "m", "velocity": "m/s", "acceleration": "m/s^2"}
_HEADER = re.compile(r"^\s*\[\[?\s*[A-Za-z_\"']")  # of a table; a row of numbers is none
_TABLE = re.compile(r"^\s*\[\[\s*responses\s*\]\]")
_KEY = re.compile(r"^\s*(file|function|scale)\s*=")


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
    return header.first + step * np.arange(header.count)


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


def with_responses(text: str, folder: Path, source: str) -> str:
    """The description with the numbers of every ``file`` that a table ``[[responses]]`` names."""
    try:
        tables = tomllib.loads(text).get("responses", [])
    except tomllib.TOMLDecodeError:
        return text  # the reader of descriptions says what is wrong
    if not isinstance(tables, list) or not any(isinstance(t, dict) and "file" in t for t in tables):
        return text
    lines, number, inside = [], -1, False
    for line in text.splitlines():
        if _HEADER.match(line):
            inside = bool(_TABLE.match(line))
            number += inside
        if inside and "file" in tables[number] and (key := _KEY.match(line)):
            lines += _numbers(tables[number], folder, source) if key[1] == "file" else []
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _numbers(table: dict[str, Any], folder: Path, source: str) -> list[str]:
    """Lines ``hz``, ``real`` and ``imaginary`` of the response that the table asks for."""
    path = folder / str(table["file"])
    found = read_responses(path)
    which = table.get("function", 1 if len(found) == 1 else None)
    if type(which) is not int or not 1 <= which <= len(found):
        names = ", ".join(f"{k} {one.name}" for k, one in enumerate(found, start=1))
        raise DataError(
            f"{source}: {path.name} holds {names}: say which one, function = 1, in [[responses]]."
        )
    one = found[which - 1]
    scale = _scale(table, one, source)
    moving = one.hz > 0
    values = scale * one.values[moving]
    rows = {"hz": one.hz[moving], "real": values.real, "imaginary": values.imag}
    return [f"{key} = {[float(v) for v in row]!r}" for key, row in rows.items()]


def _scale(table: dict[str, Any], one: MeasuredFunction, source: str) -> float:
    """What turns the file's unit into that of the description: 1 where the units are known to agree."""
    if "scale" in table:
        scale = table["scale"]
        if (
            isinstance(scale, bool)
            or not isinstance(scale, int | float)
            or not np.isfinite(scale)
            or not scale
        ):
            raise DataError(f"{source}: [[responses]] wants a number other than zero for 'scale'.")
        return float(scale)
    sensor, drive = (t if isinstance(t, dict) else {} for t in (table.get("sensor"), table.get("drive")))
    kind = str(drive.get("kind", "force"))
    over = "N" if kind == "force" else _UNITS.get(kind.removeprefix("base "), "?")
    wanted = f"{_UNITS.get(str(sensor.get('kind', 'displacement')), '?')}/{over}"
    if _plain(one.unit) == wanted:
        return 1.0
    told = f"is in {one.unit}" if one.unit else "does not tell its unit"
    raise DataError(
        f"{source}: the response {one.name} {told}, and {wanted} is wanted: say scale = ..., the number that "
        "turns its values into those units, in [[responses]]."
    )


def _plain(unit: str) -> str:
    """A unit without blanks and brackets, squares written as ^2."""
    bare = re.sub(r"[\s()\[\]]", "", unit).replace("²", "^2").replace("**", "^")
    return re.sub(r"(?<=s)2", "^2", bare)
