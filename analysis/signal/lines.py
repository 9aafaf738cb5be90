"""Spectral lines of a record: the frequencies of a regular motion, and how well they foretell it.

Regular motion is a sum of lines and stays predictable for ever; chaos and noise are not. The lines are
fitted to the first part of the record and judged on the last (Laskar 1993 finds lines one after the other).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_MOST = 48  # lines
_REFIT = (1, 2, 4, 8, 16, 32, 48)  # numbers of lines at which all are refined together
_JUDGED, _SHRINKS = 8, 0.5  # from so many lines on, twice as many must leave half as much, or it is no torus
_TRAINED = 0.75  # part of the record that the lines are fitted to
_FOUND = 1e-6  # share of the variance below which nothing is looked for
_MULTIPLE = 0.02  # of the resolution 1/T: within it a line counts as a multiple of another's fraction
_DIVISOR = 16  # a fundamental is looked for down to this fraction of a line
_COUNTS = 0.02  # amplitude over the largest, below which a line does not speak about fundamentals
_APART = 1.5  # of the resolution 1/T: a line closer to a stronger one is a slow change of that one


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines of a record, strongest first, and the share of the variance that they leave unexplained."""

    frequencies: Array  # cycles per sample
    amplitudes: Array  # in the channel's unit
    left: float  # of the variance, in the part that the lines were fitted to
    left_ahead: float  # of the variance, in the part that follows
    fundamentals: int  # frequencies of which all clear lines are whole multiples: 1 periodic, more a torus
    fitted: Array  # the sum of the lines over the whole record
    wandering: float = 0.0  # largest companion of a line, closer than the record can tell apart, over it

    @property
    def foretold(self) -> float:
        """Share of the variance after the fitted part that the lines foretell."""
        return 1.0 - self.left_ahead


def spectral_lines(samples: Array, noise: float = 0.0) -> Lines:
    """Up to 48 lines, until what is left is the noise (standard deviation) or no longer shrinks."""
    x = np.asarray(samples, dtype=np.float64)
    middle, variance = float(np.mean(x)), float(np.var(x))
    total, trained = len(x), int(_TRAINED * len(x))
    x = x - middle
    if variance == 0.0:
        return Lines(np.empty(0), np.empty(0), 0.0, 0.0, 0, np.full(total, middle))
    floor = max(_FOUND * variance, 1.2 * noise**2)
    early = x[:trained]
    window = np.hanning(trained)
    frequencies = np.empty(0)
    rest, before = early, variance
    while len(frequencies) < _MOST and np.var(rest) > floor:
        line = np.array([_strongest(rest * window)])
        frequencies = np.append(frequencies, line)
        if len(frequencies) in _REFIT:
            frequencies = _refined(early, frequencies)
            rest = early - _sum(frequencies, _amplitudes(early, frequencies), trained)
            if len(frequencies) >= _JUDGED and np.var(rest) > _SHRINKS * before:
                break
            before = float(np.var(rest))
        else:
            rest = rest - _sum(line, _amplitudes(rest, line), trained)
    frequencies = _refined(early, frequencies)
    parts = _amplitudes(early, frequencies)
    fitted = _sum(frequencies, parts, total)
    ahead = x[trained:] - fitted[trained:]
    sizes = np.hypot(parts[1::2], parts[2::2])
    order = np.argsort(-sizes)
    frequencies, sizes = frequencies[order], sizes[order]
    alone, wandering = _companions(frequencies, sizes, trained)
    rest_size = float(np.std(early - fitted[:trained]))
    return Lines(
        frequencies,
        sizes,
        float(np.mean((early - fitted[:trained]) ** 2) / variance),
        float(np.mean(ahead**2) / variance),
        _fundamentals(frequencies[alone], sizes[alone], trained, rest_size),
        fitted + middle,
        wandering,
    )


