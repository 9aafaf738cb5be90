"""Numbers inside sentences."""

from __future__ import annotations

from decimal import Decimal


def rounded(value: float, digits: int = 3) -> str:
    """So many digits, and a power of ten only beyond a million: 0.0123, 6060."""
    return f"{float(f'{value:.{digits}g}'):g}"


def percent(share: float, digits: int = 2) -> str:
    """A share in per cent with so many digits, and never a power of ten: 0.00009 %, 100 %, 180 %."""
    return f"{Decimal(f'{100 * share:.{digits}g}'):f} %"
