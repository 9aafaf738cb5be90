"""A small version of the Monte Carlo study: error bars must match the scatter."""

import pytest

from benchmarks.coverage import CASES, coverage


@pytest.mark.parametrize("case", ["lorenz-20", "duffing-20"])
def test_given_forty_draws_of_noise_when_identified_then_intervals_cover_the_truth(case):
    found = coverage(CASES[case](), 40)
    assert found.failed == 0
    for share, ratio in zip(found.covered.values(), found.ratio.values(), strict=True):
        assert share >= 0.8  # four standard deviations below 95 % of forty
        assert 0.55 < ratio < 1.45  # four standard deviations of a ratio from forty
