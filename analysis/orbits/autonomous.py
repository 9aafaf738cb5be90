"""Periodic orbits of an autonomous system, whose periods are not known beforehand (Yuan 1995, sect. 2.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.base.progress import SILENT, Progress
from analysis.orbits.closure import (
    ENOUGH,
    EPSILON,
    MERGE,
    comes_home,
    measured,
    parted,
    relaxed_words,
    thresholds,
)
from analysis.orbits.confirmation import View, confirmed_autonomous
from analysis.orbits.orbit import Orbits, PeriodicOrbit
from analysis.orbits.recurrence import SLACK, Recurrence, foot, recurrence
from analysis.signal.interpolation import sample_at
from analysis.signal.noise import noise_levels

TURNS = 12  # longest period sought, in turns of the motion
_EFFORT = 2e9  # pairs of points compared before every second, third, ... point is left out
_SMALL = 0.1  # rms radius, fraction of the span, below which an orbit may be a spiral about a fixed point
_CLEAR = 0.03  # of the span: what a maximum rises above the dips beside it
_OUTLINE = 24  # points per turn by which orbits are compared


def autonomous_orbits(
    points: NDArray[np.float64],
    *,
    longest: int | None = None,
    epsilon: float | None = None,
    scale: NDArray[np.float64] | None = None,
    noise: NDArray[np.float64] | None = None,
    window: float = 0.25,
    velocity: NDArray[np.float64] | None = None,
    valid: NDArray[np.bool_] | None = None,
    maps: bool = True,
    views: Sequence[View] = (),
    progress: Progress = SILENT,
) -> Orbits:
    """Periodic orbits of an unforced system from ``points`` [n, N] in state, delay or singular space.

    Every point is compared with the later curve up to ``longest`` samples on (default: twelve turns). Periods
    come out between samples, since a return is the foot of the perpendicular on the curve. The other
    arguments are those of :func:`analysis.orbits.forced.forced_orbits`; ``window`` is a part of the mean
    turn.
    """
    points, bad, scale, noise = measured(points, valid, scale, noise)
    turn = mean_turn(points, noise)
    longest = int(min(longest or TURNS * turn, points.shape[1] // 2))
    half = max(int(window * turn / 2), 0)
    scaled = points / (scale * np.sqrt(len(scale)))[:, None]
    noise_square = float(np.mean((noise / scale) ** 2))
    stride = max(int(points.shape[1] * longest / _EFFORT), 1)
    messages: list[str] = []
    for step in thresholds(epsilon):
        progress.report(0.05, "recurrences")
        # A point-to-curve distance leaves out the noise along the curve; the threshold is a little generous.
        found = recurrence(scaled, np.sqrt(step**2 + 2 * noise_square), longest, bad, stride)
        progress.report(0.5, "orbits")
        orbits, drifting = _distinct(scaled, found, step, noise_square, half, turn, velocity)
        if len(orbits) >= ENOUGH:
            break
    if epsilon is None and step > EPSILON:
        messages.append(relaxed_words("orbits"))
    if drifting:
        messages.append(f"{drifting} segments close in the measured coordinates but end displaced: rejected.")
    if not orbits:
        messages.append("No segment of the record closes: the data do not support any periodic orbit.")

    def judge(some: Sequence[PeriodicOrbit], seen: Sequence[View]) -> list[PeriodicOrbit]:
        return confirmed_autonomous(some, seen, turn, progress.part(0.6, 1.0))

    kept, refused, words = parted(orbits, judge if maps else None, views, View(points, scale, noise))
    progress.report(1.0, "orbits")
    lowest = np.full(longest + 1, np.inf)
    # The foot of the last lag may lie a sample or two beyond it.
    lags = np.minimum(np.rint(found.times).astype(np.int64), longest)
    np.minimum.at(lowest, lags, np.sqrt(found.squares))
    return Orbits(
        kept,
        step,
        scale,
        noise,
        found.lags.astype(np.float64),
        found.counts,
        lowest,
        (*messages, *words),
        found.peaks,
        refused,
    )


def mean_turn(points: NDArray[np.float64], noise: NDArray[np.float64] | None = None) -> float:
    """Mean time of one turn, in samples: the shortest over the coordinates of the mean interval between
    upward crossings of the mean, or between clear maxima (a motion may turn about a point beside its mean).
    """
    from scipy.signal import find_peaks

    noise = noise_levels(points) if noise is None else noise
    intervals = []
    for row, level in zip(points, noise, strict=True):
        above = row > row.mean()
        crossings = int(np.sum(~above[:-1] & above[1:]))
        clear = max(_CLEAR * np.ptp(row), 5 * level)
        maxima = len(find_peaks(row, prominence=clear)[0])
        intervals.append(len(row) / max(crossings, maxima, 1))
    return float(min(intervals))


def _distinct(
    points: NDArray[np.float64],
    found: Recurrence,
    epsilon: float,
    noise_square: float,
    half: int,
    turn: float,
    velocity: NDArray[np.float64] | None,
) -> tuple[list[PeriodicOrbit], int]:
    """The closest return of every run, judged over the window, and grouped into orbits."""
    best = _runs(found.places, found.times, found.squares)
    starts, lags = found.places[best], found.times[best]
    squares = _windowed(points, starts, lags, half)
    # Of the noise in a difference the part along the curve does not count.
    share = 2.0 * noise_square * (1 - 1 / points.shape[0])
    spread = share * np.sqrt(2.0 / (2 * half + 1))
    closed = squares <= epsilon**2 + share
    home = comes_home(velocity, starts, lags)
    drifting = int(np.sum(closed & ~home))
    order = np.flatnonzero(closed & home)
    order = order[np.argsort(squares[order], kind="stable")]
    starts, lags, squares = starts[order], lags[order], squares[order]
    tolerance = max(MERGE, 3 * epsilon) ** 2 + 2 * noise_square
    group = _group(points, starts, lags, squares, turn, tolerance)
    orbits = []
    for g in range(max(group, default=-1) + 1):
        members = np.flatnonzero(group == g)
        first = members[0]
        own = max(squares[first] - share, 0.0)
        orbits.append(
            PeriodicOrbit(
                int(starts[first]),
                float(lags[first]),
                None,
                float(np.sqrt(own)),
                float(np.sqrt(own + 2 * spread)),
                starts[members],
            )
        )
    return orbits, drifting


def _group(
    points: NDArray[np.float64],
    starts: NDArray[np.int64],
    lags: NDArray[np.float64],
    squares: NDArray[np.float64],
    turn: float,
    tolerance: float,
) -> NDArray[np.int64]:
    """Group of each return, -1 for what is not an orbit of its own; returns come closest first."""
    group = np.full(len(starts), -1, dtype=np.int64)
    outlines: list[NDArray[np.float64]] = []
    periods: list[float] = []
    for a, (start, lag) in enumerate(zip(starts, lags, strict=True)):
        outline = _outline(points, start, lag, turn)
        if _circles_a_point(outline, squares[a]) or _repeats(outline, round(lag / turn), tolerance):
            continue
        for g, (other, period) in enumerate(zip(outlines, periods, strict=True)):
            if abs(period - lag) <= SLACK + 0.02 * lag and _curves_apart(outline, other) <= tolerance:
                group[a] = g
                break
        else:
            group[a] = len(outlines)
            outlines.append(outline)
            periods.append(lag)
    return group


def _outline(points: NDArray[np.float64], start: int, lag: float, turn: float) -> NDArray[np.float64]:
    """The orbit at equal intervals, [n, m], without its end point."""
    count = max(int(_OUTLINE * lag / turn), _OUTLINE)
    places = start + np.arange(count, dtype=np.float64) * lag / count
    return np.asarray(sample_at(points, places, np.empty((points.shape[0], count))))


def _circles_a_point(outline: NDArray[np.float64], square: float) -> bool:
    """Whether this is a turn of a slow spiral about a fixed point: small, not closed beside its size."""
    size = float(np.mean(np.sum((outline - outline.mean(axis=1, keepdims=True)) ** 2, axis=0)))
    return size < _SMALL**2 and square > (0.03**2) * size


def _repeats(outline: NDArray[np.float64], turns: int, tolerance: float) -> bool:
    """Whether the orbit is a shorter one run through several times."""
    count = outline.shape[1]
    for parts in range(2, max(turns, 1) + 2):
        length = count // parts
        if length < 4:
            break
        if _curves_apart(outline[:, :length], outline[:, length : 2 * length]) <= tolerance and (
            _curves_apart(outline, outline[:, :length]) <= tolerance
        ):
            return True
    return False


@njit(cache=True, nogil=True)
def _curves_apart(one, other):  # type: ignore[no-untyped-def]
    """Mean squared distance of two closed curves, each point to the nearest place of the other polygon."""
    return max(_mean_to_polygon(one, other), _mean_to_polygon(other, one))


@njit(cache=True, nogil=True)
def _mean_to_polygon(one, other):  # type: ignore[no-untyped-def]
    n, count = one.shape
    corners = other.shape[1]
    total = 0.0
    for i in range(count):
        nearest = np.inf
        for j in range(corners):
            k = (j + 1) % corners
            along, length, square = 0.0, 0.0, 0.0
            for c in range(n):
                side = other[c, k] - other[c, j]
                reach = one[c, i] - other[c, j]
                along += side * reach
                length += side * side
                square += reach * reach
            if length > 0.0:
                part = min(max(along / length, 0.0), 1.0)
                square += part * (part * length - 2.0 * along)
            nearest = min(nearest, square)
        total += nearest
    return total / count


@njit(cache=True, nogil=True)
def _runs(places, times, squares):  # type: ignore[no-untyped-def]
    """Index of the closest return of each run of neighbouring points with nearly the same lag."""
    count = len(places)
    if count == 0:
        return np.empty(0, np.int64)
    longest = int(times.max()) + 4
    last = np.full(longest, -1, np.int64)  # by lag: the latest return there
    run = np.empty(count, np.int64)
    best = np.empty(count, np.int64)
    runs = 0
    step = 1
    for k in range(1, count):
        if places[k] > places[k - 1]:
            step = places[k] - places[k - 1] if step == 1 else min(step, places[k] - places[k - 1])
    for k in range(count):
        lag = int(np.rint(times[k]))
        joined = -1
        for near in range(max(lag - 2, 0), lag + 3):
            other = last[near]
            if other >= 0 and 0 < places[k] - places[other] <= 2 * step:
                joined = run[other]
                break
        if joined < 0:
            joined = runs
            best[runs] = k
            runs += 1
        elif squares[k] < squares[best[joined]]:
            best[joined] = k
        run[k] = joined
        last[lag] = k
    return best[:runs].copy()


@njit(cache=True, nogil=True)
def _windowed(points, starts, lags, half):  # type: ignore[no-untyped-def]
    """Mean squared point-to-curve distance over the window around each start."""
    total = points.shape[1]
    means = np.empty(len(starts))
    for a in range(len(starts)):
        mean, used = 0.0, 0
        for way in (1, -1):  # outwards, the lag followed along the curve
            lag = lags[a]
            for shift in range(0 if way > 0 else 1, half + 1):
                i = starts[a] + way * shift
                j = int(np.rint(i + lag))
                if i < 2 or j > total - 4:
                    continue
                place, square = foot(points, i, j)
                lag = place - i
                mean += square
                used += 1
        means[a] = mean / max(used, 1)
    return means
