"""Embedding dimension and correlation dimension of a signal, each with the curve behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.base.errors import DataError
from analysis.reconstruct.embedding import delay_coordinates, window_spectrum
from analysis.reconstruct.neighbours import build_tree, nearest_of, pair_counts
from analysis.signal.noise import noise_level
from analysis.signal.timescale import theiler_window

_REFERENCES = 3000  # points whose neighbours are tested: the fraction is then known to half a per cent
_SUB_RECORDS = 4
_NOISE_PASSES = 3  # in which the noise taken out of the radii and the dimension settle
_PAIRS = 4e6  # close pairs that are counted, about; of longer records fewer points are references


@dataclass(frozen=True, eq=False)
class FalseNeighbours:
    """Smallest dimension in which (almost) no neighbours are false; ``fractions`` by dimension."""

    dimension: int
    dimensions: NDArray[np.int64]
    fractions: NDArray[np.float64]
    theiler: int
    noise: float
    references: int  # points tested
    message: str = ""

    @property
    def stderrs(self) -> NDArray[np.float64]:
        """Standard error of each fraction, since only some points are tested."""
        return np.asarray(np.sqrt(self.fractions * (1 - self.fractions) / max(self.references, 1)))


def false_neighbours(
    samples: NDArray[np.float64],
    delay: int,
    *,
    largest: int = 8,
    theiler: int | None = None,
    noise: float | None = None,
    ratio: float = 10.0,
    size: float = 2.0,
    tolerance: float = 0.01,
) -> FalseNeighbours:
    """False nearest neighbours (Kennel, Brown and Abarbanel 1992) for dimensions 1 to ``largest``.

    A neighbour is false if the next coordinate drives the pair apart by more than ``ratio`` times its
    distance, or to more than ``size`` standard deviations of the signal. Differences that noise alone
    explains do not count, and pairs within the Theiler window are not neighbours. Tested up to the first
    dimension whose fraction is below ``tolerance``, on 3000 points evenly over the attractor if there are
    more, whose neighbours are looked for among all.
    """
    x = np.asarray(samples, dtype=np.float64)
    theiler = theiler_window(x) if theiler is None else theiler
    noise = noise_level(x).value if noise is None else noise
    spread = float(np.std(x))
    fractions: list[float] = []
    for dimension in range(1, largest + 1):
        usable = len(x) - dimension * delay
        if usable < 10 * (theiler + 10):
            break
        points = delay_coordinates(x[: usable + (dimension - 1) * delay], dimension, delay)
        every = max(usable // _REFERENCES, 1)
        rows, near, distance = nearest_of(build_tree(points), theiler, every)
        ahead = np.abs(x[rows + dimension * delay] - x[near + dimension * delay])
        torn = ahead - 4 * np.sqrt(2) * noise > ratio * distance
        far = np.sqrt(distance**2 + ahead**2) > size * spread
        fractions.append(float(np.mean(torn | far)))
        if fractions[-1] < tolerance:
            break
    if not fractions:
        raise DataError("The record is too short for false neighbours with this delay and Theiler window.")
    dimensions = np.arange(1, len(fractions) + 1)
    good = [int(d) for d, f in zip(dimensions, fractions, strict=True) if f < tolerance]
    chosen = good[0] if good else int(dimensions[np.argmin(fractions)])
    message = ""
    if not good:
        message = (
            f"In every dimension up to {dimensions[-1]} at least {100 * min(fractions):.1f} % of the "
            "neighbours are false: the data are too noisy or too few for a choice; the dimension with the "
            "fewest was taken."
        )
    return FalseNeighbours(chosen, dimensions, np.array(fractions), theiler, noise, len(rows), message)


@dataclass(frozen=True, eq=False)
class CorrelationDimension:
    """Slope of the correlation sum in its scaling region. ``stderr`` comes from sub-records."""

    value: float
    stderr: float
    radii: NDArray[np.float64]
    sums: NDArray[np.float64]  # fraction of pairs closer than each radius
    region: tuple[float, float]  # radii between which the slope was taken
    theiler: int
    message: str = ""
    across: float = 0.0  # of the squared radii: noise that was taken out

    @property
    def slopes(self) -> NDArray[np.float64]:
        """Local slope d log C / d log r between consecutive radii, noise taken out, nan where there are no
        pairs."""
        return local_slopes(_noise_free(self.radii, self.across), self.sums)


def correlation_sum(
    points: NDArray[np.float64], radii: NDArray[np.float64], theiler: int, every: int = 1
) -> NDArray[np.float64]:
    """Fraction of pairs of ``points`` [n, N] closer than each radius (Grassberger and Procaccia 1983).

    Pairs within ``theiler`` samples are left out; with ``every`` > 1 only every so many-th point is a
    reference.
    """
    counts, total = pair_counts(build_tree(points), radii, theiler, every)
    return counts / max(total, 1)


def correlation_dimension(
    points: NDArray[np.float64],
    *,
    theiler: int | None = None,
    noise: float = 0.0,
    region: tuple[float, float] | None = None,
    count: int = 48,
) -> CorrelationDimension:
    """Correlation dimension of ``points`` [n, N], all coordinates in the same unit.

    The scaling region is the widest range of radii, above three times the noise and well below the size of
    the attractor, over which the local slope stays the same; give ``region`` to override it. ``noise``, the
    standard deviation of a point (root of the sum over its coordinates), is taken out of the radii.
    """
    points = np.atleast_2d(np.asarray(points, dtype=np.float64))
    theiler = theiler_window(points[0]) if theiler is None else theiler
    radii = _radii(points, count)
    sums = correlation_sum(points, radii, theiler, _thinning(points, radii))
    chosen, message, across = region or (0.0, 0.0), "", 0.0
    for _ in range(_NOISE_PASSES if noise > 0 else 1):
        if region is None:
            chosen, message = _scaling_region(radii, sums, noise, points.shape[1], across)
        value = _slope(radii, sums, chosen, across)
        across = _noise_across(value, noise, len(points))
    parts = np.array_split(np.arange(points.shape[1]), _SUB_RECORDS)
    slopes = []
    for part in parts:
        piece = np.ascontiguousarray(points[:, part])
        own = correlation_sum(piece, radii, theiler, _thinning(piece, radii))
        slopes.append(_slope(radii, own, chosen, across))
    stderr = float(np.nanstd(slopes, ddof=1) / np.sqrt(_SUB_RECORDS))
    if not np.isfinite(value):
        message = "Too few pairs are close: the data do not support a correlation dimension."
    elif value > 2 * np.log10(points.shape[1]):
        message += " The slope exceeds what this many points can resolve (2 log10 N)."
    return CorrelationDimension(value, stderr, radii, sums, chosen, theiler, message.strip(), across)


def _noise_across(dimension: float, noise: float, coordinates: int) -> float:
    """What noise adds to the squared distance of close points on a set of that dimension.

    Noise along the set moves as many points in as out; only what leads off it makes distances longer.
    """
    off = 1.0 - dimension / coordinates if np.isfinite(dimension) else 0.0
    return 2 * noise**2 * max(off, 0.0)


def _noise_free(radii: NDArray[np.float64], across: float) -> NDArray[np.float64]:
    """The radii before noise made the distances longer; nan below that."""
    return np.sqrt(np.where(radii**2 > 2 * across, radii**2 - across, np.nan))


def local_slopes(radii: NDArray[np.float64], sums: NDArray[np.float64]) -> NDArray[np.float64]:
    logs = np.log(np.where(sums > 0, sums, np.nan))
    return np.asarray(np.diff(logs) / np.diff(np.log(radii)))


@dataclass(frozen=True, eq=False)
class SingularSpectrum:
    """Singular values of the window against the measured noise floor; ``rank`` of them stand above it."""

    rank: int
    values: NDArray[np.float64]  # in the channel's unit
    floor: float
    window: int
    message: str = ""


def singular_spectrum(
    samples: NDArray[np.float64], window: int, noise: float | None = None
) -> SingularSpectrum:
    """Singular-system analysis (Broomhead and King 1986; Yuan 1995, section 4.3).

    White noise of deviation s lifts every singular value to at least s; those above by the scatter of a
    record of this length belong to the motion.
    """
    x = np.asarray(samples, dtype=np.float64)
    noise = noise_level(x).value if noise is None else noise
    values = window_spectrum(x, window)[1]
    # Largest singular value of pure noise over its deviation (Marchenko and Pastur), and a margin of 10 %.
    floor = 1.1 * noise * (1 + np.sqrt(window / len(x)))
    rank = int(np.sum(values > floor))
    message = ""
    if rank == window:
        message = (
            "All singular values stand above the noise floor: the window is shorter than the motion is rich, "
            "or the record has next to no noise; choose the dimension by false neighbours."
        )
    return SingularSpectrum(max(rank, 1), values, float(floor), window, message)


def _radii(points: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Radii from those of the closest pairs to half the spread of the attractor."""
    spread = float(
        np.sqrt(np.mean(np.var(points, axis=1)) * 2 * points.shape[0])
    )  # rms distance of two points
    rng = np.random.default_rng(0)  # any fixed draw will do: it only sets the range that is looked at
    some = points[:, rng.integers(0, points.shape[1], (2, 40_000))]
    distances = np.sqrt(np.sum((some[:, 0] - some[:, 1]) ** 2, axis=0))
    smallest = np.quantile(distances[distances > 0], 0.001) / 8
    return np.geomspace(max(smallest, 1e-6 * spread), 0.5 * spread, count)


