"""The ring of the newest samples."""

from __future__ import annotations

import numpy as np
import pytest

from app.desktop.feed import Ring


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_given_a_stream_longer_than_the_ring_when_read_then_samples_and_their_rhythm_are_right(
    step: int,
) -> None:
    ring = Ring(2, 50)
    for start in range(0, 230, 23):
        index = np.arange(start, start + 23, dtype=float)
        ring.append(start, np.stack([index, -index]))
    assert (ring.start, ring.stop) == (180, 230)
    for first in (180, 187, 201):
        expected = np.arange(first, 229, step, dtype=float)
        assert np.array_equal(ring.between(first, 229, 0, step), expected)
        assert np.array_equal(ring.between(first, 229, None, step), np.stack([expected, -expected]))
    assert ring.between(0, 100).shape == (2, 0)


def test_given_a_gap_when_appended_then_it_reads_as_not_a_number() -> None:
    ring = Ring(1, 100)
    ring.append(0, np.ones((1, 10)))
    ring.append(15, np.ones((1, 5)))
    held = ring.last(20)[0]
    assert np.isnan(held[10:15]).all()
    assert held[[9, 15]].tolist() == [1.0, 1.0]


def test_given_a_block_larger_than_the_ring_when_appended_then_its_end_is_kept() -> None:
    ring = Ring(1, 16)
    ring.append(5, np.arange(5.0, 105.0)[None, :])
    assert np.array_equal(ring.last(16)[0], np.arange(89.0, 105.0))
