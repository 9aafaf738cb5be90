"""The result type: what is saved is what is read back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.base.identification import (
    Curve,
    Estimate,
    Identification,
    Residual,
    estimates,
    interval_ends,
    with_bounds,
    with_error,
)


def a_result() -> Identification:
    return Identification(
        method="weak",
        model="Duffing",
        converged=True,
        parameters=estimates(["c", "k"], np.array([0.2, 1.0]), np.diag([1e-4, 4e-4]), {"c": "N s/m"}),
        residual=Residual(rms={"x": 0.1}, other={"J": 2.0}),
        covariance=[[1e-4, 0.0], [0.0, math.nan]],
        curves={"H": Curve([0.0, 1.0], [0.0, 2.0], [-0.1, 1.9], [0.1, 2.1], "x [mm]", "H [N]")},
        extra={"orbits": [1, 2], "name": "a"},
    )


def test_given_a_result_when_saved_and_read_then_it_is_equal() -> None:
    result = a_result()
    again = Identification.from_json(result.to_json())
    assert again == result
    assert again.parameters["c"].unit == "N s/m"
    assert math.isnan(again.residual.chi2)


def test_given_a_file_of_an_older_program_when_read_then_every_number_has_its_field() -> None:
    text = """{"method": "weak", "model": "Duffing", "converged": true,
      "parameters": {"c": {"value": 0.2, "stderr": 0.01, "lower": 0.18, "upper": 0.22, "unit": ""},
                     "x offset": {"value": 0.4, "stderr": 0.1, "lower": 0.2, "upper": 0.6, "unit": "mm"},
                     "x drift[2]": {"value": 0.1, "stderr": 0.1, "lower": -0.1, "upper": 0.3, "unit": ""}},
      "residual": {"chi2": 90.0, "dof": 100.0, "chi2/dof": 0.9, "rms x": 0.3, "noise x": 0.31, "J": 4.0},
      "extra": {"chosen": "weak, because", "recordings": [{"file": "a.csv", "sha256": "0"}], "spacing": 3,
                "R2": {"x": 0.97}, "held out R2": {"x": 0.96}, "missed share": 0.12,
                "profile": {"c": {"lower": 0.17, "upper": null, "words": "no limit"}}}}"""
    old = Identification.from_json(text)
    assert list(old.parameters) == ["c", "offset x", "drift x[2]"]
    assert (old.residual.chi2, old.residual.dof, old.residual.per_dof) == (90.0, 100.0, 0.9)
    assert (old.residual.rms, old.residual.noise) == ({"x": 0.3}, {"x": 0.31})
    assert old.residual.other == {"J": 4.0} and old.extra == {"spacing": 3}
    left = old.residual
    assert (left.r2, left.held_out_r2, left.missed) == ({"x": 0.97}, {"x": 0.96}, 0.12)
    assert (old.profiles["c"].lower, old.profiles["c"].words) == (0.17, "no limit")
    assert math.isnan(old.profiles["c"].upper)
    assert old.chosen == "weak, because" and old.recordings[0]["file"] == "a.csv"
    assert old.verdict == "" and math.isnan(old.parameters["c"].stderr_ideal)
    assert Identification.from_json(old.to_json()) == old


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "[1]", '{"parameters": 3}', '{"method": "weak"}', "[" * 100_000,
        a_result().to_json().replace("0.2,", '"0.2",'),
        a_result().to_json().replace('"Duffing"', "[]"),
        a_result().to_json().replace("true", "1"),
        a_result().to_json().replace('"value": 1.0', '"value": 9.0'),
        a_result().to_json().replace('"verdict": ""', '"verdict": "x"'),
        a_result().to_json().replace('"stderr": 0.02', '"stderr": -0.02'),
    ],
)  # fmt: skip
def test_given_something_else_when_read_then_one_sentence_says_so(text: str) -> None:
    with pytest.raises(DataError, match="not a result"):
        Identification.from_json(text)


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (0.123456, 0.00123, "0.1235 ± 0.0012"),
        (9811.4, 12.0, "9811 ± 12"),
        (-15117.0, 4521.0, "-15100 ± 4500"),
        (1.0, math.nan, "1"),
        (2e9, 1e5, "(2.00000 ± 0.00010)e+09"),
        (-3e-10, 1.4e-9, "(-0.3 ± 1.4)e-09"),
        (4.5678e-7, 2.3e-10, "(4.5678 ± 0.0023)e-07"),
        (0.0, 3e-5, "(0.0 ± 3.0)e-05"),
        (1e300, 1e-300, "1e+300 ± 1e-300"),
        (0.5, 1e-14, "0.5 ± 1e-14"),
        (1e-9, math.inf, "1e-09 ± inf"),
    ],
)
def test_given_an_error_bar_when_shown_then_digits_follow_it(value: float, error: float, shown: str) -> None:
    assert with_error(Estimate.normal(value, error)) == shown


def test_given_a_narrow_interval_when_shown_then_its_ends_differ() -> None:
    assert interval_ends(Estimate.normal(0.035000041, 1.5e-8)) == ("0.035000012", "0.035000070")
    assert interval_ends(Estimate(1.0)) == ("–", "–")
    assert interval_ends(Estimate.normal(2.100000123e11, 100.0)) == ("2.100000121e+11", "2.100000125e+11")


def test_given_an_interval_of_unequal_sides_then_two_digits_of_the_shorter_one_are_shown() -> None:
    assert with_bounds(0.0393129166, 8.1e-7, 8.04e-7) == ("0.03931292", "0.00000081", "0.00000080")
    assert with_bounds(-12.3456, 0.5, 1.25) == ("-12.35", "0.50", "1.25")
    assert with_bounds(2.1e11, 1.5e8, 3e8) == ("2.1e+11", "1.5e+08", "3e+08")  # 2.1000e11


def test_given_a_normal_estimate_then_its_interval_covers_two_standard_errors() -> None:
    estimate = Estimate.normal(1.0, 0.1)
    assert estimate.covers(1.19)
    assert not estimate.covers(1.2)


@pytest.mark.parametrize(
    "figure", ['"R2": {"x": "high"}', '"held out R2": [1, 2]', '"missed share": {"x": 1}']
)
def test_given_an_older_file_with_nonsense_for_a_figure_then_it_is_refused(figure: str) -> None:
    head = '{"method": "path", "model": "Duffing", "converged": true, "parameters": {}, "verdict": "close"'
    with pytest.raises(DataError, match="not a result"):
        Identification.from_json(f'{head}, "extra": {{{figure}}}}}')


def test_given_figures_then_the_headline_tells_them_for_the_worst_output() -> None:
    left = Residual(r2={"x": 0.95, "v": 0.5, "w": math.nan}, held_out_r2={"x": 0.4, "v": 0.9}, missed=0.0312)
    result = Identification("path", "Duffing", True, {}, residual=left, verdict="close")
    assert result.headline.endswith("(R² 0.5, 0.4 on a held-out fifth, 3.1 % of the motion missed)")
    assert result.stated_miss == 0.0312
    fits = Identification("path", "Duffing", True, {}, residual=left, verdict="fits")
    assert fits.stated_miss is None and "missed" not in fits.headline
    unknown = Identification("path", "Duffing", True, {}, verdict="close")
    assert unknown.stated_miss == 0.0 and unknown.headline.endswith("widened")
