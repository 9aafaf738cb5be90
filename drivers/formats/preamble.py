"""What stands above a table of text: the rate in a line of its own, titles with line breaks in them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory

from drivers.base.files import open_regular
from drivers.formats.cells import is_digits, value_of
from drivers.formats.columns import RATE_NAMES, SLOW, STEP_NAMES
from drivers.formats.rows import LONGEST_LINE, cells_of
from drivers.formats.timing import SECONDS, simplest

RATE_WORDS = RATE_NAMES | {
    "scanrate", "samplespersecond", "abtastrate", "abtastfrequenz", "frequencedechantillonnage",
    "frequenzadicampionamento", "frecuenciademuestreo",
}  # fmt: skip
STEP_WORDS = STEP_NAMES | {
    "sampleperiod", "samplingperiod", "samplingtime", "scaninterval", "timestep", "timeinterval",
    "xincrement", "abtastintervall", "abtastzeit", "periodedechantillonnage", "pasdetemps",
}  # fmt: skip
HERTZ = {
    "": 1.0, "Hz": 1.0, "HZ": 1.0, "hz": 1.0, "kHz": 1e3, "KHz": 1e3, "MHz": 1e6, "1/s": 1.0,
    "S/s": 1.0, "Sa/s": 1.0, "sps": 1.0, "kS/s": 1e3, "kSa/s": 1e3, "MS/s": 1e6, "MSa/s": 1e6,
}  # fmt: skip
_ENTRY = re.compile(
    r"(?P<name>[^\d\t:=]*[^\d\t:=\s])\s*[\t:=]+\s*(?P<number>[-+.,0-9eE]+)[\t ]*(?P<unit>[A-Za-zµμ1/]*)\s*"
)
_OPENING = re.compile(rb'(^|[,;\t])\s*"[^"]*$')
_HEAD = 64  # lines in which cells with line breaks are looked for
_LINES_OF_CELL = 8


def rate_above(lines: Sequence[str], delimiter: str | None, comma: bool) -> float | None:
    """The rate in Hz that entries such as ``Sample interval,5,ms`` tell; None where they disagree."""
    rates = [rate for line in lines if (rate := _rate_in(line, delimiter, comma)) is not None]
    agree = bool(rates) and all(abs(rate - rates[0]) <= 1e-3 * rates[0] for rate in rates)
    return rates[0] if agree else None


def _rate_in(line: str, delimiter: str | None, comma: bool) -> float | None:
    cells = cells_of(line.strip().lstrip("#%* "), delimiter or "\t")
    entry = _ENTRY.fullmatch("\t".join(cell for cell in cells if cell))
    if entry is None or not is_digits(entry["number"], comma):
        return None
    named = re.fullmatch(r"(.*?)\s*[\[(]([^\[\]()]*)[\])]", entry["name"])
    name, unit = named.groups() if named else (entry["name"], "")
    unit, value = entry["unit"] or unit.strip(), value_of(entry["number"], comma)
    letters = unicodedata.normalize("NFKD", name).lower()
    word = re.sub(r"[^a-z]", "", letters)
    if not value > 0:
        return None
    if word in RATE_WORDS:
        return value * HERTZ[unit] if unit in HERTZ else None
    if word not in STEP_WORDS or unit not in SECONDS:
        return None
    rate = simplest(1 / (value * SECONDS[unit]), 1e-12)
    return rate if unit or rate > SLOW else None  # a whole number without a unit may be of milliseconds


@contextmanager
def cells_on_one_line(path: Path) -> Iterator[Path]:
    """The file, or a copy of one whose titles in quotation marks hold line breaks, with blanks for them.

    Comments take the places of the lines that went, so that every line keeps its number.
    """
    with open_regular(path) as file:
        head = [file.readline(LONGEST_LINE) for _ in range(_HEAD)]
        joined = _joined(head)
        if joined == head:
            yield path
            return
        with TemporaryDirectory() as folder:
            copy = Path(folder) / path.name
            with copy.open("wb") as target:
                target.writelines(joined)
                copyfileobj(file, target)
            yield copy


def _joined(lines: list[bytes]) -> list[bytes]:
    """Lines of which each ends outside of quotation marks."""
    result: list[bytes] = []
    rest = list(lines)
    while rest:
        count = _lines_of_cells(rest)
        if count == 1:
            result.append(rest[0])
        else:
            whole = b" ".join(line.rstrip(b"\r\n") for line in rest[:count])
            result += [whole + b"\n", *[b"#\n"] * (count - 1)]
        del rest[:count]
    return result


def _lines_of_cells(lines: list[bytes]) -> int:
    """Over how many lines the cells of the first one go; an inch mark opens no cell."""
    quotes = lines[0].count(b'"')
    if quotes % 2 == 0 or not _OPENING.search(lines[0]):
        return 1
    for count, line in enumerate(lines[1:_LINES_OF_CELL], 2):
        quotes += line.count(b'"')
        if quotes % 2 == 0:
            return count
    return 1
