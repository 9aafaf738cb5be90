"""The segments to be balanced: orbits extracted from the record, or segments that are known to close."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.progress import SILENT, Progress
from analysis.estimate.balance.rows import OrbitRows, TestFunctions, periodic_operators, smoothing_operators
from analysis.estimate.balance.setting import Setting
from analysis.orbits.confirmation import (
    TOO_SHORT,
    View,
    confirmed_autonomous,
    confirmed_forced,
    left_out,
)
from analysis.orbits.forced import forced_orbits
from analysis.orbits.orbit import Orbits, PeriodicOrbit

if TYPE_CHECKING:
    from analysis.estimate.balance.method import HarmonicBalance
    from analysis.model import Model

Array = NDArray[np.float64]

_DELAY_DIMENSION = 4  # thesis, section 4.4
_KEPT_HARMONICS = 12  # of the drive: what the smoothing of noisy samples lets pass at least ...
_KEPT_BEYOND = 1.4  # ... and how far beyond those that are balanced
_CLEAN = 1e-5  # noise over span below which samples are not smoothed


def extract(setting: Setting, options: HarmonicBalance, progress: Progress) -> Orbits:
    """Close returns in the measured states, or in delay space when there is one channel only."""
    record = setting.record
    points = _unfolded(setting, _DELAY_DIMENSION)
    valid = np.all([record.channels[c].valid() for c in setting.channels], axis=0)[: points.shape[1]]
    period = setting.samples
    if not setting.forced:
        from analysis.orbits.autonomous import autonomous_orbits

        longest = int(options.longest * period)
        return autonomous_orbits(
            points, longest=longest, epsilon=options.epsilon, valid=valid, maps=False, progress=progress
        )
    multiples = options.orbits or range(1, options.longest + 1)
    return forced_orbits(
        points,
        period,
        multiples=multiples,
        epsilon=options.epsilon,
        valid=valid,
        maps=False,
        progress=progress,
    )


def _unfolded(setting: Setting, dimension: int) -> Array:
    """The measured states [n, N], or ``dimension`` delay coordinates of the only one (thesis, 4.4)."""
    rows = np.array([setting.record[c] for c in setting.channels])
    if len(rows) > 1:
        return rows
    from analysis.reconstruct.embedding import delay_coordinates

    return delay_coordinates(rows[0], dimension, max(1, round(setting.samples / 16)))


def given_orbits(setting: Setting, options: HarmonicBalance) -> list[PeriodicOrbit]:
    """Segments that are known to close, such as the periods of a steady response, each as often as wanted."""
    if not setting.forced or len(options.starts) != len(options.orbits):
        raise DataError("Give a drive frequency and, for each start, the period of its orbit (orbits).")
    base = setting.samples
    repeated = np.arange(options.recurrences)
    return [
        PeriodicOrbit(start, k * base, k, np.nan, np.nan, start + np.rint(repeated * k * base).astype(int))
        for start, k in zip(options.starts, options.orbits, strict=True)
    ]


def choose(orbits: Orbits, options: HarmonicBalance) -> list[PeriodicOrbit]:
    """The closest orbits, of every period if possible."""
    return _ranked(orbits)[: options.most_orbits]


def choose_confirmed(
    setting: Setting, orbits: Orbits, options: HarmonicBalance
) -> tuple[list[PeriodicOrbit], list[str]]:
    """The closest orbits that the motion of their neighbours confirms, and what was left out in words."""
    ranked = _ranked(orbits)
    if options.unconfirmed or not ranked:
        return choose(orbits, options), []
    judged: list[PeriodicOrbit] = []
    views = _views(setting, orbits)
    for first in range(0, len(ranked), 2 * options.most_orbits):
        judged += _confirmed(setting, ranked[first : first + 2 * options.most_orbits], views)
        if sum(bool(o.confirmed) for o in judged) >= options.most_orbits:
            break
    if all(o.doubt == TOO_SHORT for o in judged):
        return choose(orbits, options), [f"No orbit could be confirmed: {TOO_SHORT}."]
    kept, others, words = left_out(judged)
    return kept[: options.most_orbits], words[:1] if others else []


def _views(setting: Setting, orbits: Orbits) -> list[View]:
    """The spaces in which orbits are confirmed: the states, or delay coordinates of several dimensions."""
    count = len(setting.channels)
    dimensions = (_DELAY_DIMENSION, _DELAY_DIMENSION + 1) if count == 1 else (count,)
    views = []
    for dimension in dimensions:
        points = _unfolded(setting, dimension)
        points = np.where(np.isfinite(points), points, np.nanmean(points, axis=1, keepdims=True))
        scale, noise = (np.resize(v, len(points)) for v in (orbits.scale, orbits.noise))
        views.append(View(points, scale, noise))
    return views


def _confirmed(setting: Setting, some: list[PeriodicOrbit], views: list[View]) -> list[PeriodicOrbit]:
    if setting.forced:
        return confirmed_forced(some, views, setting.samples, SILENT)
    return confirmed_autonomous(some, views, setting.samples, SILENT)


def _ranked(orbits: Orbits) -> list[PeriodicOrbit]:
    """The closest orbit of each period first, then the second closest of each, and so on."""
    ranked = sorted(orbits.orbits, key=lambda o: o.closure)
    seen: dict[int | None, int] = {}
    order = []
    for orbit in ranked:  # first the best of each period, then the second best, ...
        place = seen.get(orbit.multiple, 0)
        seen[orbit.multiple] = place + 1
        order.append((place if orbit.multiple is not None else 0, orbit.closure, orbit))
    return [orbit for _, _, orbit in sorted(order, key=lambda item: item[:2])]


def _extent(setting: Setting, orbit: PeriodicOrbit, options: HarmonicBalance) -> tuple[int, int]:
    """Samples of the segment, and of the padding on both sides."""
    if options.plain:
        return round(orbit.period), 0
    return int(np.floor(orbit.period)) + 1, max(4, round(setting.samples))


def fits(setting: Setting, orbit: PeriodicOrbit, options: HarmonicBalance) -> bool:
    """The segment and its padding lie inside the record."""
    count, pad = _extent(setting, orbit, options)
    return orbit.start >= pad and orbit.start + count + pad <= len(setting.record)


def orbit_rows(
    model: Model, setting: Setting, orbit: PeriodicOrbit, options: HarmonicBalance, unknown_phase: bool
) -> OrbitRows:
    """An orbit segment with its test functions and operators.

    The plain method leaves the drive's own harmonic out when its phase is unknown (thesis, section 4.6).
    """
    record, dt = setting.record, setting.record.dt
    period = orbit.period * dt
    cycles = orbit.period / setting.samples
    count, pad = _extent(setting, orbit, options)
    if options.plain and setting.forced:
        orders = np.rint(cycles * np.arange(setting.harmonics + 1))
        if unknown_phase:
            orders = np.delete(orders, 1)
    else:
        orders = np.arange(int(np.ceil(setting.harmonics * cycles)) + 1, dtype=np.float64)
    first, last = orbit.start - pad, orbit.start + count + pad
    times = np.asarray(dt * np.arange(count), dtype=np.float64)
    make = TestFunctions.plain if options.plain else TestFunctions.tapered
    if options.plain:
        smooth, slope = periodic_operators(count, dt)
    else:
        spans = [float(np.ptp(record[c])) for c in setting.channels]
        noisy = any(s > _CLEAN * w for s, w in zip(setting.noise, spans, strict=True))
        kept = max(_KEPT_HARMONICS, _KEPT_BEYOND * setting.harmonics) / setting.base
        smooth, slope = smoothing_operators(count, pad, dt, kept if noisy else None)
    sources = [
        (setting.sources[i], smooth if model.states[i] in setting.channels else slope)
        for i in range(len(model.states))
    ]
    middle = slice(orbit.start, orbit.start + count)
    positions = {setting.pairs[v] for v in setting.pairs}
    return OrbitRows(
        setting.t0 + dt * orbit.start + times,
        np.array([record[u][middle] for u in model.inputs]).reshape(len(model.inputs), count),
        make(times, period, orders, setting.base),
        sources,
        [record[c][first:last] for c in setting.channels],
        setting.noise,
        {v: x for v, x in setting.pairs.items() if model.states[x] in setting.channels},
        [i for i in range(len(model.states)) if i not in positions],
        [model.states.index(c) for c in setting.channels],
        pad,
    )
