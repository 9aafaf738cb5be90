"""The linear test: one resonance and the way of the drive to it, from a small multisine at rest.

The drive u reaches the force as f = g exp(-i w t_f) u, and the response is

    x = exp(-i w t_x) (i w)^k r / (w0^2 - w^2 + 2 i z w0 w) u,

with k = 0 for a displacement, 1 for a velocity, 2 for an acceleration.

t_x - t_f is the skew by which the two channels are apart: a force that is sampled while the converter holds
it appears at another time than it acts. All gains of the loop follow from these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.holding.dither import Response

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

BAND = (0.6, 1.6)  # of the multisine, over the frequency near which the resonance is
SPACING = 1 / 32  # of its lines, over that frequency
DAMPINGS = (0.002, 0.006, 0.02, 0.06)  # starts of the fit
MOST_MISFIT = 0.1  # share of the largest answer that one resonance may leave
MOST_SKEW = 0.1  # periods
LEAST_SEEN = 8.0  # largest answer over its error
DERIVATIVES = {"displacement": 0, "velocity": 1, "acceleration": 2}


@dataclass(frozen=True)
class LinearPlant:
    """A resonance, and the path of the drive to it."""

    rate: float  # Hz, of the samples
    frequency: float  # Hz, undamped
    damping: float  # of critical
    residue: float  # r above, in response units s^-2 a volt
    order: int  # k above
    delay: float  # s, t_x: from a sample to the drive that it leads to, and back in the response
    skew: float  # s, t_x - t_f
    force_gain: float  # g above
    skew_error: float = 0.0  # s
    misfit: float = 0.0  # of the fit, share of the largest answer

    @property
    def decay(self) -> float:
        """Rate at which an amplitude decays, 1/s."""
        return 2 * np.pi * self.frequency * self.damping

    @property
    def lag(self) -> float:
        """Phase of the response behind the force at the resonance, rad: -pi/2 for a displacement."""
        return 0.5 * np.pi * (self.order - 1) + (np.pi if self.residue * self.force_gain < 0 else 0.0)

    def growth(self, frequency: float) -> complex:
        """dZ/dt a volt, of the response's complex amplitude driven at ``frequency``."""
        w = 2 * np.pi * frequency
        return complex((1j * w) ** self.order * self.residue / (2j * w) * np.exp(-1j * w * self.delay))


