"""The largest exponent with an error that counts what nobody knows: method, delay, dimension, neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.motion.determinism import Space, with_phase
from analysis.orbits.spectrum import exponent_spectrum
from analysis.reconstruct.embedding import delay_coordinates
from analysis.reconstruct.exponents import largest_exponent, wolf_exponent

Array = NDArray[np.float64]

_LONGEST = 60_000  # samples that are used
_WIDE = 1.96
_BIAS = 0.07  # of the exponent: what a single way is off by when its estimates agree
_HIDES = 5e-4  # noise over the span above which local maps that see no growth say nothing


@dataclass(frozen=True)
class Exponent:
    """Largest exponent in nats per unit of time; the error holds chance and the spread over the choices."""

    value: float
    stderr: float
    chance: float  # standard error from sub-records, the median of all estimates
    spread: float  # standard deviation over methods, delays, dimensions and neighbours
    estimates: dict[str, tuple[float, ...]]  # by method, one for each embedding

    @property
    def positive(self) -> bool:
        """Whether every estimate is positive beyond twice the scatter of sub-records."""
        return min(v for values in self.estimates.values() for v in values) > 2 * self.chance

    @property
    def disagreement(self) -> float:
        """Largest over smallest estimate; infinite if they differ in sign."""
        every = [v for values in self.estimates.values() for v in values]
        return max(every) / min(every) if min(every) > 0 else float("inf")

    @property
    def lower(self) -> float:
        return self.value - _WIDE * self.stderr

    @property
    def upper(self) -> float:
        return self.value + _WIDE * self.stderr


def largest_of_all(
    samples: Array, dt: float, space: Space, stride: int, noise: float, period: float | None
) -> Exponent | None:
    """Rosenstein, Kantz, Wolf and the local maps over several delays and dimensions; None if all fail.

    The value is the weighted mean of the divergence of neighbours (Kantz) and the local maps, which err in
    different directions; Rosenstein, low in noise, and Wolf count in the spread, and in the mean where noise
    hides the growth from local maps. ``space`` is that of the record thinned by ``stride``; ``noise`` the
    standard deviation of a sample.
    """
    x = np.asarray(samples, dtype=np.float64)[: _LONGEST * stride : stride]
    step = dt * stride
    drive = None if period is None else period / stride
    theiler, delay, own = space.theiler, space.delay, space.dimension + (0 if period is None else 1)
    shorter = max(round(0.6 * delay), 1)
    estimates: dict[str, list[float]] = {"kantz": [], "maps": [], "rosenstein": [], "wolf": []}
    errors = []
    for number, (lag, dimension) in enumerate(((delay, own), (delay, own + 1), (shorter, own + 1))):
        points = delay_coordinates(x, dimension, lag)
        sought = None if drive is None else with_phase(points, drive)
        for name in ("kantz", "maps", "rosenstein", "wolf")[: 4 if number == 0 else 2]:
            try:
                value, error = _estimate(name, points, step, theiler, noise, sought, drive)
            except DataError:
                continue
            if np.isfinite(value):
                estimates[name].append(value)
                errors.append(error)
    if not (estimates["kantz"] or estimates["maps"]):
        return None
    # The divergence of neighbours alone has no counterpart that errs the other way: all ways count then.
    ways = ("kantz", "maps") if estimates["maps"] else ("kantz", "rosenstein", "wolf")
    groups = [np.array(estimates[name]) for name in ways if estimates[name]]
    middles = np.array([np.median(g) for g in groups])
    # Each way has a bias of its own, and one whose answer depends on the embedding counts less.
    own_spread = _BIAS * np.abs(middles).mean() + np.array([np.std(g) for g in groups])
    weights = own_spread**-2.0 / np.sum(own_spread**-2.0)
    value = float(weights @ middles)
    every = np.array([v for values in estimates.values() for v in values])
    between = float(weights @ ((middles - value) ** 2 + own_spread**2 / len(groups)))
    spread = float(max(np.sqrt(between), 0.5 * _middle(every)))
    chance = float(np.nanmedian(errors))
    kept = {name: tuple(values) for name, values in estimates.items() if values}
    return Exponent(value, float(np.hypot(chance, spread)), chance, spread, kept)


def _estimate(
    name: str,
    points: Array,
    dt: float,
    theiler: int,
    noise: float,
    sought: Array | None,
    drive: float | None,
) -> tuple[float, float]:
    """Value and standard error by one method; not-a-number where noise hides the growth from local maps."""
    if name == "wolf":
        wolf = wolf_exponent(points, dt, theiler=theiler)
        return wolf.value, wolf.stderr
    if name != "maps":
        method: Literal["kantz", "rosenstein"] = "kantz" if name == "kantz" else "rosenstein"
        found = largest_exponent(points, dt, method=method, theiler=theiler, noise=noise, sought_in=sought)
        return found.value, found.stderr
    scale = float(points.max() - points.min())
    levels = np.full(len(points), noise)
    maps = exponent_spectrum(points, dt, period=drive, scale=np.full(len(points), scale), noise=levels)
    if not maps.values[0] > 0 and noise > _HIDES * scale:
        return float("nan"), float("nan")
    return float(maps.values[0]), float(maps.stderrs[0])


def _middle(values: Array) -> float:
    """Standard deviation of what lies in the middle: half the distance of the quartiles, over 0.674."""
    low, high = np.quantile(values, [0.25, 0.75])
    return float((high - low) / 2 / 0.6745)
