"""Time scales of a sampled signal that the other methods start from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError


def mean_period(samples: NDArray[np.float64]) -> float:
    """One over the mean frequency of the power spectrum, in samples (Rosenstein et al. 1993)."""
    x = np.asarray(samples, dtype=np.float64)
    if len(x) < 16 or not np.isfinite(x).all() or np.ptp(x) == 0:
        raise DataError("The signal must be finite, not constant, and at least 16 samples long.")
    power = np.abs(np.fft.rfft((x - x.mean()) * np.hanning(len(x)))) ** 2
    frequencies = np.fft.rfftfreq(len(x))
    return float(np.sum(power[1:]) / np.sum(frequencies[1:] * power[1:]))


def theiler_window(samples: NDArray[np.float64]) -> int:
    """Samples within which two points are close because the motion is slow, not because it comes back.

    One mean period (Theiler 1986 asks for more than the correlation time), at most a twentieth of the record.
    """
    return int(np.ceil(min(mean_period(samples), len(samples) / 20)))
