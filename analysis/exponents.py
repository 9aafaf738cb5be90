"""Largest Lyapunov exponent from data: divergence curves of Rosenstein and Kantz, Wolf's replacement method.

Exponents are in nats per unit of time; divide by ln 2 for bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from analysis.dimension import best_plateau
from analysis.errors import DataError
from analysis.neighbours import build_tree, nearest
from analysis.noise import noise_level
from analysis.timescale import mean_period, theiler_window

_SUB_RECORDS = 8
_REFERENCES = 30_000  # points whose neighbours are followed at most


@dataclass(frozen=True, eq=False)
class LargestExponent:
    """Exponent with its standard error from sub-records, and the curve that it is the slope of.

    ``curve`` is the mean logarithm of the distance after each of ``times``; for Wolf's method the running
    estimate.
    """

    value: float  # nats per unit of time
    stderr: float
    method: str
    times: NDArray[np.float64]
    curve: NDArray[np.float64]
    region: tuple[float, float]  # of time, over which the slope was taken
    theiler: int
    message: str = ""


def largest_exponent(
    points: NDArray[np.float64],
    dt: float,
    *,
    method: Literal["rosenstein", "kantz"] = "rosenstein",
    theiler: int | None = None,
    horizon: int | None = None,
    neighbours: int = 8,
    closest: float = 0.8,
    noise: float | None = None,
    region: tuple[float, float] | None = None,
) -> LargestExponent:
    """Slope of the mean logarithmic divergence of neighbouring trajectories.

    ``points`` [n, N] are delay coordinates, or states in comparable units. Rosenstein, Collins and De Luca
    (1993) follow the nearest neighbour of each point; Kantz (1994) averages the distances of several before
    taking the logarithm. Only the ``closest`` part of the pairs is followed, since those that start far apart
    saturate early and bend the curve. Neighbours closer in time than ``theiler`` samples are left out;
    ``horizon`` is how many samples they are followed. ``noise``, the standard deviation of a coordinate
    (default: measured), is taken out of the mean distance. The slope is taken where it is steady, before the
    distance saturates, unless ``region`` (times) is given. Kantz's curve weights fast-growing pairs and is
    the steeper one where growth is uneven.
    """
    points = np.atleast_2d(np.ascontiguousarray(points, dtype=np.float64))
    period = mean_period(points[0])
    theiler = theiler_window(points[0]) if theiler is None else theiler
    horizon = horizon or int(min(12 * period, points.shape[1] // 5))
    usable = points.shape[1] - horizon
    if usable < 4 * theiler + 100:
        raise DataError(
            "The record is too short for a divergence curve: record longer, or shorten the horizon."
        )
    count = 1 if method == "rosenstein" else neighbours
    places, distances = nearest(build_tree(points[:, :usable]), count, theiler)
    if closest < 1:
        places[distances[:, -1] > np.quantile(distances[:, -1], closest)] = -1
    places[np.arange(usable) % max(usable // _REFERENCES, 1) != 0] = -1
    noise = noise_level(points[0]).value if noise is None else noise
    curves = _without_noise(_divergence(points, places, horizon, _SUB_RECORDS), 2 * len(points) * noise**2)
    curve = np.mean(curves, axis=0)
    times = np.arange(horizon, dtype=np.float64) * dt
    message = ""
    if region is None:
        region, message = _linear_region(curve, dt, period, _saturation(points))
    value = _slope(times, curve, region)
    slopes = [_slope(times, c, region) for c in curves]
    stderr = float(np.nanstd(slopes, ddof=1) / np.sqrt(len(slopes)))
    if not message and not value > 2 * stderr:
        message = "The neighbours do not diverge significantly: the motion may not be chaotic."
    return LargestExponent(value, stderr, method, times, curve, region, theiler, message)


def wolf_exponent(
    points: NDArray[np.float64],
    dt: float,
    *,
    theiler: int | None = None,
    evolve: int | None = None,
    closest: float | None = None,
    farthest: float | None = None,
    angle: float = 0.6,
) -> LargestExponent:
    """Wolf's method (Wolf et al. 1985): follow one neighbour, replace it when it has gone too far.

    ``evolve`` is the number of samples between replacements; ``closest`` (above the noise) and ``farthest``
    bound the distance of a replacement, in the unit of ``points``; ``angle`` (rad) bounds the change of
    direction, widened when nobody qualifies. Known to overestimate: 0.23 to 0.28 for the Duffing system's
    0.21 bits.
    """
    points = np.atleast_2d(np.ascontiguousarray(points, dtype=np.float64))
    theiler = theiler_window(points[0]) if theiler is None else theiler
    size = float(np.sqrt(np.sum(np.var(points, axis=1))))
    evolve = evolve or max(int(mean_period(points[0]) / 4), 1)
    closest = 1e-3 * size if closest is None else closest
    farthest = 0.1 * size if farthest is None else farthest
    gains, widened = _wolf(points, theiler, evolve, closest, farthest, np.cos(angle))
    if len(gains) < 2 * _SUB_RECORDS:
        raise DataError("The record is too short for Wolf's method.")
    times = np.arange(1, len(gains) + 1, dtype=np.float64) * evolve * dt
    running = np.cumsum(gains) / times
    parts = [np.mean(part) / (evolve * dt) for part in np.array_split(gains, _SUB_RECORDS)]
    stderr = float(np.std(parts, ddof=1) / np.sqrt(_SUB_RECORDS))
    message = ""
    if widened > len(gains) / 4:
        message = (
            f"In {100 * widened / len(gains):.0f} % of the replacements no neighbour lay in the direction "
            "wanted: the record is too short for Wolf's method, which then overestimates."
        )
    region = (float(times[0]), float(times[-1]))
    return LargestExponent(float(running[-1]), stderr, "wolf", times, running, region, theiler, message)


def _saturation(points: NDArray[np.float64]) -> float:
    """Mean logarithm of the distance between unrelated points."""
    total = points.shape[1]
    rng = np.random.default_rng(0)  # any fixed draw: it only tells how far points are from each other
    some = points[:, rng.integers(0, total, (2, 20_000))]
    distances = np.sqrt(np.sum((some[:, 0] - some[:, 1]) ** 2, axis=0))
    return float(np.mean(np.log(distances[distances > 0])))


def _without_noise(curves: NDArray[np.float64], square: float) -> NDArray[np.float64]:
    """Mean log distances with the share of noise, ``square`` in the squared distance, removed."""
    squares = np.exp(2 * curves)
    return np.asarray(0.5 * np.log(np.where(squares > 1.5 * square, squares - square, np.nan)))


def _linear_region(
    curve: NDArray[np.float64], dt: float, period: float, saturation: float
) -> tuple[tuple[float, float], str]:
    """Times between which the slope, taken over one mean period, is steady and saturation far."""
    width = int(np.clip(round(period), 2, max(len(curve) // 4, 2)))
    rise = curve[width:] - curve[:-width]
    usable = (curve[width:] < saturation - 1.0) & np.isfinite(rise)
    step = max(len(rise) // 150, 1)
    first, last = best_plateau(rise[::step], usable[::step], 0.08, steep=1.0)
    start, stop = first * step, min(last * step + width, len(curve) - 1)
    message = ""
    if not usable[::step][: last + 1].any() or stop - start < 1.2 * width:
        message = "The divergence has no straight part: the data do not support an exponent by this method."
    return (start * dt, stop * dt), message


def _slope(times: NDArray[np.float64], curve: NDArray[np.float64], region: tuple[float, float]) -> float:
    inside = (times >= region[0] - 1e-12) & (times <= region[1] + 1e-12) & np.isfinite(curve)
    if np.sum(inside) < 2:
        return float("nan")
    return float(np.polyfit(times[inside], curve[inside], 1)[0])


@njit(cache=True, nogil=True)
def _divergence(points, places, horizon, blocks):  # type: ignore[no-untyped-def]
    """Mean log distance [blocks, horizon] after k samples; distances averaged over a point's neighbours."""
    n = points.shape[0]
    rows = np.ascontiguousarray(points.T)
    usable, count = places.shape
    sums, numbers = np.zeros((blocks, horizon)), np.zeros((blocks, horizon))
    for i in range(usable):
        block = i * blocks // usable
        for k in range(horizon):
            mean, used = 0.0, 0
            for m in range(count):
                j = places[i, m]
                if j < 0:
                    break
                square = 0.0
                for c in range(n):
                    square += (rows[i + k, c] - rows[j + k, c]) ** 2
                mean += np.sqrt(square)
                used += 1
            if mean > 0.0:
                sums[block, k] += np.log(mean / used)
                numbers[block, k] += 1.0
    return sums / np.maximum(numbers, 1.0)


