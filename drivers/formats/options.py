"""What the user may add to a file that does not tell everything."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How to read a file."""

    rate: float | None = None  # Hz, for files without times
    resample: float | None = None  # Hz, uniform rate to interpolate non-uniform times onto
