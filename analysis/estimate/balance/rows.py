"""The rows of a harmonic balance over orbit segments: test functions, operators, residuals, their noise.

With a test function w(t) on a segment, an equation y' = f(t, x, p) gives the row -int w' y - int w f = 0, and
where y is the velocity of a measured x, with two integrations by parts,  int w'' x - int w f = 0. The thesis
(Yuan 1995, eq. 2.15) takes w = cos, sin(j omega t/k), whose boundary terms vanish only if the segment closes.
Tapered by sin^4(pi t/T) they vanish for any segment, so the closure error drops out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_ROUNDING = 1e-12  # of a sum over the samples, relative to the sizes of its parts
_ROLL_OFF = 0.15  # width of the low-pass filter's edge, as a fraction of the band that is kept
_AT_ONCE = 32  # rows that are filtered together
_BLOCK = 31_250  # numbers of the test functions that are held at once, in a dozen arrays
_STORED = 500_000  # numbers of the derivatives by the samples that are held at once


@dataclass(frozen=True, eq=False)
class TestFunctions:
    """w and its derivatives at the samples, times the sample interval: rows are test functions.

    Those of a long orbit are made in blocks of rows when they are needed: together they would take memory
    that grows with the square of its length.
    """

    times: Array  # [K]
    envelope: tuple[Array, Array, Array]  # the taper and its derivatives, times the sample interval
    rates: Array  # [R] angular frequency of each row
    sines: NDArray[np.bool_]  # [R] sine or cosine
    harmonic: Array  # [R] frequency of each row in drive harmonics, j/k

    @classmethod
    def tapered(cls, times: Array, period: float, harmonics: Array, base: float) -> TestFunctions:
        """sin^4(pi t/T) times 1, cos, sin(2 pi j t/T) for the given j; ``base`` is the drive period."""
        taper = 2 * np.pi / period
        phase = taper * times
        # sin^4(a/2) = 3/8 - cos(a)/2 + cos(2 a)/8
        s = (3 / 8 - np.cos(phase) / 2 + np.cos(2 * phase) / 8, np.sin(phase) / 2 - np.sin(2 * phase) / 4)
        envelope = (s[0], taper * s[1], taper**2 * (np.cos(phase) / 2 - np.cos(2 * phase) / 2))
        return cls._products(times, period, harmonics, base, envelope)

    @classmethod
    def plain(cls, times: Array, period: float, harmonics: Array, base: float) -> TestFunctions:
        """1, cos, sin(2 pi j t/T), as in the thesis; the sum over one period stands for the integral."""
        one, zero = np.ones_like(times), np.zeros_like(times)
        return cls._products(times, period, harmonics, base, (one, zero, zero))

    @classmethod
    def _products(
        cls, times: Array, period: float, harmonics: Array, base: float, envelope: tuple[Array, Array, Array]
    ) -> TestFunctions:
        step = (times[1] - times[0]) * ((times >= 0) & (times <= period))
        order = np.repeat(harmonics, np.where(harmonics > 0, 2, 1))
        sines = np.concatenate([[False, True] if j else [False] for j in harmonics]).astype(bool)
        e0, e1, e2 = (step * e for e in envelope)
        return cls(times, (e0, e1, e2), 2 * np.pi * order / period, sines, order * base / period)

    def __len__(self) -> int:
        return len(self.rates)

    def blocks(self, size: int | None = None, stop: int | None = None) -> list[slice]:
        """Rows that are dealt with together, up to ``stop``."""
        size = max(_BLOCK // len(self.times), 1) if size is None else size
        stop = len(self) if stop is None else stop
        return [slice(i, min(i + size, stop)) for i in range(0, stop, size)]

    def rows(self, block: slice) -> tuple[Array, Array, Array]:
        """w, w' and w'' [rows, K] of a block."""
        if len(self) * len(self.times) <= _BLOCK:
            value, first, second = self._all
            return value[block], first[block], second[block]
        return self._made(block)

    @cached_property
    def _all(self) -> tuple[Array, Array, Array]:
        return self._made(slice(0, len(self)))

    def _made(self, block: slice) -> tuple[Array, Array, Array]:
        e0, e1, e2 = self.envelope
        omega = self.rates[block, None]
        angle = omega * self.times
        c, s = np.cos(angle), np.sin(angle)
        sine = self.sines[block, None]
        h0, h1 = np.where(sine, s, c), np.where(sine, omega * c, -omega * s)
        return e0 * h0, e1 * h0 + e0 * h1, e2 * h0 + 2 * e1 * h1 - omega**2 * e0 * h0