@njit(cache=True, nogil=True)
def _wolf(points, theiler, evolve, closest, farthest, cosine):  # type: ignore[no-untyped-def]
    """Logarithmic growth over each interval, and how often the direction had to be given up."""
    n, total = points.shape
    usable = total - evolve
    intervals = (usable - 1) // evolve
    gains = np.empty(intervals)
    widened = 0
    direction = np.zeros(n)
    follower, have = -1, False
    for step in range(intervals):
        i = step * evolve
        if follower < 0 or follower >= usable:
            follower = -1
            best, limit = np.inf, cosine
            for attempt in range(3):
                reach = farthest * (1.0 + attempt)
                for j in range(usable):
                    if abs(j - i) <= theiler:
                        continue
                    square, along = 0.0, 0.0
                    for c in range(n):
                        difference = points[c, j] - points[c, i]
                        square += difference * difference
                        along += difference * direction[c]
                        if square > reach * reach:
                            break
                    if square < closest * closest or square > reach * reach or square >= best:
                        continue
                    if have and along < limit * np.sqrt(square):
                        continue
                    best, follower = square, j
                if follower >= 0:
                    break
                limit = -1.0
                if attempt == 0:
                    widened += 1
            if follower < 0:
                gains[step] = 0.0
                continue
        before, after = 0.0, 0.0
        for c in range(n):
            before += (points[c, follower] - points[c, i]) ** 2
            direction[c] = points[c, follower + evolve] - points[c, i + evolve]
            after += direction[c] ** 2
        after = max(after, 1e-300)
        for c in range(n):
            direction[c] /= np.sqrt(after)
        have = True
        gains[step] = 0.5 * np.log(after / before)
        follower = follower + evolve
        if after > farthest * farthest or after < closest * closest:
            follower = -1
    return gains, widened
