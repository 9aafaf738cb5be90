"""Surrogate records: what a record would look like if it were linear noise, or cycles in any order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_ITERATIONS = 40


def iaaft(samples: Array, rng: np.random.Generator) -> Array:
    """Linear noise with the values and, nearly, the spectrum of ``samples`` (Schreiber and Schmitz 1996).

    Values and spectrum are imposed in turn until the order of the values no longer changes.
    """
    x = np.asarray(samples, dtype=np.float64)
    values, sizes = np.sort(x), np.abs(np.fft.rfft(x))
    surrogate = rng.permutation(x)
    order = np.empty(0, dtype=np.int64)
    for _ in range(_ITERATIONS):
        turned = np.fft.rfft(surrogate)
        length = np.abs(turned)
        shaped = np.fft.irfft(sizes * np.where(length > 0, turned / np.maximum(length, 1e-300), 1.0), len(x))
        new = np.argsort(shaped, kind="stable")
        surrogate = np.empty_like(x)
        surrogate[new] = values
        if np.array_equal(new, order):
            break
        order = new
    return surrogate


def through_a_curve(samples: Array, rng: np.random.Generator) -> Array:
    """Linear noise seen through the rising curve that gives it the values of ``samples``.

    Amplitude-adjusted phases (Theiler et al. 1992). Unlike :func:`iaaft` this keeps how the harmonics that
    the curve makes go with what they are harmonics of.
    """
    x = np.asarray(samples, dtype=np.float64)
    order = np.argsort(x, kind="stable")
    linear = np.empty_like(x)
    linear[order] = np.sort(rng.standard_normal(len(x)))
    lines = np.fft.rfft(linear)
    turned = np.fft.irfft(np.abs(lines) * np.exp(2j * np.pi * rng.uniform(size=len(lines))), len(x))
    surrogate = np.empty_like(x)
    surrogate[np.argsort(turned, kind="stable")] = x[order]
    return surrogate


def cycle_shuffled(samples: Array, period: float, rng: np.random.Generator) -> Array:
    """The cycles of a drive of ``period`` samples in another order; the first phase stays (Theiler 1995).

    Within a cycle everything is kept, from one cycle to the next nothing.
    """
    x = np.asarray(samples, dtype=np.float64)
    edges = np.rint(np.arange(0, len(x) + 1e-9, period)).astype(int)
    width = int(np.floor(period))
    cycles = [x[a : a + width] for a in edges[:-1] if a + width <= len(x)]
    rest = [x[a + width : b] for a, b in pairwise(edges)]
    pieces = []
    for place, k in enumerate(rng.permutation(len(cycles))):
        pieces += [cycles[k], rest[place]]
    return np.concatenate(pieces)


def matching_stretch(samples: Array, length: int) -> Array:
    """At most ``length`` consecutive samples whose ends meet in value and slope.

    A jump from the end back to the beginning would put power into the surrogates that the motion lacks.
    """
    x = np.asarray(samples, dtype=np.float64)
    length = min(length, len(x))
    slack = max(length // 10, 2)
    begin = np.arange(min(slack, len(x) - length + slack, len(x) // 4))
    end = np.arange(max(length - slack, length // 2), length)
    slope = np.gradient(x)
    unit, rate = np.std(x) or 1.0, np.std(slope) or 1.0
    off = ((x[begin][:, None] - x[end][None, :]) / unit) ** 2
    off += ((slope[begin][:, None] - slope[end][None, :]) / rate) ** 2
    a, b = np.unravel_index(int(np.argmin(off)), off.shape)
    return x[begin[a] : end[b]]
