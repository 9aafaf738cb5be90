"""Waveforms of the drive: what can be played, and the generators that give its samples one by one.

A :class:`Waveform` is a description (a value: save it, send it, compare it). ``generator(rate)`` makes what
counts samples. Every generator knows the phase and the frequency of its next sample, so the phase of the
drive is known at every sample that is measured. Sines are cosines: amplitude * cos(phase).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from analysis import ShakedownError

Array = NDArray[np.float64]
TWO_PI = 2 * np.pi
GLIDE = 0.2  # s, over which a sine goes to another frequency or amplitude
GROUP = 4  # odd lines of which one is not driven
EDGE = 0.5  # s, in which a part of several rises and falls, as the player does between two waveforms
RANDOM_CREST = 4.0  # peak over rms of random drives: what lies beyond is clipped (6 in 100 000 samples)
LARGEST = 1e300  # of a number: whole ones may lie beyond all floats
MOST_LINES = 100_000  # up to the highest of a multisine
DIRECT_LINES = 1000  # that can be summed as fast as they are played
MOST_PERIODS = 64  # of a multisine that are kept where one is no whole number of samples
MOST_SAMPLES = 1 << 23  # kept at once: computing more takes longer than playing them


class WaveformError(ShakedownError):
    """A waveform that makes no sense."""


class SampleGenerator(ABC):
    """Gives the samples of a waveform one after the other."""

    phase: float = 0.0  # rad, of the next sample
    frequency: float = 0.0  # Hz, of the next sample
    amplitude: float = 0.0
    steady: bool = True  # neither frequency nor amplitude are changing
    ended: bool = False  # the waveform is over; what still comes holds its last state

    @abstractmethod
    def take(self, count: int) -> Array:
        """The next samples."""

    @property
    def target(self) -> tuple[float, float]:
        """Frequency and amplitude at the end of the glide under way, if there is one."""
        return self.frequency, self.amplitude

    def hold(self) -> None:  # noqa: B027 (most have no glide)
        """Stay at the present frequency and amplitude: end a glide that is under way."""

    def change(self, frequency: float | None, amplitude: float | None, ramp: float = np.inf) -> None:
        """Glide to another frequency or amplitude, the amplitude by no more than ``ramp`` a second."""
        raise WaveformError("Only a sine can change its frequency and amplitude while it plays.")


def _is_number(value: Any) -> bool:
    known = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return known and bool(abs(value) < LARGEST)


def _is_seed(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


# By the annotation of a field: what it may hold, and that in words.
_FITTING: dict[str, Callable[[Any], bool]] = {
    "float": _is_number,
    "tuple[float, ...]": lambda values: isinstance(values, tuple) and all(map(_is_number, values)),
    "int": _is_seed,
    "int | None": lambda value: value is None or _is_seed(value),
    "bool": lambda value: isinstance(value, bool),
}
_MEANT = {
    "float": "a number", "tuple[float, ...]": "a list of numbers", "int": "a whole number of at least 0",
    "int | None": "a whole number of at least 0", "bool": "true or false",
}  # fmt: skip


@dataclass(frozen=True)
class Waveform(ABC):
    """A description of a drive with peak value ``amplitude``, in the exciter's unit."""

    kind: ClassVar[str] = ""
    amplitude: float

    @property
    @abstractmethod
    def band(self) -> tuple[float, float]:
        """Lowest and highest frequency in Hz."""

    @abstractmethod
    def generator(self, rate: float) -> SampleGenerator: ...

    @property
    def duration(self) -> float:
        """Seconds until it ends by itself."""
        return np.inf

    def slew(self) -> float:
        """Steepest slope: 2 pi f A bounds every signal of highest frequency f and peak A (Bernstein)."""
        return TWO_PI * self.band[1] * self.amplitude

    def check(self) -> None:
        """WaveformError unless every number of it is one: NaN passes comparisons with limits unseen."""
        for f in fields(self):
            value, kind = getattr(self, f.name), str(f.type)
            if f.init and kind in _FITTING and not _FITTING[kind](value):
                shown = repr(value) if len(repr(value)) < 40 else f"{repr(value)[:36]} ..."
                raise WaveformError(f"The {f.name} of a {self.kind} is {_MEANT[kind]}, not {shown}.")

    def describe(self) -> dict[str, Any]:
        """Name and numbers, as a recording keeps them; :func:`waveform_from` reads them back."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
        return {"kind": self.kind, **plain}


@dataclass(frozen=True)
class Sine(Waveform):
    """amplitude * cos(2 pi frequency t + phase)."""

    kind: ClassVar[str] = "sine"
    frequency: float
    phase: float = 0.0

    def __post_init__(self) -> None:
        if not _is_number(self.phase):
            raise WaveformError(f"The phase of a sine must be a number, not {self.phase}.")

    @property
    def band(self) -> tuple[float, float]:
        return self.frequency, self.frequency

    def generator(self, rate: float) -> SampleGenerator:
        return _SineGenerator(self, rate)


class _SineGenerator(SampleGenerator):
    """Counts samples from the last change, so that a steady sine has no accumulated rounding."""

    def __init__(self, sine: Sine, rate: float) -> None:
        self._rate = rate
        self._anchor, self._count = sine.phase, 0
        self._glides: tuple[Array, Array] = (np.empty(0), np.empty(0))  # frequency and amplitude to come
        self.phase, self.frequency, self.amplitude = sine.phase, sine.frequency, sine.amplitude

    @property
    def target(self) -> tuple[float, float]:
        if len(self._glides[0]):
            return float(self._glides[0][-1]), float(self._glides[1][-1])
        return self.frequency, self.amplitude

    def change(self, frequency: float | None, amplitude: float | None, ramp: float = np.inf) -> None:
        to_f = self.target[0] if frequency is None else frequency
        to_a = self.target[1] if amplitude is None else amplitude
        steps = max(1, round(max(GLIDE, abs(to_a - self.amplitude) / ramp) * self._rate))
        course = np.arange(1, steps + 1) / steps
        self._glides = (
            self.frequency + (to_f - self.frequency) * course,
            self.amplitude + (to_a - self.amplitude) * course,
        )
        self.steady = False

    def hold(self) -> None:
        self._glides = (np.empty(0), np.empty(0))
        self._anchor, self._count = self.phase, 0

    def take(self, count: int) -> Array:
        gliding = min(count, len(self._glides[0]))
        parts = []
        if gliding:
            parts.append(self._glide(gliding))
        if count > gliding:
            parts.append(self._steady(count - gliding))
        return np.concatenate(parts) if parts else np.empty(0)

    def _steady(self, count: int) -> Array:
        phase = self._anchor + TWO_PI * self.frequency * (self._count + np.arange(count + 1)) / self._rate
        self._count += count
        self.phase = float(phase[-1] % TWO_PI)
        self.steady = True
        return self.amplitude * np.cos(phase[:-1])

    def _glide(self, count: int) -> Array:
        frequency, amplitude = (g[:count] for g in self._glides)
        self._glides = (self._glides[0][count:], self._glides[1][count:])
        phase = self.phase + np.concatenate(([0.0], np.cumsum(frequency))) * TWO_PI / self._rate
        self.phase, self.frequency = float(phase[-1] % TWO_PI), float(frequency[-1])
        self.amplitude = float(amplitude[-1])
        self._anchor, self._count = self.phase, 0
        return np.asarray(amplitude * np.cos(phase[:-1]))


@dataclass(frozen=True)
class SteppedSine(Waveform):
    """A sine that dwells at each frequency for ``dwell`` seconds; the phase runs through."""

    kind: ClassVar[str] = "stepped sine"
    frequencies: tuple[float, ...]
    dwell: float

    def __post_init__(self) -> None:
        if not self.frequencies or self.dwell <= 0:
            raise WaveformError("A stepped sine needs at least one frequency and a positive dwell time.")

    @property
    def band(self) -> tuple[float, float]:
        return min(self.frequencies), max(self.frequencies)

    @property
    def duration(self) -> float:
        return self.dwell * len(self.frequencies)

    def generator(self, rate: float) -> SampleGenerator:
        return _SteppedGenerator(self, rate)


class _SteppedGenerator(SampleGenerator):
    def __init__(self, stepped: SteppedSine, rate: float) -> None:
        self._stepped, self._rate = stepped, rate
        self._each = max(1, round(stepped.dwell * rate))
        self._step, self._count, self._anchor = 0, 0, 0.0
        self.amplitude, self.frequency = stepped.amplitude, stepped.frequencies[0]

    def take(self, count: int) -> Array:
        parts = []
        while count:
            last = self._step == len(self._stepped.frequencies) - 1
            now = count if last else min(count, self._each - self._count)
            phase = self._anchor + TWO_PI * self.frequency * (self._count + np.arange(now + 1)) / self._rate
            parts.append(self.amplitude * np.cos(phase[:-1]))
            self.phase = float(phase[-1] % TWO_PI)
            self._count += now
            count -= now
            if self._count >= self._each:
                if last:
                    self.ended = True
                else:
                    self._step, self._count, self._anchor = self._step + 1, 0, self.phase
                    self.frequency = self._stepped.frequencies[self._step]
        return np.concatenate(parts) if parts else np.empty(0)


@dataclass(frozen=True)
class Sweep(Waveform):
    """A sine whose frequency goes from ``start`` to ``stop`` Hz in ``seconds``, linearly or by octaves."""

    kind: ClassVar[str] = "sweep"
    start: float
    stop: float
    seconds: float
    logarithmic: bool = False

    def __post_init__(self) -> None:
        if self.seconds <= 0 or min(self.start, self.stop) <= 0:
            raise WaveformError("A sweep needs positive frequencies and a positive duration.")

    @property
    def band(self) -> tuple[float, float]:
        return min(self.start, self.stop), max(self.start, self.stop)

    @property
    def duration(self) -> float:
        return self.seconds

    def phase_at(self, t: Array) -> Array:
        """Phase at t seconds: the integral of 2 pi times the frequency."""
        if not self.logarithmic or self.start == self.stop:
            return TWO_PI * (self.start * t + (self.stop - self.start) * t**2 / (2 * self.seconds))
        growth = np.log(self.stop / self.start) / self.seconds
        return TWO_PI * self.start * np.expm1(growth * t) / growth

    def frequency_at(self, t: float) -> float:
        if self.logarithmic:
            return float(self.start * (self.stop / self.start) ** (t / self.seconds))
        return self.start + (self.stop - self.start) * t / self.seconds

    def generator(self, rate: float) -> SampleGenerator:
        return _SweepGenerator(self, rate)


class _SweepGenerator(SampleGenerator):
    steady = False

    def __init__(self, sweep: Sweep, rate: float) -> None:
        self._sweep, self._rate, self._count = sweep, rate, 0
        self.amplitude, self.frequency = sweep.amplitude, sweep.start

    def take(self, count: int) -> Array:
        t = (self._count + np.arange(count + 1)) / self._rate
        over = np.maximum(t - self._sweep.seconds, 0.0)  # beyond the end the last frequency is held
        phase = self._sweep.phase_at(np.minimum(t, self._sweep.seconds)) + TWO_PI * self._sweep.stop * over
        self._count += count
        self.phase = float(phase[-1] % TWO_PI)
        self.frequency = self._sweep.frequency_at(min(t[-1], self._sweep.seconds))
        self.ended = bool(t[-1] >= self._sweep.seconds)
        return np.asarray(self.amplitude * np.cos(phase[:-1]))


@dataclass(frozen=True)
class Multisine(Waveform):
    """Lines ``spacing`` Hz apart from ``lowest`` to ``highest``, equally strong, scaled to the peak.

    Phases by Schroeder (1970), which keep the crest factor low, or random when a seed is given. The phase
    reported is that of the period 1/spacing.
    """

    kind: ClassVar[str] = "multisine"
    lowest: float
    highest: float
    spacing: float
    seed: int | None = None

    def __post_init__(self) -> None:
        sensible = self.spacing > 0 and 0 < self.lowest <= self.highest < np.inf
        if sensible and self.highest / self.spacing > MOST_LINES:
            raise WaveformError(
                f"The spacing of a multisine is too narrow: at least 1/{MOST_LINES} of its highest frequency."
            )
        if not sensible or len(self._lines()) == 0:
            raise WaveformError(
                "A multisine needs a positive line spacing and at least one line in its band."
            )

    def _lines(self) -> Array:
        first, last = np.ceil(self.lowest / self.spacing - 1e-9), np.floor(self.highest / self.spacing + 1e-9)
        return np.arange(first, last + 1)

    @property
    def band(self) -> tuple[float, float]:
        return self.lowest, self.highest

    def generator(self, rate: float) -> SampleGenerator:
        return _MultisineGenerator(self, rate)

    def spectrum(self) -> tuple[Array, Array, float]:
        """Numbers of the lines, their phases (rad), and the amplitude of each."""
        lines = self._lines()
        order = np.arange(1, len(lines) + 1)
        angles = -np.pi * order * (order - 1) / len(lines)
        if self.seed is not None:
            angles = np.random.default_rng(self.seed).uniform(0, TWO_PI, len(lines))
        grid = np.zeros(16 * int(2 ** np.ceil(np.log2(lines[-1] + 1))), dtype=complex)
        grid[lines.astype(int)] = np.exp(1j * angles)
        peak = np.abs(np.fft.fft(grid).real).max() * 1.005  # between the grid points at most 0.5 % more
        return lines, angles, float(self.amplitude / peak)

    def periods(self, number: int, samples: int) -> Array:
        """So many whole periods in so many samples; the peak is at most ``amplitude``."""
        lines, angles, each = self.spectrum()
        grid = np.zeros(samples, dtype=complex)
        np.add.at(grid, lines.astype(int) * number % samples, np.exp(1j * angles))
        return np.asarray(each * samples * np.fft.ifft(grid).real)


@dataclass(frozen=True)
class OddMultisine(Multisine):
    """A multisine on odd lines, one in each group of four left out at random.

    What answers at the lines left out is nonlinear distortion: at the even ones by even terms of the equation
    of motion, at the odd ones by odd terms (Pintelon & Schoukens 2012, section 4.3.2). Phases are
    Schroeder's, or random when a seed is given, which also draws the lines that are left out.
    """

    kind: ClassVar[str] = "odd multisine"

    def _lines(self) -> Array:
        lines = super()._lines()
        odd = lines[lines % 2 == 1]
        whole = len(odd) // GROUP * GROUP
        left_out = np.random.default_rng(self.seed or 0).integers(0, GROUP, whole // GROUP)
        return np.delete(odd, np.arange(0, whole, GROUP) + left_out)


class _MultisineGenerator(SampleGenerator):
    def __init__(self, multisine: Multisine, rate: float) -> None:
        self._rate, self._count = rate, 0
        self.amplitude, self.frequency = multisine.amplitude, multisine.spacing
        self._table: Array | None = None
        self._lines, self._angles, self._each = multisine.spectrum()
        for number in range(1, MOST_PERIODS + 1):
            samples = number * rate / multisine.spacing
            if abs(samples - round(samples)) < 1e-9 * samples and samples < 4e6:
                # So many periods are a whole number of samples: they are computed once and repeated.
                self._table = multisine.periods(number, round(samples))
                break
        if self._table is None and len(self._lines) > DIRECT_LINES:
            raise WaveformError(
                f"A multisine of {len(self._lines)} lines takes too long to compute: {rate:g} samples a "
                f"second are no multiple of its spacing of {multisine.spacing:g} Hz. Choose another one."
            )

    def take(self, count: int) -> Array:
        n = self._count + np.arange(count)
        self._count += count
        self.phase = float(TWO_PI * (self._count * self.frequency / self._rate % 1.0))
        if self._table is not None:
            return self._table[n % len(self._table)]
        phase = TWO_PI * (n * self.frequency / self._rate % 1.0)
        waves = np.cos(np.multiply.outer(self._lines, phase) + self._angles[:, None])
        return np.asarray(self._each * waves.sum(axis=0))


@dataclass(frozen=True)
class RandomNoise(Waveform):
    """Gaussian noise, flat between ``lowest`` and ``highest`` Hz, its rms a quarter of the peak."""

    kind: ClassVar[str] = "random"
    lowest: float
    highest: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.lowest < self.highest:
            raise WaveformError("Random drive needs a band: 0 <= lowest < highest frequency.")

    @property
    def band(self) -> tuple[float, float]:
        return self.lowest, self.highest

    def generator(self, rate: float) -> SampleGenerator:
        return _NoiseGenerator(self, rate)


class _NoiseGenerator(SampleGenerator):
    """Overlap-add of independent noise segments under square-root Hann windows: stationary and endless.

    Segments last the same time at any rate, so that it is the same motion at any rate: what was planned at
    the rate of the sensors is what a converter with another one plays.
    """

    def __init__(self, noise: RandomNoise, rate: float) -> None:
        if noise.highest > rate / 2:
            raise WaveformError(
                f"A band up to {noise.highest:g} Hz does not fit into {rate:g} samples a second."
            )
        width = max(noise.highest - noise.lowest, 1e-9)
        seconds = 2.0 ** np.ceil(np.log2(64 / width))
        if seconds * rate > MOST_SAMPLES:
            raise WaveformError(
                f"A band of {width:g} Hz is too narrow at {rate:g} samples a second: use a sine."
            )
        self._half = round(seconds * rate)
        f = np.fft.rfftfreq(2 * self._half, 1 / rate)
        margin = 1.5 * f[1]  # half the window's main lobe: what a line leaks stays in the band
        self._lines = np.flatnonzero((f >= noise.lowest + margin) & (f <= noise.highest - margin))
        self._window = np.sin(np.pi * (np.arange(2 * self._half) + 0.5) / (2 * self._half))
        self._rng = np.random.default_rng(noise.seed)
        self.amplitude = noise.amplitude
        self._tail = self._segment()[self._half :]
        self._ready = np.empty(0)

    def _segment(self) -> Array:
        n = 2 * self._half
        spectrum = np.zeros(n // 2 + 1, dtype=complex)
        draws = self._rng.standard_normal((2, len(self._lines)))
        spectrum[self._lines] = draws[0] + 1j * draws[1]
        rms = self.amplitude / RANDOM_CREST
        scale = rms * n / (2 * np.sqrt(len(self._lines)))
        return np.fft.irfft(spectrum, n) * scale * self._window

    def take(self, count: int) -> Array:
        parts, have = [self._ready], len(self._ready)
        while have < count:
            segment = self._segment()
            parts.append(self._tail + segment[: self._half])
            self._tail = segment[self._half :]
            have += self._half
        samples = np.concatenate(parts)
        self._ready = samples[count:]
        return np.clip(samples[:count], -self.amplitude, self.amplitude)


@dataclass(frozen=True)
class BurstRandom(Waveform):
    """Random noise for the first part of each period, silence for the rest; the edges are smooth.

    Every burst is the same unless ``fresh``; the phase reported is that of the period.
    """

    kind: ClassVar[str] = "burst random"
    lowest: float
    highest: float
    period: float  # s
    part: float = 0.5  # of the period that sounds
    seed: int = 0
    fresh: bool = False

    def __post_init__(self) -> None:
        if self.period <= 0 or not 0 < self.part <= 1 or not 0 <= self.lowest < self.highest:
            raise WaveformError("Burst random needs a band, a positive period and a part between 0 and 1.")

    @property
    def band(self) -> tuple[float, float]:
        return self.lowest, self.highest

    def generator(self, rate: float) -> SampleGenerator:
        return _BurstGenerator(self, rate)


class _BurstGenerator(SampleGenerator):
    def __init__(self, burst: BurstRandom, rate: float) -> None:
        self._burst, self._rate, self._count = burst, rate, 0
        self.amplitude, self.frequency = burst.amplitude, 1 / burst.period
        if not burst.period * rate <= MOST_SAMPLES:
            raise WaveformError(f"A period of {burst.period:g} s is too long at {rate:g} samples a second.")
        self._length = max(2, round(burst.period * rate))
        self._noise = self._new_noise()
        self._current = self._next_burst()

    def _new_noise(self) -> _NoiseGenerator:
        b = self._burst
        return _NoiseGenerator(RandomNoise(b.amplitude, b.lowest, b.highest, b.seed), self._rate)

    def _next_burst(self) -> Array:
        sounding = max(2, round(self._length * self._burst.part))
        edge = max(1, sounding // 10)
        envelope = np.ones(sounding)
        envelope[:edge] = np.sin(0.5 * np.pi * np.arange(edge) / edge) ** 2
        envelope[-edge:] = envelope[:edge][::-1]
        out = np.zeros(self._length)
        out[:sounding] = envelope * self._noise.take(sounding)
        return out

    def take(self, count: int) -> Array:
        parts = []
        while count:
            at = self._count % self._length
            now = min(count, self._length - at)
            parts.append(self._current[at : at + now])
            self._count += now
            count -= now
            if self._burst.fresh and self._count % self._length == 0:
                self._current = self._next_burst()
        self.phase = TWO_PI * (self._count % self._length) / self._length
        return np.concatenate(parts) if parts else np.empty(0)


@dataclass(frozen=True)
class UserWaveform(Waveform):
    """Samples of one's own at ``sample_rate`` Hz, scaled so that their peak is ``amplitude``; linear between.

    Repeats unless ``once``. Its band is where all but a thousandth of its power lies.
    """

    kind: ClassVar[str] = "user"
    samples: tuple[float, ...]
    sample_rate: float
    once: bool = False
    _shape: Array = field(init=False, repr=False, compare=False)  # peak 1

    def __post_init__(self) -> None:
        shape = np.asarray(self.samples, dtype=np.float64)
        if (
            shape.ndim != 1
            or len(shape) < 2
            or not np.isfinite(shape).all()
            or not shape.any()
            or not 0 < self.sample_rate < LARGEST
        ):
            raise WaveformError("A user waveform needs a sample rate and at least two numbers, not all zero.")
        object.__setattr__(self, "_shape", shape / np.abs(shape).max())

    @property
    def band(self) -> tuple[float, float]:
        power = np.abs(np.fft.rfft(self._shape)) ** 2
        share = np.cumsum(power) / power.sum()
        f = np.fft.rfftfreq(len(self._shape), 1 / self.sample_rate)
        low, high = np.searchsorted(share, [0.0005, 0.9995])
        return float(f[low]), float(f[min(high, len(f) - 1)])

    @property
    def duration(self) -> float:
        return len(self.samples) / self.sample_rate if self.once else np.inf

    def slew(self) -> float:
        ends = self._shape if self.once else np.append(self._shape, self._shape[0])
        return float(np.abs(np.diff(ends)).max() * self.sample_rate) * self.amplitude

    def describe(self) -> dict[str, Any]:
        plain = super().describe()
        plain.pop("_shape")
        return plain

    def generator(self, rate: float) -> SampleGenerator:
        return _UserGenerator(self, rate)


class _UserGenerator(SampleGenerator):
    def __init__(self, user: UserWaveform, rate: float) -> None:
        self._user, self._ratio, self._count = user, user.sample_rate / rate, 0
        self.amplitude, self.frequency = user.amplitude, user.sample_rate / len(user.samples)
        self._values = user._shape if user.once else np.append(user._shape, user._shape[0])
        self._places = np.arange(len(self._values))

    def take(self, count: int) -> Array:
        length = len(self._user.samples)
        position = (self._count + np.arange(count)) * self._ratio
        self._count += count
        turns = self._count * self._ratio / length
        self.phase = float(TWO_PI * (turns % 1.0))
        if self._user.once:
            self.ended = turns >= 1
        else:
            position = position % length
        return self.amplitude * np.interp(position, self._places, self._values)


@dataclass(frozen=True)
class Part:
    """A waveform that is played for ``seconds``, with smooth edges."""

    waveform: Waveform
    seconds: float

    def describe(self) -> dict[str, Any]:
        return {**self.waveform.describe(), "seconds": self.seconds}


@dataclass(frozen=True)
class Segments(Waveform):
    """Waveforms one after the other, each from silence to silence: a soft edge of ``EDGE`` at both ends.

    ``parts`` are tables of a waveform with its ``seconds``. Repeats; the phase reported is that of the whole.
    """

    kind: ClassVar[str] = "segments"
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        parts = tuple(p if isinstance(p, Part) else _part(p) for p in self.parts)
        if not parts or any(not 2 * EDGE < p.seconds < 1e6 for p in parts):
            raise WaveformError(f"Segments need parts of more than {2 * EDGE:g} s each.")
        if any(not 0 <= p.waveform.amplitude <= self.amplitude for p in parts):
            raise WaveformError(
                f"A part of the segments is negative, or larger than their amplitude of {self.amplitude:g}."
            )
        object.__setattr__(self, "parts", parts)

    @property
    def band(self) -> tuple[float, float]:
        bands = [p.waveform.band for p in self.parts]
        return min(b[0] for b in bands), max(b[1] for b in bands)

    def check(self) -> None:
        super().check()
        for part in self.parts:
            part.waveform.check()

    @property
    def seconds(self) -> float:
        """Length of all parts together."""
        return sum(p.seconds for p in self.parts)

    def slew(self) -> float:
        return max(p.waveform.slew() + p.waveform.amplitude * np.pi / (2 * EDGE) for p in self.parts)

    def describe(self) -> dict[str, Any]:
        parts = [part.describe() for part in self.parts]
        return {"kind": self.kind, "amplitude": self.amplitude, "parts": parts}

    def generator(self, rate: float) -> SampleGenerator:
        return _SegmentsGenerator(self, rate)


def _part(table: Any) -> Part:
    values = dict(table) if isinstance(table, dict) else {}
    named = WAVEFORMS.get(str(values.get("kind", "sine")))
    seconds = values.get("seconds")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise WaveformError("Every part of the segments needs its seconds.")
    if named is not Sweep:  # a sweep has seconds of its own: it takes the whole part
        values.pop("seconds")
    if named is Segments:
        raise WaveformError("Segments cannot be parts of segments.")
    return Part(waveform_from(values), float(seconds))


class _SegmentsGenerator(SampleGenerator):
    def __init__(self, segments: Segments, rate: float) -> None:
        self._parts, self._rate, self._count = segments.parts, rate, 0
        ends = np.rint(rate * np.cumsum([p.seconds for p in segments.parts])).astype(int)
        self._lengths = [max(2, int(n)) for n in np.diff(ends, prepend=0)]
        self._total = sum(self._lengths)
        self.amplitude, self.frequency = segments.amplitude, rate / self._total
        self._place, self._within = 0, 0  # the part that plays, and samples of it so far
        self._playing = self._parts[0].waveform.generator(rate)

    def __copy__(self) -> _SegmentsGenerator:
        """The part that plays is copied along: a STOP goes back to where the player stood."""
        other = object.__new__(_SegmentsGenerator)
        other.__dict__.update(self.__dict__, _playing=copy.copy(self._playing))
        return other

    def take(self, count: int) -> Array:
        pieces = []
        while count:
            length = self._lengths[self._place]
            now = min(count, length - self._within)
            k = self._within + np.arange(now)
            ahead = np.minimum(k, length - k) / (EDGE * self._rate)
            level = np.sin(0.5 * np.pi * np.minimum(ahead, 1.0)) ** 2
            pieces.append(level * self._playing.take(now))
            self._within += now
            self._count += now
            count -= now
            if self._within == length:
                self._place, self._within = (self._place + 1) % len(self._parts), 0
                self._playing = self._parts[self._place].waveform.generator(self._rate)
        self.phase = float(TWO_PI * (self._count % self._total) / self._total)
        return np.concatenate(pieces) if pieces else np.empty(0)


WAVEFORMS: dict[str, type[Waveform]] = {
    w.kind: w
    for w in (
        Sine,
        SteppedSine,
        Sweep,
        Multisine,
        OddMultisine,
        RandomNoise,
        BurstRandom,
        UserWaveform,
        Segments,
    )
}


def waveform_from(description: dict[str, Any]) -> Waveform:
    """The waveform of a description such as ``{kind = "sine", amplitude = 1.5, frequency = 7.5}``."""
    values = dict(description)
    kind = str(values.pop("kind", "sine"))
    if kind not in WAVEFORMS:
        raise WaveformError(f"No waveform '{kind}': there are {', '.join(WAVEFORMS)}.")
    known = [f.name for f in fields(WAVEFORMS[kind]) if f.init]
    for name in values:
        if name not in known:
            raise WaveformError(f"A {kind} has no '{name}': it takes {', '.join(known)}.")
    make: Any = WAVEFORMS[kind]
    try:
        made: Waveform = make(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})
    except (TypeError, ValueError, OverflowError):  # no numbers, or whole ones beyond all floats
        raise WaveformError(f"A {kind} needs {', '.join(known)}; given were {', '.join(values)}.") from None
    made.check()
    return made
