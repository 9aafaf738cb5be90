"""Times of day as loggers write them: 2026-11-18T02:39:10.1, 18.11.2026 02:39:10,1, 11/18/2026 2:39:10 PM."""

from __future__ import annotations

import math
import re
from datetime import date

import numpy as np
from numpy.typing import NDArray

_DATE = (
    r"(?:(?P<y>\d{4})[-/](?P<m>\d\d?)[-/](?P<d>\d\d?)|(?P<D>\d\d?)\.(?P<M>\d\d?)\.(?P<Y>\d{4})"
    r"|(?P<one>\d\d?)/(?P<two>\d\d?)/(?P<year>\d{4}))"
)
_STAMP = re.compile(
    rf"(?:{_DATE}(?:T|,?\s+))?"
    r"(?P<hour>\d\d?):(?P<minute>[0-5]\d):(?P<second>[0-5]\d(?:[.,]\d+)?)"
    r"(?:\s*(?P<half>[ap])\.?\s?m\.?|Z|[+-]\d\d:?\d\d)?",
    re.IGNORECASE,
)
_DATE_ALONE = re.compile(_DATE)
DAY = 86_400.0  # s


def is_stamp(cell: str) -> bool:
    """Whether a cell is a time of day, with or without its date."""
    return _STAMP.fullmatch(cell) is not None


def is_date(cell: str) -> bool:
    """Whether a cell is a date alone."""
    return _DATE_ALONE.fullmatch(cell) is not None


class StampClock:
    """Reads the stamps of one column, in order, as seconds since the midnight before the first of them.

    Small numbers: a date in them would cost microseconds. Whether 03/04/2026 is in March or in April the
    column itself tells: by a day above 12, or else the order in which its days lie closer together.
    """

    def __init__(self) -> None:
        self._of_day: list[float] = []
        self._days: list[tuple[int, int, int] | None] = []  # year, month, day as far as is known
        self._slashes = False
        self.order = ""  # how dates with strokes were read, in words

    def read(self, cell: str) -> None:
        """Take the next cell."""
        found = _STAMP.fullmatch(cell)
        assert found is not None
        part = found.groupdict()
        hour = int(part["hour"])
        if part["half"]:
            hour = hour % 12 + 12 * (part["half"].lower() == "p")
        of_day = 3600.0 * hour + 60.0 * int(part["minute"]) + float(part["second"].replace(",", "."))
        if part["one"]:
            self._slashes = True
            self._days.append((int(part["year"]), int(part["one"]), int(part["two"])))
        elif part["y"] or part["Y"]:
            whole = [int(part[a] or part[b]) for a, b in (("y", "Y"), ("m", "M"), ("d", "D"))]
            self._days.append((whole[0], whole[1], whole[2]))
        else:
            self._days.append(None)
        self._of_day.append(of_day)

    def seconds(self) -> NDArray[np.float64]:
        """Of each cell that was read; NaN: there is no such day."""
        days = self._ordinals()
        return np.array(self._of_day) + DAY * (days - (days[0] if len(days) else 0.0))

    def _ordinals(self) -> NDArray[np.float64]:
        if all(day is None for day in self._days):
            back = np.diff(self._of_day) < -DAY / 2
            return np.concatenate([[0.0], np.cumsum(back)]) if self._of_day else np.empty(0)
        if not self._slashes:
            return np.array([_ordinal(day) for day in self._days])
        month_first, day_first = (
            np.array([_ordinal(day, swapped) for day in self._days]) for swapped in (False, True)
        )
        spans = [np.ptp(days) if np.isfinite(days).all() else math.inf for days in (month_first, day_first)]
        if spans[0] <= spans[1]:
            self.order = "month/day/year" if spans[1] != spans[0] else ""
            return month_first
        self.order = "day/month/year"
        return day_first


def _ordinal(day: tuple[int, int, int] | None, swapped: bool = False) -> float:
    """The number of a day (year, month, day); NaN: there is no such day."""
    if day is None:
        return math.nan
    year, month, number = day if not swapped else (day[0], day[2], day[1])
    try:
        return float(date(year, month, number).toordinal())
    except ValueError:
        return math.nan
