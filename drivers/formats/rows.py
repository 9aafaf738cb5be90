"""The rows of a table of text as columns of numbers, with what stood in the place of a number."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from analysis import DataError, Span
from drivers.base.files import open_regular, open_text
from drivers.formats.cells import (
    has_thousands,
    is_digits,
    is_doubtful,
    is_missing,
    is_number,
    is_overload,
    is_statistic,
    value_of,
)
from drivers.formats.names import split_unit
from drivers.formats.stamps import StampClock, is_date, is_stamp
from drivers.formats.timing import is_time

LONGEST_LINE = 1 << 20  # characters
COMMENTS = ("#", "%")
# What instruments with SCPI commands give for a signal beyond the range, and for no value at all.
SCPI_OVERLOAD, SCPI_MISSING = 9.9e37, 9.91e37


@dataclass(frozen=True)
class Layout:
    """How the table is written."""

    delimiter: str | None  # None: blanks
    decimal_comma: bool
    names: list[str] | None  # the header row, if there is one
    skip: int  # lines before the first row of numbers
    columns: int
    trailing: bool = False  # a delimiter ends each line
    titles: int = 0  # the line of the header row, counted from 1; 0: none
    text: tuple[int, ...] = ()  # columns of words, such as remarks: they are left out
    dates: int | None = None  # the column of dates beside the one of times of day
    rate: float | None = None  # Hz, where a line above the titles tells it

    def name(self, column: int) -> str:
        return self.names[column] if self.names else str(column + 1)


@dataclass
class Table:
    """Columns of numbers. What was beyond the range is not a number and named in ``clipped``."""

    columns: list[NDArray[np.float64]]
    clipped: dict[int, tuple[Span, ...]] = field(default_factory=dict)
    stamps: tuple[int, ...] = ()  # columns of times of day
    notes: list[str] = field(default_factory=list)


def cells_of(row: str, delimiter: str | None) -> list[str]:
    row = row.strip("\r\n")
    if delimiter is None:
        return row.split()
    if '"' in row:
        return [c.strip() for c in next(csv.reader([row], delimiter=delimiter), [])]
    return [c.strip() for c in row.split(delimiter)]


def trimmed(cells: list[str]) -> list[str]:
    """Without the empty cells that a delimiter at the end of the line leaves."""
    end = len(cells)
    while end > 1 and not cells[end - 1]:
        end -= 1
    return cells[:end]


def read_columns(path: Path, layout: Layout) -> Table:
    """All numbers of the table; an empty cell is NaN, anything else wrong is named."""
    with open_regular(path) as file:
        for _ in range(layout.skip):
            file.readline(LONGEST_LINE)
        if file.read(1) == b"":
            return Table([np.empty(0) for _ in range(layout.columns)])
    try:
        numbers = _load_fast(path, layout)
    except ValueError:
        numbers = None
    if numbers is None or numbers.shape[1] != layout.columns:
        table = CarefulReader(path, layout).table()
    else:
        table = Table([np.ascontiguousarray(numbers[:, i]) for i in range(layout.columns)])
    _take_out_codes(table, layout)
    return table


def _load_fast(path: Path, layout: Layout) -> NDArray[np.float64]:
    with open_text(path) as file:
        for _ in range(layout.skip):
            file.readline()
        lines: Iterable[str] = file
        if layout.trailing:
            lines = (line.rstrip().removesuffix(layout.delimiter or "") for line in lines)
        if layout.decimal_comma:
            lines = map(_with_point, lines)
        return np.loadtxt(lines, delimiter=layout.delimiter, ndmin=2, comments=list(COMMENTS))


def _with_point(line: str) -> str:
    """A line of numbers with decimal commas for a reader of points."""
    if "." in line:  # of thousands, or of decimals after all: a cell at a time
        raise ValueError(line)
    return line.replace(",", ".")


class CarefulReader:
    """Slower, for tables with empty cells, words, times of day, thousands marks or mistakes."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self.path, self.layout = path, layout
        self._rows: list[list[float]] = []
        self._clocks: dict[int, tuple[StampClock, list[int]]] = {}  # with the rows of its cells
        self._overloads: dict[int, list[int]] = {}  # rows by column
        self._words: dict[int, set[str]] = {}
        self._thousands = False  # seen beyond doubt
        self._doubtful: tuple[int, int, str] | None = None  # line, column and cell
        self._statistics: list[str] = []  # what rows behind the table say that they are

    def table(self) -> Table:
        layout = self.layout
        for number, cells in self._lines():
            self._take(number, cells)
        if not self._rows:
            raise DataError(f"{self.path.name} holds no numbers.")
        if self._doubtful is not None and not self._thousands:
            number, column, cell = self._doubtful
            raise DataError(
                f"{self.path.name}, line {number}, column {layout.name(column)}: '{cell}' has a thousands "
                "mark or another decimal mark than the rest of the table: nothing tells which."
            )
        numbers = np.array(self._rows, dtype=np.float64)
        table = Table([np.ascontiguousarray(numbers[:, i]) for i in range(layout.columns)])
        for column, (clock, rows) in self._clocks.items():
            table.columns[column][rows] = clock.seconds()
            if clock.order:
                table.notes.append(f"dates are {clock.order}")
        table.stamps = tuple(self._clocks)
        table.clipped = {column: _spans(np.array(rows)) for column, rows in self._overloads.items()}
        for column, rows in self._overloads.items():
            words = ", ".join(sorted(self._words[column]))
            count = "1 cell" if len(rows) == 1 else f"{len(rows)} cells"
            place = layout.name(column)
            table.notes.append(f"{count} with {words} in column {place}: marked as clipped")
        if self._statistics:
            table.notes.append(f"rows behind the table are left out: {', '.join(self._statistics)}")
        if self._thousands:
            table.notes.append("thousands marks are taken out")
        if layout.dates is not None:
            table.notes.append(f"column {layout.name(layout.dates)} holds the dates of the times")
        return table

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Cells of each line of the table with its number."""
        layout, source = self.layout, self.path.name
        count = ended = 0  # rows so far; the line behind the last row that holds no number
        with open_text(self.path) as file:
            for number, line in enumerate(bounded_lines(file, source), 1):
                text = line.strip("\r\n")
                if number <= layout.skip or not text.strip() or text.lstrip().startswith(COMMENTS):
                    continue
                cells = cells_of(text, layout.delimiter)
                told = any(is_number(cell, layout.decimal_comma) for cell in cells[: layout.columns])
                computed = 0 not in layout.text and is_statistic(cells[0])
                if count > 1 and (computed or not told):  # behind a single row it is more likely a mistake
                    ended = ended or number
                    self._statistics += [cells[0]] * computed
                    continue
                if ended:
                    raise DataError(
                        f"{source}, line {ended}: no numbers, and more of them behind it. "
                        "Where a second table begins, tell the line of its titles (--header LINE)."
                    )
                if len(trimmed(cells)) > layout.columns:
                    raise self._wrong_width(number, len(trimmed(cells)))
                cells = cells[: layout.columns]
                if len(cells) < layout.columns and (len(cells) < 2 or layout.delimiter is None):
                    raise self._wrong_width(number, len(cells))
                count += 1
                yield number, cells

    def _take(self, number: int, cells: list[str]) -> None:
        row = [self._value(number, i, cell, cells) for i, cell in enumerate(cells)]
        self._rows.append(row + [np.nan] * (self.layout.columns - len(row)))

    def _value(self, number: int, column: int, cell: str, cells: list[str]) -> float:
        layout, comma = self.layout, self.layout.decimal_comma
        if not cell or column in layout.text or column == layout.dates:
            return np.nan
        if is_stamp(cell) and self._tells_time(column):
            clock, rows = self._clocks.setdefault(column, (StampClock(), []))
            dated = layout.dates == column - 1 and is_date(cells[column - 1])
            clock.read(f"{cells[column - 1]} {cell}" if dated else cell)
            rows.append(len(self._rows))
            return np.nan  # until all are known
        if is_digits(cell, comma) and not is_stamp(cell):
            self._thousands = self._thousands or has_thousands(cell, comma)
            return value_of(cell, comma)
        if is_doubtful(cell, comma):
            self._doubtful = self._doubtful or (number, column, cell)
            return value_of(cell, comma)
        if is_overload(cell):
            self._overloads.setdefault(column, []).append(len(self._rows))
            self._words.setdefault(column, set()).add(cell)
            return np.nan
        if is_missing(cell):
            return np.nan
        raise DataError(
            f"{self.path.name}, line {number}, column {layout.name(column)}: '{cell[:40]}' is not a number."
        )

    def _tells_time(self, column: int) -> bool:
        """Whether a time of day may stand there."""
        names, dates = self.layout.names, self.layout.dates
        named = names is not None and is_time(split_unit(names[column])[0])
        return column == 0 or named or (dates is not None and dates == column - 1)

    def _wrong_width(self, line: int, width: int) -> DataError:
        return DataError(
            f"{self.path.name}, line {line}: {width} columns, but there should be {self.layout.columns}."
        )


def _take_out_codes(table: Table, layout: Layout) -> None:
    """Numbers that SCPI instruments give for an overload or for no value are not numbers."""
    for column, values in enumerate(table.columns):
        beyond = np.flatnonzero(np.isclose(np.abs(values), SCPI_OVERLOAD, rtol=1e-5, atol=0.0))
        codes = np.isclose(values, SCPI_MISSING, rtol=1e-5, atol=0.0)
        codes[beyond] = True
        if not codes.any():
            continue
        values[codes] = np.nan
        if len(beyond):
            table.clipped[column] = (*table.clipped.get(column, ()), *_spans(beyond))
            table.notes.append(f"9.9e37 in column {layout.name(column)} is an overload: marked as clipped")
        else:
            table.notes.append(f"9.91e37 in column {layout.name(column)} stands for no value")


def _spans(rows: NDArray[np.int64]) -> tuple[Span, ...]:
    """Neighbouring rows together."""
    breaks = np.flatnonzero(np.diff(rows) > 1)
    starts, stops = rows[np.concatenate([[0], breaks + 1])], rows[np.concatenate([breaks, [-1]])] + 1
    return tuple((int(a), int(b)) for a, b in zip(starts, stops, strict=True))


def bounded_lines(file: TextIO, source: str) -> Iterator[str]:
    while line := file.readline(LONGEST_LINE):
        if len(line) >= LONGEST_LINE:
            raise DataError(f"{source} is no table: one of its lines is longer than a million characters.")
        yield line
