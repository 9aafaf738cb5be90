"""Largest Lyapunov exponent from data: divergence curves of Rosenstein and Kantz, Wolf's replacement method.

Exponents are in nats per unit of time; divide by ln 2 for bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.base.errors import DataError
from analysis.reconstruct.dimension import best_plateau
from analysis.reconstruct.neighbours import build_tree, leaf_ranges, nearest_some, nearest_towards
from analysis.signal.noise import noise_level
from analysis.signal.timescale import mean_period, theiler_window

_SUB_RECORDS = 8
_SETTLE, _COUNT = 2, 4  # intervals of Wolf's method before the growth counts, and over which it does
_NOISY = 5.3  # noise counts as hiding the first growth when its log distance is this close to saturation
_PASSES = 40_000  # intervals of Wolf's method that begin a pass at most
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
    neighbours: int = 2,
    closest: float = 0.8,
    noise: float | None = None,
    region: tuple[float, float] | None = None,
    sought_in: NDArray[np.float64] | None = None,
) -> LargestExponent:
    """Slope of the mean logarithmic divergence of neighbouring trajectories.

    ``points`` [n, N] are delay coordinates, or states in comparable units. Rosenstein, Collins and De Luca
    (1993) follow the nearest neighbour of each point; Kantz (1994) averages the distances of several before
    taking the logarithm, which is steadier in noise (the single nearest is chosen by its noise) but leaves
    less room below saturation: few ``neighbours`` are best. Only the ``closest`` part of the pairs is
    followed, since those that start far apart saturate early and bend the curve. Neighbours closer in time
    than ``theiler`` samples are left out; ``horizon`` is how many samples they are followed. ``noise``, the
    standard deviation of a coordinate (default: measured, unless the distances refute it), is taken out of
    the mean distance. The slope is taken where it is steady, after the first half period in which pairs turn
    into the direction of growth and before the distance saturates, unless ``region`` (times) is given.
    ``sought_in`` [n', N] are points in which the neighbours are sought instead, such as those with the
    drive's phase.
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
    rows, places, distances = nearest_some(
        build_tree((points if sought_in is None else sought_in)[:, :usable]),
        count,
        theiler,
        max(usable // _REFERENCES, 1),
    )
    if closest < 1:
        near = distances[:, -1] <= np.quantile(distances[:, -1], closest)
        rows, places = rows[near], places[near]
    curves = _divergence(points, rows, places, horizon, _SUB_RECORDS)
    share = _noise_share(points, curves) if noise is None else 2 * len(points) * noise**2
    curves = _without_noise(curves, share)
    curve = np.mean(curves, axis=0)
    times = np.arange(horizon, dtype=np.float64) * dt
    message, saturation = "", _saturation(points)
    if region is None:
        noisy = 0.5 * np.log(max(share, 1e-300)) > saturation - _NOISY
        region, message = _linear_region(curve, dt, period, saturation, 0.0 if noisy else 0.5)
        if noisy and not message:
            message = _noise_words(share, saturation)
    value = _slope(times, curve, region)
    slopes = [_slope(times, c, region) for c in curves]
    finite = np.array([s for s in slopes if np.isfinite(s)])
    stderr = float(np.std(finite, ddof=1) / np.sqrt(len(finite))) if len(finite) > 1 else float("nan")
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
    """Wolf's method (Wolf et al. 1985): follow one neighbour for a fixed time, then replace it.

    ``evolve`` is the number of samples of an interval (default: a quarter of the mean period). A neighbour is
    followed over six; the first two, in which the pair turns into the direction of growth, do not count.
    Replacing it after a fixed time, not at a distance, matters: a pair given up at its largest distance does
    not show the contraction that follows, which overestimates (Lorenz: by 40 %). ``closest`` (above the
    noise; default three of its standard deviations) and ``farthest`` bound the distance of a replacement, in
    the unit of ``points``; ``angle`` (rad) bounds the change of direction, widened when nobody qualifies.
    """
    points = np.atleast_2d(np.ascontiguousarray(points, dtype=np.float64))
    theiler = theiler_window(points[0]) if theiler is None else theiler
    size = float(np.sqrt(np.sum(np.var(points, axis=1))))
    evolve = evolve or max(int(mean_period(points[0]) / 4), 1)
    if closest is None:
        closest = max(1e-3 * size, min(3 * np.sqrt(len(points)) * noise_level(points[0]).value, 0.05 * size))
    farthest = 0.1 * size if farthest is None else farthest
    tree = build_tree(points)
    counted, gained, widened, chosen = _wolf(
        points, tree.points, tree.order, tree.lower, tree.upper, tree.depth, theiler, evolve, closest,
        farthest, np.cos(angle),
    )  # fmt: skip
    if np.sum(counted) < 4 * _SUB_RECORDS:
        raise DataError("The record is too short for Wolf's method.")
    times = np.arange(1, len(counted) + 1, dtype=np.float64) * evolve * dt
    running = np.cumsum(gained) / np.maximum(np.cumsum(counted), 1) / (evolve * dt)
    parts = zip(np.array_split(gained, _SUB_RECORDS), np.array_split(counted, _SUB_RECORDS), strict=True)
    rates = [np.sum(g) / max(np.sum(n), 1) / (evolve * dt) for g, n in parts]
    stderr = float(np.std(rates, ddof=1) / np.sqrt(_SUB_RECORDS))
    message = ""
    if widened > chosen / 4:
        message = (
            f"In {100 * widened / chosen:.0f} % of the replacements no neighbour lay in the direction "
            "wanted: the record is short for Wolf's method, which then overestimates."
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


def _noise_share(points: NDArray[np.float64], curves: NDArray[np.float64]) -> float:
    """What noise adds to the mean squared distance, 2 n s^2; zero if the distances are too small for it.

    A coarsely sampled motion looks like noise to high differences. But noise is fresh at the next samples, so
    if it is real the pairs cannot be closer than it there.
    """
    share = 2 * len(points) * noise_level(points[0]).value ** 2
    seen = float(np.mean(np.exp(2 * np.mean(curves, axis=0)[1:6])))
    return share if seen > 0.5 * share else 0.0


def _noise_words(share: float, saturation: float) -> str:
    percent = 100 * np.sqrt(share) / np.exp(saturation)
    return (
        f"Noise makes up {percent:.1f} % of the distance between unrelated points, which leaves little room "
        "for growth: expect the exponent to come out up to 25 % low (compare Kantz, Wolf, and singular "
        "coordinates)."
    )


def _without_noise(curves: NDArray[np.float64], square: float) -> NDArray[np.float64]:
    """Mean log distances with the share of noise, ``square`` in the squared distance, removed."""
    squares = np.exp(2 * curves)
    return np.asarray(0.5 * np.log(np.where(squares > 1.5 * square, squares - square, np.nan)))


def _linear_region(
    curve: NDArray[np.float64], dt: float, period: float, saturation: float, skipped: float
) -> tuple[tuple[float, float], str]:
    """Times between which the slope, taken over one mean period, is steady and saturation far.

    The first ``skipped`` periods are left out.
    """
    width = int(np.clip(round(period), 2, max(len(curve) // 4, 2)))
    rise = curve[width:] - curve[:-width]
    usable = (curve[width:] < saturation - 1.0) & np.isfinite(rise)
    usable[: int(skipped * period)] = False
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
def _divergence(points, starts, places, horizon, blocks):  # type: ignore[no-untyped-def]
    """Mean log distance [blocks, horizon] after k samples; distances averaged over a point's neighbours."""
    n = points.shape[0]
    rows = np.ascontiguousarray(points.T)
    count = places.shape[1]
    usable = points.shape[1] - horizon
    sums, numbers = np.zeros((blocks, horizon)), np.zeros((blocks, horizon))
    for a in range(len(starts)):
        i = starts[a]
        block = i * blocks // usable
        for k in range(horizon):
            mean, used = 0.0, 0
            for m in range(count):
                j = places[a, m]
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
def _wolf(  # type: ignore[no-untyped-def]
    points, rows, order, lower, upper, depth, theiler, evolve, closest, farthest, cosine
):
    """Per interval of the record: how often it counted and the logarithmic growth, over passes that replace
    at different moments; how often the direction had to be given up, of how many replacements."""
    n, total = points.shape
    intervals = (total - evolve - 1) // evolve
    usable = total - (_SETTLE + _COUNT) * evolve
    counted, gained = np.zeros(intervals), np.zeros(intervals)
    widened, chosen = 0, 0
    direction, point = np.zeros(n), np.empty(n)
    starts, stops = leaf_ranges(total, depth)
    stack = np.empty(2 * depth + 4, np.int64)
    # Of a long record only some of the intervals begin a pass: enough for an error of a per cent or so.
    every = max(intervals // _PASSES, 1) * (_SETTLE + _COUNT)
    for shift in range(_SETTLE + _COUNT):
        have = False
        for start in range(shift, intervals - _SETTLE - _COUNT, every):
            i, follower, best, limit = start * evolve, -1, np.inf, cosine
            chosen += 1
            for c in range(n):
                point[c] = points[c, i]
            for attempt in range(3):
                reach = farthest * (1.0 + attempt)
                follower, best = nearest_towards(
                    rows, order, lower, upper, depth, starts, stops, point, i, theiler, usable, closest,
                    reach, direction, limit if have else -1.0, stack,
                )  # fmt: skip
                if follower >= 0:
                    break
                limit = -1.0
                if attempt == 0:
                    widened += 1
            if follower < 0:
                have = False
                continue
            before = best
            for age in range(_SETTLE + _COUNT):
                i, follower = i + evolve, follower + evolve
                after = 1e-300
                for c in range(n):
                    direction[c] = points[c, follower] - points[c, i]
                    after += direction[c] ** 2
                if age >= _SETTLE:
                    counted[start + age] += 1.0
                    gained[start + age] += 0.5 * np.log(after / before)
                before = after
            for c in range(n):
                direction[c] /= np.sqrt(before)
            # The direction holds for the moment at which the pair was left.
            have = every == _SETTLE + _COUNT
    return counted, gained, widened, chosen
