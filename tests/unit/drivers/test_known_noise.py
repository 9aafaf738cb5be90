"""The noise that a record states of its channels goes with it into a recording and back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from analysis import Record
from drivers.recording import MemoryRecording
from drivers.recording.container import ContainerRecording, write_container


def test_given_a_channel_of_known_noise_when_it_is_written_and_read_then_the_noise_is_known(
    tmp_path: Path,
) -> None:
    held = Record.from_arrays(100.0, {"x": np.arange(50.0), "f": np.zeros(50)}, noise={"x": 2e-4})
    write_container(MemoryRecording(held), tmp_path / "held.h5")
    with ContainerRecording(tmp_path / "held.h5") as kept:
        read = kept.slice(10, 40)
    assert read.channels["x"].noise == 2e-4 and read.channels["f"].noise is None


def test_given_metadata_of_others_under_that_name_then_they_are_no_noise() -> None:
    for said in ("low", {"x": "low"}, {"x": -1.0}, [0.1]):
        record = replace(Record.from_arrays(100.0, {"x": np.arange(9.0)}), metadata={"noise": said})
        assert MemoryRecording(record).slice(0, 9).channels["x"].noise is None
