"""What a report is made of, whatever it is written as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2  # 1 is the report's title


@dataclass(frozen=True)
class Paragraph:
    text: str
    kind: str = ""  # "", "good", "warning" or "small"
    verbatim: bool = False  # somebody's own words, or what is typed again: no number in it is rewritten


@dataclass(frozen=True)
class Formulae:
    """Equations, one to a line, as matplotlib's mathtext without dollar signs."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Grid:
    """A table of texts. Columns named in ``numeric`` are set to the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    numeric: Sequence[int] = ()
    verbatim: bool = False  # as in a paragraph


@dataclass(frozen=True)
class Picture:
    """A figure: ``draw`` puts it into a matplotlib figure of that size in inches."""

    draw: Callable[[Any], None]
    caption: str = ""
    width: float = 7.0
    height: float = 3.0


@dataclass(frozen=True)
class Listing:
    """Text as it stands, such as a model file."""

    text: str


Block = Heading | Paragraph | Formulae | Grid | Picture | Listing


@dataclass(frozen=True)
class Document:
    title: str
    subtitle: str = ""
    blocks: Sequence[Block] = field(default_factory=tuple)
    logo: bytes = b""  # PNG, above the title
