"""Small words for numbers of things."""

from __future__ import annotations

import math
import re


def plain(value: float, digits: int = 2) -> str:
    """A number with so many digits and no power of ten: 0.00009, 1180."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):.{max(decimals, 0)}f}"


def with_minus(text: str) -> str:
    """Numbers in a text with the true minus sign."""
    return re.sub(r"(?<![\w.])-(?=\d)|(?<=\de)-(?=\d)", "−", text)


_UNITS = "%|°C?|k?Hz|MHz|[mµ]?s|min|h|[mµk]?V|m?A|[mk]?N|[mµk]?m|k?g|dB|k?Pa|[kMG]B|rad|[kM]?S|k?samples"
_PARTED = re.compile(rf"(?<=\d) (?=(?:{_UNITS}|(?:{_UNITS})?/(?:{_UNITS})²?)(?![\w/]))")


def unbroken(text: str) -> str:
    """The same words; no line is broken between number and unit, about ±, or before a dot between parts."""
    return _PARTED.sub("\u00a0", text).replace(" ± ", "\u00a0±\u00a0").replace("  ·", "\u00a0\u00a0·")


def counted(count: int, thing: str) -> str:
    """“1 step”, “2 steps”; thousands are set apart by a thin space."""
    return f"{count:,}".replace(",", "\u2009") + f" {thing}" + ("" if count == 1 else "s")


def duration(seconds: float) -> str:
    """A span of time in words short enough for a status line: "45 s", "3 min 20 s", "1 h 5 min"."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
