"""Does a record repeat itself? A periodic motion does, however long its period and however many its lines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.signal.interpolation import MARGIN, sample_at

Array = NDArray[np.float64]

_LAST = 2.0 / 3.0  # of the record: the longest lag, so that a third is compared
_ROUGH = 0.25  # share that a lag of whole samples may leave: its true place lies up to half a sample away
_TRIED = 12  # lags that are looked at between the samples, the shortest first
_SEARCH = np.linspace(-1.0, 1.0, 21)  # samples about the best whole lag, then a tenth of that
_COMPARED = 20_000  # samples that are compared at a lag between the samples
_SAME = 1e-5  # of the variance: what is left below it is called nothing
_GROWS = (
    2.0  # times what is left after one period: so much after many is left by a motion that nearly repeats
)


@dataclass(frozen=True)
class Repetition:
    """The shortest lag after which the whole record comes again."""

    period: float  # samples
    times: int  # periods that were compared
    left: float  # of the variance, in half the squared difference after one period (the noise in each)
    left_last: float  # the same after the most periods

    @property
    def once(self) -> bool:
        """Whether only one repetition is in the record: then a motion that nearly repeats looks the same."""
        return self.times < 2

    @property
    def exact(self) -> bool:
        """Whether the difference does not grow from period to period, as that of a torus does."""
        return not self.once and self.left_last < max(_GROWS * self.left, _SAME)


def repetition(samples: Array, allowed: float, shortest: int) -> Repetition | None:
    """The shortest lag from ``shortest`` on after which, and after each multiple of which, the record comes
    again but for ``allowed`` of its variance; None if there is none up to two thirds of the record.
    """
    x = np.asarray(samples, dtype=np.float64)
    x = x - np.mean(x)
    variance = float(np.var(x))
    longest = int(_LAST * len(x))
    if variance == 0.0 or longest <= shortest + 2:
        return None
    left = _differences(x, longest) / variance
    middle = left[1:-1]
    low = (middle <= left[:-2]) & (middle <= left[2:]) & (middle < _ROUGH + allowed)
    places = 1 + np.flatnonzero(low)
    for lag in places[places >= shortest][:_TRIED]:
        found = _at(x, float(lag), allowed, variance, longest)
        if found is not None:
            return found
    return None


def _at(x: Array, lag: float, allowed: float, variance: float, longest: int) -> Repetition | None:
    """The repetition after about ``lag``, whose multiples make its place ever more exact."""
    period, first = _refined(x, lag)
    if first > allowed * variance:
        return None
    times, last = 1, first
    while (times + 1) * period <= longest - 2:
        # By at most a factor of two at once, or the place of the next one is not known well enough.
        times = min(2 * times, int((longest - 2) / period))
        place, last = _refined(x, times * period)
        if last > allowed * variance:
            return None
        period = place / times
    return Repetition(period, times, first / variance, last / variance)


def _differences(x: Array, longest: int) -> Array:
    """Half the mean squared difference of the record and itself ``0..longest`` samples later."""
    total = len(x)
    size = 1 << (2 * total - 1).bit_length()
    product = np.fft.irfft(np.abs(np.fft.rfft(x, size)) ** 2, size)[: longest + 1]
    energy = np.concatenate(([0.0], np.cumsum(x**2)))
    lags = np.arange(longest + 1)
    both = energy[total - lags] + energy[-1] - energy[lags]
    return np.asarray(np.maximum(0.5 * both - product, 0.0) / (total - lags))


def _refined(x: Array, lag: float) -> tuple[float, float]:
    """The lag of least difference within a sample of ``lag``, and half the mean squared difference there."""
    best, least = lag, np.inf
    for width in (1.0, 0.1):
        centre = best
        for shift in width * _SEARCH:
            left = _left(x, centre + shift)
            if left < least:
                best, least = centre + shift, left
    return float(best), float(least)


def _left(x: Array, lag: float) -> float:
    """Half the mean squared difference of the record and itself ``lag`` samples later."""
    whole = int(np.floor(lag))
    count = len(x) - whole - MARGIN - 2
    if lag == whole:
        return 0.5 * float(np.mean((x[whole : whole + count] - x[:count]) ** 2))
    early = np.arange(2, count, max(count // _COMPARED, 1))
    later = sample_at(np.atleast_2d(x), lag + early, np.empty((1, len(early))))[0]
    return 0.5 * float(np.mean((later - x[early]) ** 2))
