"""The adapter for benchmarks of others, against the closed form of an oscillator that swings out."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

from analysis import Model, ShakedownError
from benchmarks.identibench import Simulator, builder, fitted

RATE, DAMPING, STIFFNESS = 20.0, 0.1, 4.0
TIMES = np.arange(400) / RATE
Sequence = namedtuple("Sequence", "u y attrs")
MODEL = Model.from_equations(
    {"x": "v", "v": "f - c*v - k*x"},
    {"c": {"guess": 0.2, "lower": 0.0}, "k": {"guess": 3.0, "lower": 0.0}},
    inputs={"f": "measured"},
    outputs={"x": "x"},
)


def swing(size: float, noise: float = 0.0) -> Sequence:
    """x = size exp(-c t/2) cos(w t) about the rest position of a constant force."""
    damped = np.sqrt(STIFFNESS - DAMPING**2 / 4)
    x = 0.5 + size * np.exp(-0.5 * DAMPING * TIMES) * np.cos(damped * TIMES)
    x = x + noise * np.random.default_rng(1).standard_normal(len(x))
    return Sequence(np.full((400, 1), 0.5 * STIFFNESS), x[:, None], {"fs": RATE})


def test_given_training_records_then_the_predictor_foretells_others_from_their_beginning() -> None:
    context = SimpleNamespace(
        hyperparameters={"method": "shooting", "completed": False, "seed": 3},
        get_train_valid_sequences=lambda: iter([swing(1.0, 1e-3)]),
    )
    predict = builder(MODEL, ["f"], ["x"])(context)
    other = swing(-2.0)
    told = predict(other.u, other.y[:20], {})
    assert told.shape == other.y.shape
    assert np.abs(told - other.y).max() < 5e-3


def test_given_records_of_another_package_then_their_arrays_are_taken_as_they_are() -> None:
    flat = SimpleNamespace(u=swing(1.0).u[:, 0], y=swing(1.0, 1e-3).y[:, 0])
    found = fitted(MODEL, ["f"], ["x"], [flat], RATE, method="shooting", completed=False)
    assert abs(found.model.parameters["k"].value - STIFFNESS) < 1e-3


def test_given_no_beginning_or_no_rate_then_it_is_refused() -> None:
    with pytest.raises(ShakedownError, match="at least two samples"):
        Simulator(MODEL, ["f"], ["x"], None, RATE).foretell(swing(1.0).u, np.zeros((0, 1)))  # type: ignore[arg-type]
    context = SimpleNamespace(
        hyperparameters={}, get_train_valid_sequences=lambda: iter([swing(1.0)._replace(attrs={})])
    )
    with pytest.raises(ShakedownError, match="sample rate"):
        builder(MODEL, ["f"], ["x"])(context)
