"""Recurrence histogram of an autonomous trajectory over all lags (Yuan 1995, section 2.2 and figure 3.13)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.signal.interpolation import lagrange_weights

SLACK = 2.0  # samples within which lags belong together


@dataclass(frozen=True, eq=False)
class Recurrence:
    """How often the trajectory comes back to within ``epsilon`` of itself, by lag.

    A return is a point and the place on the later curve nearest to it, between samples too; ``places`` are
    the points (samples), ``times`` the lags (samples, fractional), ``squares`` the squared distances.
    """

    lags: NDArray[np.int64]  # 0 to the longest
    counts: NDArray[np.int64]  # returns by rounded lag
    peaks: NDArray[np.float64]  # lags around which the returns cluster, most frequent first
    places: NDArray[np.int64]
    times: NDArray[np.float64]
    squares: NDArray[np.float64]


def recurrence(
    points: NDArray[np.float64], epsilon: float, longest: int, bad: NDArray[np.int64], stride: int = 1
) -> Recurrence:
    """Returns of every ``stride``-th of the scaled ``points`` [n, N] after at most ``longest`` samples.

    ``bad`` [N + 1] counts the invalid samples before each index; returns across one are left out.
    """
    places, times, squares = _returns(points, epsilon**2, longest, stride, bad)
    counts = np.bincount(np.rint(times).astype(np.int64), minlength=longest + 1)[: longest + 1]
    return Recurrence(np.arange(longest + 1), counts, _peaks(counts), places, times, squares)


def _peaks(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Lags at which the histogram, smoothed over neighbouring lags, rises clearly above its surroundings."""
    smooth = np.convolve(counts, np.ones(3), mode="same")
    surroundings = np.lib.stride_tricks.sliding_window_view(np.pad(smooth, 10), 21)
    background = np.median(surroundings, axis=1)
    # Neighbouring points return together, so counts scatter by several times their square root.
    clear = smooth > background + 5 * np.sqrt(background + 1)
    found: list[tuple[float, float]] = []
    for lag in np.flatnonzero(clear)[np.argsort(-smooth[clear], kind="stable")]:
        if all(abs(lag - other) > SLACK for _, other in found):
            near = np.arange(max(lag - 1, 0), min(lag + 2, len(counts)))
            found.append((float(smooth[lag]), float(np.average(near, weights=counts[near] + 1e-9))))
    return np.array([lag for _, lag in found])


@njit(cache=True, nogil=True, fastmath=True)
def _squared_distances(points, i, longest, out):  # type: ignore[no-untyped-def]
    for c in range(points.shape[0]):
        here, later = points[c, i], points[c, i : i + longest + 1]
        if c == 0:
            for lag in range(longest + 1):
                out[lag] = (later[lag] - here) ** 2
        else:
            for lag in range(longest + 1):
                out[lag] += (later[lag] - here) ** 2


@njit(cache=True, nogil=True)
def foot(points, i, j):  # type: ignore[no-untyped-def]
    """Place near sample j where the curve comes closest to point i, and the squared distance there."""
    n, total = points.shape
    place = float(j)
    square = 0.0
    for turn in range(4):
        base = min(max(int(np.floor(place)), 2), total - 4)
        weights = lagrange_weights(place - base)
        ahead = lagrange_weights(place - base + 1e-4)
        square, slope, along = 0.0, 0.0, 0.0
        for c in range(n):
            value, speed = 0.0, 0.0
            for k in range(6):
                value += weights[k] * points[c, base - 2 + k]
                speed += (ahead[k] - weights[k]) * 1e4 * points[c, base - 2 + k]
            difference = value - points[c, i]
            square += difference * difference
            slope += difference * speed
            along += speed * speed
        if turn < 3 and along > 0.0:
            place = min(max(place - slope / along, j - 1.5), j + 1.5)
    return place, square


@njit(cache=True, nogil=True)
def _returns(points, limit, longest, stride, bad):  # type: ignore[no-untyped-def]
    n, total = points.shape
    squares = np.empty(longest + 1)
    places = np.empty(1024, np.int64)
    times, values = np.empty(1024), np.empty(1024)
    found = 0
    reach = np.sqrt(limit)
    for i in range(2, total - longest - 4, stride):
        _squared_distances(points, i, longest, squares)
        lag = 1
        while lag < longest and squares[lag] < 25.0 * limit:  # first leave the neighbourhood
            lag += 1
        while lag < longest:
            d = squares[lag]
            if d <= squares[lag - 1] and d < squares[lag + 1]:
                step = 0.0
                for c in range(n):
                    step += (points[c, i + lag + 1] - points[c, i + lag - 1]) ** 2
                if d <= (reach + 0.5 * np.sqrt(step)) ** 2 and bad[i + lag + 4] == bad[i - 2]:
                    place, square = foot(points, i, i + lag)
                    if square <= limit:
                        if found == len(places):
                            places = np.concatenate((places, np.empty(found, np.int64)))
                            times = np.concatenate((times, np.empty(found)))
                            values = np.concatenate((values, np.empty(found)))
                        places[found], times[found], values[found] = i, place - i, square
                        found += 1
            lag += 1
    return places[:found].copy(), times[:found].copy(), values[:found].copy()
