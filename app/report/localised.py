"""A report with the decimal mark of the system's locale: in sentences, tables and figures."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from matplotlib.axis import Axis
from matplotlib.text import Text
from matplotlib.ticker import Formatter

from app.numbers import decimal_mark, localised
from app.report.blocks import Block, Grid, Paragraph, Picture


def localised_block(block: Block) -> Block:
    """What the program says, in the locale's way; the words of others stay as they are."""
    if decimal_mark() == "." or getattr(block, "verbatim", False):
        return block
    if isinstance(block, Paragraph):
        return replace(block, text=localised(block.text))
    if isinstance(block, Grid):
        rows = [[localised(cell) for cell in row] for row in block.rows]
        return replace(block, rows=rows, caption=localised(block.caption))
    if isinstance(block, Picture):
        draw = partial(_draw, block.draw)
        return replace(block, draw=draw, caption=localised(block.caption))
    return block


def _draw(draw: Callable[[Any], None], figure: Any) -> None:
    """Draw a figure, then let its axes and its words follow the locale."""
    draw(figure)
    for axis in figure.findobj(Axis):
        for ticks in (axis.major, axis.minor):
            if not isinstance(ticks.formatter, _Localised):
                ticks.formatter = _Localised(ticks.formatter)
    for text in figure.findobj(Text):
        text.set_text(_localised(text.get_text()))


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


def _localised(text: str) -> str:
    """Words of a figure, with formulas between dollar signs, where a blank follows a bare comma."""
    parts = [localised(part) for part in text.split("$")]
    parts[1::2] = [re.sub(r"(?<=\d),(?=\d)", "{,}", formula) for formula in parts[1::2]]
    return "$".join(parts)
