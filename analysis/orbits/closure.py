"""When a segment of a record counts as closed, and what both searches for such segments do alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.orbits.confirmation import View, left_out
from analysis.orbits.orbit import PeriodicOrbit
from analysis.signal.noise import noise_levels

EPSILON = 0.005  # closure asked for, fraction of the span (thesis: 0.5 %)
RELAXED = 0.02  # when fewer than ENOUGH close within EPSILON
ENOUGH = 4
MERGE = 0.02  # two recurrences this close everywhere (rms, fraction of the span) follow the same orbit

Judge = Callable[[Sequence[PeriodicOrbit], Sequence[View]], list[PeriodicOrbit]]


def thresholds(epsilon: float | None) -> list[float]:
    """The closures that are tried in turn, until enough segments close."""
    return [EPSILON, RELAXED] if epsilon is None else [epsilon]


def relaxed_words(what: str) -> str:
    """Why the closure was relaxed; ``what`` there are too few of."""
    return (
        f"Fewer than {ENOUGH} {what} close within {100 * EPSILON:g} % of the span; the closure was relaxed "
        f"to {100 * RELAXED:g} %. A longer record would give closer orbits."
    )


def parted(
    orbits: list[PeriodicOrbit], judge: Judge | None, views: Sequence[View], own: View
) -> tuple[tuple[PeriodicOrbit, ...], tuple[PeriodicOrbit, ...], list[str]]:
    """Orbits to be offered, by period and closure, those left out, and remarks about both.

    ``views`` are other reconstructions of the motion, ``own`` that of the search; without ``judge`` all stay.
    """
    refused: list[PeriodicOrbit] = []
    words: list[str] = []
    if judge is not None and orbits:
        orbits, refused, words = left_out(judge(orbits, views or (own,)))
    return tuple(sorted(orbits, key=lambda o: (o.period, o.closure))), tuple(refused), words


def span(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Largest minus smallest value of each coordinate; one for a constant."""
    extent = np.ptp(points, axis=1)
    return np.where(extent > 0, extent, 1.0)


def measured(
    points: NDArray[np.float64],
    valid: NDArray[np.bool_] | None,
    scale: NDArray[np.float64] | None,
    noise: NDArray[np.float64] | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """The points with lost ones filled, the number of lost ones before each index [N + 1], scale and noise.

    Span and noise are those of the samples that are there: a lost one tells nothing of either.
    """
    points = np.ascontiguousarray(np.atleast_2d(points), dtype=np.float64)
    good = np.isfinite(points).all(axis=0)
    if valid is not None:
        good &= valid[: points.shape[1]]
    if points.ndim != 2 or good.sum() < 100:
        raise DataError(f"Close returns need at least 100 points; there are {good.sum()}.")
    there = points if good.all() else points[:, good]
    scale = span(there) if scale is None else np.broadcast_to(scale, points.shape[:1]).astype(float)
    noise = noise_levels(there) if noise is None else np.broadcast_to(noise, points.shape[:1]).astype(float)
    points = np.where(good, points, there.mean(axis=1, keepdims=True))
    return points, np.concatenate(([0], np.cumsum(~good))), scale, noise


def comes_home(
    velocity: NDArray[np.float64] | None, starts: NDArray[np.int64], lengths: float | NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether the integral of the velocity over each segment is small beside its extent in it."""
    if velocity is None:
        return np.ones(len(starts), dtype=bool)
    way = np.concatenate(([0.0], np.cumsum(velocity - np.nanmean(velocity))))
    ends = np.minimum(starts + np.rint(lengths).astype(np.int64), len(way) - 1)
    net = np.abs(way[ends] - way[starts])
    extent = np.array([np.ptp(way[a : b + 1]) for a, b in zip(starts, ends, strict=True)])
    return net <= 0.1 * extent
