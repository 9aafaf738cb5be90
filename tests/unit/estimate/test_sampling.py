"""Samples that cannot tell a frequency from its alias."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.base.record import Record
from analysis.estimate.methods import identify
from analysis.model import Model

RATE, FREQUENCY, DAMPING = 5.0, 4.1, 0.08  # 1.2 samples a period; the mirror image is 0.9


def _model(frequency: float, upper: float = 1e9) -> Model:
    guess = {"guess": (2 * np.pi * frequency) ** 2, "lower": 0.0, "upper": upper}
    return Model.from_equations(
        {"x": "v", "v": "-c*v - k*x"}, {"c": {"guess": 0.1, "lower": 0.0}, "k": guess}, outputs={"x": "x"}
    )


def _record(rate: float, frequency: float = FREQUENCY) -> Record:
    t = np.arange(200) / rate
    x = np.exp(-0.5 * DAMPING * t) * np.cos(2 * np.pi * frequency * t + 0.4)
    return Record.from_arrays(rate, {"x": x + 0.01 * np.random.default_rng(5).standard_normal(len(t))})


@pytest.mark.parametrize(
    ("method", "guess"), [("path", FREQUENCY), ("path", RATE - FREQUENCY), ("auto", RATE - FREQUENCY)]
)
def test_given_few_samples_a_period_then_nobody_can_tell_from_which_side_the_guess_comes(
    method: str, guess: float
) -> None:
    result = identify(_model(guess), _record(RATE), method)
    assert result.verdict == "cannot tell", result.reasons
    said = next(words for words in result.reasons if "alias" in words)
    assert "in place of" in said and "0.9" in said and "4.1" in said
    assert np.isinf(result.parameters["k"].stderr) and np.isfinite(result.parameters["c"].stderr)


def test_given_a_guess_above_half_the_rate_then_a_slow_motion_may_be_its_alias() -> None:
    """5.4 cycles are seen as 0.4, with twelve samples a period."""
    result = identify(_model(4.1), _record(RATE, 5.4))
    assert result.verdict == "cannot tell", result.reasons
    assert any("alias" in words and "0.4" in words for words in result.reasons)


def test_given_bounds_that_exclude_the_mirror_image_then_they_choose() -> None:
    result = identify(_model(0.9, upper=100.0), _record(RATE, 0.9), "path")
    assert result.verdict == "fits", result.reasons
    assert result.parameters["k"].value == pytest.approx((2 * np.pi * 0.9) ** 2, rel=1e-2)


def test_given_many_samples_a_period_then_there_is_no_doubt() -> None:
    result = identify(_model(FREQUENCY), _record(10 * RATE))
    assert result.verdict == "fits", result.reasons
    assert not any("alias" in words for words in result.reasons)