def test_sequence(frequency: float, rate: float, rms: float, seed: int = 0) -> Array:
    """One period of the multisine around ``frequency``, in volts."""
    length = round(rate / (SPACING * frequency))
    lines = np.arange(int(BAND[0] / SPACING), int(BAND[1] / SPACING) + 1)
    rng = np.random.default_rng(seed)
    waves = []
    for _ in range(30):  # the smallest peak of some
        spectrum = np.zeros(length // 2 + 1, dtype=complex)
        spectrum[lines] = np.exp(2j * np.pi * rng.random(len(lines)))
        wave = np.fft.irfft(spectrum, length)
        waves.append(wave * rms / np.sqrt(np.mean(wave**2)))
    return min(waves, key=lambda w: float(np.abs(w).max()))


@dataclass(frozen=True, eq=False)
class _Resonance:
    """One resonance fitted: (angular frequency, log damping, delay in periods), its size, what is left."""

    shape: Array
    scale: float
    left: float  # rms of the residual, of the largest answer
    period: float  # of the largest answer, s
    delay_error: float  # s


def _one_resonance(w: Array, x: Complex, errors: Array, order: int, delay: float) -> _Resonance:
    """The resonance that answers most like ``x``; ``delay`` (s) begins the search."""
    from scipy.optimize import least_squares

    top = int(np.argmax(np.abs(x)))
    trust = np.hypot(errors, 1e-3 * np.abs(x).max())
    period = 2 * np.pi / w[top]

    def unit(p: Array) -> Complex:
        own = (1j * w) ** order / (p[0] ** 2 - w**2 + 2j * np.exp(p[1]) * p[0] * w)
        return np.asarray(own * np.exp(-1j * w * p[2] * period))

    def residue(shape: Complex) -> float:
        weight = 1 / trust**2
        return float(np.sum((x * shape.conj()).real * weight) / np.sum(np.abs(shape) ** 2 * weight))

    def misses(p: Array) -> Array:
        shape = unit(p)
        miss = (x - residue(shape) * shape) / trust
        return np.concatenate([miss.real, miss.imag])

    fits = [
        least_squares(misses, [place, np.log(z), delay / period], x_scale=[0.01 * w[top], 0.3, 0.02])
        for place in w[max(0, top - 1) : top + 2]
        for z in DAMPINGS
    ]
    fit = min(fits, key=lambda one: one.cost)
    shape = unit(fit.x)
    scale = residue(shape)
    left = float(np.sqrt(np.mean(np.abs(x - scale * shape) ** 2)) / np.abs(x).max())
    jacobian = np.asarray(fit.jac, dtype=np.float64)
    spread = np.linalg.pinv(jacobian.T @ jacobian) * 2 * fit.cost / (2 * len(w) - 4)
    return _Resonance(fit.x, scale, left, period, float(np.sqrt(spread[2, 2])) * period)


def read_test(found: Response, rate: float, sees: str) -> LinearPlant:
    """The plant from the answers of response (row 0) and force (row 1) to the drive.

    DataError where one resonance does not explain them.
    """
    w, (x, f), (ex, ef) = found.omega, found.answers, found.errors
    order = DERIVATIVES[sees]
    if np.abs(x).max() < LEAST_SEEN * np.median(ex):
        raise DataError("The response to the linear test drowns in noise.")
    gain, t_f, t_f_error = _path(w, f, ef)
    fit = _one_resonance(w, x, ex, order, t_f)
    best, scale, left, period = fit.shape, fit.scale, fit.left, fit.period
    damping, t_x = float(np.exp(best[1])), float(best[2] * period)
    if left > MOST_MISFIT or not 1e-5 < damping < 0.5 or not w[0] < best[0] < w[-1]:
        raise DataError(
            f"The answer to the linear test is not that of one resonance between {w[0] / 2 / np.pi:.4g} and "
            f"{w[-1] / 2 / np.pi:.4g} Hz (misfit {100 * left:.0f} % of the largest answer)."
        )
    # a change of sign and half a period of delay look alike in a narrow band: the smaller skew is true
    skew = t_x - t_f
    half = np.pi / best[0]
    turns = round(skew / half)
    skew, t_x = skew - turns * half, t_x - turns * half
    scale = scale * (-1.0) ** turns
    if abs(skew) > MOST_SKEW * 2 * half:
        raise DataError(
            f"The response lies {abs(skew) / 2 / half:.2f} of a period beside that of a {sees}: say what the "
            "sensor sees, or mend the skew of the channels."
        )
    error = float(np.hypot(fit.delay_error, t_f_error))
    return LinearPlant(
        rate,
        float(best[0]) / (2 * np.pi),
        damping,
        scale,
        order,
        max(t_x, 0.0),
        float(skew),
        gain,
        error,
        left,
    )


def _path(w: Array, f: Complex, errors: Array) -> tuple[float, float, float]:
    """Gain of the force over the drive, its delay and the error of that, at the middle of the band."""
    if np.median(np.abs(f)) < LEAST_SEEN * np.median(errors):
        raise DataError("The force of the linear test drowns in noise.")
    slope = float(np.polyfit(w, np.unwrap(np.angle(f)), 1)[0])
    turned = f * np.exp(-1j * slope * w)
    mean = complex(np.mean(turned))
    sign = 1.0 if mean.real > 0 else -1.0
    angles = np.angle(turned / (sign * np.exp(1j * np.angle(sign * mean))))
    delay = -slope - float(np.angle(sign * mean)) / float(np.mean(w))
    error = float(np.std(angles) / np.sqrt(len(w)) / np.mean(w))
    return sign * float(np.median(np.abs(f))), float(delay), error
