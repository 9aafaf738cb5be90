"""Units of the record beside those of the model."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.base.record import Record
from analysis.experiment import Experiment
from analysis.experiment.units import unit_words
from analysis.model import Model

MODEL = """
name = "Oscillator"
[states]
x = "v"
v = "-c*v - k*x + f"
[inputs]
f = "measured"
[parameters]
c = { guess = 0.1 }
k = { guess = 1.0 }
[outputs]
x = "x"
[units]
x = "um"
f = "m/s^2"
"""


@pytest.mark.parametrize(
    ("x", "f", "named"),
    [
        ("um", "m/s^2", []),
        ("µm", "m/s²", []),
        ("", "", []),
        ("mm", "m/s^2", ["x"]),
        ("um", "g", ["f"]),
        ("deg", "N", ["x", "f"]),
    ],
)
def test_given_units_that_contradict_the_model_then_each_is_said(x: str, f: str, named: list[str]) -> None:
    rng = np.random.default_rng(3)
    arrays = {"x": rng.standard_normal(64), "f": np.sin(np.arange(64))}
    record = Record.from_arrays(10.0, arrays, {"x": x, "f": f})
    said = [
        words for words in Experiment(Model.from_toml(MODEL), record).warnings if "not converted" in words
    ]
    assert [words.split()[3] for words in said] == named


@pytest.mark.parametrize(
    ("x", "f", "named"),
    [
        ("mm", "m/s^2", ["x"]),
        ("m", "mm/s^2", ["x", "f"]),
        ("um", "g", ["f"]),
        ("V", "m s^-2", []),  # another quantity, and perhaps the same unit in another writing
        ("inch", "N", ["x"]),
    ],
)
def test_given_units_of_another_size_then_that_is_sure(x: str, f: str, named: list[str]) -> None:
    arrays = {"x": np.arange(64.0), "f": np.sin(np.arange(64))}
    record = Record.from_arrays(10.0, arrays, {"x": x, "f": f})
    said = unit_words(Model.from_toml(MODEL), record, sure=True)
    assert [words.split()[3] for words in said] == named


@pytest.mark.parametrize(
    ("found", "wanted", "sure"),
    [
        ("°C", "K", True),
        ("degC", "K", True),
        ("rpm", "rad/s", True),
        ("°/s", "rad/s", True),
        ("kPa", "bar", True),
        ("lbf", "N", True),
        ("km/h", "m/s", True),
        ("N m", "mN m", True),
        ("inch", "in", False),  # another writing
        ("°", "deg", False),
        ("min", "m", False),
        ("K", "N", False),
    ],
)
def test_given_two_units_then_it_is_sure_where_both_are_of_one_quantity(
    found: str, wanted: str, sure: bool
) -> None:
    model = Model.from_toml(MODEL.replace('x = "um"', f'x = "{wanted}"'))
    record = Record.from_arrays(10.0, {"x": np.arange(64.0)}, {"x": found})
    assert bool(unit_words(model, record, sure=True)) is sure


def test_given_a_channel_that_never_changes_then_it_is_said_at_once() -> None:
    record = Record.from_arrays(10.0, {"x": np.full(64, 1.3), "f": np.sin(np.arange(64))})
    with pytest.raises(DataError, match="x never changes"):
        Experiment(Model.from_toml(MODEL), record)
