"""Derived records: right in value and time, the original untouched."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.base.derive import calibrate, resample
from analysis.base.errors import DataError
from analysis.base.record import Channel, Record


def _sine(rate: float, seconds: float, frequency: float) -> np.ndarray:
    t = np.arange(int(rate * seconds)) / rate
    return np.sin(2 * np.pi * frequency * t + 0.4)


@pytest.mark.parametrize("rate", [500.0, 750.0, 2000.0])
def test_given_a_sine_below_the_new_limit_when_resampled_then_it_is_the_sine_at_the_new_times(
    rate: float,
) -> None:
    record = Record.from_arrays(1000.0, {"x": _sine(1000.0, 4.0, 11.0)}, {"x": "mm"})
    changed = resample(record, rate)
    assert changed.rate == pytest.approx(rate)
    expected = _sine(rate, len(changed) / rate, 11.0)[: len(changed)]
    inside = slice(len(changed) // 8, -len(changed) // 8)
    assert np.max(np.abs(changed["x"][inside] - expected[inside])) < 2e-3
    assert changed.channels["x"].unit == "mm"


def test_given_a_tone_above_the_new_limit_when_resampled_then_it_does_not_fold_back() -> None:
    record = Record.from_arrays(1000.0, {"x": _sine(1000.0, 4.0, 400.0)})
    slow = resample(record, 250.0)["x"]
    assert np.std(slow[100:-100]) < 1e-3


def test_given_gaps_when_resampled_then_they_move_along_and_spoil_nothing_else() -> None:
    data = _sine(1000.0, 2.0, 5.0)
    data[1000:1010] = np.nan
    record = Record(1000.0, {"x": Channel(data, "", ((1000, 1010),))})
    slow = resample(record, 500.0)
    assert slow.channels["x"].gaps == ((500, 505),)
    assert np.isfinite(slow["x"]).all()


def test_given_a_calibration_when_applied_then_only_that_channel_changes() -> None:
    record = Record.from_arrays(10.0, {"a": [1.0, 2.0], "b": [3.0, 4.0]}, {"a": "V"})
    scaled = calibrate(record, "a", 2.5, -1.0, "mm")
    assert scaled["a"].tolist() == [1.5, 4.0]
    assert scaled.channels["a"].unit == "mm"
    assert scaled["b"] is record["b"]
    assert record["a"].tolist() == [1.0, 2.0]
    with pytest.raises(DataError):
        calibrate(record, "a", 0.0, 0.0, "mm")
