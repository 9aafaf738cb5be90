"""The envelope loses no peak, whatever the sizes of the blocks it is fed with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.signal.amplitude_spectrum import amplitude_spectrum
from analysis.signal.envelope import RollingEnvelope, envelope


def test_given_one_spike_when_drawn_at_few_bins_then_it_is_still_there() -> None:
    data = np.zeros((2, 100_003))
    data[1, 77_777] = 5.0
    low, high = envelope(data, 640)
    assert high[1].max() == 5.0
    assert np.count_nonzero(high[1]) == 1
    assert not low.any()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 70), min_size=1, max_size=30),
    st.integers(1, 9),
    st.integers(2, 12),
)
def test_given_any_blocks_when_appended_then_bins_equal_those_of_the_whole(
    sizes: list[int], width: int, bins: int
) -> None:
    total = sum(sizes)
    data = np.random.default_rng(total).normal(size=(2, total))
    rolling = RollingEnvelope(2, bins, width)
    at = 0
    for size in sizes:
        rolling.append(data[:, at : at + size])
        at += size
    low, high = rolling.view()
    starts = range(0, total, width)
    expected = [(data[:, s : s + width].min(1), data[:, s : s + width].max(1)) for s in starts][-bins:]
    got = [(low[:, j], high[:, j]) for j in range(bins)][-len(expected) :]
    for (a, b), (c, d) in zip(expected, got, strict=True):
        assert np.array_equal(a, c)
        assert np.array_equal(b, d)


def test_given_a_sine_on_a_line_when_transformed_then_its_amplitude_is_read() -> None:
    t = np.arange(4096) / 1024.0
    f, a = amplitude_spectrum(3.0 + 0.7 * np.sin(2 * np.pi * 50.0 * t), 1024.0)
    peak = int(np.argmax(a))
    assert f[peak] == 50.0
    assert a[peak] == pytest.approx(0.7, rel=1e-9)
    assert a[0] < 1e-12
