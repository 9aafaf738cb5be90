"""The correlation dimension with an error that counts the choice of delay, dimension and range of radii."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.motion.determinism import with_phase_at
from analysis.motion.spread import LONGEST, Spread, embeddings
from analysis.reconstruct.dimension import CorrelationDimension, correlation_dimension
from analysis.reconstruct.embedding import delay_coordinates
from analysis.signal.interpolation import MARGIN, sample_at

Array = NDArray[np.float64]

_UNIFORM = 12.0**-0.5  # standard deviation of what lies anywhere in an interval, over its length


@dataclass(frozen=True, eq=False)
class Dimension(Spread):
    """Correlation dimension; the error holds chance, the spread over embeddings, the bend of the slope and
    what folds take from it at radii that are not small."""

    estimates: tuple[float, ...]  # slope in each embedding
    added: float  # to their median
    curve: CorrelationDimension  # of the embedding chosen


def dimension_of_all(
    samples: Array,
    delay: int,
    dimension: int,
    theiler: int,
    noise: float,
    period: float | None,
    rng: np.random.Generator,
    least: float = 0.0,
) -> Dimension:
    """Correlation dimension over several delays and dimensions.

    With a drive of ``period`` samples its phase is a coordinate, so that the answer is that of the motion in
    the extended phase space; the points are then taken between samples at random, since a drive sampled at a
    few fixed phases would show the dimension of a section.

    Where a chaotic flow folds, points crowd as one over the root of the distance from the fold, and the
    correlation sum goes as r^D ln(R/r), R being the size of the attractor (Grassberger and Procaccia 1983, on
    the logistic map): the slope lies below D by up to 1/ln(R/r), and nothing in a decade of radii tells by
    how much of it. The dimension lies anywhere between, but not below ``least``: that of a chaotic flow lies
    above 2, since it does not shrink along the flow nor along the direction of growth.
    """
    x = np.asarray(samples, dtype=np.float64)
    thin = max(len(x) // LONGEST, 1) if period is None else 1
    x = x[: LONGEST * thin]
    found = []
    for lag, size in embeddings(delay, dimension):
        points = delay_coordinates(x, size, lag)
        if period is not None:
            places = np.arange(2, points.shape[1] - MARGIN - 2) + rng.uniform(
                -0.5, 0.5, points.shape[1] - MARGIN - 4
            )
            between = np.asarray(sample_at(points, places, np.empty((size, len(places)))))
            points = with_phase_at(between, places, period)
        points = np.ascontiguousarray(points[:, ::thin])
        level = noise * np.sqrt(size)
        found.append(correlation_dimension(points, theiler=max(theiler // thin, 1), noise=level))
    slopes = np.array([f.value for f in found])
    slope = float(np.nanmedian(slopes)) if np.isfinite(slopes).any() else float("nan")
    low, high = max(slope, least), max(slope + _folds(found[0]), least)
    value = 0.5 * (low + high)
    spread = float(np.nanstd(slopes, ddof=1)) if np.sum(np.isfinite(slopes)) > 1 else abs(value)
    errors = [f.stderr for f in found if np.isfinite(f.stderr)]
    chance = float(np.median(errors)) if errors else abs(value)
    parts = (chance, spread, _bend(found[0]), (high - low) * _UNIFORM)
    return Dimension(value, float(np.linalg.norm(parts)), tuple(slopes.tolist()), value - slope, found[0])


def _bend(curve: CorrelationDimension) -> float:
    """Deviation of the slope over the range of radii: nobody knows which part is the right one."""
    slopes = curve.slopes
    middle = np.sqrt(curve.radii[1:] * curve.radii[:-1])
    inside = (middle >= curve.region[0]) & (middle <= curve.region[1]) & np.isfinite(slopes)
    return float(np.std(slopes[inside])) if np.sum(inside) > 2 else abs(curve.value)


def _folds(curve: CorrelationDimension) -> float:
    """What folds can take from the slope at the middle of the radii."""
    size = 2 * curve.radii[-1]  # rms distance of two points
    return float(1.0 / np.log(size / np.sqrt(curve.region[0] * curve.region[1])))
