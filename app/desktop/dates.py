"""Dates and times of day as the system's locale writes them, with all four digits of the year."""

from __future__ import annotations

import re
import unicodedata
from datetime import date, datetime

from PyQt6.QtCore import QDate, QLocale, QTime

_SHORT = QLocale.FormatType.ShortFormat


def date_text(day: date | str) -> str:
    """A day, given as itself or in ISO 8601; another text stays as it is."""
    try:
        known = date.fromisoformat(day[:10]) if isinstance(day, str) else day
    except ValueError:
        return str(day)
    locale = QLocale()
    if locale.language() == QLocale.Language.C:
        return known.isoformat()
    form = re.sub(r"(?<!y)yy(?!y)", "yyyy", locale.dateFormat(_SHORT))
    return _plain_digits(locale.toString(QDate(known.year, known.month, known.day), form))


def moment_text(moment: str) -> str:
    """Date and time of day, to the minute, of a moment in ISO 8601 by its own zone; "" stays empty."""
    try:
        known = datetime.fromisoformat(moment)
    except ValueError:
        return moment
    locale = QLocale()
    form = re.sub(r"[.:]ss?|\s*t+$", "", locale.timeFormat(_SHORT))
    return (
        f"{date_text(known.date())}  {_plain_digits(locale.toString(QTime(known.hour, known.minute), form))}"
    )


def _plain_digits(text: str) -> str:
    """With the digits that the numbers of the window have."""
    return "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in text)
