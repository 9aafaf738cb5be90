"""The record: spans and the drive's phase follow every cut."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.base.record import Channel, Excitation, Marker, Record


def test_given_a_cut_then_gaps_clipping_and_phase_move_along() -> None:
    data = np.arange(100.0)
    record = Record(
        10.0,
        {"x": Channel(data, "mm", gaps=((5, 20), (50, 60)), clipped=((90, 95),))},
        excitation=Excitation(frequency=1.0, phase=0.5),
        markers=(Marker(14, "before"), Marker(15, "first"), Marker(91, "last"), Marker(92, "after")),
    )
    part = record.cut(15, 92)
    assert part.markers == (Marker(0, "first"), Marker(76, "last"))
    assert part.channels["x"].gaps == ((0, 5), (35, 45))
    assert part.channels["x"].clipped == ((75, 77),)
    assert part["x"][0] == 15.0
    assert part.excitation is not None
    assert part.excitation.phase is not None
    assert np.cos(part.excitation.phase) == pytest.approx(np.cos(0.5 + 2 * np.pi * 1.5))
    assert part.channels["x"].valid().sum() == 77 - 5 - 10 - 2


def test_given_a_missing_channel_then_the_message_lists_those_there_are() -> None:
    record = Record.from_arrays(1.0, {"x": [1.0], "v": [2.0]})
    with pytest.raises(DataError, match="No channel 'y': the record has x, v"):
        record["y"]


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_given_an_impossible_rate_then_it_is_refused(rate: float) -> None:
    with pytest.raises(DataError, match="positive"):
        Record.from_arrays(rate, {"x": [1.0]})


def test_given_channels_of_different_length_then_it_is_refused() -> None:
    with pytest.raises(DataError, match="different lengths"):
        Record.from_arrays(1.0, {"x": [1.0], "y": [1.0, 2.0]})
