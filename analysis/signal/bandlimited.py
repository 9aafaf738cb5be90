"""Signals that hold nothing above half the sample rate: their values between the samples, and the phase of a
filter that they passed.

Such a signal is known between its samples, too: u(t) = sum_k u_k sinc(t/dt - k) (Whittaker 1915). The sum is
cut off by a Kaiser window (Kaiser and Schafer 1980), which leaves 1e-4 of the amplitude as error up to 0.9 of
half the sample rate. Beyond its ends the signal goes on by linear prediction (Burg 1975).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError

Array = NDArray[np.float64]

REACH = 48  # samples on either side that a value between two samples is made of
_BETA = 9.0  # of the Kaiser window
_ORDER, _REMEMBERED = 40, 1000  # of the linear prediction: earlier samples used, and from how many it learns
_DEGREE = 7  # of the polynomial over a sample interval: within 1e-5 of a tone at half the sample rate


def pieces(row: Array, dt: float) -> Array:
    """Polynomials [N, 8] in the time since each sample that the signal follows up to the next one; the last
    one holds the last sample."""
    places = 0.5 - 0.5 * np.cos(np.pi * np.arange(_DEGREE + 1) / _DEGREE)  # Chebyshev's, ends included
    found = np.zeros((len(row), _DEGREE + 1))
    found[-1, 0] = row[-1]
    if len(row) < 2:
        return found
    inner = np.stack([_between(row, float(place)) for place in places[1:-1]], axis=1)
    nodes = np.column_stack([row[:-1], inner, row[1:]])
    through = np.linalg.inv(np.vander(places, increasing=True))
    found[:-1] = (nodes @ through.T) / dt ** np.arange(_DEGREE + 1)
    return found


def interval_means(row: Array) -> Array:
    """Means of the signal over its sample intervals, [N - 2 REACH]: of those far from the ends only."""
    return np.asarray(np.convolve(row, _mean_weights()[::-1], "valid"))


def deviation_above(row: Array, share: float) -> float:
    """Deviation of the white noise whose part above this share of half the sample rate is that of ``row``."""
    window = np.hanning(len(row))
    spectrum = np.abs(np.fft.rfft((row - row.mean()) * window)) ** 2
    return float(np.sqrt(spectrum[int(share * len(spectrum)) :].mean() / (window @ window)))


@lru_cache(maxsize=1)
def _mean_weights() -> Array:
    nodes, weights = np.polynomial.legendre.leggauss(8)
    return np.asarray(
        sum(0.5 * w * _weights(float(0.5 + 0.5 * x)) for x, w in zip(nodes, weights, strict=True))
    )


def _between(row: Array, place: float) -> Array:
    """The signal at ``place`` (0 to 1) of every sample interval, [N - 1]."""
    around = continued(row, REACH)
    return np.convolve(around, _weights(place)[::-1], "valid")[: len(row) - 1]


@lru_cache(maxsize=16)
def _weights(place: float) -> Array:
    """Weights of the samples from REACH before a sample to REACH after it for the value behind it."""
    distance = place - np.arange(-REACH, REACH + 1)
    window = np.i0(_BETA * np.sqrt(np.maximum(1.0 - (distance / (REACH + 1)) ** 2, 0.0)))
    weights = np.sinc(distance) * window
    return np.asarray(weights / weights.sum())


def continued(row: Array, more: int) -> Array:
    """The signal with so many samples on either side, as it would go on by linear prediction."""
    return np.concatenate([_predicted(row[::-1], more)[::-1], row, _predicted(row, more)])


def _predicted(row: Array, more: int) -> Array:
    """The samples to come, from those before: autoregression by Burg's method, which cannot run away."""
    near = row[-_REMEMBERED:] - row[-_REMEMBERED:].mean()
    order = min(_ORDER, len(near) // 4)
    weights = _burg(near, order)
    found = np.concatenate([near[len(near) - order :], np.zeros(more)])
    for i in range(order, len(found)):
        found[i] = weights @ found[i - order : i][::-1]
    return found[order:] + row[-_REMEMBERED:].mean()


def _burg(row: Array, order: int) -> Array:
    """Weights of the last, the last but one, ... sample in the prediction of the next (Burg 1975)."""
    weights = np.zeros(0)
    ahead, behind = row[1:], row[:-1]
    for _ in range(order):
        power = float(ahead @ ahead + behind @ behind)
        if power <= 0.0:
            break
        turn = 2.0 * float(ahead @ behind) / power
        weights = np.concatenate([weights - turn * weights[::-1], [turn]])
        ahead, behind = (ahead - turn * behind)[1:], (behind - turn * ahead)[:-1]
    return np.concatenate([weights, np.zeros(order - len(weights))])


def without_dispersion(row: Array, dt: float, dispersion: float) -> Array:
    """A signal before a filter that delays its frequencies unequally: phase -dispersion*omega^3 [s^3].

    A common delay of all channels changes nothing and is no part of it; amplitudes stay.
    """
    if dispersion == 0.0:
        return row
    more = 4 * REACH
    late = 3.0 * abs(dispersion) * (np.pi / dt) ** 2 / dt  # samples, at half the sample rate
    if not late < more / 2:
        raise DataError(
            f"A dispersion of {dispersion:g} s^3 delays the highest frequencies by {late:.3g} samples more "
            f"than the lowest: it can be undone up to {more // 2}."
        )
    around = continued(row, more)
    line = np.linspace(around[0], around[-1], len(around))  # what a periodic continuation would jump by
    omega = 2.0 * np.pi * np.fft.rfftfreq(len(around), dt)
    turned = np.fft.irfft(np.fft.rfft(around - line) * np.exp(1j * dispersion * omega**3), len(around))
    return np.asarray((turned + line)[more:-more])


def third_rate(row: Array, dt: float) -> Array:
    """Third derivative of a band-limited signal, from REACH samples on either side."""
    n = np.arange(1.0, REACH + 1)
    window = np.i0(_BETA * np.sqrt(1.0 - (n / (REACH + 1)) ** 2)) / np.i0(_BETA)
    ideal = (-1.0) ** n * (6.0 / n**3 - np.pi**2 / n) * window  # of sinc(t) at t = n
    kernel = np.concatenate([-ideal[::-1], [0.0], ideal])
    return np.asarray(np.convolve(continued(row, REACH), kernel, "valid") / dt**3)
