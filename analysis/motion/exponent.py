"""The largest exponent with an error that counts what nobody knows: method, delay, dimension, neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.motion.determinism import Space, with_phase
from analysis.motion.sampling import coarse
from analysis.motion.spread import LONGEST, Spread, embeddings
from analysis.orbits.spectrum import largest_by_maps
from analysis.reconstruct.embedding import delay_coordinates
from analysis.reconstruct.exponents import largest_exponent, wolf_exponent
from analysis.signal.wiener import without_white_noise

Array = NDArray[np.float64]

_NEGLIGIBLE = 1e-4  # noise over standard deviation below which it is left in
# Off by, over the exponent, when the estimates of one way agree (38 records of 19 flows):
_BIAS = 0.25  # neighbours, who meet folds before they have grown far (-0.33 to 0.17)
_BIAS_MAPS = 0.05  # local maps ...
_DOUBT = 0.4  # ... and by this times what they leave unexplained
_WEAKENED = 0.2  # by which times the same they come out low in the middle
_BEST = 0.02  # left unexplained, from which on less is no better
_CLEARLY = 3.0  # standard errors
_HIDES = 0.5  # left unexplained, above which local maps that see no growth say nothing


@dataclass(frozen=True, eq=False)
class Exponent(Spread):
    """Largest exponent in nats per unit of time; the error holds chance and the spread over the choices."""

    chance: float  # standard error from sub-records, the median of all estimates
    spread: float  # standard deviation over methods, delays, dimensions and neighbours
    estimates: dict[str, tuple[float, ...]]  # by method, one for each embedding

    @property
    def growing(self) -> bool:
        """Whether every estimate is positive beyond twice the scatter of sub-records."""
        return self.range[0] > 2 * self.chance

    @property
    def settled(self) -> bool:
        """Whether the mean of the estimates is clearly positive in spite of their spread: else no number can
        be told. Noise that changes slowly has several, each positive, far apart.
        """
        return self.growing and self.value > _CLEARLY * self.stderr

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest estimate."""
        every = [v for values in self.estimates.values() for v in values]
        return min(every), max(every)


def largest_of_all(
    samples: Array, dt: float, space: Space, stride: int, noise: float, period: float | None
) -> Exponent | None:
    """Rosenstein, Kantz, Wolf and the local maps over several delays and dimensions; None if all fail.

    The value is the weighted mean of the divergence of neighbours (Kantz) and the local maps, which err in
    different directions; maps of embeddings that foretell the motion better weigh more. Rosenstein, low in
    noise, and Wolf count in the spread, and in the mean where noise hides the growth from local maps.
    ``space`` is that of the record thinned by ``stride``; ``noise`` the standard deviation of the white noise
    on a sample, zero if it is not known to be that.
    """
    x = np.asarray(samples, dtype=np.float64)[: LONGEST * stride]
    raw, left = x[::stride], noise
    if noise > _NEGLIGIBLE * float(np.std(x)):
        x, left = without_white_noise(x, noise)
    x = x[::stride]
    step = dt * stride
    drive = None if period is None else period / stride
    theiler, delay, own = space.theiler, space.delay, space.dimension + (0 if period is None else 1)
    # Local maps go from section to section of a flow, and Wolf's pairs turn into the direction of growth over
    # several samples, which a coarse record does not show.
    few = coarse(raw)
    everywhere = ("kantz",) if few else ("kantz", "maps")
    once = ("rosenstein",) if few else ("rosenstein", "wolf")
    estimates: dict[str, list[float]] = {"kantz": [], "maps": [], "rosenstein": [], "wolf": []}
    errors, rests = [], []
    for number, (lag, dimension) in enumerate(embeddings(delay, own)):
        points = delay_coordinates(x, dimension, lag)
        for name in (*everywhere, *(once if number == 0 else ())):
            # Wolf's method chooses its distances by the noise that it sees, which must be white.
            seen = delay_coordinates(raw, dimension, lag) if name == "wolf" else points
            try:
                value, error, rest = _estimate(name, seen, step, theiler, left, drive)
            except DataError:
                continue
            if np.isfinite(value):
                estimates[name].append(value)
                errors.append(error)
                rests += [rest] if name == "maps" else []
    if not (estimates["kantz"] or estimates["maps"]):
        return None
    return _combined(estimates, np.array(rests), float(np.nanmedian(errors)))


def _combined(estimates: dict[str, list[float]], rests: Array, chance: float) -> Exponent:
    """Mean of the ways, each weighted by what it is usually off by and by the spread of its own answers."""
    # The divergence of neighbours alone has no counterpart that errs the other way: all ways count then.
    ways = ("kantz",) if estimates["maps"] else ("kantz", "rosenstein", "wolf")
    groups = [np.array(estimates[name]) for name in ways if estimates[name]]
    middles = [float(np.median(g)) for g in groups]
    spreads = [_BIAS * abs(m) + float(np.std(g)) for m, g in zip(middles, groups, strict=True)]
    if estimates["maps"]:
        maps, weights = np.array(estimates["maps"]), (rests + _BEST) ** -2.0
        weights /= weights.sum()
        rest = float(np.sqrt(weights @ rests**2))
        # What maps leave unexplained weakens them: the truth lies above more often than below.
        middle = float(weights @ maps) * (1 + _WEAKENED * rest)
        own = float(np.sqrt(weights @ (maps - weights @ maps) ** 2))
        middles.append(middle)
        spreads.append((_BIAS_MAPS + _DOUBT * rest) * abs(middle) + own)
    precisions = np.maximum(np.array(spreads), 1e-300) ** -2.0
    parts = precisions / precisions.sum()
    value = float(parts @ np.array(middles))
    between = float(parts @ (np.array(middles) - value) ** 2 + 1.0 / precisions.sum())
    every = np.array([v for values in estimates.values() for v in values])
    spread = float(max(np.sqrt(between), 0.5 * _middle(every)))
    kept = {name: tuple(values) for name, values in estimates.items() if values}
    return Exponent(value, float(np.hypot(chance, spread)), chance, spread, kept)


def _estimate(
    name: str, points: Array, dt: float, theiler: int, noise: float, drive: float | None
) -> tuple[float, float, float]:
    """Value, standard error and, of local maps, what they leave unexplained, by one method; not-a-number
    where noise hides the growth from local maps."""
    if name == "wolf":
        wolf = wolf_exponent(points, dt, theiler=theiler)
        return wolf.value, wolf.stderr, np.nan
    if name != "maps":
        method: Literal["kantz", "rosenstein"] = "kantz" if name == "kantz" else "rosenstein"
        sought = None if drive is None else with_phase(points, drive)
        found = largest_exponent(points, dt, method=method, theiler=theiler, noise=noise, sought_in=sought)
        return found.value, found.stderr, np.nan
    scale = float(points.max() - points.min())
    levels = np.full(len(points), noise)
    maps = largest_by_maps(points, dt, period=drive, scale=np.full(len(points), scale), noise=levels)
    if not maps.value > 0 and maps.rest > _HIDES:
        return np.nan, np.nan, np.nan
    return maps.value, maps.stderr, maps.rest


def _middle(values: Array) -> float:
    """Standard deviation of what lies in the middle: half the distance of the quartiles, over 0.674."""
    low, high = np.quantile(values, [0.25, 0.75])
    return float((high - low) / 2 / 0.6745)
