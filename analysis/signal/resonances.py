"""Resonances of a measured frequency response: natural frequency and damping of each peak, with errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.signal.frequency_response import FrequencyResponse

Array = NDArray[np.float64]
CLEAR = 6.0  # standard errors by which a peak rises over its surroundings
RISE = 1.4  # times: a peak this much above the higher of its two valleys
NARROW = 8.0  # lines within the half-power width; with fewer a Hann window widens the peak by 2 % and more
SIGNIFICANT = 3.0  # standard errors by which a damping differs from none
BENT = 6.0  # times the noise's variance that a smooth curve leaves over where there is a mode
PASSES = 12  # of the reweighted fit
FEWEST = 9  # lines of the fit of one peak


@dataclass(frozen=True)
class Resonance:
    """One mode, fitted to the lines around a peak. Frequencies in Hz, damping as a fraction of critical."""

    frequency: float  # undamped natural frequency
    frequency_stderr: float
    damping: float
    damping_stderr: float
    height: float  # |H| at the peak, in the response's unit
    warning: str = ""


def resonances(found: FrequencyResponse, most: int = 20) -> list[Resonance]:
    """The clear peaks of |H|, lowest frequency first.

    Each is a pole pair fitted with a second-order rational function to the lines around it (Levy's equation
    with the weights of Sanathanan & Koerner 1963); its neighbours enter through the free numerator.
    """
    from scipy.signal import find_peaks

    size = np.abs(found.response)
    if len(size) < FEWEST or not size.max() > 0:
        return []
    log = np.log(np.maximum(size, 1e-300 + 1e-12 * size.max()))
    error = np.minimum(found.stderr / np.maximum(size, 1e-300), 2.0)
    about: Any
    peaks, about = find_peaks(log, prominence=np.log(RISE))
    rise = about["prominences"]
    clear = [
        int(p)
        for p, r in zip(peaks, rise, strict=True)
        if r > CLEAR * error[p] and _stands_out(found, int(p))
    ]
    strongest = sorted(clear, key=lambda p: -size[p])[:most]
    fits = [_fitted(found, peak) for peak in strongest]
    return sorted((fit for fit in fits if fit is not None), key=lambda r: r.frequency)


def _stands_out(found: FrequencyResponse, peak: int) -> bool:
    """Output and input belong together there: a peak of noise has no coherence."""
    around = found.coherence[max(peak - 2, 0) : peak + 3]
    return bool(np.median(around) > 0.3)


def _fitted(found: FrequencyResponse, peak: int) -> Resonance | None:
    f, response = found.frequency, found.response
    around = _lines_around(np.abs(response), peak)
    # Frequencies relative to the peak's: a well-conditioned equation.
    s = 1j * f[around] / f[peak]
    h = response[around]
    noise = np.maximum(found.stderr[around], 1e-9 * np.abs(h).max())
    fit = _pole_pair(s, h, noise) if _is_bent(s, h, noise) else None
    if fit is None:
        return None
    (square, twice), cov = fit
    natural = float(np.sqrt(square))
    damping = float(twice / (2 * natural))
    by_frequency = np.array([0.5 / natural, 0.0])
    by_damping = np.array([-twice / (4 * natural**3), 1 / (2 * natural)])
    edges = f[around][[0, -1]] / f[peak]
    if not (0 < damping < 0.9 and edges[0] < natural < edges[1]):
        return None
    width = 2 * damping * natural * f[peak] / found.resolution
    error = float(np.sqrt(by_damping @ cov @ by_damping))
    if damping < SIGNIFICANT * error:
        return None  # a dent between two noisy lines has no width
    words = ""
    if found.window != "rectangular" and width < NARROW:
        words = "narrower than the lines can show: the damping is read too high; take more lines"
    return Resonance(
        float(natural * f[peak]),
        float(np.sqrt(by_frequency @ cov @ by_frequency) * f[peak]),
        damping,
        error,
        float(np.abs(response[peak])),
        words,
    )


def _lines_around(size: Array, peak: int) -> slice:
    """From where |H| has fallen to a third, or rises again, on either side."""
    low = high = peak
    floor = size[peak] / 3
    while low > 0 and size[low] > floor and size[low - 1] < 1.15 * size[low : peak + 1].min():
        low -= 1
    while high < len(size) - 1 and size[high] > floor and size[high + 1] < 1.15 * size[peak : high + 1].min():
        high += 1
    missing = max(FEWEST - (high - low + 1), 0)
    return slice(max(low - (missing + 1) // 2, 0), min(high + (missing + 1) // 2, len(size) - 1) + 1)


def _pole_pair(
    s: NDArray[np.complex128], h: NDArray[np.complex128], noise: Array
) -> tuple[Array, Array] | None:
    """Coefficients (b0, b1) of h = (a0 + a1 z + a2 z²) / (s² + b1 s + b0), and their covariance.

    z runs over the lines; a0 to a2 are complex: neighbours, and the delay of filters and converters, turn
    the phase there. With real ones a damping beside a stronger mode was read 4 % off.
    """
    numerator = _smooth(s)
    columns = np.concatenate([numerator, 1j * numerator, -h[:, None], (-h * s)[:, None]], axis=1)
    target = h * s**2
    weight = 1 / noise
    found: Array = np.zeros(columns.shape[1])
    for _ in range(PASSES):
        a = _real(columns * weight[:, None])
        found = np.asarray(np.linalg.lstsq(a, _real(target * weight), rcond=None)[0], dtype=np.float64)
        weight = 1 / (noise * np.maximum(np.abs(s**2 + found[-1] * s + found[-2]), 1e-12))
    if not np.isfinite(found).all() or found[-2] <= 0:
        return None
    a = _real(columns * weight[:, None])
    rest = a @ found - _real(target * weight)
    freedom = max(len(rest) - len(found), 1)
    # The noise of the lines, or what the fit leaves over where that is more (a neighbour, a nonlinearity).
    scatter = max(float(rest @ rest) / freedom, 1.0)
    cov: Array = np.asarray(np.linalg.pinv(a.T @ a) * scatter, dtype=np.float64)
    return found[-2:], cov[-2:, -2:]


def _is_bent(s: NDArray[np.complex128], h: NDArray[np.complex128], noise: Array) -> bool:
    """Whether the lines are no smooth curve with noise: the highest of many noisy lines is no mode."""
    curve = _smooth(s) / noise[:, None]
    rest = curve @ np.linalg.lstsq(curve, h / noise, rcond=None)[0] - h / noise
    return float(np.sum(np.abs(rest) ** 2)) > BENT * len(h)


def _smooth(s: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Columns of a parabola over the lines, from -1 to 1."""
    place = s.imag - s.imag.mean()
    z = place / np.abs(place).max()
    return np.stack([z**0, z, z**2], axis=1).astype(np.complex128)


def _real(values: NDArray[Any]) -> Array:
    """Real and imaginary parts below each other."""
    return np.concatenate([values.real, values.imag], axis=0)
