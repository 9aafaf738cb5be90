"""The common row of every reproduced table: the printed number beside ours, and a verdict in words.

A verdict begins with one of the phrases of ``VERDICTS``. Make rows by :func:`value` (a quantity whose truth
is known), :func:`least` (errors, misfits and counts, the smaller the better) or :func:`same` (a quantity that
is computed, not estimated), and overrule the verdict by :meth:`Row.but` where the print is the trouble.
"""

from __future__ import annotations

import math
from typing import NamedTuple

AGREES = "agrees"
BETTER = "better than print"
WORSE = "worse than print"
DIFFERS = "differs"
WRONG = "print is wrong"  # followed by a colon and what is wrong
UNATTAINABLE = "not attainable"  # followed by a colon and why
NOT_PRINTED = "not printed"  # ours alone: the document has no such number, or it is not legible
VERDICTS = (AGREES, BETTER, WORSE, DIFFERS, WRONG, UNATTAINABLE, NOT_PRINTED)

COLUMNS = (
    "case",
    "quantity",
    "true",
    "published",
    "plain",
    "ours",
    "std. error",
    "error %",
    "verdict",
    "note",
)


class Row(NamedTuple):
    """One printed number. What does not exist is None; ``error`` is ours minus the truth, in % of it."""

    case: str
    quantity: str
    actual: float | None
    published: float | None
    plain: float | None  # ours by the published method
    ours: float | None  # ours by default
    stderr: float | None
    error: float | None
    verdict: str
    note: str = ""

    def but(self, verdict: str, note: str = "") -> Row:
        """The same numbers with another verdict."""
        return self._replace(verdict=verdict, note=note or self.note)


def value(
    case: str,
    quantity: str,
    actual: float,
    published: float | None,
    plain: float | None,
    ours: float,
    stderr: float | None = None,
    rounding: float = 0.0,
    note: str = "",
) -> Row:
    """An estimated quantity whose truth is known; the print's digits end at ``rounding``."""
    published, plain, stderr = _known(published), _known(plain), _known(stderr)
    off = abs(ours - actual)
    if published is None:
        verdict = NOT_PRINTED
    elif max(off, abs(published - actual)) <= 0.5 * rounding + 1e-12 * abs(actual):
        verdict = AGREES
    elif off < abs(published - actual):
        verdict = BETTER
    elif off <= abs(published - actual) + 0.5 * rounding:
        verdict = AGREES
    elif stderr is not None and off <= 2 * stderr:
        verdict = f"{AGREES} within 2 std. errors"
    else:
        verdict = WORSE
    error = 100 * (ours / actual - 1) if actual else None
    return Row(case, quantity, actual, published, plain, ours, stderr, error, verdict, note)


def least(
    case: str,
    quantity: str,
    published: float | None,
    plain: float | None,
    ours: float | None,
    tolerance: float = 0.05,
    note: str = "",
) -> Row:
    """An error, a misfit or a count: the smaller the better, the same within ``tolerance`` (a share).

    Where there is no ``ours``, the plain method is judged.
    """
    published, plain, ours = _known(published), _known(plain), _known(ours)
    judged = plain if ours is None else ours
    if published is None or judged is None:
        verdict = NOT_PRINTED
    elif judged < published * (1 - tolerance):
        verdict = BETTER
    else:
        verdict = AGREES if judged <= published * (1 + tolerance) else WORSE
    return Row(case, quantity, None, published, plain, ours, None, None, verdict, note)


def same(
    case: str,
    quantity: str,
    published: float | None,
    ours: float,
    tolerance: float,
    plain: float | None = None,
    note: str = "",
) -> Row:
    """A quantity that should come out as printed, within ``tolerance`` (a share of it)."""
    published = _known(published)
    if published is None:
        verdict = NOT_PRINTED
    else:
        verdict = AGREES if abs(ours - published) <= tolerance * abs(published) else DIFFERS
    return Row(case, quantity, None, published, _known(plain), ours, None, None, verdict, note)


def _known(number: float | None) -> float | None:
    return None if number is None or math.isnan(number) else number
