"""Mean and spread between specimens, apart from the error of each estimate: random effects by REML.

An estimate j of specimen i is y = mu + b_i + w_ij + e_ij: b spreads between specimens (tau), w between
recordings of one specimen beyond their errors (omega), e is the error of the identification, whose standard
deviation s_ij is known. Restricted likelihood after Patterson & Thompson 1971 and Harville 1977.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import chi2, t

from analysis.base.errors import DataError
from analysis.base.identification import Z95, Estimate

Array = NDArray[np.float64]

CHI2_95 = float(chi2.ppf(0.95, 1))
LARGEST = 30.0  # spreads are looked for up to so many standard deviations of the data, or largest errors


@dataclass(frozen=True)
class RandomEffects:
    """What the estimates say together. Standard deviations are in the unit of the values."""

    mean: Estimate
    between: Estimate  # spread between specimens; its interval from the profile of the likelihood
    within: Estimate | None  # spread between recordings of one specimen beyond their errors; None: no repeats
    error: float  # typical error of one estimate (root of the harmonic mean of the variances)
    specimens: int
    count: int  # estimates
    p_same: float  # probability of such differences if all specimens were the same (Cochran's Q)


def random_effects(
    values: Sequence[float] | Array, errors: Sequence[float] | Array, groups: Sequence[str] | None = None
) -> RandomEffects:
    """Mean, spread between specimens and spread within, from estimates with standard errors.

    ``groups`` names the specimen of each estimate; without it every estimate is of another one.
    """
    y, s = np.asarray(values, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    names = [str(i) for i in range(len(y))] if groups is None else list(groups)
    if not len(y) == len(s) == len(names):
        raise DataError("Values, errors and specimens differ in number.")
    if not (np.all(np.isfinite(y)) and np.all(np.isfinite(s)) and np.all(s > 0)):
        raise DataError("Every estimate needs a finite value and a positive standard error.")
    if len(set(names)) < 3:
        raise DataError("A spread between specimens needs three of them at least.")
    unit = float(np.std(y)) or float(np.max(s))
    sums = _Sums((y - y.mean()) / unit, s / unit, names)
    repeated = len(y) > sums.count
    largest = LARGEST * max(1.0, float(np.max(s)) / unit)  # errors may be far larger than what is to be seen

    def best_within(tau: float) -> tuple[float, float]:
        """-2 ln L at its best over omega, and that omega."""
        if not repeated:
            return sums.deviance(tau, 0.0), 0.0
        return _lowest(lambda omega: sums.deviance(tau, omega), largest)

    lowest, tau = _lowest(lambda tau: best_within(tau)[0], largest)
    omega = best_within(tau)[1]
    low, high = _interval(lambda v: best_within(v)[0] - lowest - CHI2_95, tau, largest)
    within = None
    if repeated:

        def best_between(omega: float) -> float:
            return _lowest(lambda tau: sums.deviance(tau, omega), largest)[0]

        reached = _interval(lambda v: best_between(v) - lowest - CHI2_95, omega, largest)
        within = _spread(omega, *reached, unit)
    mu, weights, means = sums.mean(tau, omega)
    excess = float(np.sum(weights * (means - mu) ** 2) / (sums.count - 1))  # Hartung & Knapp 2001
    error = math.sqrt(max(excess, 1.0) / float(np.sum(weights)))
    reach = float(t.ppf(0.975, sums.count - 1)) * error
    centre = y.mean() + unit * mu
    typical = 1.0 / math.sqrt(float(np.mean(1.0 / s**2)))
    return RandomEffects(
        Estimate(centre, unit * error, centre - unit * reach, centre + unit * reach),
        _spread(tau, low, high, unit),
        within,
        typical,
        sums.count,
        len(y),
        sums.p_same(),
    )


class _Sums:
    """The data by specimen, and the restricted likelihood of two spreads."""

    def __init__(self, y: Array, s: Array, names: Sequence[str]) -> None:
        order = {name: i for i, name in enumerate(dict.fromkeys(names))}
        self.y, self.variance = y, s**2
        self.group = np.array([order[name] for name in names])
        self.count = len(order)

    def _by_group(self, values: Array) -> Array:
        return np.bincount(self.group, values, self.count).astype(np.float64)

    def mean(self, tau: float, omega: float) -> tuple[float, Array, Array]:
        """Weighted mean, the specimens' weights and their means."""
        a = 1.0 / (self.variance + omega**2)
        total = self._by_group(a)
        means = self._by_group(a * self.y) / total
        weights = total / (1.0 + tau**2 * total)
        return float(np.sum(weights * means) / np.sum(weights)), weights, means

    def deviance(self, tau: float, omega: float) -> float:
        """-2 ln of the restricted likelihood; each specimen's covariance inverted in closed form."""
        a = 1.0 / (self.variance + omega**2)
        total = self._by_group(a)
        mu, weights, means = self.mean(tau, omega)
        logs = -np.sum(np.log(a)) + np.sum(np.log1p(tau**2 * total)) + math.log(np.sum(weights))
        squares = np.sum(a * (self.y - means[self.group]) ** 2) + np.sum(weights * (means - mu) ** 2)
        return float(logs + squares)

    def p_same(self) -> float:
        mu, weights, means = self.mean(0.0, 0.0)
        return float(chi2.sf(np.sum(weights * (means - mu) ** 2), self.count - 1))


def _lowest(deviance: object, largest: float) -> tuple[float, float]:
    """Lowest value over spreads from 0 to the largest, and where; searched in their logarithm and at 0."""
    assert callable(deviance)
    found = minimize_scalar(
        lambda u: deviance(math.exp(u)),
        bounds=(math.log(1e-6), math.log(largest)),
        method="bounded",
        options={"xatol": 1e-9},
    )
    at_zero = deviance(0.0)
    if at_zero <= found.fun:
        return float(at_zero), 0.0
    return float(found.fun), math.exp(float(found.x))


def _interval(above: object, best: float, largest: float) -> tuple[float, float]:
    """Where a profile passes the 95 % mark on both sides of its lowest point; 0 where it does not below."""
    assert callable(above)
    low = 0.0 if best == 0.0 or above(0.0) <= 0.0 else float(brentq(above, 0.0, best, xtol=1e-9))
    if above(largest) <= 0.0:
        return low, math.inf
    return low, float(brentq(above, best, largest, xtol=1e-9))


def _spread(value: float, low: float, high: float, unit: float) -> Estimate:
    """A standard deviation with its interval; the error stated is the width of the interval over 2 Z95."""
    return Estimate(unit * value, unit * (high - low) / (2 * Z95), unit * low, unit * high)
