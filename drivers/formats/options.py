"""What the user may add to a file that does not tell everything."""

from __future__ import annotations

from dataclasses import dataclass

from analysis import DataError

SEPARATORS: dict[str, str | None] = {"comma": ",", "semicolon": ";", "tab": "\t", "blanks": None}
DECIMALS = ("point", "comma")


@dataclass(frozen=True)
class Options:
    """How to read a file; None: as it looks."""

    rate: float | None = None  # Hz, for files without times
    resample: float | None = None  # Hz, uniform rate to interpolate non-uniform times onto
    table: int | None = None  # which set of signals of equal length, counted from 1
    time: str | None = None  # the column of times; "": there is none
    separator: str | None = None  # of a table of text: one of SEPARATORS
    decimal: str | None = None  # its decimal mark: one of DECIMALS
    header: int | None = None  # the line with its titles, counted from 1

    def __post_init__(self) -> None:
        for given, known, what in (
            (self.separator, SEPARATORS, "separator"),
            (self.decimal, DECIMALS, "decimal mark"),
        ):
            if given is not None and given not in known:
                raise DataError(f"No {what} '{given}': there are {', '.join(known)}.")
