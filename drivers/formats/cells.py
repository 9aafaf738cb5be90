"""One cell of a table of text: a number, with or without thousands marks, or a word in the place of one."""

from __future__ import annotations

import re

from drivers.formats.stamps import is_date, is_stamp

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
_APART = "'’\u00a0\u2009\u202f"  # thousands marks that are nothing else
# For each decimal mark: thousands that can be read in one way only, and those that may be decimals instead.
_CLEAR = {
    mark: re.compile(
        rf"[+-]?[1-9]\d{{0,2}}(?:(?:{other}\d{{3}})+{mark}\d*|(?:{other}\d{{3}}){{2,}}"
        rf"|(?:[{_APART}]\d{{3}})+(?:{mark}\d*)?)"
    )
    for mark, other in ((r"\.", ","), (",", r"\."))
}
_DOUBTFUL = {
    mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}{other}\d{{3}}") for mark, other in ((r"\.", ","), (",", r"\."))
}
# What instruments write where the signal was beyond the range, letters alone.
_OVERLOADS = re.compile(
    "OV(ER)?(R?LD|LOAD|L|F|FL|FLOW|RANGE)?|OVRLD|OFL|OL|CLIP(PED)?|SATURATED|UNDERRANGE", re.IGNORECASE
)
_MISSING = re.compile(
    r"#?N/?A|#(NV|WERT!|VALUE!|DIV/0!|REF!|NUM!)|NULL|NONE|MISSING|INVALID|ERR(OR)?", re.IGNORECASE
)
# What was computed from the columns: instruments write such rows behind a table.
_STATISTIC = re.compile(
    r"mean|average|avg|min|minimum|max|maximum|rms|std|std\.? ?dev|stdev|standard deviation|variance|median"
    r"|sum|total|count|range|peak|peak.to.peak|p-p|pk-pk|mittelwert|mittel|effektivwert|standardabweichung"
    r"|summe|anzahl|moyenne|médiane|écart[ -]type|ecart[ -]type|media|promedio|mediana|desviación estándar",
    re.IGNORECASE,
)
_STROKES = re.compile(r"[-–—*?]+")


def _mark(decimal_comma: bool) -> str:
    return "," if decimal_comma else r"\."


def is_overload(cell: str) -> bool:
    """Whether a cell says that the signal was beyond the range: OVLD, +OL, Over-range."""
    return _OVERLOADS.fullmatch(re.sub(r"[\s._+<>*-]", "", cell)) is not None


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value: N/A, ---."""
    return (_MISSING.fullmatch(cell) or _STROKES.fullmatch(cell)) is not None


def is_statistic(cell: str) -> bool:
    """Whether a cell names what was computed from the columns: Mean, Max, Mittelwert."""
    return _STATISTIC.fullmatch(cell.strip().rstrip(":.")) is not None


def is_digits(cell: str, decimal_comma: bool) -> bool:
    """Whether a cell is a number that can be read in one way only."""
    plain = cell.replace("−", "-")
    if _CLEAR[_mark(decimal_comma)].fullmatch(plain):
        return True
    if decimal_comma:
        if "." in plain:
            return False
        plain = plain.replace(",", ".", 1)
    return _NUMBER.fullmatch(plain) is not None


def is_number(cell: str, decimal_comma: bool) -> bool:
    """Whether a cell is a number, a date or time of day, or a word that stands for a number."""
    return tells(cell, decimal_comma) or is_overload(cell) or is_missing(cell)


def tells(cell: str, decimal_comma: bool) -> bool:
    """Whether a cell is a number, a date or a time of day itself."""
    return is_stamp(cell) if ":" in cell else is_digits(cell, decimal_comma) or is_date(cell)


def has_thousands(cell: str, decimal_comma: bool) -> bool:
    """Whether a number has thousands marks beyond doubt."""
    return _CLEAR[_mark(decimal_comma)].fullmatch(cell.replace("−", "-")) is not None


def is_doubtful(cell: str, decimal_comma: bool) -> bool:
    """Whether a mark may be one of thousands or of decimals: 1.234 among decimal commas."""
    return _DOUBTFUL[_mark(decimal_comma)].fullmatch(cell.replace("−", "-")) is not None


def value_of(cell: str, decimal_comma: bool) -> float:
    """The value of a number, thousands marks taken out."""
    plain = re.sub(rf"[{_APART}]", "", cell.replace("−", "-"))
    if has_thousands(cell, decimal_comma) or is_doubtful(cell, decimal_comma):
        plain = plain.replace("." if decimal_comma else ",", "")
    return float(plain.replace(",", ".").replace("d", "e").replace("D", "e"))