@dataclass(frozen=True, eq=False)
class SampleOperator:
    """A linear map from padded samples to values at their middle: a window, then a filter around the circle.

    Never written out as a matrix [count, count + 2 pad], which would grow with the square of an orbit's
    length. ``response`` is the filter at the frequencies of a real FFT; None: the samples as they are.
    """

    count: int
    pad: int
    window: Array
    response: NDArray[np.complex128] | None

    def apply(self, samples: Array) -> Array:
        """Values [count] from samples [count + 2 pad]."""
        middle = slice(self.pad, self.pad + self.count)
        if self.response is None:
            return np.asarray(samples[middle])
        spectrum = np.fft.rfft(samples * self.window)
        return np.asarray(np.fft.irfft(spectrum * self.response, len(self.window))[middle])

    def transposed(self, weights: Array) -> Array:
        """``weights`` [rows, count] of the values as weights [rows, count + 2 pad] of the samples."""
        padded = np.zeros((len(weights), len(self.window)))
        padded[:, self.pad : self.pad + self.count] = weights
        if self.response is None:
            return padded
        for start in range(0, len(padded), _AT_ONCE):  # the spectra of all would double the memory
            part = padded[start : start + _AT_ONCE]
            part[:] = np.fft.irfft(np.fft.rfft(part) * np.conj(self.response), part.shape[1]) * self.window
        return padded

    @cached_property
    def of_constant(self) -> Array:
        """What samples of one become."""
        return self.apply(np.ones(self.count + 2 * self.pad))


@lru_cache(maxsize=16)  # orbits of one period share them
def smoothing_operators(
    count: int, pad: int, dt: float, highest: float | None
) -> tuple[SampleOperator, SampleOperator]:
    """Operators that smooth and differentiate the middle of padded samples.

    The stretch is faded out over the padding, and its spectrum cut above the ``highest`` frequency; None
    for samples without noise to speak of, which are taken as they are.
    """
    total = count + 2 * pad
    fade = np.sin(0.5 * np.pi * (np.arange(pad) + 0.5) / pad) ** 2
    window = np.concatenate([fade, np.ones(count), fade[::-1]])
    frequency = np.fft.rfftfreq(total, dt)
    edge = 0.45 / dt if highest is None else min(highest, 0.45 / dt)
    passed = 1.0 / (1.0 + np.exp(np.clip((frequency - edge) / (_ROLL_OFF * edge / 4), -60, 60)))
    slopes = np.asarray(2j * np.pi * frequency * passed, dtype=np.complex128)
    if total % 2 == 0:
        slopes[-1] = 0.0
    kept = None if highest is None else passed.astype(np.complex128)
    return SampleOperator(count, pad, window, kept), SampleOperator(count, pad, window, slopes)


def periodic_operators(count: int, dt: float) -> tuple[SampleOperator, SampleOperator]:
    """One period of samples as it is, and its spectral derivative."""
    slopes = np.asarray(2j * np.pi * np.fft.rfftfreq(count, dt), dtype=np.complex128)
    if count % 2 == 0:
        slopes[-1] = 0.0
    one = np.ones(count)
    return SampleOperator(count, 0, one, None), SampleOperator(count, 0, one, slopes)


