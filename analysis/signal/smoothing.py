"""Smoothing as far as a channel's own noise allows, and no further."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.signal.noise import FEWEST_SAMPLES, noise_level
from analysis.signal.tone import tone_basis

if TYPE_CHECKING:
    from analysis.base.record import Excitation

Array = NDArray[np.float64]

_WIDTHS = (5, 7, 9, 13, 17, 23, 31, 43, 61, 85)  # samples under a local cubic
_HARMONICS = 7
_SIGNIFICANT = 12.0  # squared amplitude over its variance
_FEWEST_PERIODS = 2.0  # of a stated drive, in a record that can show its harmonics
_NEGLIGIBLE = 1e-5  # noise over standard deviation below which nothing is smoothed
BROADBAND = 0.35  # the same of an input beyond which what is no tone in it may be force, not a poor sensor
_ALIKE = 0.5  # correlation from which on one channel is taken for the rate of another
_OTHER_UNIT = 2.0  # factor that coarse sampling and noise do not explain
_WHITE = 0.7  # the same from which on an input counts as a white force, not as a sensor's noise


def smooth(row: Array, dt: float) -> tuple[Array, Array]:
    """Local cubics: value and derivative. The widest window that leaves no more than the noise as
    residual.
    """
    noise = _noise(row)
    best = _WIDTHS[0]
    if noise > _NEGLIGIBLE * np.std(row):
        for width in _WIDTHS:
            if width > len(row) // 4:
                break
            residual = row - _local_cubics(row, width, 0)
            left = 1.0 - _centre_weight(width)  # of white noise that the local cubic does not follow
            if np.sqrt(np.mean(residual**2) / left) > 1.05 * noise:
                break
            best = width
        value = _local_cubics(row, best, 0)
    else:
        value = row
    return value, _local_cubics(row, best, 1) / dt


def rate_factor(row: Array, rate: Array, dt: float) -> tuple[float, float]:
    """Ends of the factor between ``rate`` and the rate of change of ``row``; noise in either moves one end
    away. (-inf, inf) where the two have nothing to do with each other.
    """
    slope = smooth(row, dt)[1]
    slope, rate = slope - slope.mean(), rate - rate.mean()
    common = float(slope @ rate)
    if abs(common) < _ALIKE * float(np.linalg.norm(slope) * np.linalg.norm(rate)) or not common:
        return -np.inf, np.inf
    low, high = sorted((common / float(slope @ slope), float(rate @ rate) / common))
    return low, high


def is_rate(row: Array, rate: Array, dt: float) -> bool:
    """False where ``rate`` is certainly in another unit than the rate of change of ``row``."""
    low, high = rate_factor(row, rate, dt)
    return low <= _OTHER_UNIT and high >= 1 / _OTHER_UNIT


def _local_cubics(row: Array, width: int, derivative: int) -> Array:
    """The cubic through the ``width`` samples around each one (Savitzky and Golay 1964), its value or its
    first derivative per sample there; the first and the last of them serve the ends.

    Of our own because the library's brings half a second of imports to every start.
    """
    half = width // 2
    offset = np.arange(width, dtype=np.float64) - half
    fit = np.linalg.pinv(np.vander(offset, 4, increasing=True))  # samples -> coefficients
    if derivative:
        at = np.vander(offset, 3, increasing=True) @ (fit[1:] * np.array([[1.0], [2.0], [3.0]]))
    else:
        at = np.vander(offset, 4, increasing=True) @ fit
    middle = np.convolve(row, fit[derivative][::-1], "valid")
    return np.concatenate([at[:half] @ row[:width], middle, at[half + 1 :] @ row[-width:]])


@dataclass(frozen=True, eq=False)
class CleanInput:
    """An input as far as it can be cleaned by itself."""

    samples: Array  # [N]
    modes: Array  # [modes, N] independent changes, each one standard deviation of what stays unknown of it
    noise: float = 0.0  # standard deviation of the white noise still on the samples


def clean_input(row: Array, dt: float, drive: Excitation | None = None) -> CleanInput:
    """A periodic input by its harmonics; any other as it is, with its noise.

    Smoothing an aperiodic input would take away some of what drives the motion; its noise is better left to
    methods that weigh it. Stepped inputs, and those whose noise cannot be told from the signal, count as
    exact: so does a white force, all of which looks like noise by itself. A sine on random keeps both.
    """
    changes = np.count_nonzero(np.diff(row))
    exact = CleanInput(row, np.zeros((0, len(row))))
    if changes < 0.05 * len(row) or len(row) < FEWEST_SAMPLES:
        return exact
    level = noise_level(row)
    share = level.value / float(np.std(row))
    if not level.settled or not _NEGLIGIBLE < share < _WHITE:
        return exact
    stated = 0.0 if drive is None else drive.frequency  # random drives have none; segments a very low one
    periodic, modes = _periodic(row, dt, stated if stated * dt * len(row) > _FEWEST_PERIODS else None)
    if share < BROADBAND and np.std(row - periodic) < 1.1 * level.value:
        return CleanInput(periodic, modes)
    return CleanInput(row, exact.modes, level.value)


def _periodic(row: Array, dt: float, frequency: float | None) -> tuple[Array, Array]:
    """Fit by the harmonics of one frequency, a constant and a straight line; and its uncertainty as modes."""
    from scipy.optimize import minimize_scalar

    N = len(row)
    t = np.arange(N) * dt
    spread = 1.0 / (N * dt)
    if frequency is None:
        spectrum = np.abs(np.fft.rfft((row - row.mean()) * np.hanning(N)))
        frequency = float(np.argmax(spectrum)) * spread
        if frequency == 0:
            return np.full(N, row.mean()), np.zeros((0, N))

    def fit(f: float) -> tuple[Array, Array]:
        count = sum(h * f < 0.4 / dt for h in range(1, _HARMONICS + 1))
        basis = np.insert(tone_basis(t, f, count), 1, t / t[-1] - 0.5, axis=1)
        weights = np.asarray(np.linalg.lstsq(basis, row, rcond=None)[0], dtype=np.float64)
        return basis, weights

    def misfit(f: float) -> float:
        basis, weights = fit(f)
        return float(np.sum((row - basis @ weights) ** 2))

    best = minimize_scalar(
        misfit,
        bounds=(frequency - spread, frequency + spread),
        method="bounded",
        options={"xatol": 1e-6 * spread},
    )
    basis, weights = fit(float(best.x))
    power = float(np.mean((row - basis @ weights) ** 2))
    kept = [0, 1]
    for pair in range(2, basis.shape[1], 2):  # a harmonic below its own uncertainty would only add noise
        if np.sum(weights[pair : pair + 2] ** 2) >= _SIGNIFICANT * 2 * power / N:
            kept += [pair, pair + 1]
    fitted = basis[:, kept] @ weights[kept]
    ahead = np.gradient(fitted - basis[:, :2] @ weights[:2], dt) * t  # change when the frequency is another
    design = np.column_stack([basis[:, kept], ahead / (np.abs(ahead).max() or 1.0)])
    level, axes = np.linalg.eigh(np.linalg.pinv(design.T @ design) * power)
    root = axes * np.sqrt(np.maximum(level, 0.0))
    return np.asarray(fitted), np.ascontiguousarray((design @ root).T)


def _noise(row: Array) -> float:
    return float(noise_level(row).value) if len(row) >= FEWEST_SAMPLES else 0.0


def _centre_weight(width: int) -> float:
    """Weight of the middle sample in a local cubic over an odd number of samples."""
    half = width // 2
    return 3.0 * (3 * half * half + 3 * half - 1) / ((2 * half - 1) * (2 * half + 1) * (2 * half + 3))
