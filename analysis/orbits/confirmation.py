"""Which close returns are periodic orbits, and how sure their multipliers are.

A segment that nearly closes proves little: noise and tori have such segments too. Here every candidate is
refined by Newton's method on a local model of the flow, the motion of its neighbours, in several
reconstructions of the same motion and with several numbers of neighbours. An orbit is there in all of them,
and what they disagree by is the error that the choice of a reconstruction makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.progress import Progress
from analysis.orbits.multipliers import Stability, autonomous_stabilities, forced_stabilities
from analysis.orbits.orbit import PeriodicOrbit
from analysis.signal.interpolation import MARGIN, sample_at
from analysis.signal.phase_grid import phase_grid

Array = NDArray[np.float64]

NEIGHBOURS = (24, 40)  # of a local map, in turn over the views: the choice counts in the error, too
_FEW_VIEWS = 4  # below which every view is looked at with several numbers of neighbours
_SEVERAL = (20, 28, 40)
_FAR = 0.05  # of the span: an orbit further than this (rms) from the segment is another one
_STILL = 5e-4  # of the span: rms of a last step of Newton's method that has arrived
_MAJORITY = 0.5  # of the local models that must have the orbit
_NEUTRAL = 3.0  # standard errors from one below which nothing tells an orbit from a torus
_FLOOR = 0.02  # of a multiplier: what local maps are off by even where all agree ...
_BEND = 0.01  # ... more by this in every turn, for the bending that quadratic terms leave over ...
_BLUR = 40.0  # ... and by so many noises (of the span): averaging over more neighbours blurs the growth
_LATE = 0.03  # of the period, that the motion of neighbours may differ by
_VAGUE = 0.3  # standard error over multiplier above which it is not told
TOO_SHORT = "the record is too short for a local model of the flow"
_STEADY = 0.01  # of the span, by which a steady motion may have moved on after half the record
_PLACES = 400  # at which a steady motion is looked at


@dataclass(frozen=True, eq=False)
class View:
    """The motion in one set of coordinates: ``points`` [n, N], column j at sample j of the record."""

    points: Array
    scale: Array  # of each coordinate, in its unit
    noise: Array  # standard deviation of each coordinate, in its unit


Follow = Callable[[View, int, Progress], "list[Stability | None]"]


def confirmed_forced(
    orbits: Sequence[PeriodicOrbit], views: Sequence[View], period: float, progress: Progress
) -> list[PeriodicOrbit]:
    """The orbits of a system driven with ``period`` samples, judged in all ``views``."""

    def follow(view: View, neighbours: int, part: Progress) -> list[Stability | None]:
        grid = phase_grid(view.points, period)
        return forced_stabilities(orbits, grid, view.scale, view.noise, part, neighbours)

    return _judged(orbits, views, period, follow, progress)


def confirmed_autonomous(
    orbits: Sequence[PeriodicOrbit], views: Sequence[View], turn: float, progress: Progress
) -> list[PeriodicOrbit]:
    """The orbits of a system without drive, judged in all ``views``; ``turn``: mean turn in samples."""

    def follow(view: View, neighbours: int, part: Progress) -> list[Stability | None]:
        return autonomous_stabilities(orbits, view.points, turn, view.scale, view.noise, part, neighbours)

    return _judged(orbits, views, turn, follow, progress)


def _judged(
    orbits: Sequence[PeriodicOrbit],
    views: Sequence[View],
    turn: float,
    follow: Follow,
    progress: Progress,
) -> list[PeriodicOrbit]:
    if len(views) < _FEW_VIEWS:
        ways = [(view, count) for view in views for count in _SEVERAL]
    else:
        ways = [(view, NEIGHBOURS[n % len(NEIGHBOURS)]) for n, view in enumerate(views)]
    answers = [
        follow(view, count, progress.part(n / len(ways), (n + 1) / len(ways)))
        for n, (view, count) in enumerate(ways)
    ]
    noise = float(np.max(views[0].noise / views[0].scale))
    judged = []
    for orbit, found in zip(orbits, zip(*answers, strict=True), strict=True):
        if steady(views[0], orbit):
            words = "the record is this orbit throughout: nothing shows how deviations from it grow"
            judged.append(replace(orbit, confirmed=True, doubt=words))
        else:
            seen = [s for s in found if s is not None]
            judged.append(_verdict(orbit, seen, orbit.period / turn, noise))
    return judged


def _verdict(orbit: PeriodicOrbit, found: Sequence[Stability], turns: float, noise: float) -> PeriodicOrbit:
    """The orbit with ``confirmed``, ``doubt`` and the multipliers that the local models agree on."""
    if not found:
        return replace(orbit, confirmed=False, doubt=TOO_SHORT)
    there = [
        s
        for s in found
        if s.offset <= _FAR and s.step <= _STILL + 0.1 * noise and abs(s.period / orbit.period - 1) <= _LATE
    ]
    if len(there) < _MAJORITY * len(found):
        words = f"Newton's method finds it in {len(there)} of {len(found)} local models of the flow"
        return replace(orbit, confirmed=False, doubt=words)
    values = np.array([s.multipliers[0] for s in there])
    sizes = np.log(np.maximum(np.abs(values), 1e-300))
    middle = int(np.argsort(sizes)[len(sizes) // 2])
    typical = there[middle]
    chance = float(np.hypot(_FLOOR, _robust_deviation(sizes)))
    spread = float(np.hypot(chance, (_BEND + _BLUR * noise) * turns))
    told = replace(
        orbit,
        confirmed=True,
        error_bound=typical.bound_factor * orbit.closure_bound,
        offset=typical.offset,
    )
    if abs(np.median(sizes)) < _NEUTRAL * chance:
        words = "its multiplier cannot be told from one: a torus comes back as closely"
        return replace(told, confirmed=False, doubt=words)
    agreed = np.all(np.sign(values.real) == np.sign(values[middle].real))
    if not agreed or spread > _VAGUE:
        what = "size" if agreed else "sign"
        return replace(told, doubt=f"the local models disagree on the {what} of the multiplier")
    return replace(
        told, multipliers=typical.multipliers, multiplier_stderr=spread * float(np.abs(values[middle]))
    )


def left_out(
    judged: Sequence[PeriodicOrbit],
) -> tuple[list[PeriodicOrbit], list[PeriodicOrbit], list[str]]:
    """The confirmed orbits, the others, and words about the others and about unknown multipliers."""
    kept = [o for o in judged if o.confirmed]
    others = [o for o in judged if not o.confirmed]
    words = []
    if others:
        why = max((o.doubt for o in others), key=[o.doubt for o in others].count)
        words.append(
            f"{len(others)} of {len(judged)} close returns are not confirmed as periodic orbits and left out "
            f"(mostly: {why})."
        )
    unknown = sum(len(o.multipliers) == 0 for o in kept)
    if unknown:
        words.append(
            f"The multipliers of {unknown} of {len(kept)} orbits are unknown: local models disagree."
        )
    return kept, others, words


def _robust_deviation(values: Array) -> float:
    """Standard deviation from the quartiles, widened for few values."""
    low, high = np.quantile(values, [0.25, 0.75])
    return float((high - low) / 1.349 * (1 + 1 / len(values)))


def steady(view: View, orbit: PeriodicOrbit) -> bool:
    """Whether the whole record repeats with the orbit's period, however often: a periodic motion.

    A torus comes back about as closely from everywhere, but moves on at every further turn.
    """
    total = view.points.shape[1]
    repeats = int((total // 2) / orbit.period)
    if repeats < 3:
        return False
    places = np.linspace(MARGIN, total - MARGIN - 2 - repeats * orbit.period, _PLACES)
    here, later = (
        sample_at(view.points, p, np.empty((len(view.points), _PLACES)))
        for p in (places, places + repeats * orbit.period)
    )
    off = np.sqrt(np.mean(((later - here) / view.scale[:, None]) ** 2, axis=0))
    noise = float(np.sqrt(np.mean((view.noise / view.scale) ** 2)))
    return bool(np.quantile(off, 0.95) <= max(3 * orbit.closure_bound, _STEADY) + 2.5 * noise)
