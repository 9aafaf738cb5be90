"""Overloads: stretches of samples beyond a channel's measuring range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from drivers.base.protocols import ChannelInfo, ChannelSpan


def overloads(
    data: NDArray[np.float64], channels: Sequence[ChannelInfo], start_index: int
) -> tuple[ChannelSpan, ...]:
    """Where channels stand at or beyond the ends of their range, in absolute indices."""
    if not data.shape[1]:
        return ()
    low, high = data.min(axis=1), data.max(axis=1)  # most blocks are fine: two passes tell
    found = []
    for row, channel in enumerate(channels):
        if low[row] <= channel.lower or high[row] >= channel.upper:
            over = (data[row] <= channel.lower) | (data[row] >= channel.upper)
            edges = np.flatnonzero(np.diff(over.astype(np.int8), prepend=0, append=0))
            found += [
                ChannelSpan(row, start_index + int(a), start_index + int(b))
                for a, b in zip(edges[::2], edges[1::2], strict=True)
            ]
    return tuple(found)
