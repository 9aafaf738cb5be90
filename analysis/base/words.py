"""Numbers inside sentences."""

from __future__ import annotations


def rounded(value: float, digits: int = 3) -> str:
    """So many digits, and a power of ten only beyond a million: 0.0123, 6060."""
    return f"{float(f'{value:.{digits}g}'):g}"
