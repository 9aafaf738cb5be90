"""The dither test: what a small correction does to a specimen at rest, before an orbit is held.

A multisine of corrections, repeated, passes the loop as any correction does. What its answer in the channels
tells is read by dither_fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

LOWEST, HIGHEST = 0.3, 8.0  # band over the drive's frequency
BAND_END = 0.35  # of the sample rate
REPEATS = 10
LINES = 40
LEAST_SENT = 0.5  # of the size of the sequence: less went out where the loop let go
LET_GO = (
    "The test did not go out: the loop let go of the drive. Is the rig, or this computer, too slow for its "
    "rate?"
)


class Dither:
    """A controller that plays one sequence again and again, whatever it sees."""

    holding = False
    shown = 0.0

    def __init__(self, channels: Sequence[str], sequence: Array) -> None:
        self.channels, self._sequence, self._place = tuple(channels), sequence, 0
        self.bound = float(np.abs(sequence).max())

    def step(self, samples: Array, phase: float, applied: float) -> float:
        value = float(self._sequence[self._place])
        self._place = (self._place + 1) % len(self._sequence)
        return value

    def adopt(self, other: object) -> None:
        """There is nothing to take over."""


def dither_sequence(frequency: float, rate: float, rms: float, seed: int = 0) -> Array:
    """One period of a multisine with random phases around the drive's ``frequency``, in volts.

    Odd lines only: what the specimen's asymmetry makes of them falls on even ones (Pintelon and Schoukens).
    """
    low, high = LOWEST * frequency, min(HIGHEST * frequency, BAND_END * rate)
    length = int(np.ceil(2 * LINES * rate / (high - low)))
    lines = np.arange(int(np.ceil(low * length / rate)) | 1, int(high * length / rate) + 1, 2)
    rng = np.random.default_rng(seed)
    best: Array | None = None
    for _ in range(30):  # the smallest peak of some
        spectrum = np.zeros(length // 2 + 1, dtype=complex)
        spectrum[lines] = np.exp(2j * np.pi * rng.random(len(lines)))
        wave = np.fft.irfft(spectrum, length)
        wave *= rms / np.sqrt(np.mean(wave**2))
        if best is None or np.abs(wave).max() < np.abs(best).max():
            best = wave
    assert best is not None
    return best


@dataclass(frozen=True, eq=False)
class Response:
    """Answers to the dither at its lines [channels, lines], with their standard errors."""

    omega: Array  # rad/s
    answers: Complex
    errors: Array
    rest: Array  # [channels] mean of each


def response(samples: Array, commands: Array, sequence: Array, rate: float) -> Response:
    """From samples [channels, N] and commands [N] over several periods of the ``sequence``.

    The commands are those that went out, missed deadlines and all: each period has its own spectrum.
    """
    length = len(sequence)
    count = samples.shape[1] // length
    if count < 4:
        raise DataError("The dither test needs at least four of its periods.")
    cut = samples[:, -count * length :].reshape(len(samples), count, length)
    told = commands[-count * length :].reshape(count, length)
    if np.std(told, axis=1).min() < LEAST_SENT * np.std(sequence):
        raise DataError(LET_GO)
    wanted = np.abs(np.fft.rfft(sequence))
    lines = np.flatnonzero(wanted > 1e-3 * wanted.max())
    spectra, drive = np.fft.rfft(cut, axis=2)[:, :, lines], np.fft.rfft(told, axis=1)[:, lines]
    power = np.sum(np.abs(drive) ** 2, axis=0)
    answers = np.sum(spectra * drive.conj(), axis=1) / power
    left = spectra - answers[:, None] * drive
    errors = np.sqrt(np.sum(np.abs(left) ** 2, axis=1) / (count - 1) / power)
    return Response(2 * np.pi * rate * lines / length, answers, errors, cut.mean(axis=(1, 2)))
