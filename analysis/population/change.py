"""Steps in a series of estimates: where, how large, how sure, with a rate of false alarms that is kept.

The series is y_i = level + step(i > k) + noise, the noise of known relative size (errors of the estimates and
a common scatter) and unknown scale. Under no change the direction of the residuals is uniform on a sphere, so
that the largest studentised step over all k has a tail that Worsley's bound (Biometrika 69, 1982, 297) gives
without simulation: sum of P(A_k) less sum of P(A_k and A_k+1). It never states too small a probability.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betainc
from scipy.stats import chi2, t

from analysis.base.errors import DataError
from analysis.base.identification import Estimate
from analysis.population.rivals import rival

Array = NDArray[np.float64]

LEAST = 3  # values on each side of a step: fewer are outliers
SCATTER = 1e-3  # chance that the scatter of the values is larger than it is taken for
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)


@dataclass(frozen=True)
class ChangePoint:
    """A step after the first ``after`` values of the series."""

    after: int
    first: int  # the 95 % set of ``after``: from
    last: int  # to
    change: Estimate  # level behind less level before
    before: float  # level before
    p_value: float  # probability of such a step in a series that has none
    rival: str = ""  # what describes the series better than its steps: see :mod:`analysis.population.rivals`

    @property
    def percent(self) -> Estimate:
        """The change in per cent of the level before."""
        scale = 100.0 / abs(self.before) if self.before else math.nan
        c = self.change
        return Estimate(c.value * scale, c.stderr * scale, c.lower * scale, c.upper * scale, "%")


def change_points(
    values: Sequence[float] | Array,
    errors: Sequence[float] | Array,
    level: float = 0.01,
    least: int = LEAST,
    others: Mapping[str, Array] | None = None,
) -> list[ChangePoint]:
    """The steps of a series in its order, found one after the other; with probability ``level`` at most one
    is reported in a series of independent values that has none.

    A series that is not so is full of steps, too: where a drift, a wandering level or one of the quantities
    ``others`` (by name, [n]) describes it better, every step says so.
    """
    y, s = np.asarray(values, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    if len(y) != len(s):
        raise DataError("Values and errors differ in number.")
    if not (np.all(np.isfinite(y)) and np.all(np.isfinite(s)) and np.all(s >= 0)):
        raise DataError("Every value of a series needs a finite value and a standard error.")
    if not 0 < level < 1:
        raise DataError(f"The rate of false alarms is between 0 and 1, not {level}.")
    found: list[ChangePoint] = []
    waiting = [(0, len(y), level)]
    while waiting:
        start, stop, level = waiting.pop()
        step = _step(y[start:stop], s[start:stop], max(least, 2))
        if step is None or step.p_value > level:
            continue
        middle = start + step.after
        found.append(_moved(step, start))
        waiting += [(start, middle, level / 2), (middle, stop, level / 2)]
    found.sort(key=lambda step: step.after)
    if not found:
        return []
    better = rival(y, _weights(y, s), [step.after for step in found], others or {})
    return [replace(step, rival=better) for step in found]


def _step(y: Array, s: Array, least: int) -> ChangePoint | None:
    """The most likely step of a series, whatever its significance; None where the series is too short.

    It must also be seen with equal weights: a common scatter cannot be judged where values of small error are
    few, and a chance difference between two of them would pass for a step. For the same reason its place and
    size are told by the weights that leave more doubt about the size.
    """
    if len(y) < max(2 * least, 5):
        return None
    found, plain = (_weighted_step(y, w, least) for w in (_weights(y, s), np.ones(len(y))))
    if found is None or plain is None:
        return None
    doubtful = max(found, plain, key=lambda step: step.change.stderr)
    return replace(doubtful, p_value=max(found.p_value, plain.p_value))


def _weighted_step(y: Array, w: Array, least: int) -> ChangePoint | None:
    """The most likely step of a series with weights; None where all values are the same."""
    n = len(y)
    total = w.sum()
    z = y - np.sum(w * y) / total
    spread = float(np.sum(w * z**2))
    if not spread > 0:
        return None
    places = np.arange(least, n - least + 1)
    left = np.cumsum(w)[places - 1]  # weight of the values before the step
    sums = np.cumsum(w * z)[places - 1]
    step = -sums * total / (left * (total - left))  # level behind less level before
    explained = sums**2 * total / (left * (total - left)) / spread  # share of the squares
    best = int(np.argmax(explained))
    dof = n - 2
    rest = np.maximum(1.0 - explained, 1e-300) * spread
    log_post = -0.5 * dof * np.log(rest) - 0.5 * np.log(left * (total - left))
    posterior = np.exp(log_post - log_post.max())
    posterior /= posterior.sum()
    variance = rest / dof * total / (left * (total - left))
    change = float(np.sum(posterior * step))
    error = math.sqrt(float(np.sum(posterior * (variance + (step - change) ** 2))))
    reach = float(t.ppf(0.975, dof)) * error
    inside = _smallest_set(posterior)
    k = int(places[best])
    return ChangePoint(
        k,
        int(places[inside].min()),
        int(places[inside].max()),
        Estimate(change, error, change - reach, change + reach),
        float(np.sum(w[:k] * y[:k]) / np.sum(w[:k])),
        _tail(math.sqrt(float(explained[best])), left / total, n - 1),
    )


def _weights(y: Array, s: Array) -> Array:
    """Inverse variances of the errors and a common scatter.

    The scatter is judged from neighbours, which a step hardly touches, each pair by its own errors (Paule &
    Mandel 1982), and taken at the upper end of what they allow: too small a scatter would let a few values of
    small error speak for all, and a chance difference between them would pass for a step. Too large a one
    only makes the weights more alike.
    """
    pairs, squares = s[1:] ** 2 + s[:-1] ** 2, np.diff(y) ** 2
    freedom = 2 * len(squares) / 3  # neighbouring differences share a value
    wanted = float(chi2.ppf(SCATTER, freedom)) * len(squares) / freedom

    def excess(scatter: float) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.nansum(squares / (pairs + 2 * scatter)) - wanted)

    most = float(np.sum(squares)) / wanted
    extra = float(brentq(excess, 0.0, most)) if most > 0 and excess(0.0) > 0 > excess(most) else 0.0
    variance = s**2 + extra
    if not np.all(variance > 0):
        variance = np.ones_like(y)
    return np.asarray(1.0 / variance)


def _tail(r: float, share: Array, d: int) -> float:
    """P(max |R_k| > r) at most; ``share`` [K] of the weight before each step, ``d`` dimensions."""
    single = float(betainc((d - 1) / 2, 0.5, max(1.0 - r * r, 0.0)))  # R² ~ Beta(1/2, (d-1)/2)
    cosine = np.sqrt(share[:-1] * (1 - share[1:]) / (share[1:] * (1 - share[:-1])))
    half = np.arccos(np.clip(cosine, 0.0, 1.0)) / 2
    width = np.maximum(math.acos(min(r, 1.0)) - half, 0.0)[:, None]
    angle = half[:, None] + 0.5 * width * (_NODES + 1)
    inside = np.maximum(1.0 - (r / np.cos(angle)) ** 2, 0.0) ** ((d - 2) / 2)
    joint = (2 / math.pi) * np.sum(0.5 * width * _WEIGHTS * inside, axis=1)
    return float(min(max(len(share) * single - np.sum(joint), single), 1.0))


def _smallest_set(posterior: Array) -> NDArray[np.intp]:
    """Places that together hold 95 % of the probability, the likeliest first."""
    order = np.argsort(posterior)[::-1]
    enough = int(np.searchsorted(np.cumsum(posterior[order]), 0.95)) + 1
    return order[:enough]


def _moved(step: ChangePoint, by: int) -> ChangePoint:
    return replace(step, after=step.after + by, first=step.first + by, last=step.last + by)
