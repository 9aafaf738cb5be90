"""Close returns of a forced trajectory at multiples of the drive period (Yuan 1995, eq. 2.1 and 4.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.signal.interpolation import MARGIN, lagrange_weights

_RENEW = 4096  # samples after which the running sum is formed anew, so that rounding cannot pile up


@dataclass(frozen=True, eq=False)
class Returns:
    """Where a trajectory comes back to itself after one lag.

    ``starts`` are samples, ``squares`` the mean squared distance over the window around each start
    (coordinates divided by their scale, averaged over coordinates), ``lowest`` the lowest of all, whether
    close or not.
    """

    starts: NDArray[np.int64]
    squares: NDArray[np.float64]
    lowest: float
    noise_gain: float  # noise variance in a difference over that of one sample: 2 without interpolation


def returns_at(
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    lag: float,
    half_window: int,
    threshold: float,
    bad: NDArray[np.int64],
    work: NDArray[np.float64],
) -> Returns:
    """Local minima below ``threshold`` of the windowed squared distance between i and i + lag, one per run.

    ``points`` [n, N]; ``weights`` [n] multiply the squared differences; ``bad`` [N + 1] counts the invalid
    samples before each index: a segment that holds one is left out. ``work`` [N] is scratch.
    """
    whole = int(np.floor(lag))
    fraction = lag - whole
    if min(fraction, 1.0 - fraction) < 1e-9:
        whole, fraction = round(lag), 0.0
    stop = points.shape[1] - whole - (MARGIN + 1 if fraction else 0)
    if stop <= 2 * half_window + 1:
        return Returns(np.empty(0, np.int64), np.empty(0), np.inf, 2.0)
    taps = lagrange_weights(fraction)
    if fraction:
        _distances_between(points, weights, whole, taps, stop, work)
    else:
        _distances(points, weights, whole, stop, work)
    starts, squares, lowest = _window_minima(work, stop, half_window, threshold, bad, whole + 1)
    return Returns(starts, squares, lowest, 1.0 + float(taps @ taps))


@njit(cache=True, nogil=True, fastmath=True)
def _distances(points, weights, lag, stop, out):  # type: ignore[no-untyped-def]
    n = points.shape[0]
    for c in range(n):
        early, late, w = points[c, :stop], points[c, lag : lag + stop], weights[c]
        if c == 0:
            for i in range(stop):
                difference = late[i] - early[i]
                out[i] = w * difference * difference
        else:
            for i in range(stop):
                difference = late[i] - early[i]
                out[i] += w * difference * difference


@njit(cache=True, nogil=True, fastmath=True)
def _distances_between(points, weights, lag, taps, stop, out):  # type: ignore[no-untyped-def]
    """As _distances, the later point taken between the samples lag and lag + 1."""
    n = points.shape[0]
    t0, t1, t2, t3, t4, t5 = taps[0], taps[1], taps[2], taps[3], taps[4], taps[5]
    first = max(0, 2 - lag)
    for i in range(first):
        out[i] = 1e300
    for c in range(n):
        x, w = points[c], weights[c]
        for i in range(first, stop):
            j = i + lag
            late = t0 * x[j - 2] + t1 * x[j - 1] + t2 * x[j] + t3 * x[j + 1] + t4 * x[j + 2] + t5 * x[j + 3]
            difference = late - x[i]
            if c == 0:
                out[i] = w * difference * difference
            else:
                out[i] += w * difference * difference


@njit(cache=True, nogil=True)
def _window_minima(squares, stop, half, threshold, bad, lag):  # type: ignore[no-untyped-def]
    """Running mean over 2 half + 1 samples, and the lowest place of every run below the threshold."""
    width = 2 * half + 1
    starts = np.empty(64, np.int64)
    values = np.empty(64)
    found = 0
    best, place = np.inf, -1
    lowest = np.inf
    total = 0.0
    last_bad = len(bad) - 1
    for i in range(half, stop - half):
        if (i - half) % _RENEW == 0:
            total = 0.0
            for j in range(i - half, i + half + 1):
                total += squares[j]
        else:
            total += squares[i + half] - squares[i - half - 1]
        mean = total / width
        clean = bad[min(i + half + lag + 4, last_bad)] == bad[max(i - half - 2, 0)]
        if clean and mean < lowest:
            lowest = mean
        if clean and mean <= threshold:
            if mean < best:
                best, place = mean, i
        elif place >= 0:
            if found == len(starts):
                starts = np.concatenate((starts, np.empty(found, np.int64)))
                values = np.concatenate((values, np.empty(found)))
            starts[found], values[found] = place, best
            found += 1
            best, place = np.inf, -1
    if place >= 0:
        starts = np.concatenate((starts[:found], np.array([place])))
        values = np.concatenate((values[:found], np.array([best])))
        found += 1
    return starts[:found].copy(), values[:found].copy(), max(lowest, 0.0)
