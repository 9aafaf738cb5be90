"""Amplitude spectrum of a record or of the newest piece of a stream."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]


def amplitude_spectrum(data: Samples, rate: float) -> tuple[Samples, Samples]:
    """Frequencies (Hz) and peak amplitudes of ``data[..., N]``, Hann window, mean removed.

    Scaled so that a sine of amplitude A on a line of the spectrum reads A (Harris 1978, coherent gain).
    """
    size = data.shape[-1]
    window = np.hanning(size + 1)[:-1]
    quiet = data - data.mean(axis=-1, keepdims=True)
    lines = np.abs(np.fft.rfft(quiet * window, axis=-1)) * (2.0 / window.sum())
    frequencies: Samples = np.arange(lines.shape[-1]) * (rate / size)
    return frequencies, lines
