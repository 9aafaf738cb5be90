"""Samples that cannot tell a frequency from its alias."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.base.record import Record
from analysis.estimate.methods import identify
from analysis.model import Model

MODEL = """
name = "Decay"
[states]
x = "v"
v = "-c*v - k*x"
[parameters]
c = {{ guess = 0.1, lower = 0 }}
k = {{ guess = {guess}, lower = 0 }}
[outputs]
x = "x"
"""
RATE, FREQUENCY, DAMPING = 5.0, 4.1, 0.08  # 1.2 samples a period


def _record(rate: float) -> Record:
    t = np.arange(round(40 * rate)) / rate
    x = np.exp(-0.5 * DAMPING * t) * np.cos(2 * np.pi * FREQUENCY * t + 0.4)
    return Record.from_arrays(rate, {"x": x + 0.01 * np.random.default_rng(5).standard_normal(len(t))})


@pytest.mark.parametrize(("rate", "verdict"), [(RATE, "cannot tell"), (10 * RATE, "fits")])
def test_given_a_guess_above_half_the_sample_rate_when_the_fit_lies_below_then_nobody_can_tell(
    rate: float, verdict: str
) -> None:
    model = Model.from_toml(MODEL.format(guess=(2 * np.pi * FREQUENCY) ** 2))
    result = identify(model, _record(rate))
    assert result.verdict == verdict, result.reasons
    assert any("alias" in words for words in result.reasons) == (verdict == "cannot tell")
