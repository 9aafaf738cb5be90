"""The straight line of a sensor through known values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from app.calibration import Calibration, SensorFound, by_known_values
from drivers.base.protocols import InstrumentError
from drivers.rig.calibration import StaticPoint, static_line
from drivers.rig.profile import ChannelProfile, load_rig, rig_from_text

CHANNEL = ChannelProfile("x", "mm", sensitivity=0.5, zero=1.0)


def _points(values: list[float], volts: list[float], spread: float = 1e-4) -> list[StaticPoint]:
    """What the channel shows of these voltages, by its profile."""
    return [
        StaticPoint(x, v / CHANNEL.sensitivity + CHANNEL.zero, spread)
        for x, v in zip(values, volts, strict=True)
    ]


def test_given_a_sensor_of_known_slope_and_zero_then_both_are_found_with_their_error() -> None:
    values = [0.0, 1.0, 2.0, 3.0]
    off = np.array([0.01, -0.01, -0.01, 0.01])  # V, without a slope or a mean of its own
    line = static_line(
        CHANNEL, _points(values, [float(-0.4 * (x - 2.5) + e) for x, e in zip(values, off, strict=True)])
    )
    assert line.sensitivity == pytest.approx(-0.4) and line.zero == pytest.approx(2.5)
    # the textbook's: residual variance over the sum of squares of the values
    assert line.stderr == pytest.approx(math.sqrt(4e-4 / 2 / 5.0) / 0.4)
    assert line.deviation == pytest.approx(0.01 / 0.4 / 3.0)
    assert math.isnan(static_line(CHANNEL, _points([0.0, 1.0], [0.0, 0.5])).stderr)


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        (_points([1.0, 1.0], [0.0, 0.5]), "Two different known values"),
        (_points([0.0, 1.0], [0.0, 1e-4]), "hardly changes"),
    ],
)
def test_given_points_that_tell_no_line_then_a_sentence(points: list[StaticPoint], sentence: str) -> None:
    with pytest.raises(InstrumentError, match=sentence):
        static_line(CHANNEL, points)


def test_given_what_was_found_then_the_profile_holds_it_and_the_words_tell_what_was_before() -> None:
    profile = load_rig("two_well_beam_modern")
    was = profile.channels[0]
    found = Calibration(
        sensor=SensorFound("x", was.unit, 1.1 * was.sensitivity, 0.001, zero=-0.25, deviation=0.04)
    )
    text = found.text((profile.folder / f"{profile.key}.toml").read_text(encoding="utf-8"), "2026-05-01")
    now = rig_from_text(text, "new", "new").channels[0]
    assert (now.sensitivity, now.zero, now.calibrated) == (1.1 * was.sensitivity, -0.25, "2026-05-01")
    first, second = found.words(profile)
    assert "(+10.0 %)" in first and "4.0 % of their span" in second
    sensors_own = rig_from_text(
        text.replace('name = "x"', 'name = "x"\nkind = "iepe"\nteds = true', 1), "new", "new"
    )
    with pytest.raises(Exception, match="from the sensor"):
        by_known_values(sensors_own, "x", [])
