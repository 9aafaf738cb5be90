"""What holding found, in words that the command and the window share."""

from __future__ import annotations

import math
from typing import Any


def multiplier_words(pairs: list[list[float]]) -> str:
    """The first two multipliers, from their real and imaginary parts."""
    return "; ".join(f"{re:.4g}" + (f"{im:+.3g}i" if im else "") for re, im in pairs[:2])


def largest_multiplier(pairs: list[list[float]]) -> str:
    return multiplier_words(pairs[:1])


def measured_multiplier(told: dict[str, Any]) -> str:
    """The largest multiplier on the orbit that was held, with its error where it is real."""
    from analysis import Estimate, with_error

    pairs = told.get("multipliers", [])
    if not len(pairs):
        return ""
    (re, im), error = pairs[0], told["multiplier_errors"][0]
    if im or error is None or not math.isfinite(error):
        return largest_multiplier(pairs)
    return with_error(Estimate.normal(re, float(error)))
