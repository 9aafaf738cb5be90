"""Running statistics of a stream beside those of the same samples in one piece."""

from __future__ import annotations

import numpy as np

from analysis.signal.moments import RecentMoments


def test_given_a_stream_with_a_large_offset_then_the_last_second_is_as_accurate_as_in_one_piece() -> None:
    rng = np.random.default_rng(3)
    data = np.array([[1e6], [-3.0]]) + rng.standard_normal((2, 5000)) * np.array([[1e-2], [2.0]])
    recent = RecentMoments(1000)
    for start in range(0, 5000, 125):
        recent.append(start + 125, data[:, start : start + 125])
    now, held = recent.now(), data[:, -1000:]
    assert now is not None and now.count == 1000
    np.testing.assert_allclose(now.mean, held.mean(axis=1), rtol=1e-14)
    np.testing.assert_allclose(now.spread, held.std(axis=1), rtol=1e-7)
    assert np.array_equal(now.low, held.min(axis=1)) and np.array_equal(now.high, held.max(axis=1))


def test_given_lost_samples_then_only_whole_columns_count_and_nothing_at_all_is_said_so() -> None:
    recent = RecentMoments(10)
    assert recent.now() is None
    recent.append(4, np.array([[1.0, np.nan, 3.0, 5.0], [1.0, 1.0, np.nan, 1.0]]))
    now = recent.now()
    assert now is not None and now.count == 2 and now.mean.tolist() == [3.0, 1.0]
    recent.append(20, np.full((2, 4), np.nan))  # the first block is older than ten samples now
    assert recent.now() is None
    recent.append(22, np.ones((2, 2)))
    recent.forget()
    assert recent.now() is None
