"""The delay of a delay embedding, from the autocorrelation or the mutual information of the signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.base.errors import DataError
from analysis.signal.timescale import mean_period

Rule = Literal["zero", "minimum", "fraction"]

THESIS_FRACTION = 15.0  # the thesis takes 1/10 to 1/20 of the lag of the first minimum


@dataclass(frozen=True, eq=False)
class Delay:
    """A delay with the curve that it was read from. ``message`` is empty when the data support the choice."""

    samples: int
    time: float  # samples * dt
    method: str
    lags: NDArray[np.int64]
    curve: NDArray[np.float64]  # autocorrelation, or mutual information in bits
    message: str = ""


def autocorrelation(samples: NDArray[np.float64], longest: int) -> NDArray[np.float64]:
    """Normalised autocorrelation at lags 0 to ``longest`` (Yuan 1995, eq. 4.2, with the mean removed)."""
    x = np.asarray(samples, dtype=np.float64)
    x = x - x.mean()
    size = 1 << int(np.ceil(np.log2(len(x) + longest + 1)))
    spectrum = np.fft.rfft(x, size)
    sums = np.fft.irfft(np.abs(spectrum) ** 2, size)[: longest + 1]
    sums /= len(x) - np.arange(longest + 1)
    if sums[0] <= 0:
        raise DataError("A constant signal has no autocorrelation.")
    return np.asarray(sums / sums[0])


def delay_by_autocorrelation(
    samples: NDArray[np.float64], dt: float, rule: Rule = "zero", longest: int | None = None
) -> Delay:
    """First zero or first minimum of the autocorrelation, or the thesis' fraction (1/15) of that minimum."""
    longest = longest or _longest(samples)
    curve = autocorrelation(samples, longest)
    lags = np.arange(longest + 1)
    zero = next((int(k) - int(curve[k - 1] < -curve[k]) for k in lags[1:] if curve[k] <= 0), None)
    minimum = next((int(k) for k in lags[1:-1] if curve[k - 1] > curve[k] <= curve[k + 1]), None)
    found = zero if rule == "zero" else minimum
    message = ""
    if found is None:
        found = int(np.argmin(curve))
        what = "cross zero" if rule == "zero" else "pass a minimum"
        message = (
            f"The autocorrelation does not {what} within {longest} samples; its lowest value was taken. "
            "The record is short beside its slowest motion, or drifts."
        )
    if rule == "fraction":
        found = max(round(found / THESIS_FRACTION), 1)
    found = max(found, 1)
    return Delay(found, found * dt, f"autocorrelation, {rule}", lags, curve, message)


def delay_by_mutual_information(
    samples: NDArray[np.float64], dt: float, longest: int | None = None, bins: int | None = None
) -> Delay:
    """First minimum of the average mutual information (Fraser and Swinney 1986), bins of equal occupation.

    The number of bins grows as the fifth root of the squared record length unless given.
    """
    x = np.asarray(samples, dtype=np.float64)
    longest = longest or _longest(x)
    bins = bins or int(np.clip(round(len(x) ** 0.4 / 2), 8, 64))
    ranks = np.empty(len(x), dtype=np.int64)
    ranks[np.argsort(x, kind="stable")] = np.arange(len(x))
    curve = _mutual_information((ranks * bins) // len(x), bins, longest)
    # Minima shallower than a part of the histogram's bias, (bins - 1)^2 / (2 N ln 2) bits, come from chance.
    bias = (bins - 1) ** 2 / (2 * len(x) * np.log(2))
    lags = np.arange(longest + 1)
    found = _first_minimum(curve, 0.05 * bias)
    message = ""
    if found is None:
        below = np.flatnonzero(curve - curve[-1] < (curve[0] - curve[-1]) / np.e)
        found = int(below[0]) if len(below) else longest
        message = (
            f"The mutual information has no minimum within {longest} samples; the lag at which it has fallen "
            "to 1/e of its excess was taken."
        )
    elif curve[found] <= 1.5 * bias:
        message = "At the minimum the mutual information is no larger than that of unrelated numbers."
    return Delay(max(found, 1), max(found, 1) * dt, "mutual information", lags, curve, message)


def _longest(samples: NDArray[np.float64]) -> int:
    return int(np.clip(3 * mean_period(samples), 10, max(len(samples) // 10, 10)))


def _first_minimum(curve: NDArray[np.float64], rise: float) -> int | None:
    """First lag whose value is followed by a rise of more than ``rise`` before anything lower."""
    lowest = 0
    for k in range(1, len(curve)):
        if curve[k] < curve[lowest]:
            lowest = k
        elif lowest > 0 and curve[k] > curve[lowest] + rise:
            return lowest
    return None


@njit(cache=True, nogil=True)
def _mutual_information(cells, bins, longest):  # type: ignore[no-untyped-def]
    """Mutual information in bits between the cell now and the cell ``lag`` samples later."""
    total = len(cells)
    result = np.empty(longest + 1)
    for lag in range(longest + 1):
        joint = np.zeros((bins, bins))
        for i in range(total - lag):
            joint[cells[i], cells[i + lag]] += 1.0
        now, later = joint.sum(axis=1), joint.sum(axis=0)
        count = float(total - lag)
        bits = 0.0
        for a in range(bins):
            for b in range(bins):
                if joint[a, b] > 0.0:
                    bits += joint[a, b] / count * np.log2(joint[a, b] * count / (now[a] * later[b]))
        result[lag] = bits
    return result
