"""The frequency of a periodic drive from a recorded channel, finer than the resolution of a spectrum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError

_WINDOWED = 1.3  # standard error of a line's frequency with a Hann window over that without one
_CLEAR = 30.0  # power of a line over that beside it, below which there is no line


def drive_frequency(samples: NDArray[np.float64], near: float | None = None, within: float = 3e-4) -> float:
    """Frequency in cycles per sample of the strongest line, or of the line close to ``near``.

    A forced chaotic response keeps a line at the drive's frequency, so the clock error between generator and
    converter can be read off the response itself: ``within`` is the largest relative error looked for.
    Without a clear line ``near`` is returned as it is.
    """
    x = np.asarray(samples, dtype=np.float64)
    good = np.isfinite(x)
    x = np.where(good, x - x[good].mean(), 0.0)
    total = len(x)
    if total < 64 or not np.any(x):
        raise DataError("The drive's frequency needs at least 64 samples of a signal that is not constant.")
    x = x * np.hanning(total)
    if near is None:
        power = np.abs(np.fft.rfft(x)) ** 2
        near = (1 + int(np.argmax(power[1:]))) / total
        reach = 1.0 / total
    else:
        reach = max(within * near, 1.0 / total)
        beside = np.concatenate(
            [_power(x, near + side * (reach + k / total)) for side in (-1, 1) for k in (3, 4, 5)]
        )
        around = near + np.linspace(-reach, reach, 2 * int(np.ceil(2 * reach * total)) + 1)
        if np.max(_power(x, around)) < _CLEAR * np.median(beside):
            return near
    return _peak(x, near, reach)


def line_error(samples: NDArray[np.float64], frequency: float) -> float:
    """Standard error, in cycles per sample, of the frequency of a line that ``drive_frequency`` found.

    What lies beside the line, noise or the continuum of a chaotic motion, moves its peak: the bound of Rife
    and Boorstyn (1974), with the strongest of ten neighbours in place of the noise, for the continuum is not
    white. Over 215 pieces of chaotic records, 50 to 800 periods long, error over bar was 0.7 to 1.2 rms, at
    most 4.0.
    """
    x = np.asarray(samples, dtype=np.float64)
    good = np.isfinite(x)
    total = len(x)
    x = np.where(good, x - x[good].mean(), 0.0) * np.hanning(total)
    beside = np.concatenate([_power(x, frequency + side * np.arange(3, 8) / total) for side in (-1, 1)])
    ratio = beside.max() / _power(x, frequency)[0]
    return float(_WINDOWED * np.sqrt(6.0 * ratio) / (2.0 * np.pi * total))


def _power(x: NDArray[np.float64], frequencies: NDArray[np.float64] | float) -> NDArray[np.float64]:
    n = np.arange(len(x))
    return np.array([abs(np.exp(-2j * np.pi * f * n) @ x) ** 2 for f in np.atleast_1d(frequencies)])


def _peak(x: NDArray[np.float64], centre: float, reach: float) -> float:
    """Highest point of the spectrum within ``reach``: a grid, then parabolas through three points."""
    step = 0.5 / len(x)
    half = int(np.ceil(reach / step))
    grid = centre + step * np.arange(-half, half + 1, dtype=np.float64)
    best = float(grid[int(np.argmax(_power(x, grid)))])
    while step > 1e-5 / len(x):
        below, at, above = np.log(_power(x, np.array([best - step, best, best + step])))
        bend = below - 2 * at + above
        best += float(np.clip(0.5 * (below - above) / bend, -1, 1)) * step if bend < 0 else 0.0
        step /= 8
    return best
