"""The motion that a model is run through for its validation is as exact in picometres as in metres."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import Model, Record, prepare_subject


def subject_run(length: float) -> np.ndarray:
    """States of the model's own run, in units of ``length``, over the first 20 s."""
    model = Model.from_equations(
        {"x": "v", "v": "-c*v + a*x - b*x**3 + F*cos(t)"},
        {
            "c": {"guess": 0.25},
            "a": {"guess": 1.0},
            "b": {"guess": 1 / length**2},
            "F": {"guess": 0.4 * length},
        },
        outputs={"x": "x", "v": "v"},
    )
    t = 0.05 * np.arange(400)
    channels = {"x": length * np.cos(t), "v": -length * np.sin(t)}
    run = prepare_subject(model, Record.from_arrays(20.0, channels, drive_time=0.0), {}).run
    assert run is not None
    return run / length


@pytest.mark.parametrize("length", [1e-9, 1e-12, 1e6])
def test_the_run_of_the_model_does_not_depend_on_the_unit_of_length(length: float) -> None:
    np.testing.assert_allclose(subject_run(length), subject_run(1.0), atol=1e-5)
