"""Limits inside which estimates of like specimens lie, and those that do not: outliers by name.

One after the other the most distant estimate is compared with the mean and spread of all the rest (Rosner's
generalised extreme studentised deviate, Technometrics 25, 1983, 165, with random effects); the limits are of
what is left, so that an outlier does not widen them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from analysis.base.errors import DataError
from analysis.population.random_effects import RandomEffects, random_effects

Array = NDArray[np.float64]

MOST = 0.2  # share of the estimates that may be outliers


@dataclass(frozen=True, eq=False)
class Control:
    """The limits of each estimate and what lies outside of them."""

    effects: RandomEffects  # of the estimates that are no outliers
    lower: Array
    upper: Array
    outliers: tuple[int, ...]  # the most distant first
    deviations: Array  # from the mean, in standard deviations of what is expected


def control(values: Sequence[float] | Array, errors: Sequence[float] | Array, level: float = 0.01) -> Control:
    """Control limits that all of the estimates of like specimens respect with probability 1 - ``level``."""
    y, s = np.asarray(values, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    kept = np.ones(len(y), dtype=bool)
    outliers: list[int] = []
    suspects: list[int] = []
    effects = random_effects(y, s)
    for _ in range(int(MOST * len(y))):
        centre, scale = _middle(y[kept])
        far = np.where(kept, np.abs(y - centre) / np.sqrt(scale**2 + s**2), -1.0)
        worst = int(np.argmax(far))
        kept[worst] = False
        if kept.sum() < 4:
            break
        suspects.append(worst)
        rest = random_effects(y[kept], s[kept])
        z = abs(y[worst] - rest.mean.value) / math.sqrt(_expected(rest, s[worst]))
        if 2 * t.sf(z, kept.sum() - 1) * len(y) < level:
            outliers, effects = list(suspects), rest
        elif len(suspects) - len(outliers) > 3:
            break  # a few that hide each other are looked behind, no more
    if not math.isfinite(effects.mean.value):
        raise DataError("The estimates have no mean.")
    count = len(y) - len(outliers)
    reach = float(t.isf(level / (2 * len(y)), max(count - 1, 2)))
    expected = np.sqrt(_expected(effects, s))
    centre = effects.mean.value
    return Control(
        effects,
        centre - reach * expected,
        centre + reach * expected,
        tuple(outliers),
        (y - centre) / expected,
    )


def _expected(effects: RandomEffects, s: Array | float) -> Array:
    """Variance of a new estimate: spread between specimens, its own error, and that of the mean."""
    return np.asarray(effects.between.value**2 + np.square(s) + effects.mean.stderr**2)


def _middle(y: Array) -> tuple[float, float]:
    """Median, and the median distance from it as a standard deviation."""
    centre = float(np.median(y))
    return centre, 1.4826 * float(np.median(np.abs(y - centre)))