def _thinning(points: NDArray[np.float64], radii: NDArray[np.float64]) -> int:
    """Take every so many-th reference point, so that about _PAIRS close pairs are counted."""
    total = points.shape[1]
    rng = np.random.default_rng(0)
    some = points[:, rng.integers(0, total, (2, 4000))]
    share = float(np.mean(np.sum((some[:, 0] - some[:, 1]) ** 2, axis=0) < radii[-1] ** 2))
    return max(int(0.5 * share * total**2 / _PAIRS), 1)


def _scaling_region(
    radii: NDArray[np.float64], sums: NDArray[np.float64], noise: float, total: int, across: float
) -> tuple[tuple[float, float], str]:
    slopes = local_slopes(_noise_free(radii, across), sums)
    pairs = sums[:-1] * total**2 / 2
    usable = np.isfinite(slopes) & (pairs > 200) & (radii[:-1] > 3 * noise) & (radii[1:] < 0.5 * radii[-1])
    first, last = best_plateau(slopes, usable, 0.06)
    region = (float(radii[first]), float(radii[last + 1]))
    message = ""
    if region[1] < 2 * region[0]:
        message = (
            "No range of radii of a factor of two has a steady slope: the data do not support a dimension."
        )
    return region, message


def best_plateau(
    values: NDArray[np.float64], usable: NDArray[np.bool_], tolerance: float, steep: float = 0.0
) -> tuple[int, int]:
    """First and last index of the longest run of usable values within a relative tolerance of their median.

    Of runs of about the same length the steadiest is taken; ``steep`` is the power of the values that also
    counts.
    """
    first, last = _best_plateau(np.asarray(values, dtype=np.float64), usable, tolerance, steep)
    return int(first), int(last)


@njit(cache=True, nogil=True)
def _best_plateau(values, usable, tolerance, steep):  # type: ignore[no-untyped-def]
    total = len(values)
    best_first, best_last, score = 0, min(3, total - 1), -np.inf
    for first in range(total):
        for last in range(first + 3, total):
            if not usable[last] or not usable[first]:
                break
            part = values[first : last + 1]
            middle = np.median(part)
            off = np.mean(np.abs(part - middle)) / max(abs(middle), 1e-12)
            if off > tolerance:
                continue
            merit = (last - first + 1) * (1 - 0.5 * off / tolerance) * max(middle, 0.0) ** steep
            if merit > score:
                best_first, best_last, score = first, last, merit
    return best_first, best_last


def _slope(
    radii: NDArray[np.float64], sums: NDArray[np.float64], region: tuple[float, float], across: float
) -> float:
    inside = (radii >= region[0] * (1 - 1e-9)) & (radii <= region[1] * (1 + 1e-9)) & (sums > 0)
    clean = _noise_free(radii, across)
    inside &= np.isfinite(clean)
    if np.sum(inside) < 2:
        return float("nan")
    return float(np.polyfit(np.log(clean[inside]), np.log(sums[inside]), 1)[0])
