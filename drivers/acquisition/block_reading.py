"""Reads blocks from a source that somebody else may have written: what is no block is not taken for one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drivers.base.overload import spans
from drivers.base.protocols import Block, Source

LONGEST_REASON = 300  # characters: a recording keeps one with every gap


def read_block(source: Source, samples: int) -> Block:
    """The next block, of ``samples`` at most; TypeError or ValueError if the source gives something else.

    Values that are no numbers are missing samples, whether the source says so or not. Data that is no part of
    the array the source was given is copied: it may write over its own.
    """
    into = np.empty((len(source.channels), samples))
    block = source.read(into)
    if not isinstance(block, Block):
        raise TypeError(f"read gave {type(block).__name__} and no Block")
    data = block.data
    if not isinstance(data, np.ndarray) or data.dtype != into.dtype:
        raise TypeError("the data of a block are no array of doubles")
    if data.ndim != 2 or data.shape[0] != into.shape[0] or data.shape[1] > samples:
        raise ValueError(f"a block has the shape {data.shape}, and {into.shape} was asked for")
    if not np.may_share_memory(data, into):
        block = replace(block, data=data.copy())
    if block.reason:
        block = replace(block, reason=_line(block.reason))
    return _marked(block)


def _line(reason: object) -> str:
    """One line of bearable length, of characters that a file can hold."""
    line = " ".join(str(reason).split())[:LONGEST_REASON]
    return line.encode("utf-8", "replace").decode()


def _marked(block: Block) -> Block:
    """The block with every value that is no number among what is missing."""
    absent = ~np.isfinite(block.data)
    if not absent.any():
        return block
    for told in block.missing:
        absent[told.channel, max(0, told.start - block.start_index) : told.stop - block.start_index] = False
    more = spans(absent, block.start_index)
    return replace(block, missing=block.missing + more) if more else block
