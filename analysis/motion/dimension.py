"""The correlation dimension with an error that counts the choice of delay, dimension and range of radii."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.motion.determinism import with_phase_at
from analysis.reconstruct.dimension import CorrelationDimension, correlation_dimension
from analysis.reconstruct.embedding import delay_coordinates
from analysis.signal.interpolation import MARGIN, sample_at

Array = NDArray[np.float64]

_LONGEST = 60_000  # samples that are used
_WIDE = 1.96


@dataclass(frozen=True, eq=False)
class Dimension:
    """Correlation dimension; the error holds chance, the spread over embeddings and the bend of the slope."""

    value: float
    stderr: float
    estimates: tuple[float, ...]  # one for each embedding
    curve: CorrelationDimension  # of the embedding chosen

    @property
    def lower(self) -> float:
        return self.value - _WIDE * self.stderr

    @property
    def upper(self) -> float:
        return self.value + _WIDE * self.stderr


def dimension_of_all(
    samples: Array,
    delay: int,
    dimension: int,
    theiler: int,
    noise: float,
    period: float | None,
    rng: np.random.Generator,
) -> Dimension:
    """Correlation dimension over several delays and dimensions.

    With a drive of ``period`` samples its phase is a coordinate, so that the answer is that of the motion in
    the extended phase space; the points are then taken between samples at random, since a drive sampled at a
    few fixed phases would show the dimension of a section.
    """
    x = np.asarray(samples, dtype=np.float64)
    thin = max(len(x) // _LONGEST, 1) if period is None else 1
    x = x[: _LONGEST * thin]
    found = []
    shorter = max(round(0.6 * delay), 1)
    for lag, size in ((delay, dimension), (delay, dimension + 1), (shorter, dimension + 1)):
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
    values = np.array([f.value for f in found])
    value = float(np.nanmedian(values)) if np.isfinite(values).any() else float("nan")
    curve = found[0]
    # The slope differs over the range of radii, and nobody knows which part is the right one.
    slopes = curve.slopes
    middle = np.sqrt(curve.radii[1:] * curve.radii[:-1])
    inside = (middle >= curve.region[0]) & (middle <= curve.region[1]) & np.isfinite(slopes)
    bend = float(np.std(slopes[inside])) if np.sum(inside) > 2 else abs(value)
    spread = float(np.nanstd(values, ddof=1)) if np.sum(np.isfinite(values)) > 1 else abs(value)
    errors = [f.stderr for f in found if np.isfinite(f.stderr)]
    chance = float(np.median(errors)) if errors else abs(value)
    return Dimension(value, float(np.sqrt(chance**2 + spread**2 + bend**2)), tuple(values.tolist()), curve)
