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
    lower = np.array([[c.lower] for c in channels])
    upper = np.array([[c.upper] for c in channels])
    # Most blocks are fine: two passes tell. Samples that are missing (not a number) hide no others.
    low, high = np.fmin.reduce(data, axis=1), np.fmax.reduce(data, axis=1)
    if not ((low <= lower[:, 0]) | (high >= upper[:, 0])).any():
        return ()
    return spans((data <= lower) | (data >= upper), start_index)


def spans(marked: NDArray[np.bool_], start_index: int) -> tuple[ChannelSpan, ...]:
    """The stretches of marked samples, channel by channel, in absolute indices."""
    found = []
    for row in np.flatnonzero(marked.any(axis=1)):
        edges = np.flatnonzero(np.diff(marked[row].astype(np.int8), prepend=0, append=0))
        found += [
            ChannelSpan(int(row), start_index + int(a), start_index + int(b))
            for a, b in zip(edges[::2], edges[1::2], strict=True)
        ]
    return tuple(found)
