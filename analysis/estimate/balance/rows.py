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

_ROLL_OFF = 0.15  # width of its edge, of the kept band


@dataclass(frozen=True, eq=False)
class TestFunctions:
    """w and its derivatives at the samples, times the sample interval: rows are test functions."""

    value: Array  # [R, K]
    first: Array
    second: Array
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
        e0, e1, e2 = envelope
        inside = (times >= 0) & (times <= period)
        step = (times[1] - times[0]) * inside
        value, first, second, order = [], [], [], []
        for j in harmonics:
            omega = 2 * np.pi * j / period
            c, s = np.cos(omega * times), np.sin(omega * times)
            for h0, h1 in ((c, -omega * s), (s, omega * c)) if j else ((c, 0.0 * c),):
                value.append(step * e0 * h0)
                first.append(step * (e1 * h0 + e0 * h1))
                second.append(step * (e2 * h0 + 2 * e1 * h1 - omega**2 * e0 * h0))
                order.append(j * base / period)
        return cls(np.array(value), np.array(first), np.array(second), np.array(order))


@lru_cache(maxsize=16)  # orbits of one period share them
def smoothing_operators(count: int, pad: int, dt: float, highest: float | None) -> tuple[Array, Array]:
    """Matrices [count, count + 2 pad] that smooth and differentiate the middle of padded samples.

    The stretch is faded out over the padding, and its spectrum cut above the ``highest`` frequency; None
    for samples without noise to speak of, which are taken as they are.
    """
    total = count + 2 * pad
    fade = np.sin(0.5 * np.pi * (np.arange(pad) + 0.5) / pad) ** 2
    window = np.concatenate([fade, np.ones(count), fade[::-1]])
    frequency = np.fft.rfftfreq(total, dt)
    edge = 0.45 / dt if highest is None else min(highest, 0.45 / dt)
    passed = 1.0 / (1.0 + np.exp(np.clip((frequency - edge) / (_ROLL_OFF * edge / 4), -60, 60)))
    slopes = 2j * np.pi * frequency * passed
    if total % 2 == 0:
        slopes[-1] = 0.0
    lags = (np.arange(pad, pad + count)[:, None] - np.arange(total)) % total
    smooth = np.fft.irfft(passed, total)[lags] * window if highest is not None else np.eye(total)[pad:-pad]
    return smooth, np.fft.irfft(slopes, total)[lags] * window


@dataclass(eq=False)
class OrbitRows:
    """One orbit segment ready for balancing. States are linear in the samples: x = operators @ data."""

    times: Array  # [K] drive time of the samples, as the model's t
    inputs: Array  # [m, K] measured inputs
    tests: TestFunctions
    sources: list[tuple[int, Array]]  # per state: which measured channel, and its operator [K, samples]
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
        raw = np.array([operator @ self.data[channel] for channel, operator in self.sources])
        return raw, np.array([operator.sum(axis=1) for _, operator in self.sources])

    def residual(self, model: Model, values: Array, offsets: Array, shift: float) -> Array:
        """Rows of all balanced equations, one after another."""
        states = self.states(offsets)
        rates = np.empty_like(states)
        times = np.ascontiguousarray(self.times + shift)
        model.kernels().rhs_many(times, states, self.inputs, values, rates)
        return np.concatenate([self._linear(i, states) - self.tests.value @ rates[i] for i in self.equations])

    def _linear(self, i: int, states: Array) -> Array:
        if i in self.pairs:
            return np.asarray(self.tests.second @ states[self.pairs[i]])
        return np.asarray(-self.tests.first @ states[i])

    def jacobian(
        self, model: Model, values: Array, offsets: Array, shift: float, free: list[int], channels: list[int]
    ) -> tuple[Array, Array, Array]:
        """d residual by parameters, by the offsets of channels, and by the shift of the drive's time."""
        jx, jp, by_time = self._slopes(model, values, offsets, shift)
        w = self.tests.value
        by_p = np.concatenate([-w @ jp[i][free].T for i in self.equations])
        by_shift = np.concatenate([-w @ by_time[i] for i in self.equations])
        by_offset = np.zeros((len(by_p), len(channels)))
        if channels:
            by_data = self._by_data(jx)
            by_offset = np.stack([-by_data[c].sum(axis=1) for c in channels], axis=1)
        return by_p, by_offset, by_shift

    def covariance(self, model: Model, values: Array, offsets: Array, shift: float) -> Array:
        """Covariance of the rows that the sensors' noise induces, through f and through the operators."""
        by_data = self._by_data(self._slopes(model, values, offsets, shift)[0])
        return np.asarray(sum(s**2 * g @ g.T for s, g in zip(self.noise, by_data, strict=True)))

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

    def _by_data(self, jx: Array) -> list[Array]:
        """d residual / d samples of each measured channel."""
        found = []
        for channel in range(len(self.data)):
            blocks = []
            for i in self.equations:
                block = np.zeros((len(self.tests.value), len(self.data[channel])))
                for j, (source, operator) in enumerate(self.sources):
                    if source != channel:
                        continue
                    weights = -self.tests.value * jx[i, j]
                    if i in self.pairs and j == self.pairs[i]:
                        weights = weights + self.tests.second
                    elif i not in self.pairs and j == i:
                        weights = weights - self.tests.first
                    block += weights @ operator
                blocks.append(block)
            found.append(np.concatenate(blocks))
        return found
