"""A virtual sensor chain: what a converter makes of a clean signal.

In order: anti-alias filter, sampling by an imperfect clock, gain, offset and drift, noise, saturation,
quantisation, gaps. All chance comes from the generator passed in.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.record import Channel, Span

Array = NDArray[np.float64]


LOWEST_CUTOFF = 1e-6  # of the rate: below, the filter's coefficients are lost in rounding


@dataclass(frozen=True)
class Sensor:
    """One channel from the specimen to the file. The defaults change nothing."""

    gain: float = 1.0
    offset: float = 0.0  # in the unit after the gain
    drift: float = 0.0  # of the offset, per second
    snr_db: float | None = None  # variance of the channel over variance of the noise, in dB
    noise_percent: float | None = None  # noise standard deviation in per cent of the channel's rms
    noise: float | None = None  # noise standard deviation in the channel's unit
    limit: float | None = (
        None  # the converter sees -limit to +limit; None with bits: 5 % above the largest value
    )
    bits: int | None = None  # of the converter; codes -2^(bits-1) to 2^(bits-1) - 1
    cutoff: float | None = None  # Hz, of a Butterworth filter of order 6 ahead of the converter
    jitter: float = 0.0  # s, standard deviation of each sampling time
    clock_ppm: float = 0.0  # the clock runs slow by this many parts in a million
    gaps: int = 0  # stretches of lost samples
    gap_samples: int = 20  # length of each

    def __post_init__(self) -> None:
        if sum(level is not None for level in (self.snr_db, self.noise_percent, self.noise)) > 1:
            raise DataError("Give the noise in one way: SNR in dB, per cent, or standard deviation.")
        if self.bits is not None and not 1 <= self.bits <= 32:
            raise DataError(f"A converter has 1 to 32 bits, not {self.bits}.")
        for name in ("limit", "cutoff"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise DataError(f"The sensor's {name} must be positive, not {value}.")
        wrong = [f.name for f in fields(self) if not np.isfinite(getattr(self, f.name) or 0.0)]
        if wrong:
            raise DataError(f"The sensor's {', '.join(wrong)} must be finite.")
        negative = [n for n in ("noise_percent", "noise", "jitter", "gaps") if (getattr(self, n) or 0) < 0]
        if negative or self.gap_samples < 1:
            raise DataError(f"The sensor's {', '.join(negative) or 'gap_samples'} must not be negative.")

    def measure(
        self, signal: Array, rate: float, rng: np.random.Generator, unit: str = "", oversampling: int = 1
    ) -> Channel:
        """The channel a converter records at ``rate`` (Hz) from a clean signal at rate * oversampling.

        Saturated and lost samples are flagged in the channel; lost ones are not-a-number.
        """
        clean = np.ascontiguousarray(signal, dtype=np.float64)
        if not np.all(np.isfinite(clean)):
            raise DataError("The signal that reaches the sensor has missing or infinite samples.")
        filtered = self._filtered(clean, rate * oversampling)
        sampled = self._sampled(filtered, rate, oversampling, rng)
        times = np.arange(len(sampled)) / rate
        amplified = self.gain * sampled
        level = self.noise_level(amplified)
        data = amplified + self.offset + self.drift * times
        if level > 0:
            data = data + level * rng.standard_normal(len(data))
        data, clipped = self._converted(data)
        lost = self._lost(len(data), rng)
        for start, stop in lost:
            data[start:stop] = np.nan
        return Channel(data, unit, lost, clipped)

    def noise_level(self, amplified: Array) -> float:
        """Standard deviation of the noise for a clean channel."""
        if self.snr_db is not None:
            return float(np.std(amplified) * 10 ** (-self.snr_db / 20))
        if self.noise_percent is not None:
            return float(np.sqrt(np.mean(amplified**2)) * self.noise_percent / 100)
        return self.noise or 0.0

    def _filtered(self, signal: Array, rate: float) -> Array:
        if self.cutoff is None:
            return signal
        if self.cutoff >= rate / 2:
            raise DataError(
                f"A filter at {self.cutoff:g} Hz needs a signal sampled above {2 * self.cutoff:g} Hz: "
                "raise the rate or the oversampling."
            )
        if self.cutoff < LOWEST_CUTOFF * rate:
            raise DataError(f"A filter at {self.cutoff:g} Hz never settles at {rate:g} samples a second.")
        from scipy.signal import butter, sosfilt, sosfilt_zi

        sections = butter(6, self.cutoff, fs=rate, output="sos")
        settled = sosfilt_zi(sections) * signal[0]  # no transient from a step at the first sample
        return np.asarray(sosfilt(sections, signal, zi=settled)[0])

    def _sampled(self, signal: Array, rate: float, oversampling: int, rng: np.random.Generator) -> Array:
        if oversampling < 1:
            raise DataError("Oversampling must be at least 1.")
        count = -(-len(signal) // oversampling)
        if self.jitter == 0 and self.clock_ppm == 0:
            return signal[::oversampling].copy()
        from scipy.interpolate import CubicSpline

        fine = np.arange(len(signal)) / (rate * oversampling)
        moments = np.arange(count) / rate * (1 + 1e-6 * self.clock_ppm) + self.jitter * rng.standard_normal(
            count
        )
        return np.asarray(CubicSpline(fine, signal)(np.clip(moments, fine[0], fine[-1])))

    def _converted(self, data: Array) -> tuple[Array, tuple[Span, ...]]:
        limit = self.limit
        if limit is None and self.bits is None:
            return data, ()
        if limit is None:
            limit = 1.05 * float(np.max(np.abs(data))) or 1.0
        if self.bits is None:
            return np.clip(data, -limit, limit), spans(np.abs(data) >= limit)
        half = 2 ** (self.bits - 1)
        codes = np.round(data / limit * half)
        clipped = spans((codes < -half) | (codes > half - 1))
        return np.clip(codes, -half, half - 1) * (limit / half), clipped

    def _lost(self, count: int, rng: np.random.Generator) -> tuple[Span, ...]:
        lost = np.zeros(count, dtype=bool)
        for start in rng.integers(1, max(count - self.gap_samples, 2), self.gaps):
            lost[start : start + self.gap_samples] = True
        return spans(lost)


def spans(flags: NDArray[np.bool_]) -> tuple[Span, ...]:
    """Runs of true flags as (start, stop) sample ranges."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return tuple((int(a), int(b)) for a, b in edges.reshape(-1, 2))
