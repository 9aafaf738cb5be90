"""Numbers as people type and read them: both decimal marks are understood, nothing is guessed.

The decimal mark of the system's locale always is one. The other mark is taken for a decimal mark as well,
except where it could separate thousands: 1,000 is refused where the locale writes 1.000 for one.
"""

from __future__ import annotations

import math
import re

from analysis import ShakedownError
from app.system_locale import system_locale

_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_UNFINISHED = re.compile(r"[+-]?[.,]?|[+-]?(\d+[.,]?\d*|[.,]\d+)e[+-]?", re.IGNORECASE | re.ASCII)
_POINTED = re.compile(r"(?<![\d.])(\d+)\.(?=\d+(?!\w*\.\w))", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


class NumberError(ShakedownError):
    """A text that is no number, or that can be read as two."""


def decimal_mark() -> str:
    """The decimal mark of the locale in use: a point or a comma."""
    locale = system_locale()
    return "," if locale is not None and locale.decimalPoint() == "," else "."


def read_number(text: str, mark: str = "") -> float:
    """The one number that a text can mean. ``mark``: the reader's decimal mark, by default the locale's."""
    mark = mark or decimal_mark()
    plain = text.strip().replace("−", "-")
    if not plain:
        raise NumberError("A number is needed here.")
    if "." in plain and "," in plain:
        raise NumberError(f"“{text.strip()}” has two different marks: write it with the decimal mark alone.")
    if not _NUMBER.fullmatch(plain):
        raise NumberError(f"“{text.strip()}” is not a number.")
    other = "," if mark == "." else "."
    if other in plain and _THOUSANDS.fullmatch(plain):
        small, large = float(plain.replace(other, ".")), float(plain.replace(other, ""))
        raise NumberError(
            f"“{text.strip()}” could mean {number_text(small, 3, mark)} or {number_text(large, 3, mark)}: "
            "write it without a thousands mark."
        )
    value = float(plain.replace(",", "."))
    if not math.isfinite(value):
        raise NumberError(f"“{text.strip()}” is too large a number.")
    return value


def is_unfinished(text: str) -> bool:
    """Whether somebody may be about to type a number, such as after a sign or a mark."""
    return _UNFINISHED.fullmatch(text.strip().replace("−", "-")) is not None


def number_text(value: float, digits: int = 4, mark: str = "") -> str:
    """A number with at most ``digits`` decimals, more if it has more; :func:`read_number` reads it back."""
    text = f"{value:.{digits}f}"
    if abs(float(text) - value) > 1e-9 * abs(value):
        text = f"{value:.9g}"
    if "." in text and "e" not in text:
        text = text.rstrip("0").rstrip(".")
    return ("0" if text == "-0" else text).replace(".", mark or decimal_mark())


def localised_delay(axis: str) -> str:
    """The name of an axis such as “x.1(t + 33.5 ms)” with its delay, nothing else, in the locale's way."""
    return re.sub(r"(?<=\(t \+ )[\d.]+(?= ms\))", lambda number: localised(number[0]), axis)


def localised(text: str) -> str:
    """Words with numbers in them, such as “7.5 Hz”, with the decimal mark of the locale.

    The points of versions (2.1.3) and of names of files (run 2.5.h5) stay.
    """
    mark = decimal_mark()
    return text if mark == "." else _POINTED.sub(rf"\1{mark}", text)
