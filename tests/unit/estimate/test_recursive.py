"""The weak form over a stream."""

import numpy as np
import pytest

from analysis.base.errors import DataError, ModelError
from analysis.base.record import Record
from analysis.estimate.methods import identify
from analysis.estimate.weak.recursive import RecursiveWeak
from analysis.model import Model
from analysis.simulation.simulate import simulate

START = 1.7  # the drive's time at the first sample of the stream
TRUE = {"c": 0.2, "k1": 0.5, "k3": 1.0, "b": 1.0}


def duffing():
    return Model.from_equations(
        {"x": "v", "v": "-c*v - k1*x - k3*x**3 + b*f"},
        {name: {"guess": 0.5 * value} for name, value in TRUE.items()},
        inputs={"f": "27*cos(1.33*t)"},
    )


@pytest.fixture(scope="module")
def stream():
    model = duffing()
    states = simulate(model.with_values(TRUE), START + np.arange(12000) * 0.02, np.array([1.0, 0.0])).states
    return states + 0.01 * np.random.default_rng(0).standard_normal(states.shape)


def test_given_blocks_of_any_length_when_summed_then_equal_to_the_whole_record(stream):
    model = duffing()
    live = RecursiveWeak(model, 50, ["x", "v"], spacing=5, drive_time=START)
    rng = np.random.default_rng(1)
    at = 0
    while at < stream.shape[1]:
        size = int(rng.integers(1, 400))
        live.update(stream[:, at : at + size])
        at += size
    record = Record.from_arrays(50, {"x": stream[0], "v": stream[1]}, drive_time=START)
    batch = identify(model, record, "weak", finish=False, weighted=False, spacing=5)
    found = live.estimate()
    for name, truth in TRUE.items():
        assert found.parameters[name].value == pytest.approx(batch.parameters[name].value, rel=1e-9)
        assert abs(found.parameters[name].value - truth) < 5 * found.parameters[name].stderr + 0.002


def test_given_a_gap_when_streamed_then_nothing_reaches_over_it(stream):
    live = RecursiveWeak(duffing(), 50, ["x", "v"], spacing=5, drive_time=START)
    live.update(stream[:, :5000])
    live.update(stream[:, 6000:], start=6000)
    assert live.estimate().parameters["k3"].value == pytest.approx(1.0, rel=0.01)


def test_given_a_change_when_forgetting_then_the_new_value_is_found(stream):
    changed = simulate(
        duffing().with_values({**TRUE, "k3": 2.0}),
        START + np.arange(12000) * 0.02,
        stream[:, -1] * 0 + [1.0, 0.0],
    ).states
    live = RecursiveWeak(duffing(), 50, ["x", "v"], spacing=5, memory=20.0, drive_time=START)
    for block in np.split(stream, 12, axis=1):
        live.update(block)
    assert live.estimate().parameters["k3"].value == pytest.approx(1.0, rel=0.01)
    live.update(changed[:, :0], start=0)
    for i, block in enumerate(np.split(changed, 12, axis=1)):
        live.update(block, start=1000 * i)
    assert live.estimate().parameters["k3"].value == pytest.approx(2.0, rel=0.01)


def test_given_a_model_that_is_not_linear_when_streamed_then_refused():
    model = Model.from_equations({"x": "-exp(a*x)"}, {"a": {"guess": 1.0}})
    with pytest.raises(ModelError, match="not linear"):
        RecursiveWeak(model, 10, ["x"])


def test_given_an_unknown_time_of_the_drive_when_the_model_needs_it_then_refused_in_words(stream):
    live = RecursiveWeak(duffing(), 50, ["x", "v"], spacing=5)
    with pytest.raises(DataError, match="depends on the drive's time t, which the stream does not tell"):
        live.update(stream)


def test_given_an_unknown_time_when_the_model_has_a_free_phase_of_its_own_then_it_is_fitted(stream):
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k1*x - k3*x**3 + a*cos(1.33*t) + b*sin(1.33*t)"},
        {name: {"guess": 0.0} for name in ("c", "k1", "k3", "a", "b")},
    )
    live = RecursiveWeak(model, 50, ["x", "v"], spacing=5)
    for block in np.split(stream, 400, axis=1):  # too short to tell at first
        live.update(block)
    found = live.estimate().parameters
    assert found["k3"].value == pytest.approx(1.0, rel=0.01)
    # 27 cos(w (t + START)) = 27 cos(w START) cos(w t) - 27 sin(w START) sin(w t)
    assert found["a"].value == pytest.approx(27 * np.cos(1.33 * START), abs=0.3)
    assert found["b"].value == pytest.approx(-27 * np.sin(1.33 * START), abs=0.3)
