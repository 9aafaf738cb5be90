"""Is a tone left in the residuals? Hum of the mains, a motor, a loose part: one line far above the rest.

The periodogram of white residuals has ordinates that are exponential about their mean, so that the highest of
N/2 exceeds g times the mean with probability N/2 exp(-g) (Fisher 1929). The mean is taken over the lines
close by, which lets coloured noise pass: only a narrow line stands out of those. With n lines for the mean
exp(-g) becomes (1 + g/n)^-n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_AROUND = 25  # lines on either side from which the level is taken
_OWN = 3  # lines on either side that a tone itself may fill
_SHORTEST = 4 * _AROUND  # samples below which there are no neighbours to speak of
_EFFICIENT = 0.48  # lines whose mean is known as well as from one line's part in a median
_FINER = 4  # lines for each independent one: a tone between two lines would lose half its power
_SHARP = 100.0  # times its neighbours: a line of a motion, not the ups and downs of a dense spectrum
_WEAK = 1e-3  # of the highest line's power: one that makes no others together with it
_DYING = 0.3  # of the spread in the first quarter that is left in the last
_MOST_LINES = 2  # of a motion, whose sums and differences can be listed
_HIGHEST = 9  # order of these: lines, or halves of a single one, that are added up
_RARE = 1e-4  # probability of chance below which a line is a tone


@dataclass(frozen=True)
class Tone:
    """A line in the residuals of one output."""

    frequency: float  # cycles per unit of time
    amplitude: float  # in the output's unit
    probability: float  # that noise alone has such a line


def tone(rows: Sequence[Array], dt: float) -> Tone | None:
    """The highest line of residuals, given row by row (nan: missing), if chance does not make it."""
    row = max(rows, key=lambda r: int(np.isfinite(r).sum()))
    count = int(np.isfinite(row).sum())
    if count < _SHORTEST:
        return None
    power, ratio = _lines(row)
    length = _FINER * len(row)
    peak = int(np.argmax(ratio))
    lines = _EFFICIENT * 2 * (_AROUND - _OWN)
    probability = float(min(1.0, _FINER * len(row) / 2 * (1.0 + ratio[peak] / lines) ** -lines))
    if probability > _RARE:
        return None
    return Tone(peak / (length * dt), 2.0 * float(np.sqrt(power[peak])) / count, probability)


def of_the_motion(row: Array, frequency: float, dt: float) -> bool:
    """Whether a motion [N] may have a line at a frequency: one of its own, or one that those it has make
    together in a nonlinear specimen. Of a motion of many lines nobody can tell; one that dies away has none,
    for what it makes dies away with it.
    """
    quarter = len(row) // 4
    if np.nanstd(row[-quarter:]) < _DYING * np.nanstd(row[:quarter]):
        return False
    lines = _own_lines(row)
    if len(lines) > _MOST_LINES:
        return True
    place = frequency * dt * len(row)  # in lines, as all below
    orders = range(-_HIGHEST, _HIGHEST + 1)
    half = 0.5 if len(lines) == 1 else 1.0  # a single one may have subharmonics
    numbers = (n for n in product(orders, repeat=len(lines)) if sum(map(abs, n)) <= _HIGHEST)
    together = (abs(half * float(np.dot(n, lines))) for n in numbers)
    return bool(lines) and min(abs(place - other) for other in together) < _OWN


def _own_lines(row: Array) -> list[float]:
    """Places of the lines that stand far above their neighbours, in lines, the highest first."""
    power, ratio = _lines(row, np.hanning(len(row)))  # whose side lobes are no lines
    left = np.where(ratio > _SHARP, power, 0.0)
    floor = _WEAK * float(left.max(initial=0.0))
    found: list[float] = []
    while len(found) <= _MOST_LINES and left.max(initial=0.0) > floor:
        peak = int(np.argmax(left))
        found.append(peak / _FINER)
        left[max(peak - _OWN * _FINER, 0) : peak + _OWN * _FINER + 1] = 0.0
    return found


def _lines(row: Array, window: Array | float = 1.0) -> tuple[Array, Array]:
    """Power at four places a line, and the same over the level of the lines close by; nan: missing."""
    good = np.isfinite(row)
    place = np.linspace(-1.0, 1.0, len(row))
    values = np.where(good, row - np.polynomial.Polynomial.fit(place[good], row[good], 1)(place), 0.0)
    power = np.abs(np.fft.rfft(window * values, _FINER * len(row))) ** 2
    level = _local_level(power[::_FINER])
    ratio = power / np.maximum(
        np.interp(np.arange(len(power)) / _FINER, np.arange(len(level)), level), 1e-300
    )
    ratio[: _FINER * 2] = 0.0  # a mean or a drift is no tone
    return power, ratio


def _local_level(power: Array) -> Array:
    """Mean of the lines around each, its own neighbourhood left out, from the median (ln 2 of the mean)."""
    padded = np.pad(power, _AROUND, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _AROUND + 1)
    beside = np.abs(np.arange(-_AROUND, _AROUND + 1)) > _OWN
    return np.asarray(np.median(windows[:, beside], axis=1) / np.log(2.0))


def tone_words(name: str, found: Tone, spread: float) -> str:
    """What was found, in words."""
    share = 100.0 * found.amplitude / np.sqrt(2.0) / spread if spread > 0 else float("nan")
    return (
        f"What is left of {name} holds a tone at {found.frequency:.4g} cycles per unit of time, amplitude "
        f"{found.amplitude:.2g} ({share:.2g} % of its spread): hum, or a drive that the model lacks."
    )
