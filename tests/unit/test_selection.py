"""Terms that the data support, from the Duffing record of Yuan 1995."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.errors import ModelError
from analysis.record import Excitation, Record
from analysis.selection import oscillator, select_terms
from analysis.simulation import simulate
from drivers.library import load_model

TERMS = {"c": "v", "k1": "x", "k2": "x**2", "k3": "x**3", "k4": "x**4", "k5": "x**5", "mu": "tanh(20*v)"}


def duffing_record(noise: float, rng: np.random.Generator) -> Record:
    step = 2 * np.pi / 1.33 / 100
    times = np.asarray(step * np.arange(35_000), dtype=np.float64)
    states = simulate(load_model("duffing"), times).states[:, 5000:]
    x, v = (row + noise * row.std() * rng.normal(size=len(row)) for row in states)
    return Record.from_arrays(1 / step, {"x": x, "v": v}, excitation=Excitation(1 / (100 * step), 27.0, 0.0))


def test_given_a_noisy_record_then_damping_and_both_springs_are_kept_and_little_else(
    rng: np.random.Generator,
) -> None:
    model = oscillator(TERMS, "27*cos(1.33*t)")
    found = select_terms(model, duffing_record(0.01, rng), list(TERMS), orbits=(3, 4, 5, 6), most_orbits=4)
    assert {"c", "k1", "k3"} <= set(found.kept)
    assert len(found.kept) <= 5
    assert [len(step.terms) for step in found.path] == [7, 6, 5, 4, 3, 2, 1]
    assert min(step.bic for step in found.path) < found.path[0].bic
    assert not {"k1", "k3"} & set(found.indistinguishable)
    assert found.result.values()["k3"] == pytest.approx(1.0, rel=0.01)


def test_given_a_term_that_is_not_there_then_one_sentence_says_so(rng: np.random.Generator) -> None:
    model = oscillator({"k1": "x"}, "cos(t)")
    with pytest.raises(ModelError, match="k9"):
        select_terms(model, Record.from_arrays(1.0, {"x": np.zeros(100)}), ["k9"])
    with pytest.raises(ModelError, match="at least one"):
        oscillator({})
