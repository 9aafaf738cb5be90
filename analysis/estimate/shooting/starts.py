"""Other places to start from: scans of parameters without effect, and a Latin hypercube around the guess."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.evaluation import Point
from analysis.estimate.shooting.problem import Evaluation, Problem

Array = NDArray[np.float64]

SCAN_VALUES, SCAN_LOWEST, SCAN_HIGHEST = 60, 0.01, 10.0  # times the present value, on a logarithmic scale
SCAN_KEPT = 4
NO_EFFECT = (
    1.0  # outputs move by less than this, in noise and over all samples, when a parameter changes by e
)
SPREAD = 3.0  # factor up and down that the hypercube covers
_LOWER = 1e-6  # of the cost, by which a value must lower it to be worth a start


def without_effect(problem: Problem, here: Evaluation) -> list[int]:
    """Unknowns that change nothing the sensors could see, such as a clearance wider than the motion."""
    values = problem.unknowns.current(here.point.values)
    logs = problem.logarithmic[problem.index]
    size = np.where(logs, 1.0, np.maximum(np.abs(values), problem.scale[problem.index]))
    effect = np.sqrt(np.maximum(np.diag(here.hessian), 0.0)) * size
    return [int(i) for i in np.flatnonzero(effect < NO_EFFECT)]


def scan(problem: Problem, here: Evaluation, unknown: int) -> list[Point]:
    """Points with one unknown at the values that lower the cost most, all else as it is."""
    index, record = problem.unknowns.items[unknown]
    now = float(problem.unknowns.current(here.point.values)[unknown]) or float(problem.scale[index])
    rows = slice(None) if record < 0 else record
    tried: list[tuple[float, Point]] = []
    for factor in np.geomspace(SCAN_LOWEST, SCAN_HIGHEST, SCAN_VALUES):
        values = here.point.values.copy()
        values[rows, index] = np.clip(factor * now, problem.lower[index], problem.upper[index])
        point = Point(values, here.point.initials)
        tried.append((problem.evaluate(point, derivatives=False).cost, point))
    tried = [(cost, point) for cost, point in tried if cost < here.cost * (1 - _LOWER)]
    return [point for _, point in sorted(tried, key=lambda pair: pair[0])[:SCAN_KEPT]]


def hypercube(problem: Problem, guess: Point, count: int, rng: np.random.Generator) -> Iterator[Point]:
    """Latin-hypercube starts: positive unknowns from 1/3 to 3 times the guess, others by their size."""
    size = len(problem.unknowns)
    strata = np.stack([rng.permutation(count) for _ in range(size)]) if size else np.zeros((0, count))
    places = 2.0 * (strata + rng.random((size, count))) / count - 1.0  # -1 to 1
    logs = problem.logarithmic[problem.index]
    values = problem.unknowns.current(guess.values)
    reach = np.maximum(np.abs(values), problem.scale[problem.index])
    for column in places.T:
        step = np.where(logs, np.log(SPREAD) * column, reach * column)
        yield problem.moved(guess, step, [np.zeros_like(x) for x in guess.initials])
