"""Measured inputs as functions of time."""

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.base.record import Record
from analysis.signal.inputs import Inputs, jumps


def test_given_a_smooth_signal_when_splined_then_it_is_right_between_the_samples() -> None:
    t = np.arange(200) * 0.05
    inputs = Inputs.from_samples(0.0, 0.05, np.stack([np.sin(t), np.cos(2 * t)]))
    between = np.linspace(0.2, 9.7, 777)
    error = inputs.values(between) - np.stack([np.sin(between), np.cos(2 * between)])
    assert np.abs(error).max() < 5e-6
    assert len(inputs.breaks) == 0


@pytest.mark.parametrize("kind", ["cubic", "linear", "hold"])
def test_given_any_kind_when_read_at_the_samples_then_the_samples_come_back(kind: str) -> None:
    samples = np.random.default_rng(3).normal(size=(2, 50))
    inputs = Inputs.from_samples(-1.0, 0.1, samples, kind)
    assert np.allclose(inputs.values(-1.0 + 0.1 * np.arange(50)), samples, atol=1e-7)


def test_given_a_stepped_channel_when_interpolated_then_steps_stay_steps_and_are_known() -> None:
    step = np.where(np.arange(100) < 40, 1.0, 3.0)
    inputs = Inputs.from_samples(0.0, 0.5, [step])
    assert inputs.breaks.tolist() == [20.0]
    assert inputs.values(np.array([19.99, 20.0, 20.01])).tolist() == [[1.0, 3.0, 3.0]]


def test_given_a_jump_in_a_smooth_signal_when_splined_then_it_does_not_ring() -> None:
    t = np.arange(400) * 0.01
    signal = np.sin(3 * t) + np.where(t >= 2.0, 5.0, 0.0)
    inputs = Inputs.from_samples(0.0, 0.01, [signal])
    assert np.allclose(inputs.breaks, [2.0])
    smooth = np.concatenate([np.linspace(0.0, 1.98, 500), np.linspace(2.0, 3.98, 500)])
    truth = np.sin(3 * smooth) + np.where(smooth >= 2.0, 5.0, 0.0)
    assert np.abs(inputs.values(smooth) - truth).max() < 1e-6


def test_given_white_noise_when_searched_for_jumps_then_none_is_found() -> None:
    assert len(jumps(np.random.default_rng(1).normal(size=200_000))) == 0


def test_given_a_record_when_made_into_inputs_then_channels_are_taken_by_name() -> None:
    record = Record.from_arrays(10.0, {"y": np.zeros(8), "f": np.arange(8.0)})
    inputs = Inputs.from_record(record, ["f"])
    assert inputs.values(np.array([0.35]))[0, 0] == pytest.approx(3.5)


@pytest.mark.parametrize(
    ("samples", "dt", "kind"),
    [
        ([[1.0, np.nan]], 0.1, "cubic"),
        ([[1.0, 2.0]], 0.0, "cubic"),
        ([[1.0, 2.0]], 0.1, "nearest"),
        (np.zeros((1, 0)), 0.1, "hold"),
    ],
)
def test_given_bad_samples_when_made_into_inputs_then_one_sentence_says_so(samples, dt, kind) -> None:
    with pytest.raises(DataError):
        Inputs.from_samples(0.0, dt, samples, kind)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_given_few_samples_when_splined_then_they_are_met(count: int) -> None:
    samples = np.arange(count, dtype=float)[None] ** 2
    inputs = Inputs.from_samples(0.0, 1.0, samples)
    assert np.allclose(inputs.values(np.arange(count, dtype=float)), samples)


@pytest.mark.parametrize("frequency", [0.25, 0.34, 0.42])
def test_given_few_samples_a_period_then_the_mean_of_each_interval_is_that_of_the_wave(frequency):
    """What a wave pushes a specimen by between two samples: a spline loses up to 15 % of it."""
    k, w = np.arange(300), 2 * np.pi * frequency
    inputs = Inputs.from_samples(2.0, 0.01, np.cos(w * k + 0.3)[None])
    fine = np.arange(100, 200, 0.01) + 0.005
    mean = inputs.values(2.0 + 0.01 * fine)[0].reshape(100, 100).mean(axis=1)
    places = np.arange(100, 200)
    exact = (np.sin(w * (places + 1) + 0.3) - np.sin(w * places + 0.3)) / w
    assert np.abs(mean - exact).max() < 2e-3
    assert inputs.values(2.0 + 0.01 * places)[0] == pytest.approx(np.cos(w * places + 0.3), abs=1e-9)