@dataclass(eq=False)
class OrbitRows:
    """One orbit segment ready for balancing. States are linear in the samples: x = operator(data)."""

    times: Array  # [K] drive time of the samples, as the model's t
    inputs: Array  # [m, K] measured inputs
    tests: TestFunctions
    sources: list[tuple[int, SampleOperator]]  # per state: which measured channel, and what is done to it
    data: list[Array]  # per measured channel: its samples, padding included
    noise: list[float]  # per measured channel: standard deviation
    pairs: dict[int, int]  # velocity state -> its position
    equations: list[int]  # states whose equation is balanced
    measured: list[int]  # per measured channel: the state it shows
    first: int  # of the samples in ``data``, the first one of the segment

    def states(self, offsets: Array) -> Array:
        """[n, K]; ``offsets`` of the measured channels are taken off."""
        raw, by_offset = self._raw
        return raw - np.array([offsets[channel] for channel, _ in self.sources])[:, None] * by_offset

    @cached_property
    def _raw(self) -> tuple[Array, Array]:
        """The states without an offset, and what an offset of one in their channel does to them."""
        raw = np.array([operator.apply(self.data[channel]) for channel, operator in self.sources])
        return raw, np.array([operator.of_constant for _, operator in self.sources])

    def residual(self, model: Model, values: Array, offsets: Array, shift: float) -> Array:
        """Rows of all balanced equations, one after another."""
        states = self.states(offsets)
        rates = np.empty_like(states)
        times = np.ascontiguousarray(self.times + shift)
        model.kernels().rhs_many(times, states, self.inputs, values, rates)
        found = np.empty((len(self.equations), len(self.tests)))
        for block in self.tests.blocks():
            value, first, second = self.tests.rows(block)
            for number, i in enumerate(self.equations):
                linear = second @ states[self.pairs[i]] if i in self.pairs else -first @ states[i]
                found[number, block] = linear - value @ rates[i]
        return found.ravel()

    def jacobian(
        self, model: Model, values: Array, offsets: Array, shift: float, free: list[int], channels: list[int]
    ) -> tuple[Array, Array, Array]:
        """d residual by parameters, by the offsets of channels, and by the shift of the drive's time."""
        jx, jp, by_time = self._slopes(model, values, offsets, shift)
        shape = len(self.equations), len(self.tests)
        by_p, by_offset = np.empty((*shape, len(free))), np.zeros((*shape, len(channels)))
        by_shift = np.empty(shape)
        for block in self.tests.blocks():
            functions = self.tests.rows(block)
            for number, i in enumerate(self.equations):
                by_p[number, block] = -functions[0] @ jp[i][free].T
                by_shift[number, block] = -functions[0] @ by_time[i]
                for j, (source, operator) in enumerate(self.sources):
                    if source in channels:
                        effect = self._weights(functions, jx, i, j) @ operator.of_constant
                        by_offset[number, block, channels.index(source)] -= effect
        rows = shape[0] * shape[1]
        return by_p.reshape(rows, -1), by_offset.reshape(rows, -1), by_shift.ravel()

    def visible(self, model: Model, values: Array, offsets: Array, shift: float, free: list[int]) -> Flags:
        """Whether the rows see each free parameter: beyond the rounding of sums that cancel, in any unit."""
        jp = self._slopes(model, values, offsets, shift)[1]
        seen = np.zeros(len(free), dtype=bool)
        for block in self.tests.blocks():
            value = self.tests.rows(block)[0]
            for i in self.equations:
                by_p = jp[i][free]
                largest = np.linalg.norm(value) * np.linalg.norm(by_p, axis=1)
                seen |= np.linalg.norm(value @ by_p.T, axis=0) > _ROUNDING * largest
        return seen

    def covariance(self, model: Model, values: Array, offsets: Array, shift: float) -> Array:
        """Covariance of the rows that the sensors' noise induces, through f and through the operators."""
        jx = self._slopes(model, values, offsets, shift)[0]
        rows = len(self.tests)
        total = np.zeros((len(self.equations), rows, len(self.equations), rows))
        for channel, deviation in enumerate(self.noise):
            width = len(self.equations) * len(self.data[channel])
            for one in self.tests.blocks(max(_STORED // width, 1)):
                left = self._by_data(jx, channel, one)
                # The rows before them are made again, a few at a time, unless all fit in at once.
                for other in (one, *self.tests.blocks(max(_BLOCK // width, 1), one.start)):
                    right = left if other is one else self._by_data(jx, channel, other)
                    flat = left.reshape(-1, left.shape[2]) @ right.reshape(-1, left.shape[2]).T
                    part = deviation**2 * flat.reshape(*left.shape[:2], *right.shape[:2])
                    total[:, one, :, other] += part
                    if other is not one:
                        total[:, other, :, one] += part.transpose(2, 3, 0, 1)
        return total.reshape(len(self.equations) * rows, -1)

    def _slopes(
        self, model: Model, values: Array, offsets: Array, shift: float
    ) -> tuple[Array, Array, Array]:
        """d f by the states [n, n, K], by the parameters [n, k, K] and by time [n, K]."""
        states = self.states(offsets)
        n, count = states.shape
        times = np.ascontiguousarray(self.times + shift)
        rates, jx, jp = np.empty((n, count)), np.empty((n, n, count)), np.empty((n, len(values), count))
        kernels = model.kernels()
        kernels.jac_many(times, states, self.inputs, values, rates, jx, jp)
        ahead, behind = np.empty((n, count)), np.empty((n, count))
        step = 1e-4 * (times[1] - times[0])
        kernels.rhs_many(times + step, states, self.inputs, values, ahead)
        kernels.rhs_many(times - step, states, self.inputs, values, behind)
        return jx, jp, (ahead - behind) / (2 * step)

    def _weights(self, functions: tuple[Array, Array, Array], jx: Array, i: int, j: int) -> Array:
        """d (rows of equation i) / d (state j at the samples) [rows, K]."""
        value, first, second = functions
        weights = -value * jx[i, j]
        if i in self.pairs and j == self.pairs[i]:
            weights += second
        elif i not in self.pairs and j == i:
            weights -= first
        return weights

    def _by_data(self, jx: Array, channel: int, block: slice) -> Array:
        """d (a block of the rows of each equation) / d (samples of a measured channel)."""
        found = np.zeros((len(self.equations), block.stop - block.start, len(self.data[channel])))
        for part in self.tests.blocks():
            low, high = max(part.start, block.start), min(part.stop, block.stop)
            if low >= high:
                continue
            functions = self.tests.rows(slice(low, high))
            for number, i in enumerate(self.equations):
                for j, (source, operator) in enumerate(self.sources):
                    if source == channel:
                        weights = self._weights(functions, jx, i, j)
                        found[number, low - block.start : high - block.start] += operator.transposed(weights)
        return found
