"""Which of many segments make up the best record: greedy choice, then exchange (Fedorov 1972).

A record is some number of segments; their information adds up, as each has an initial state of its own. The
criterion is a mean over draws of what the truth may be, so that a plan does not hang on the present values:

    D    mean of log det(M0 + sum M_s)                   volume of the uncertainty (Goodwin & Payne 1977)
    A    - log of the mean of [(M0 + sum M_s)^-1]_ii / V_ii     variance over that of the present fit

with M0 the information of the present fit. No exchange of one segment for another makes the result better.
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


def choose_segments(information: Array, prior: Array, slots: int, criterion: Criterion = "D") -> list[int]:
    """Candidates for each of the slots, in ascending order; information[C, D, U, U] by candidate and draw."""
    scaled, base, merit = _prepared(information, prior, criterion)
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
    scaled, base, merit = _prepared(information, prior, criterion)
    return [int(c) for c in np.argsort(-merit(base + slots * scaled))[:count]]


def _prepared(
    information: Array, prior: Array, criterion: Criterion
) -> tuple[Array, Array, Callable[[Array], Array]]:
    """Every unknown in its present standard error, which makes all well conditioned, and the criterion."""
    scale = 1.0 / np.sqrt(np.diag(prior))
    base = prior * np.outer(scale, scale)
    merit = _merit(criterion, np.diag(np.linalg.pinv(base, hermitian=True)))
    return information * np.outer(scale, scale), base, merit


def _merit(criterion: Criterion, present: Array) -> Callable[[Array], Array]:
    """What is to be made largest, of information [C, D, U, U]; ``present``: variances before."""
    if criterion == "D":
        return lambda total: np.asarray(np.linalg.slogdet(total)[1].mean(axis=1))

    def mean_variance(total: Array) -> Array:
        variances = np.einsum("cdii->cdi", np.linalg.pinv(total, hermitian=True))
        return np.asarray(-np.log((variances / present).mean(axis=(1, 2))))

    return mean_variance
