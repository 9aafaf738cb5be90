"""Does a record keep its character, or does it drift: in its mean, its size, its pace?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_BLOCKS = 16
_SLOW = 0.35  # share of the variance in the three slowest bins of the spectrum: a random walk has about 0.8
_STEADY = 0.85  # correlation of the blocks with time above which there is a trend (chance: about 1e-5)
_MEAN, _SIZE, _PACE = 0.5, 1.5, 1.05  # trends that matter: in deviations, and as factors


def drift(samples: Array) -> str:
    """What drifts, in words; empty for a record that keeps its character."""
    x = np.asarray(samples, dtype=np.float64)
    x = x - x.mean()
    power = np.abs(np.fft.rfft(x)) ** 2
    total = float(np.sum(power[1:]))
    if total == 0.0:
        return ""
    slow = float(np.sum(power[1:4])) / total
    if slow > _SLOW:
        return f"{100 * slow:.0f} % of the variance lies in motions that take a third of the record or longer"
    blocks = np.array_split(x, _BLOCKS)
    spread = float(np.std(x))
    change = _trend(np.array([b.mean() for b in blocks])) / spread
    if abs(change) > _MEAN:
        return f"the mean moves by {change:.2g} standard deviations over the record"
    size = float(np.exp(abs(_trend(np.log([max(np.std(b), 1e-12 * spread) for b in blocks])))))
    if size > _SIZE:
        return f"the size of the motion changes by a factor of {size:.2g} over the record"
    pace = float(np.exp(abs(_trend(np.log([_pace(b) for b in blocks])))))
    if pace > _PACE:
        return f"the pace of the motion changes by a factor of {pace:.3g} over the record"
    return ""


def _trend(values: Array) -> float:
    """Change from the first to the last block along a straight line; 0 where there is no steady trend."""
    values = np.asarray(values, dtype=np.float64)
    place = np.arange(len(values)) - (len(values) - 1) / 2
    if np.std(values) == 0.0 or abs(np.corrcoef(place, values)[0, 1]) < _STEADY:
        return 0.0
    return float(place @ values / (place @ place)) * (len(values) - 1)


def _pace(block: Array) -> float:
    """Mean frequency of the spectrum of a block."""
    power = np.abs(np.fft.rfft((block - block.mean()) * np.hanning(len(block)))) ** 2
    frequencies = np.arange(len(power))
    return float(np.sum(frequencies * power) / max(np.sum(power), 1e-300)) or 1.0
