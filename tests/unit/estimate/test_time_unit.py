"""Milliseconds read as seconds: a free decay fits as well, with rates that are all off by a thousand."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import Identification, Model, Record, identify


def decay(rate: float, c: float, k: float) -> Identification:
    """A decay of c = 3 1/s, k = 4000 1/s^2, closed form, at 1 kHz; read at ``rate`` from guesses c and k."""
    t = np.arange(1000) / 1000.0
    x = np.exp(-1.5 * t) * np.cos(np.sqrt(4000 - 1.5**2) * t)
    x += 0.01 * np.random.default_rng(4).standard_normal(len(t))
    guesses = {"c": {"guess": c}, "k": {"guess": k}}
    model = Model.from_equations({"x": "v", "v": "-c*v - k*x"}, guesses, outputs={"x": "x"})
    return identify(model, Record.from_arrays(rate, {"x": x}))


@pytest.mark.parametrize("rate, unit", [(1.0, "milliseconds"), (1e6, "the model's are milliseconds")])
def test_rates_that_are_all_off_by_a_thousand_are_a_matter_of_units(rate: float, unit: str) -> None:
    result = decay(rate, 2.0, 3000.0)
    assert result.verdict == "cannot tell"
    assert any("unit of the times" in words and unit in words for words in result.reasons)


@pytest.mark.parametrize("c, k", [(1.0, 1.0), (0.003, 3000.0), (2.0, 0.3)])
def test_a_poor_guess_is_none(c: float, k: float) -> None:
    result = decay(1000.0, c, k)
    assert result.verdict == "fits"
    assert abs(result.parameters["k"].value - 4000) < 4 * result.parameters["k"].stderr
