"""Which of many segments make up the best record: greedy choice, then exchange (Fedorov 1972).

A record is some number of segments; their information adds up, as each has an initial state of its own. The
criterion is a mean over draws of what the truth may be, so that a plan does not hang on the present values:

    D    mean of log det(M0 + sum M_s)                   volume of the uncertainty (Goodwin & Payne 1977)
    A    - log of the mean of [(M0 + sum M_s)^-1]_ii / V_ii     variance over that of the present fit

with M0 the information of the present fit. No exchange of one segment for another makes the result better.
Both weigh all unknowns together, and would pay for one with another: where a usual drive is given, what would
leave any unknown less known than that drive does comes after all that would not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Criterion = Literal["D", "A"]
_MOST_PASSES = 20
_GAIN = 1e-9  # of the criterion, below which an exchange is rounding
_MARGIN = 0.05  # by which every error bar is to be smaller than the usual drive's: predictions are no better
_SURE = 0.9  # share of the draws in which it is
_DEAR = 1e3  # criterion that a factor e in an error bar costs beyond that
_SLIGHT = 1e-9  # of the present information: what a drive by itself does not tell stays finite
_UNKNOWN = 1e12  # variance over the present one where rounding leaves none


def choose_segments(
    information: Array, prior: Array, slots: int, criterion: Criterion = "D", usual: Array | None = None
) -> list[int]:
    """Candidates for each of the slots, in ascending order; information[C, D, U, U] by candidate and draw.

    ``usual`` [D, U, U] is that of a drive by which no unknown is to be known better than by the choice.
    """
    scaled, base, merit = _prepared(information, prior, criterion, usual)
    chosen: list[int] = []
    total = np.broadcast_to(base, scaled.shape[1:]).copy()
    for _ in range(slots):
        best = int(np.argmax(merit(total[None] + scaled)))
        chosen.append(best)
        total += scaled[best]
    for _ in range(_MOST_PASSES):
        improved = False
        for place in range(slots):
            rest = total - scaled[chosen[place]]
            merits = merit(rest[None] + scaled)
            best = int(np.argmax(merits))
            if merits[best] > merits[chosen[place]] + _GAIN:
                total, chosen[place], improved = rest + scaled[best], best, True
        if not improved:
            break
    return sorted(chosen)


def best_alone(
    information: Array, prior: Array, slots: int, criterion: Criterion = "D", count: int = 1
) -> list[int]:
    """The candidates that would be best if every slot held the same one, best first."""
    scaled, base, merit = _prepared(information, prior, criterion, None)
    return [int(c) for c in np.argsort(-merit(base + slots * scaled))[:count]]


def larger_bars(told: Array, usual: Array, prior: Array) -> Array:
    """By how much [U] each error bar of a drive by itself is larger than the usual drive's, as a logarithm,
    in nearly all draws [D, U, U]; ``prior`` is what is known before, of which next to nothing is counted."""
    scale = 1.0 / np.sqrt(np.diag(prior))
    units = np.outer(scale, scale)
    return np.asarray(_larger((told * units)[None], usual * units, prior * units)[0])


def _larger(told: Array, usual: Array, base: Array) -> Array:
    """The same for candidates told[C, D, U, U], by candidate and unknown."""

    def logarithms(one: Array) -> Array:
        found = np.einsum("...ii->...i", np.linalg.inv(one + _SLIGHT * base))
        return np.asarray(0.5 * np.log(np.where(found > 0, found, _UNKNOWN)))

    return np.asarray(np.quantile(logarithms(told) - logarithms(usual), _SURE, axis=1))


def _prepared(
    information: Array, prior: Array, criterion: Criterion, usual: Array | None
) -> tuple[Array, Array, Callable[[Array], Array]]:
    """Every unknown in its present standard error, which makes all well conditioned, and the criterion."""
    scale = 1.0 / np.sqrt(np.diag(prior))
    units = np.outer(scale, scale)
    base = prior * units
    merit = _merit(criterion, np.diag(np.linalg.pinv(base, hermitian=True)))
    if usual is None:
        return information * units, base, merit
    least = usual * units

    def without_loss(total: Array) -> Array:
        loss = np.maximum(_larger(total - base, least, base) + _MARGIN, 0.0).sum(axis=1)
        return np.asarray(merit(total) - _DEAR * loss)

    return information * units, base, without_loss


def _merit(criterion: Criterion, present: Array) -> Callable[[Array], Array]:
    """What is to be made largest, of information [C, D, U, U]; ``present``: variances before."""
    if criterion == "D":
        return lambda total: np.asarray(np.linalg.slogdet(total)[1].mean(axis=1))

    def mean_variance(total: Array) -> Array:
        variances = np.einsum("cdii->cdi", np.linalg.pinv(total, hermitian=True))
        return np.asarray(-np.log((variances / present).mean(axis=(1, 2))))

    return mean_variance
