"""Tables of text: comma, semicolon, tab or blanks between columns, decimal point or decimal comma.

A header row names the channels, with units in square brackets: ``t,x [mm],f [N]``. Times stand in a column
``t`` (or ``time``), in seconds or as times of day; without one the rate must be given. Lines that start with
``#`` or ``%`` are comments, and lines without a number behind the last row are none of the table.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from analysis import DataError
from drivers.base.files import decoded, open_regular
from drivers.formats.cells import is_digits, is_number, is_overload, tells
from drivers.formats.columns import Found, column_of, recording_from
from drivers.formats.names import split_unit
from drivers.formats.options import DECIMALS, SEPARATORS, Options
from drivers.formats.preamble import cells_on_one_line, rate_above
from drivers.formats.rows import COMMENTS, LONGEST_LINE, Layout, Table, cells_of, read_columns, trimmed
from drivers.formats.stamps import is_date, is_stamp
from drivers.formats.timing import is_plain_time, is_time, written_times
from drivers.recording.guesses import Guesses
from drivers.recording.lazy import BLOCK, Recording

MOST_COLUMNS = 4096
FEW_LINES, MANY_LINES = 64, 20_000  # looked at for the header; many where an instrument wrote a long one
FIRST_BYTES = 16 << 20  # in which it must stand
# Delimiter (None: blanks) and whether the comma is the decimal sign, the likelier ways first.
SIGNS: tuple[tuple[str | None, bool], ...] = (
    ("\t", False), (";", False), (",", False), ("\t", True), (";", True), (None, False), (None, True),
    (",", True),  # numbers in quotation marks
)  # fmt: skip
AS_IT_LOOKS = Options()
FIRST_ROWS = 8  # of numbers, in which the widest one has no empty cells at its end


def open_file(path: Path, options: Options) -> Recording:
    """The table as a recording (in memory: text has no way to be read in pieces)."""
    with _without_wide_characters(path) as narrow, cells_on_one_line(narrow) as plain:
        layout = detect(plain, options)
        table = _oldest_first(read_columns(plain, layout), layout, options)
    found = found_table(path.name, layout, table)
    if options.rate is None and not any(c.stamped or is_time(c.name) for c in found.columns):
        found.rate = layout.rate  # times and the user know better
        if layout.rate is not None:
            table.notes.append(f"the rate, {layout.rate:g} Hz, stands above the titles")
    recording = recording_from(found, options)
    separator = next(word for word, sign in SEPARATORS.items() if sign == layout.delimiter)
    recording.guesses = replace(
        recording.guesses or Guesses(),
        separator=separator,
        decimal=DECIMALS[layout.decimal_comma],
        header=layout.titles,
        left_out=tuple((layout.names or [])[i] for i in layout.text),
        notes=(*(recording.guesses or Guesses()).notes, *table.notes),
    )
    return recording


@contextmanager
def _without_wide_characters(path: Path) -> Iterator[Path]:
    """The file, or a copy in UTF-8 of one in UTF-16, as spreadsheets write text; it says so in two bytes."""
    with open_regular(path) as file:
        if file.read(2) not in (BOM_UTF16_LE, BOM_UTF16_BE):
            yield path
            return
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        with (
            TextIOWrapper(open_regular(path), encoding="utf-16", errors="replace") as wide,
            copy.open("w", encoding="utf-8") as narrow,
        ):
            while part := wide.read(BLOCK):
                narrow.write(part)
        yield copy


def write_file(recording: Recording, path: Path) -> None:
    """Header ``t [s],x [mm]``, then rows with every digit that a double has."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    titles = ["t [s]"]
    for spec in recording.about.channels:
        if is_plain_time(spec.name):
            raise DataError(f"A channel named '{spec.name}' would be taken for the times: rename it first.")
        plain = not spec.unit and split_unit(spec.name) == (spec.name, "")
        titles.append(spec.name if plain else f"{spec.name} [{spec.unit}]")
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(delimiter.join(_quoted(t, delimiter) for t in titles) + "\n")
        for start in range(0, len(recording), BLOCK // 8):
            stop = min(start + BLOCK // 8, len(recording))
            columns = [recording.values(n, start, stop).tolist() for n in recording.names]
            times = written_times(start, stop, recording.rate, recording.about.clock_time).tolist()
            file.writelines(
                delimiter.join(map(repr, row)) + "\n" for row in zip(times, *columns, strict=True)
            )


def found_table(source: str, layout: Layout, table: Table) -> Found:
    """Columns with the names and units of their titles."""
    found = Found(source)
    for i, array in enumerate(table.columns):
        if i in layout.text or i == layout.dates:
            continue
        name, unit = split_unit(layout.names[i]) if layout.names else (f"c{i + 1}", "")
        column = column_of(name, array, unit)
        found.columns.append(replace(column, clipped=table.clipped.get(i, ()), stamped=i in table.stamps))
    return found


def _oldest_first(table: Table, layout: Layout, options: Options) -> Table:
    """The table with its rows turned around where each time is before the one above it."""
    names = [split_unit(name)[0] for name in layout.names or []]
    wanted = [
        i for i, name in enumerate(names) if (name == options.time if options.time else is_plain_time(name))
    ]
    for i in (*wanted, *table.stamps) if options.time != "" else ():
        count = len(table.columns[i])
        if count < 2 or not np.all(np.diff(table.columns[i]) < 0):
            continue
        return Table(
            [np.ascontiguousarray(column[::-1]) for column in table.columns],
            {
                column: tuple((count - stop, count - start) for start, stop in reversed(spans))
                for column, spans in table.clipped.items()
            },
            table.stamps,
            [*table.notes, "times run downwards: the rows are turned around"],
        )
    return table


def detect(path: Path, options: Options = AS_IT_LOOKS) -> Layout:
    """Delimiter, decimal sign and header of a table, from its first lines, unless they are given."""
    lines = _first_lines(path, FEW_LINES)
    if len(lines) == FEW_LINES and not any(_looks_numeric(line) for line in lines):
        lines = _first_lines(path, MANY_LINES)
    signs = tuple((d, c) for d, c in SIGNS if _suits(d, c, options)) or SIGNS
    skip = _header_line(lines, signs) if options.header is None else max(options.header - 1, 0)
    while skip < len(lines) and (not lines[skip].strip() or lines[skip].lstrip().startswith(COMMENTS)):
        skip += 1
    if skip == len(lines):
        raise DataError(f"{path.name} holds no table.")
    rows = [line for line in lines[skip:] if line.strip() and not line.lstrip().startswith(COMMENTS)]
    delimiter, decimal_comma = _detect_signs(rows, signs)
    first = cells_of(rows[0], delimiter)
    header = not all(is_number(c, decimal_comma) or not c for c in first) or not any(first)
    titles = 0
    if header:
        skip += 1
        titles = skip
        body = rows[1:]
    else:
        body = rows
    # A second row of text holds units or a comment: LabVIEW, oscilloscopes.
    units: list[str] | None = None
    if header and len(body) > 1 and not any(tells(c, decimal_comma) for c in cells_of(body[0], delimiter)):
        units = cells_of(body[0], delimiter)
        skip = lines.index(body[0], skip) + 1
        body = body[1:]
    names = trimmed(first) if header else None
    width = len(names) if names else len(trimmed(first))
    if width > MOST_COLUMNS:
        raise DataError(f"{path.name} has {width} columns: that is no table of signals.")
    if names and units and len(trimmed(units)) == width:
        names = [
            n if "[" in n or not u else f"{n} [{u.strip('()[]')}]" for n, u in zip(names, units, strict=False)
        ]
    if not body and not header:
        raise DataError(f"{path.name} holds no table of numbers.")
    if not header and (told := _commented_titles(lines[:skip], delimiter, width, options.header)):
        names, titles = told
    trailing = bool(body) and delimiter is not None and not cells_of(body[0], delimiter)[-1]
    cells = [cells_of(row, delimiter) for row in body]
    text = _text_columns(cells, width, decimal_comma) if names else ()
    dates = _date_column(cells, width)
    above = lines[: titles - 1] if titles else lines[:skip]
    rate = rate_above(above, delimiter, decimal_comma)
    return Layout(delimiter, decimal_comma, names, skip, width, trailing, titles, text, dates, rate)


def _commented_titles(
    above: list[str], delimiter: str | None, width: int, line: int | None
) -> tuple[list[str], int] | None:
    """Titles in the last comment above the numbers, as NumPy writes them, and its line; one is the time."""
    filled = [i for i, text in enumerate(above) if text.strip()]
    if not filled or line not in (None, filled[-1] + 1):
        return None
    cells = cells_of(above[filled[-1]].lstrip().lstrip("".join(COMMENTS)).strip(), delimiter)
    return (cells, filled[-1] + 1) if len(cells) == width and _names_time(cells) else None


def _text_columns(rows: list[list[str]], width: int, comma: bool) -> tuple[int, ...]:
    """Titled columns in which nothing even begins like a number, in all of the rows that were looked at.

    One in which all rows say that the signal was beyond the range is a signal still.
    """
    found = []
    for i in range(width):
        filled = [row[i] for row in rows if i < len(row) and row[i]]
        numeric = any(_looks_numeric(c) or is_digits(c, comma) for c in filled)
        if filled and not numeric and not all(is_overload(c) for c in filled):
            found.append(i)
    return tuple(found) if len(rows) > 1 and len(found) < width else ()


def _date_column(rows: list[list[str]], width: int) -> int | None:
    """The column of dates to the left of one of times of day."""
    for i in range(width - 1):
        pairs = [(row[i], row[i + 1]) for row in rows if i + 1 < len(row)]
        told = [pair for pair in pairs[:-1] or pairs if all(pair)]  # remarks may follow the last row
        if told and all(is_date(day) and is_stamp(time) for day, time in told):
            return i
    return None


def _looks_numeric(line: str) -> bool:
    return re.match(r"\s*[-+]?[.,]?\d", line) is not None


def _first_lines(path: Path, most: int) -> list[str]:
    lines: list[str] = []
    with open_regular(path) as file:
        while len(lines) < most and file.tell() < FIRST_BYTES:
            line = file.readline(LONGEST_LINE)
            if len(line) >= LONGEST_LINE:
                raise DataError(
                    f"{path.name} is no table: one of its lines is longer than a million characters."
                )
            if not line:
                break
            if b"\x00" in line:
                raise DataError(f"{path.name} is no table of text: it holds binary data.")
            lines.append(decoded(line.removeprefix(BOM_UTF8) if not lines else line))
    return lines


def _suits(delimiter: str | None, comma: bool, options: Options) -> bool:
    """Whether these signs are those that were asked for, if any were."""
    by_separator = options.separator is None or SEPARATORS[options.separator] == delimiter
    return by_separator and (options.decimal is None or DECIMALS[comma] == options.decimal)


def _header_line(lines: list[str], signs: Sequence[tuple[str | None, bool]]) -> int:
    """Lines of remarks above the header: what stands before the first row of titles over rows of numbers.

    The titles are known by their number, which is that of the numbers below; 0 where that tells nothing.
    """
    filled = [
        (i, line) for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(COMMENTS)
    ]

    def apart(row: int, delimiter: str | None, comma: bool) -> bool:
        """Whether remarks end above: by an empty line, or by one that tells the rate."""
        between = lines[filled[row - 1][0] + 1 : filled[row][0]]
        told = rate_above([filled[row - 1][1]], delimiter, comma)
        return row > 0 and (told is not None or any(not line.strip() for line in between))

    for delimiter, comma in signs:
        cells = [trimmed(cells_of(line, delimiter)) for _, line in filled]
        numeric = [
            len(c) > 1 and all(not v or is_number(v, comma) for v in c) and any(tells(v, comma) for v in c)
            for c in cells
        ]
        for at in range(1, len(cells) - 1):
            width = max(len(c) for c in cells[at : at + FIRST_ROWS])  # the last cells of a row may be empty
            if numeric[at] and numeric[at + 1] and len(cells[at + 1]) in (width, len(cells[at])):
                first = at
                while first > 0 and at - first < 2 and len(cells[first - 1]) == width:
                    if first < at and apart(first, delimiter, comma):
                        return filled[first][0]
                    first -= 1
                    if _names_time(cells[first]):  # remarks above may be as wide
                        return filled[first][0]
                above = apart(first, delimiter, comma) or all(len(c) != width for c in cells[:first])
                return filled[first][0] if first < at and above else 0
    return 0


def _names_time(cells: list[str]) -> bool:
    return any(is_time(split_unit(cell)[0]) for cell in cells)


def _detect_signs(rows: list[str], signs: Sequence[tuple[str | None, bool]]) -> tuple[str | None, bool]:
    """Delimiter and whether the comma is the decimal sign, from what makes the rows tables of numbers."""
    body = rows[1:] or rows
    best: tuple[float, int, str | None, bool] | None = None
    for rank, (delimiter, comma) in enumerate(signs):
        cells = [c for row in body for c in cells_of(row, delimiter) if c]
        good = sum(is_number(c, comma) for c in cells) / max(len(cells), 1)
        width = len(cells_of(body[0], delimiter))
        consistent = all(len(cells_of(r, delimiter)) == width for r in body[: max(1, len(body) - 1)])
        titled = len(trimmed(cells_of(rows[0], delimiter))) == len(trimmed(cells_of(body[0], delimiter)))
        score = (good + 0.1 * consistent + 0.1 * (width > 1) + 0.25 * titled, -rank, delimiter, comma)
        if best is None or score[:2] > best[:2]:
            best = score
    assert best is not None
    return best[2], best[3]


def _quoted(title: str, delimiter: str) -> str:
    clean = title.replace('"', "'").replace("\n", " ")
    return f'"{clean}"' if delimiter in clean else clean
