"""Universal File Format, dataset 58 (function at nodal degree of freedom), in text and binary (58b).

Layout as the Structural Dynamics Research Laboratory describes it: five lines of identification, line 6 what
the function is, line 7 how it is sampled, lines 8 to 11 the axes, then the values. Time signals only: a
spectrum is no record. Written: 58b in double precision (``.uff``), or text (``.ufa``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from analysis import DataError
from drivers.base.files import open_regular
from drivers.formats.columns import Column, Found, column_of, recording_from
from drivers.formats.options import Options
from drivers.formats.timing import rate_of_times, simplest
from drivers.recording.lazy import Recording

DELIMITER = b"    -1"
TIME_FUNCTIONS = {0, 1}  # general, time response; all others are spectra or derived
FUNCTIONS = {
    2: "auto spectrum", 3: "cross spectrum", 4: "frequency response function", 5: "transmissibility",
    6: "coherence", 7: "auto correlation", 8: "cross correlation", 9: "power spectral density",
    10: "energy spectral density", 11: "probability density", 12: "spectrum",
}  # fmt: skip
REAL_SINGLE, REAL_DOUBLE = 2, 4
TIME_AXIS = 17
RATE_NOTE = re.compile(r"sampled at ([0-9.eE+-]+) Hz")
LONGEST_LINE = 400


@dataclass(frozen=True)
class Header:
    """The eleven lines before the values."""

    identification: list[str]
    function: int
    name: str
    kind: int  # 2 real single, 4 real double, 5 and 6 complex
    count: int
    even: bool
    first: float
    step: float
    unit: str

    @property
    def size(self) -> int:
        """Bytes of evenly spaced binary values; some writers note half of that for complex ones."""
        return self.count * {2: 4, 4: 8, 5: 8, 6: 16}.get(self.kind, 0)


@dataclass(frozen=True)
class Binary:
    """How the values of a dataset 58b are stored."""

    order: str  # "<" or ">"
    size: int  # bytes

    def values(self, file: BinaryIO, header: Header, source: str) -> NDArray[np.float64]:
        """The samples, or times and samples in two rows where the times are stored too."""
        number = f"{self.order}f{4 if header.kind == REAL_SINGLE else 8}"
        item = np.dtype(number if header.even else [("x", f"{self.order}f4"), ("y", number)])
        there = bytes_left(file)
        if not 0 <= header.count * item.itemsize <= min(self.size, there):
            raise DataError(
                f"{source} is damaged or cut short: {header.count} samples do not fit in "
                f"the {min(self.size, there)} bytes that are there."
            )
        content = np.frombuffer(file.read(self.size), item, header.count)
        if header.even:
            return content.astype(np.float64)
        return np.stack([content["x"].astype(np.float64), content["y"].astype(np.float64)])


def open_file(path: Path, options: Options) -> Recording:
    found = Found(path.name)
    spectra: list[str] = []
    with open_regular(path) as file:
        for binary in datasets(file):
            header, _ = header_of(file, path.name)
            if header.function not in TIME_FUNCTIONS or header.kind not in (REAL_SINGLE, REAL_DOUBLE):
                spectra.append(FUNCTIONS.get(header.function, f"function of type {header.function}"))
                file.seek(max(binary.size, header.size) if binary else 0, 1)
            else:
                values = (_text_values if binary is None else binary.values)(file, header, path.name)
                found.columns.append(_column(header, values, path.name))
                found.metadata.setdefault("identification", header.identification)
                found.start = found.start or _moment(header.identification[2])
            skip_dataset(file)
    if spectra and not found.columns:
        raise DataError(f"{path.name} holds no time signal but a {spectra[0]}: a record needs time signals.")
    if not found.columns:
        raise DataError(f"{path.name} holds no dataset 58.")
    return recording_from(found, options)


def write_file(recording: Recording, path: Path) -> None:
    binary = path.suffix.lower() != ".ufa"
    with path.open("wb") as file:
        for spec in recording.about.channels:
            values = recording.values(spec.name, 0, len(recording))
            size = f"{8 * len(values):12d}"
            kind = (
                f"    58b     1     2          11{size}     0     0           0           0"
                if binary
                else "    58"
            )
            lines = [DELIMITER.decode(), kind, *_header_lines(spec.name, spec.unit, recording, len(values))]
            for line in lines:
                file.write(
                    line.encode("latin-1", errors="replace").ljust(80 if line != lines[0] else 0) + b"\n"
                )
            if binary:
                file.write(values.astype("<f8").tobytes())
            else:
                rows = (values[start : start + 4].tolist() for start in range(0, len(values), 4))
                file.writelines("".join(f"{v:20.12E}" for v in row).encode() + b"\n" for row in rows)
            file.write(DELIMITER + b"\n")


def _header_lines(name: str, unit: str, recording: Recording, count: int) -> Iterator[str]:
    yield _field(name, 80)
    yield "NONE"
    yield _field(recording.about.start or "NONE", 80)
    yield f"sampled at {recording.rate!r} Hz"  # the fields below hold six digits only
    yield "NONE"
    yield f"    1         0    0         0 {_field(name, 10):10s}         1   0 NONE               0   0"
    yield f"{REAL_DOUBLE:10d}{count:10d}         1{0.0:13.5E}{1 / recording.rate:13.5E}{0.0:13.5E}"
    yield f"{TIME_AXIS:10d}    0    0    0 {'Time':20s} {'s':20s}"
    yield f"         0    0    0    0 {_field(name, 20):20s} {_field(unit or 'NONE', 20):20s}"
    yield f"         0    0    0    0 {'NONE':20s} {'NONE':20s}"
    yield f"         0    0    0    0 {'NONE':20s} {'NONE':20s}"


def _field(text: str, width: int) -> str:
    return " ".join(text.split())[:width] or "NONE"


def datasets(file: BinaryIO) -> Iterator[Binary | None]:
    """Stops at the header of each dataset 58; how its values are stored, None for text."""
    while line := file.readline(LONGEST_LINE):
        if line.rstrip() != DELIMITER:
            continue
        kind = file.readline(LONGEST_LINE).decode("latin-1")
        fields = kind.split()
        if fields == ["58"]:
            yield None
        elif fields and fields[0].lower() == "58b":
            if len(fields) < 5 or fields[2] != "2" or not fields[4].isdigit():
                raise DataError(
                    "A binary dataset 58 is not in IEEE floating point, or its first line is damaged."
                )
            yield Binary(">" if fields[1] == "2" else "<", int(fields[4]))
        else:
            skip_dataset(file)


def bytes_left(file: BinaryIO) -> int:
    """From here to the end."""
    here = file.tell()
    end = file.seek(0, 2)
    file.seek(here)
    return end - here


def skip_dataset(file: BinaryIO) -> None:
    """On to the next delimiter."""
    while line := file.readline(LONGEST_LINE):
        if line.rstrip() == DELIMITER:
            return


def header_of(file: BinaryIO, source: str) -> tuple[Header, list[str]]:
    """The header that comes next, and its eleven lines."""
    lines = [file.readline(LONGEST_LINE).decode("latin-1").rstrip("\r\n") for _ in range(11)]
    try:
        sampling = lines[6].ljust(80)
        header = Header(
            identification=[line.strip() for line in lines[:5]],
            function=int(lines[5][:5]),
            name=_name(lines),
            kind=int(sampling[:10]),
            count=int(sampling[10:20]),
            even=int(sampling[20:30]) == 1,
            first=float(sampling[30:43]),
            step=float(sampling[43:56]),
            unit=axis_unit(lines[8]),
        )
    except (ValueError, IndexError):
        raise DataError(f"{source} is damaged: the header of a dataset 58 cannot be read.") from None
    return header, lines


def _name(lines: list[str]) -> str:
    """The response's name, or its node and direction, or the first line of identification."""
    entity = lines[5][31:41].strip()
    long_name = lines[0].strip()
    if entity and entity != "NONE":
        return long_name if long_name.startswith(entity) and len(entity) == 10 else entity
    node, direction = lines[5][41:51].strip(), lines[5][51:55].strip()
    if node not in ("", "0"):
        return f"{node}:{direction}"
    return long_name if long_name != "NONE" else ""


