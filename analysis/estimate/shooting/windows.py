"""`windows`: the whole record at once in short windows, each with its own initial state, then longer ones.

All of the data take part from the beginning (a motion that starts at rest says little in its first
twentieth), and errors cannot grow over more than a window. Initial states come first, the parameters held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.evaluation import Point
from analysis.estimate.shooting.descent import Descent, minimise
from analysis.estimate.shooting.grow import LOOSE, SAMPLES_AN_UNKNOWN, SHARES, STEPS_AT_LAST, TIGHT
from analysis.estimate.shooting.problem import ROUGH, Problem

Array = NDArray[np.float64]

_STATE_STEPS, _STEPS = 8, 30


@dataclass(frozen=True, eq=False)
class Level:
    """A fit in windows of one length: the problem, where it ended, and the joined motion of each stretch."""

    share: float
    problem: Problem
    descent: Descent
    states: list[Array]  # [n, N] per stretch


def windows(
    problem: Problem, start: Point, states: Sequence[Array], watch: Callable[[], None] | None = None
) -> list[Level]:
    """Fits in ever longer windows from ``states`` [n, N] of each stretch; the last is the whole record."""
    levels: list[Level] = []
    values, paths, lengths_before = start.values, list(states), None
    least = max(SAMPLES_AN_UNKNOWN * problem.states, 8)
    for share in SHARES:
        lengths = [min(len(s), max(int(np.ceil(share * len(s))), least)) for s in problem.stretches]
        if lengths == lengths_before:
            continue
        lengths_before = lengths
        level = _level(problem, values, paths, lengths, share, watch)
        if level is None:
            break
        levels.append(level)
        values, paths = level.descent.evaluation.point.values, level.states
    return levels


def _level(
    problem: Problem,
    values: Array,
    paths: Sequence[Array],
    lengths: Sequence[int],
    share: float,
    watch: Callable[[], None] | None,
) -> Level | None:
    """One length of window; None where no motion from there holds together."""
    pieces, initials, owner = [], [], []
    for i, (stretch, path, length) in enumerate(zip(problem.stretches, paths, lengths, strict=True)):
        for first, stop in _cuts(len(stretch), length):
            pieces.append(stretch.cut(first, stop))
            initials.append(np.ascontiguousarray(path[:, first]))
            owner.append((i, first, stop))
    part = problem.on(pieces)
    point = Point(values, tuple(initials))
    part.settle_substeps(point, ROUGH)
    last = share == SHARES[-1]
    here = part.evaluate(point)
    held = minimise(part, here, LOOSE, _STATE_STEPS, initial_only=True, watch=watch)
    found = minimise(
        part, held.evaluation, TIGHT if last else LOOSE, STEPS_AT_LAST if last else _STEPS, watch=watch
    )
    problem.follow(part)
    if not np.isfinite(found.cost):
        return None
    joined = [np.array(path) for path in paths]
    for (i, first, stop), motion in zip(owner, found.evaluation.motions, strict=True):
        joined[i][:, first:stop] = motion.states
    return Level(share, part, found, joined)


def _cuts(samples: int, length: int) -> list[tuple[int, int]]:
    """Even windows of about that length."""
    count = max(1, round(samples / length))
    edges = np.linspace(0, samples, count + 1).astype(int)
    return [(int(a), int(b)) for a, b in pairwise(edges)]
