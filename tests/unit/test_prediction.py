"""Predictions: exact for the true model, and wrong parameters show."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.errors import DataError
from analysis.model import Model
from analysis.prediction import predict
from analysis.record import Record
from analysis.simulation import simulate


def _pendulum() -> Model:
    return Model.from_equations(
        {"x": "v", "v": "-c*v - k*sin(x) + f"},
        {"c": {"guess": 0.1}, "k": {"guess": 4.0}},
        inputs={"f": "measured"},
        name="pendulum",
    )


@pytest.fixture(scope="module")
def record() -> Record:
    from analysis.inputs import Inputs

    model = _pendulum()
    t = np.arange(4000) / 100.0
    f = 1.5 * np.cos(2.0 * t)
    inputs = Inputs.from_samples(0.0, 0.01, f[None, :])
    run = simulate(model, t, [0.3, 0.0], None, inputs)
    return Record.from_arrays(100.0, {"x": run.states[0], "v": run.states[1], "f": f})


def test_given_the_true_model_when_it_predicts_then_the_error_stays_small(record: Record) -> None:
    found = predict(_pendulum(), record, {"c": 0.1, "k": 4.0}, 2.0)
    assert found.names == ("x", "v")
    assert np.all(found.error < 1e-3)
    assert found.horizon == float("inf")
    assert np.max(np.abs(found.free[:, :1000] - found.measured[:, :1000])) < 0.01


def test_given_wrong_parameters_when_the_model_predicts_then_the_error_grows_and_the_horizon_is_short(
    record: Record,
) -> None:
    found = predict(_pendulum(), record, {"c": 0.1, "k": 6.0}, 4.0)
    assert found.horizon < 3.0
    assert found.growth[0, 0] < 0.01 < found.growth[0, -1]
    assert np.all(found.error > 0.1)


def test_given_a_record_without_the_input_when_compared_then_it_is_said(record: Record) -> None:
    with pytest.raises(DataError, match="f"):
        predict(_pendulum(), Record.from_arrays(100.0, {"x": record["x"]}), {}, 1.0)
