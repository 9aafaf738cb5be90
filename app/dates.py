"""Dates and times of day as the system's locale writes them, with all four digits of the year."""

from __future__ import annotations

import re
import unicodedata
from datetime import date, datetime

from app.system_locale import system_locale


def date_text(day: date | str) -> str:
    """A day, given as itself or in ISO 8601; another text stays as it is."""
    try:
        known = date.fromisoformat(day[:10]) if isinstance(day, str) else day
    except ValueError:
        return str(day)
    locale = system_locale()
    if locale is None or locale.language() == locale.Language.C:
        return known.isoformat()
    from PyQt6.QtCore import QDate

    form = re.sub(r"(?<!y)yy(?!y)", "yyyy", locale.dateFormat(locale.FormatType.ShortFormat))
    return _plain_digits(locale.toString(QDate(known.year, known.month, known.day), form))


def moment_text(moment: str) -> str:
    """Date and time of day, to the minute, of a moment in ISO 8601 by its own zone; "" stays empty."""
    try:
        known = datetime.fromisoformat(moment)
    except ValueError:
        return moment
    return f"{date_text(known.date())}  {_time_text(known)}"


def _time_text(moment: datetime) -> str:
    locale = system_locale()
    if locale is None:
        return f"{moment:%H:%M}"
    from PyQt6.QtCore import QTime

    form = re.sub(r"[.:]ss?|\s*t+$", "", locale.timeFormat(locale.FormatType.ShortFormat))
    return _plain_digits(locale.toString(QTime(moment.hour, moment.minute), form))


def _plain_digits(text: str) -> str:
    """With the digits that the numbers of the window have."""
    return "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in text)
