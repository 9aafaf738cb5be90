"""What a record knows of the drive's time at its first sample."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.base.record import Excitation, Record
from analysis.experiment.drive_time import recorded_time


@pytest.mark.parametrize(
    ("drive", "drive_time", "expected"),
    [
        (None, None, None),
        (Excitation(2.0), None, None),
        (Excitation(2.0, 1.0, np.pi / 2), None, 0.125),
        (Excitation(2.0, 1.0, -np.pi / 2, "multisine"), None, 0.375),
        (Excitation(2.0, 1.0, np.pi / 2), 7.0, 7.0),
        (Excitation(2.0, 1.0, np.pi / 2, "sweep"), None, None),  # the phase of a sweep does not tell its time
        (Excitation(2.0, 1.0, np.pi / 2, "sweep"), 7.0, 7.0),
    ],
)
def test_given_a_drive_then_its_time_is_what_the_phase_can_tell(
    drive: Excitation | None, drive_time: float | None, expected: float | None
) -> None:
    record = Record.from_arrays(10.0, {"x": np.zeros(9)}, excitation=drive, drive_time=drive_time)
    found = recorded_time(record)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))
