"""White noise taken out of a smooth record, as far as the spectrum tells the two apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_BAND = 200  # parts of the spectrum over which power is averaged
_CLEAR = 1.3  # times the power of the noise: what lies below is all taken for noise


def without_white_noise(samples: Array, noise: float) -> tuple[Array, float]:
    """Wiener's filter for white noise of a known standard deviation, and what it leaves of that noise.

    The filter is linear and has no phase, so a motion seen through it has the same exponents and dimensions.
    """
    x = np.asarray(samples, dtype=np.float64)
    trend = np.linspace(x[0], x[-1], len(x))  # the mirrored rest then has no jumps
    rest = x - trend
    lines = np.fft.rfft(np.concatenate([rest, -rest[::-1]]))
    power = np.abs(lines) ** 2 / (2 * len(x))
    width = max(len(x) // _BAND, 5)
    # Averages over whole bands, at the ends over what there is.
    weights = np.convolve(np.ones(len(power)), np.ones(width), "same")
    mean = np.convolve(power, np.ones(width), "same") / weights
    gain = np.where(mean > _CLEAR * noise**2, 1.0 - noise**2 / np.maximum(mean, 1e-300), 0.0)
    smooth = np.fft.irfft(gain * lines, 2 * len(x))[: len(x)] + trend
    return smooth, float(noise * np.sqrt(np.mean(gain**2)))
