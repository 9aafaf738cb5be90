"""A record whose samples are many periods of the model's drive apart is refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis import DataError, Model, Record, identify
from analysis.experiment import Experiment
from drivers.formats import read

DRIVEN = Model.from_equations(
    {"x": "a*cos(2*pi*f*t) - x"},
    {"a": {"guess": 1.0}, "f": {"value": 1.1}},
    outputs={"x": "x"},
)


def test_given_milliseconds_without_a_unit_then_the_unit_is_asked_for(tmp_path: Path) -> None:
    t = np.arange(500) * 0.02
    x = np.cos(2 * np.pi * 1.1 * t)
    np.savetxt(tmp_path / "a.csv", np.column_stack([1000 * t, x]), delimiter=",", header="t,x", comments="")
    with pytest.raises(DataError, match=r"period of 0.909, 0.045 of a sample interval.* times ms\?"):
        identify(DRIVEN, read(tmp_path / "a.csv"))
    np.savetxt(
        tmp_path / "b.csv", np.column_stack([1000 * t, x]), delimiter=",", header="t [ms],x", comments=""
    )
    assert Experiment(DRIVEN, read(tmp_path / "b.csv")).runs[0].dt == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (50e-3, r"ms\?$"),
        (50e-6, r"us\?$"),
        (50e-9, r"ns\?$"),
        (0.1, r"ms\?$"),
        (1e-12, "cannot show it.$"),  # no unit makes sense of it
    ],
)
def test_given_a_drive_far_too_fast_then_the_unit_is_named_that_would_fit(rate: float, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Experiment(DRIVEN, Record.from_arrays(rate, {"x": np.sin(np.arange(500.0))}))


@pytest.mark.parametrize("rate", [0.15, 1.1, 50.0])
def test_given_a_few_periods_between_samples_then_the_record_is_taken(rate: float) -> None:
    Experiment(DRIVEN, Record.from_arrays(rate, {"x": np.sin(np.arange(500.0))}))
