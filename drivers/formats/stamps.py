"""Times of day as loggers write them: 2026-11-18T02:39:10.123, 18.11.2026 02:39:10,123 or 02:39:10.123."""

from __future__ import annotations

import math
import re
from datetime import date

_STAMP = re.compile(
    r"(?:(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)[T ]+|(?P<D>\d\d?)\.(?P<M>\d\d?)\.(?P<Y>\d{4})[T ]+)?"
    r"(?P<hour>\d\d?):(?P<minute>[0-5]\d):(?P<second>[0-5]\d(?:[.,]\d+)?)(?:Z|[+-]\d\d:?\d\d)?"
)
DAY = 86_400.0  # s


def is_stamp(cell: str) -> bool:
    """Whether a cell is a time of day, with or without its date."""
    return _STAMP.fullmatch(cell) is not None


class StampClock:
    """Reads the stamps of one column, in order, as seconds since the midnight before the first of them."""

    def __init__(self) -> None:
        self._first: int | None = None  # its day
        self._days = 0  # midnights that passed, where no date is told
        self._before = 0.0

    def read(self, cell: str) -> float:
        """Seconds; NaN: there is no such day. Small numbers: a date in them would cost microseconds."""
        found = _STAMP.fullmatch(cell)
        assert found is not None
        part = found.groupdict()
        of_day = 3600.0 * int(part["hour"]) + 60.0 * int(part["minute"])
        of_day += float(part["second"].replace(",", "."))
        year, month, day = part["y"] or part["Y"], part["m"] or part["M"], part["d"] or part["D"]
        if year is None:
            self._days += of_day < self._before - DAY / 2
            self._before = of_day
            return of_day + DAY * self._days
        try:
            number = date(int(year), int(month), int(day)).toordinal()
        except ValueError:
            return math.nan
        if self._first is None:
            self._first = number
        return of_day + DAY * (number - self._first)
