"""A small version of the Monte Carlo study: error bars must match the scatter."""

import pytest

from benchmarks.coverage import CASES, coverage


@pytest.mark.parametrize("case", ["lorenz-20", "duffing-20"])
def test_given_forty_draws_of_noise_when_identified_then_intervals_cover_the_truth(case):
    found = coverage(CASES[case](), 40)
    assert found.failed == 0
    for share, ratio in zip(found.covered.values(), found.ratio.values(), strict=True):
        assert share >= 0.85
        assert 0.7 < ratio < 1.35
