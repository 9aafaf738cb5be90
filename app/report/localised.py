"""A report with the decimal mark of the system's locale: in sentences, tables and figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from matplotlib.axis import Axis
from matplotlib.text import Text
from matplotlib.ticker import Formatter

from app.numbers import decimal_mark, localised
from app.report.blocks import Block, Grid, Paragraph, Picture

Words = Callable[[str], str]


def localised_block(block: Block, words: Words = localised) -> Block:
    """What the program says, in the locale's way; the words of others stay as they are.

    ``words`` rewrites sentences and the text of tables and figures; columns of numbers and axes always are.
    """
    if decimal_mark() == "." or getattr(block, "verbatim", False):
        return block
    if isinstance(block, Paragraph):
        return replace(block, text=words(block.text))
    if isinstance(block, Grid):
        rows = [
            [(localised if i in block.numeric else words)(cell) for i, cell in enumerate(row)]
            for row in block.rows
        ]
        return replace(block, rows=rows, caption=words(block.caption))
    if isinstance(block, Picture):
        draw = partial(_draw, block.draw, words)
        return replace(block, draw=draw, caption=words(block.caption))
    return block


def localised_but(names: Iterable[str]) -> Words:
    """Rewrites what is not one of these names, of recordings for instance."""
    longest_first = sorted({name for name in names if name}, key=len, reverse=True)
    if not longest_first:
        return localised
    known = re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    def words(text: str) -> str:
        parts = known.split(text)
        parts[::2] = [localised(part) for part in parts[::2]]
        return "".join(parts)

    return words


def as_it_stands(text: str) -> str:
    """For words that cite numbered equations, sections and printed tables."""
    return text


def _draw(draw: Callable[[Any], None], words: Words, figure: Any) -> None:
    """Draw a figure, then let its axes and its words follow the locale."""
    draw(figure)
    for axis in figure.findobj(Axis):
        for ticks in (axis.major, axis.minor):
            if not isinstance(ticks.formatter, _Localised):
                ticks.formatter = _Localised(ticks.formatter)
    for text in figure.findobj(Text):
        text.set_text(_localised(text.get_text(), words))


class _Localised(Formatter):
    """The numbers of another formatter of an axis with the locale's decimal mark."""

    def __init__(self, inner: Formatter) -> None:
        self._inner = inner

    def __call__(self, x: float, pos: int | None = None) -> str:
        return _localised(self._inner(x, pos))

    def format_ticks(self, values: list[float]) -> list[str]:
        return [_localised(text) for text in self._inner.format_ticks(values)]

    def format_data(self, value: float) -> str:
        return _localised(self._inner.format_data(value))

    def format_data_short(self, value: float) -> str:
        return _localised(self._inner.format_data_short(value))

    def get_offset(self) -> str:
        return _localised(self._inner.get_offset())

    def set_locs(self, locs: Any) -> None:
        self._inner.set_locs(locs)


def _localised(text: str, words: Words = localised) -> str:
    """Words of a figure, with formulas between dollar signs, where a blank follows a bare comma."""
    parts = [words(part) for part in text.split("$")]
    parts[1::2] = [re.sub(r"(?<=\d),(?=\d)", "{,}", formula) for formula in parts[1::2]]
    return "$".join(parts)