def _companions(frequencies: Array, sizes: Array, count: int) -> tuple[NDArray[np.bool_], float]:
    """Lines (strongest first) that stand alone, and the largest of the others over its stronger neighbour.

    A line next to a stronger one, closer than the record can tell apart, is no frequency of its own: the
    stronger one changes slowly in size or phase.
    """
    alone, largest = np.ones(len(frequencies), dtype=bool), 0.0
    for i in range(1, len(frequencies)):
        near = np.flatnonzero(np.abs(frequencies[:i] - frequencies[i]) * count < _APART)
        if len(near):
            alone[i] = False
            largest = max(largest, float(sizes[i] / sizes[near[0]]))
    return alone, largest


def _strongest(x: Array) -> float:
    """Frequency of the highest peak of the spectrum of windowed samples, between the bins by a parabola."""
    power = np.abs(np.fft.rfft(x, 2 * len(x)))
    k = 1 + int(np.argmax(power[1:-1]))
    below, at, above = np.log(np.maximum(power[k - 1 : k + 2], 1e-300))
    bend = below - 2 * at + above
    shift = 0.5 * (below - above) / bend if bend < 0 else 0.0
    return float((k + np.clip(shift, -0.5, 0.5)) / (2 * len(x)))


def _basis(frequencies: Array, count: int) -> Array:
    angle = 2 * np.pi * np.arange(count)[:, None] * frequencies[None, :]
    basis = np.empty((count, 1 + 2 * len(frequencies)))
    basis[:, 0] = 1.0
    basis[:, 1::2], basis[:, 2::2] = np.cos(angle), np.sin(angle)
    return basis


def _solve(basis: Array, x: Array) -> Array:
    """Least squares by the normal equations; two lines that coincide share their amplitude."""
    normal = basis.T @ basis
    normal[np.diag_indices_from(normal)] += 1e-10 * len(x)
    return np.asarray(np.linalg.solve(normal, basis.T @ x))


def _amplitudes(x: Array, frequencies: Array) -> Array:
    return _solve(_basis(frequencies, len(x)), x)


def _sum(frequencies: Array, parts: Array, count: int) -> Array:
    return np.asarray(_basis(frequencies, count) @ parts)


def _refined(x: Array, frequencies: Array) -> Array:
    """All frequencies moved together so that the squares shrink (two steps of Gauss and Newton)."""
    if not len(frequencies):
        return frequencies
    count = len(x)
    time = 2 * np.pi * (np.arange(count) / count)[:, None]
    for _ in range(2):
        basis = _basis(frequencies, count)
        parts = _solve(basis, x)
        change = time * (basis[:, 1::2] * parts[2::2] - basis[:, 2::2] * parts[1::2])
        whole = _solve(np.hstack([basis, change]), x - basis @ parts)
        step = whole[basis.shape[1] :] / count
        frequencies = np.clip(frequencies + np.clip(step, -0.3 / count, 0.3 / count), 0.05 / count, 0.5)
    return frequencies


def _fundamentals(frequencies: Array, sizes: Array, count: int, rest: float) -> int:
    """Fewest frequencies of which every clear line is a whole combination, one after the other, at most 4."""
    clear = (sizes > _COUNTS * sizes.max(initial=0.0)) & (frequencies * count > 2)
    lines, sizes = frequencies[clear], sizes[clear]
    if len(lines) == 0:
        return 0
    # Three standard errors of a frequency in white noise (Rife and Boorstyn 1974), and what other lines add.
    slack = (_MULTIPLE + 3 * np.sqrt(6) / np.pi * rest / sizes / np.sqrt(count)) / count
    for divisor in range(1, _DIVISOR + 1):
        base = lines[0] / divisor
        off = np.abs(lines - np.rint(lines / base) * base)
        if np.all(off <= slack + slack[0] * lines / lines[0]):
            return 1
    bases = [lines[0]]
    for line in lines[1:]:
        if len(bases) < 4 and not _combines(line, np.array(bases), 10 * _MULTIPLE / count):
            bases.append(line)
    return max(len(bases), 2)


def _combines(line: float, bases: Array, slack: float) -> bool:
    reach = 8 if len(bases) <= 2 else 4
    grids = np.meshgrid(*[np.arange(-reach, reach + 1)] * len(bases), indexing="ij")
    sums = sum(g * b for g, b in zip(grids, bases, strict=True))
    return bool(np.min(np.abs(np.abs(sums) - line)) <= slack)
