"""A tone in a sensor that has nothing to do with the specimen: hum of the mains, a motor close by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Hum:
    """A tone in one output of one run: cosine cos w (t - t0) + sine sin w (t - t0), w = 2 pi frequency."""

    run: int
    output: int
    frequency: float  # cycles per unit of time
    origin: float  # t0, the middle of the run: amplitude and frequency are told apart best from there
    cosine: float = 0.0  # in the output's unit
    sine: float = 0.0

    @property
    def amplitude(self) -> float:
        return float(np.hypot(self.cosine, self.sine))

    def values(self, times: Array) -> Array:
        """The tone at some times."""
        return np.asarray(self.slopes(times)[:, :2] @ [self.cosine, self.sine])

    def slopes(self, times: Array) -> Array:
        """Derivatives [N, 3] in cosine, sine and w."""
        t = times - self.origin
        c, s = np.cos(2 * np.pi * self.frequency * t), np.sin(2 * np.pi * self.frequency * t)
        return np.column_stack([c, s, t * (self.sine * c - self.cosine * s)])

    def moved(self, step: Array) -> Hum:
        """Changed by a step [3] in cosine, sine and w."""
        cosine, sine = self.cosine + float(step[0]), self.sine + float(step[1])
        frequency = self.frequency + float(step[2]) / (2 * np.pi)
        return Hum(self.run, self.output, frequency, self.origin, cosine, sine)
