"""Stroboscopic sampling of a stream: the state once per period of the drive (Poincaré section)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]


def strobe_positions(phase: float, frequency: float, rate: float, count: int, at: float = 0.0) -> Samples:
    """Fractional sample positions in [0, count) where the drive's phase passes ``at`` (rad, modulo 2 pi).

    ``phase`` is the drive's phase at position 0; it grows by 2 pi frequency / rate a sample.
    """
    if frequency <= 0:
        return np.empty(0)
    first = ((at - phase) / (2 * np.pi)) % 1.0  # turns until the first passage
    period = rate / frequency
    turns = np.arange(first, count / period + first, 1.0)
    positions = turns * period
    return positions[positions < count]


def sample_at(data: Samples, positions: Samples) -> Samples:
    """Values of ``data[C, N]`` at fractional positions in [1, N - 2), by the cubic through four samples."""
    left = np.floor(positions).astype(np.intp)
    s = positions - left
    before, here, after, beyond = (data[:, left + k] for k in (-1, 0, 1, 2))
    slope = after - before
    bend = 2 * before - 5 * here + 4 * after - beyond
    twist = 3 * (here - after) + beyond - before
    return np.asarray(here + 0.5 * s * (slope + s * (bend + s * twist)))
