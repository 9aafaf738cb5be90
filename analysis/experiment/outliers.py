"""Samples that a sensor cannot have meant: isolated spikes, stretches pressed against its range, and
stretches at one value between two jumps (a loose plug).

All are found from the samples alone and become missing samples, counted and said; a signal that is rough
everywhere (impacts, coarse sampling) has no spikes by this rule.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.signal.noise import median_deviation

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SPIKE = 8.0  # robust deviations off the cubic through the four neighbours
_LARGEST_SHARE = 0.01  # of the samples: more outliers than this are the signal's own nature
_SHORTEST = 20  # samples of an unbroken stretch that is looked at
_WIDEST = 2  # samples in a row that a spike may span
_NOISE_BETWEEN = np.sqrt(1.0 + 34.0 / 36.0)  # of a sample less the cubic through two on either side
_MOST, _NORMAL_MOST = 0.97, 2.170090377584560  # quantile of the distances, and that of a normal variable
_STUCK, _JUMP = 5, 1.5  # equal samples in a row; times the larger steps elsewhere that make a jump
_FLAT, _REPEATS = 3, 0.01  # equal samples in a row that show a limit; share of repeats a plain channel has


def spikes(row: Array) -> Mask:
    """Isolated samples more than :data:`SPIKE` robust deviations off the cubic through four neighbours.

    At the ends the cubic is extrapolated. The largest is taken out first, so that its neighbours, whose own
    cubic it spoils, are judged without it.
    """
    found = np.zeros(len(row), dtype=bool)
    pieces = [(a, b) for a, b in _runs(np.isfinite(row)) if b - a >= _SHORTEST]
    if not pieces:
        return found
    deviations = [np.abs(_off_neighbours(row[a:b])) for a, b in pieces]
    samples, before = sum(map(len, deviations)), -1
    while before < found.sum() <= _LARGEST_SHARE * samples:  # what is found no longer raises the level
        before = int(found.sum())
        near = np.convolve(found, np.ones(5), "same") > 0.5
        level = _level(np.concatenate([d[~near[a:b]] for (a, b), d in zip(pieces, deviations, strict=True)]))
        if level == 0.0 or np.mean(np.concatenate(deviations) > SPIKE * level) > 5 * _LARGEST_SHARE:
            return np.zeros_like(found)
        for (a, b), deviation in zip(pieces, deviations, strict=True):
            found[a:b] |= _isolated(row[a:b], deviation, SPIKE * level)
    return found if found.sum() <= _LARGEST_SHARE * samples else np.zeros_like(found)


def _level(deviations: Array) -> float:
    """Robust size of the samples' distances from their neighbours, by the rougher parts where it varies."""
    return max(median_deviation(deviations), float(np.quantile(deviations, _MOST)) / _NORMAL_MOST)


def _isolated(values: Array, deviation: Array, limit: float) -> Mask:
    """Samples of an unbroken stretch that stay off their neighbours when those before them are taken out."""
    bad = np.zeros(len(values), dtype=bool)

    def off(place: int) -> bool:
        predicted, noise = _predicted(values, bad, place)
        return bool(abs(values[place] - predicted) > limit * noise / _NOISE_BETWEEN)

    for place in np.argsort(-deviation):
        if deviation[place] <= limit:
            break
        bad[place] = off(int(place))
    for place in np.flatnonzero(bad):  # one between two spikes was judged by the smaller of them
        bad[place] = off(int(place))
    return bad & ~_long_runs(bad, _WIDEST)


def pressed_flat(row: Array) -> Mask:
    """Samples at the limit of a converter: the extreme value three times in a row, in a channel without
    repeats elsewhere (a coarsely quantised one repeats everywhere)."""
    finite = row[np.isfinite(row)]
    if not len(finite) or np.ptp(finite) == 0:
        return np.zeros(len(row), dtype=bool)  # a channel that does not move shows no limit
    limits = [row == np.nanmax(row, initial=-np.inf), row == np.nanmin(row, initial=np.inf)]
    equal = np.diff(row) == 0.0
    elsewhere = equal & ~np.any([at[:-1] & at[1:] for at in limits], axis=0)
    found = np.zeros(len(row), dtype=bool)
    if elsewhere.mean() < _REPEATS:
        for at_limit in limits:
            if _long_runs(at_limit, _FLAT - 1).any():
                found |= at_limit
    return found


def dropped_out(row: Array) -> Mask:
    """Stretches at exactly one value that begin and end with a jump, in a channel without repeats elsewhere.

    A motion that rests begins and ends its rest smoothly. At an end of the record one jump is enough.
    """
    found = np.zeros(len(row), dtype=bool)
    equal = np.concatenate([np.diff(row) == 0.0, [False]])
    stretches = [(a, b + 1) for a, b in _runs(equal) if b + 1 - a >= _STUCK]
    inside = np.zeros(len(row), dtype=bool)
    for a, b in stretches:
        inside[a:b] = True
    steps = np.abs(np.diff(row))
    elsewhere = steps[~(inside[1:] | inside[:-1])]
    elsewhere = elsewhere[np.isfinite(elsewhere)]
    if not stretches or len(elsewhere) < _SHORTEST or np.mean(elsewhere == 0.0) >= _REPEATS:
        return found
    limit = _JUMP * float(np.quantile(elsewhere, _MOST))
    sides = [[float(steps[i]) for i in (a - 1, b - 1) if 0 <= i < len(steps)] for a, b in stretches]
    between_jumps = [bool(s) and all(np.isnan(step) or step > limit for step in s) for s in sides]
    values = {float(row[a]) for (a, _), sure in zip(stretches, between_jumps, strict=True) if sure}
    for a, b in stretches:  # one of the same value may begin where the motion passes it
        found[a:b] = float(row[a]) in values
    return found


def _off_neighbours(values: Array) -> Array:
    """Each sample minus the cubic through its two neighbours on either side; extrapolated at the ends."""
    off = np.zeros(len(values))
    middle = (4 * (values[1:-3] + values[3:-1]) - values[:-4] - values[4:]) / 6
    off[2:-2] = values[2:-2] - middle
    none = np.zeros(len(values), dtype=bool)
    for place in (0, 1, len(values) - 2, len(values) - 1):
        predicted, noise = _predicted(values, none, place)
        off[place] = (values[place] - predicted) * _NOISE_BETWEEN / noise
    return off


def _predicted(values: Array, bad: Mask, place: int) -> tuple[float, float]:
    """The cubic through the four nearest good samples, at a place; and the noise of the difference from it,
    in units of a sample's."""
    around = np.arange(max(place - 8, 0), min(place + 9, len(values)))
    good = around[~bad[around] & (around != place)]
    near = np.sort(good[np.argsort(np.abs(good - place), kind="stable")[:4]])
    weights = np.array([np.prod((place - near[near != i]) / (i - near[near != i])) for i in near])
    return float(weights @ values[near]), float(np.sqrt(1.0 + weights @ weights))


def _runs(mask: Mask) -> list[tuple[int, int]]:
    """Unbroken runs of True: first, and the one after the last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _long_runs(mask: Mask, longest: int) -> Mask:
    """Those in runs of more than ``longest``."""
    long = np.zeros(len(mask), dtype=bool)
    for first, stop in _runs(mask):
        long[first:stop] = stop - first > longest
    return long
