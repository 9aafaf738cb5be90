"""A small version of the Monte Carlo study: error bars must match the scatter. How its results are kept."""

from pathlib import Path

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.base.identification import Curve, Estimate, Identification
from analysis.base.record import Record
from benchmarks.coverage import CASES, coverage
from benchmarks.coverage.core import Case, at, keep, read_kept
from docs.coverage import PAGE, expected, page, verdict

RECORD = Record.from_arrays(1.0, {"x": np.zeros(2)})


def made(claimed: float) -> Case:
    """Estimates of 3 with a scatter of 1, whose stated error is ``claimed``; every tenth run fails."""

    def identify(model: object, record: Record) -> Identification:
        seed = int(record["x"][0])
        if seed % 10 == 9:
            raise DataError("No answer.")
        value = 3.0 + np.random.default_rng(seed).standard_normal()
        return Identification("made", "none", seed % 10 != 8, {"a": Estimate.normal(value, claimed)})

    return Case(
        lambda seed: (None, RECORD.with_channels(x=np.full(2, float(seed)))),
        {"a": np.float64(3.0)},  # computed truths are often of this kind
        "made",
        "numbers",
        identify=identify,
    )


@pytest.mark.parametrize("case", ["lorenz-20", "duffing-20"])
def test_given_forty_draws_of_noise_when_identified_then_intervals_cover_the_truth(case):
    found = coverage(CASES[case](), 40)
    assert found.failed == 0
    for share, ratio in zip(found.covered.values(), found.ratio.values(), strict=True):
        assert share >= 0.8  # four standard deviations below 95 % of forty
        assert 0.55 < ratio < 1.45  # four standard deviations of a ratio from forty


@pytest.mark.parametrize(("claimed", "said"), [(1.0, "yes"), (0.5, "too rarely"), (3.0, "too often")])
def test_given_claims_that_are_true_or_false_when_studied_then_the_verdict_says_so(claimed, said):
    found = coverage(made(claimed), 300)
    assert (found.answered, found.failed) == (270, 60)
    assert verdict(found.parameters["a"].covered, found.answered) == said
    assert found.ratio["a"] == pytest.approx(1 / claimed, rel=0.15)


def test_given_two_halves_when_kept_then_they_count_as_one_study(tmp_path: Path):
    path = tmp_path / "coverage.json"
    keep("made", coverage(made(1.0), 50), path)
    keep("made", coverage(made(1.0), 70, first=50), path)
    whole, kept = coverage(made(1.0), 120), read_kept(path)["made"]
    assert (kept.runs, kept.failed, kept.answered) == (whole.runs, whole.failed, whole.answered)
    assert kept.parameters["a"].covered == whole.parameters["a"].covered
    assert kept.ratio["a"] == pytest.approx(whole.ratio["a"], rel=1e-12)
    keep("made", coverage(made(1.0), 10), path)
    assert read_kept(path)["made"].runs == 10  # from the start again: replaced


def test_given_a_band_when_read_at_a_place_then_its_width_is_the_error():
    curve = Curve([0.0, 1.0], [0.0, 2.0], [-1.0, 0.0], [1.0, 4.0])
    middle = at(curve, [0.5], "H")["H(0.5)"]
    assert (middle.value, middle.lower, middle.upper) == (1.0, -0.5, 2.5)
    assert middle.stderr == pytest.approx(1.5 / 1.959964)


def test_given_the_range_of_chance_then_it_is_the_binomial_one():
    assert expected(200) == (184, 196)  # 2.5 % and 97.5 % points of 200 draws at 95 %


def test_given_the_kept_results_then_the_page_says_the_same_and_every_case_is_known():
    kept = read_kept()
    assert PAGE.read_text(encoding="utf-8") == page(kept)
    assert set(kept) <= set(CASES)
