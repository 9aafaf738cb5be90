"""LabVIEW measurement files (.lvm): text with a header, then segments with their own headers.

The column of times counts where there is one: files that were thinned out keep a Delta_X that is no longer
true.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from analysis import DataError
from drivers.base.files import decoded, open_regular
from drivers.formats.columns import Column, Found, column_of, recording_from
from drivers.formats.options import Options
from drivers.formats.rows import LONGEST_LINE
from drivers.formats.timing import simplest, written_times
from drivers.recording.lazy import BLOCK, Recording

END_OF_HEADER = "***End_of_Header***"
START_SPECIAL, END_SPECIAL = "***Start_Special***", "***End_Special***"
SPECTRUM = re.compile(r"\b(FFT|PSD|spectrum|frequency response)\b", re.IGNORECASE)


@dataclass
class Segment:
    """A segment's header by tag, its column titles, and the rows of numbers under them."""

    tags: dict[str, list[str]] = field(default_factory=dict)
    titles: list[str] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)


def open_file(path: Path, options: Options) -> Recording:
    head, segments = _parse(path)
    filled = [s for s in segments if s.rows]
    if not filled:
        raise DataError(f"{path.name} holds no numbers.")
    columns_kind = (head.get("X_Columns") or ["One"])[0]
    found = Found(path.name)
    parts = [_columns(s, columns_kind, path.name) for s in filled]
    if len({tuple(c.name for c in part) for part in parts}) > 1:
        raise DataError(f"{path.name} has segments with different channels: split it first.")
    found.columns = parts[0] if len(parts) == 1 else [_joined(group) for group in zip(*parts, strict=True)]
    known = ("Operator", "Description", "Date", "Time", "Project")
    found.metadata = {tag: head[tag][0] for tag in known if head.get(tag)}
    return recording_from(found, options)


def write_file(recording: Recording, path: Path) -> None:
    about = recording.about
    count = len(about.channels)
    header = [
        "LabVIEW Measurement\t", "Writer_Version\t2", "Reader_Version\t2", "Separator\tTab",
        "Decimal_Separator\t.", "Multi_Headings\tNo", "X_Columns\tOne", "Time_Pref\tRelative",
        f"{END_OF_HEADER}\t", "\t",
        f"Channels\t{count}",
        "Samples\t" + "\t".join([str(len(recording))] * count),
        "Y_Unit_Label\t" + "\t".join(_cell(c.unit) for c in about.channels),
        "X_Dimension\t" + "\t".join(["Time"] * count),
        "X0\t" + "\t".join([repr(float(written_times(0, 1, about.rate, about.clock_time)[0]))] * count),
        "Delta_X\t" + "\t".join([repr(1 / about.rate)] * count),
        f"{END_OF_HEADER}\t",
        "X_Value\t" + "\t".join(_cell(c.name) for c in about.channels) + "\tComment",
    ]  # fmt: skip
    with path.open("w", encoding="utf-8", newline="\r\n") as file:
        file.writelines(line + "\n" for line in header)
        for start in range(0, len(recording), BLOCK // 8):
            stop = min(start + BLOCK // 8, len(recording))
            columns = [recording.values(n, start, stop).tolist() for n in recording.names]
            times = written_times(start, stop, about.rate, about.clock_time).tolist()
            file.writelines("\t".join(map(repr, row)) + "\n" for row in zip(times, *columns, strict=True))


def _parse(path: Path) -> tuple[dict[str, list[str]], list[Segment]]:
    with open_regular(path) as file:
        head: dict[str, list[str]] = {}
        segments: list[Segment] = []
        current: Segment | None = None
        reading, special = "head", False
        comma = False
        separator = "\t"
        while line := file.readline(LONGEST_LINE):
            if len(line) >= LONGEST_LINE:
                raise DataError(f"{path.name} is damaged: a line is longer than a million characters.")
            text = decoded(line).rstrip("\r\n")
            cells = [c.strip() for c in text.split(separator)]
            if special or cells[0] == START_SPECIAL:
                special = cells[0] != END_SPECIAL
            elif cells[0] == END_OF_HEADER:
                if reading == "head":
                    separator = "," if head.get("Separator", ["Tab"])[:1] == ["Comma"] else "\t"
                    comma = head.get("Decimal_Separator", ["."])[:1] == [","]
                    reading = "segment"
                else:
                    reading = "titles"
            elif reading == "head":
                if cells[0].startswith("Separator") and "Comma" in text:
                    head["Separator"] = ["Comma"]
                elif cells[0]:
                    head[cells[0]] = cells[1:]
            elif reading == "titles" and current is not None:
                current.titles = cells
                reading = "rows"
            elif not any(cells):
                continue
            elif not _is_number(cells[0], comma) and cells[0]:
                if reading == "rows" or current is None:
                    current = Segment()
                    segments.append(current)
                    reading = "segment"
                current.tags[cells[0]] = cells[1:]
            elif current is not None and reading == "rows":
                current.rows.append([_number(c, comma, path.name) for c in cells[: len(current.titles)]])
            else:
                raise DataError(f"{path.name} is damaged: numbers stand where a header should.")
    return head, segments


def _columns(segment: Segment, columns_kind: str, source: str) -> list[Column]:
    titles = list(segment.titles)
    if titles and titles[-1] in ("Comment", ""):
        titles.pop()
    width = min(len(titles), min(len(row) for row in segment.rows))
    if width < len(titles):
        raise DataError(f"{source} has rows with {width} columns, but {len(titles)} titles.")
    table = np.array([row[:width] for row in segment.rows], dtype=np.float64)
    units = segment.tags.get("Y_Unit_Label", [])
    dimensions = segment.tags.get("X_Dimension", [])
    signals = [i for i, title in enumerate(titles) if title != "X_Value"]
    if any(d.lower() == "frequency" for d in dimensions) or any(SPECTRUM.search(titles[i]) for i in signals):
        raise DataError(f"{source} holds a spectrum, no time signal: a record needs time signals.")
    times = None if columns_kind == "No" or 0 in signals else np.ascontiguousarray(table[:, 0])
    rate = _declared(segment) if times is None else None
    columns = []
    if times is not None:
        columns.append(column_of("t", times, "s"))
    for order, i in enumerate(signals):
        unit = units[order] if order < len(units) else ""
        columns.append(column_of(titles[i], np.ascontiguousarray(table[:, i]), unit, rate))
    return columns


def _declared(segment: Segment) -> float | None:
    try:
        step = float(segment.tags["Delta_X"][0].replace(",", "."))
    except (KeyError, IndexError, ValueError):
        return None
    return simplest(1 / step, 1e-12) if np.isfinite(step) and step > 0 else None


def _joined(parts: tuple[Column, ...]) -> Column:
    data = np.concatenate([p.read(0, p.length) for p in parts])
    return column_of(parts[0].name, data, parts[0].unit, parts[0].rate)


def _is_number(cell: str, comma: bool) -> bool:
    try:
        float(cell.replace(",", ".") if comma else cell)
    except ValueError:
        return False
    return True


def _number(cell: str, comma: bool, source: str) -> float:
    if not cell:
        return float("nan")
    try:
        return float(cell.replace(",", ".") if comma else cell)
    except ValueError:
        raise DataError(f"{source}: '{cell[:40]}' is not a number.") from None


def _cell(text: str) -> str:
    return " ".join(text.split())
