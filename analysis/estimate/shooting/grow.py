"""`grow`: fit the first twentieth of every stretch, then more and more of it, each time from the last fit.

Over a short beginning a motion cannot get out of step with the record, so the cost has one valley; a fit of
the whole record from a guess 50 % off mostly ends in another.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from analysis.estimate.evaluation import Point
from analysis.estimate.shooting.descent import Descent, minimise
from analysis.estimate.shooting.problem import ROUGH, Problem

SHARES = (0.05, 0.15, 0.4, 1.0)  # of each stretch
LOOSE, TIGHT = 1e-3, 1e-6  # relative decrease still promised when a share, and the whole, counts as fitted
STEPS_A_SHARE, STEPS_AT_LAST = 30, 60
SAMPLES_AN_UNKNOWN = 4  # least samples to begin with


def grow(
    problem: Problem, start: Point, watch: Callable[[], None] | None = None, enough: float = -np.inf
) -> Descent:
    """From a guess to a fit of the whole; its cost is infinite if the motion is lost on the way.

    A cost of ``enough`` a sample ends each share: what has no noise can be fitted without end.
    """
    least = SAMPLES_AN_UNKNOWN * (len(problem.unknowns) + problem.states)
    point = start
    iterations, done = 0, 0
    found = Descent(problem.evaluate(start, derivatives=False), False, 0)
    for share in SHARES:
        lengths = [min(len(s), max(int(np.ceil(share * len(s))), least)) for s in problem.stretches]
        if sum(lengths) == done:
            continue
        done = sum(lengths)
        part = problem.on([s.cut(0, n) for s, n in zip(problem.stretches, lengths, strict=True)])
        whole = share == SHARES[-1]
        part.settle_substeps(point, ROUGH)
        found = minimise(
            part,
            part.evaluate(point),
            TIGHT if whole else LOOSE,
            STEPS_AT_LAST if whole else STEPS_A_SHARE,
            enough=enough * part.samples,
            watch=watch,
        )
        problem.follow(part)
        iterations += found.iterations
        if not np.isfinite(found.cost):
            break
        point = found.evaluation.point
    return Descent(found.evaluation, found.converged, iterations, found.history)