def axis_unit(line: str) -> str:
    """The unit in the line of an axis; empty if there is none."""
    unit = line[46:66].strip()
    return "" if unit == "NONE" else unit


def _text_values(file: BinaryIO, header: Header, source: str) -> NDArray[np.float64]:
    numbers: list[float] = []
    wanted = header.count * (1 if header.even else 2)
    while len(numbers) < wanted:
        line = file.readline(LONGEST_LINE)
        if not line or line.rstrip() == DELIMITER:
            raise DataError(f"{source} is cut short: {len(numbers)} of {wanted} numbers are there.")
        try:
            numbers += _numbers(line.decode("latin-1"), header)
        except ValueError:
            text = line[:40].decode("latin-1").strip()
            raise DataError(f"{source} is damaged: '{text}' is no row of numbers.") from None
    values = np.array(numbers[:wanted], dtype=np.float64)
    return values if header.even else np.ascontiguousarray(values.reshape(-1, 2).T)


def _numbers(line: str, header: Header) -> list[float]:
    """Numbers of a row: between blanks, or by the columns of the format where they touch."""
    try:
        return [float(part) for part in line.split()]
    except ValueError:
        text = line.rstrip()
        widths = (
            [13, 20]
            if not header.even and header.kind == REAL_DOUBLE
            else [20 if header.kind == REAL_DOUBLE else 13]
        )
        result, start, i = [], 0, 0
        while start < len(text):
            width = widths[i % len(widths)]
            result.append(float(text[start : start + width]))
            start, i = start + width, i + 1
        return result


def _column(header: Header, values: NDArray[np.float64], source: str) -> Column:
    if values.ndim == 2:
        times = values[0]
        rate = rate_of_times(lambda a, b: times[a:b], len(times), source)
        return column_of(header.name, np.ascontiguousarray(values[1]), header.unit, rate)
    return column_of(header.name, values, header.unit, _rate(header))


def _rate(header: Header) -> float | None:
    """From the step, which has six digits; our own files note all digits."""
    if not (np.isfinite(header.step) and header.step > 0):
        return None
    rate = simplest(1 / header.step, doubt(header.step))
    noted = RATE_NOTE.search(" ".join(header.identification))
    exact = float(noted[1]) if noted is not None else rate
    return exact if abs(exact - rate) <= 1e-5 * rate else rate


def _moment(text: str) -> str | None:
    """The start where it is written as a moment with its zone, as we do."""
    try:
        return text if datetime.fromisoformat(text).tzinfo else None
    except ValueError:
        return None


def doubt(step: float) -> float:
    """Relative rounding of a step that was printed with six digits."""
    return 0.5 * 10.0 ** (np.floor(np.log10(step)) - 5) / step
