"""Small words for numbers of things."""

from __future__ import annotations


def counted(count: int, thing: str) -> str:
    """“1 step”, “2 steps”; thousands are set apart by a thin space."""
    return f"{count:,}".replace(",", "\u2009") + f" {thing}" + ("" if count == 1 else "s")
