"""The calibration of a rig, step by step: what the command and the window share.

A listener gathers samples of the running rig; what they tell becomes a ``Calibration``, which writes itself
into the text of the rig's profile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis import DataError
from app.profile_text import edited
from drivers.base.protocols import Block
from drivers.base.waveform import Sine
from drivers.rig.calibration import (
    StaticPoint,
    card_profile,
    card_scale,
    check_static,
    clean_tone,
    known_tone,
    sensitivity,
    static_line,
)

if TYPE_CHECKING:
    from drivers.rig.profile import ChannelProfile, RigProfile

Samples = NDArray[np.float64]
SMALLEST = 1e-5  # relative error that is shown: no converter is better
BENT = 0.01  # deviation from the straight line, of the span, that is worth a word


class Listener:
    """Samples of all channels without a gap or an overload; with a ``tone``, from when it plays steadily."""

    def __init__(self, names: Sequence[str], wanted: int, tone: Sine | None = None) -> None:
        self._names, self._tone = list(names), tone
        self.wanted = wanted
        self._kept: list[Samples] = []
        self._next = 0

    @property
    def count(self) -> int:
        """Samples gathered so far."""
        return sum(part.shape[1] for part in self._kept)

    def take(self, blocks: Iterable[Block]) -> None:
        """Blocks that have arrived; DataError if one is overloaded."""
        for block in blocks:
            steady = self._tone is None or _plays(block, self._tone)
            if not steady or block.missing or (self._kept and block.start_index != self._next):
                self._kept = []
            if steady and not block.missing:
                if block.overloads:
                    name = self._names[block.overloads[0].channel]
                    raise DataError(f"'{name}' is overloaded: turn its gain or the level down.")
                self._kept.append(block.data.copy())
                self._next = block.stop_index

    def samples(self) -> Samples | None:
        """Channels by samples, once there are enough."""
        return np.concatenate(self._kept, axis=1)[:, : self.wanted] if self.count >= self.wanted else None


def _plays(block: Block, tone: Sine) -> bool:
    drive = block.drive
    return drive is not None and drive.steady and math.isclose(drive.frequency, tone.frequency, rel_tol=1e-6)


@dataclass(frozen=True)
class SensorFound:
    """What was found of a sensor."""

    channel: str
    unit: str
    sensitivity: float  # V per unit
    stderr: float  # relative
    frequency: float | None = None  # Hz of the known motion; None: values that stand still
    zero: float | None = None  # unit
    deviation: float = 0.0  # from a straight line, of the span


@dataclass(frozen=True)
class Calibration:
    """What a calibration found: volts that are 1.0 at a card's output and input, and a sensor."""

    output: float | None = None
    input: float | None = None
    sensor: SensorFound | None = None

    def text(self, profile: str, today: str) -> str:
        """The text of a profile with what was found in it; its comments stay."""
        instruments: dict[str, dict[str, Any]] = {}
        if self.output is not None:
            instruments = {
                "source": {"full_scale": self.input},
                "exciter": {"full_scale": self.output},
            }
        channels: dict[str, dict[str, Any]] = {}
        if self.sensor is not None:
            values = {"sensitivity": self.sensor.sensitivity, "zero": self.sensor.zero, "calibrated": today}
            channels = {self.sensor.channel: {k: v for k, v in values.items() if v is not None}}
        return edited(profile, channels, instruments)

    def words(self, profile: RigProfile) -> list[str]:
        """What was found, a sentence each."""
        found = []
        if self.output is not None:
            found.append(f"output: 1.0 of the card is {self.output:.5g} V")
            found.append(f"input: 1.0 of the card is {self.input:.5g} V")
            if profile.limits.peak > self.output:
                found.append(
                    f"The limit of {profile.limits.peak:g} V is more than this output gives: lower [limits] "
                    "amplitude in the profile."
                )
        if (sensor := self.sensor) is not None:
            found.append(_sensor_words(sensor, channel_of(profile, sensor.channel)))
            if sensor.deviation > BENT:
                off = f"{100 * sensor.deviation:.1f} %"
                found.append(f"The points are up to {off} of their span off the straight line.")
        return found


def _sensor_words(sensor: SensorFound, before: ChannelProfile) -> str:
    volts = "strain" if before.kind == "bridge" else "V"
    error = max(sensor.stderr, SMALLEST) if math.isfinite(sensor.stderr) else math.nan
    sure = "" if math.isnan(error) else f" ± {100 * error:.1g} %"
    at = f", at {sensor.frequency:.5g} Hz" if sensor.frequency is not None else ""
    if sensor.zero is not None:
        at = f", 0 {volts} is {sensor.zero:.5g} {sensor.unit}".rstrip()
    change = 100 * (sensor.sensitivity / before.sensitivity - 1)
    return (
        f"{sensor.channel}: {sensor.sensitivity:.5g} {volts} per {sensor.unit or 'unit'}{sure}{at}; "
        f"before {before.sensitivity:.5g} ({change:+.1f} %)"
    )


def channel_of(profile: RigProfile, name: str) -> ChannelProfile:
    """A channel that can be calibrated; DataError if there is none of this name."""
    for channel in profile.channels:
        if channel.name == name:
            return channel
    known = ", ".join(c.name for c in profile.channels)
    raise DataError(f"The rig '{profile.key}' has no channel '{name}': it has {known}.")


def check_sensor(profile: RigProfile, name: str, standing: bool = False) -> ChannelProfile:
    """The channel, if its sensitivity is the profile's to state; ``standing``: by values that stand still."""
    channel = channel_of(profile, name)
    if channel.teds:
        raise DataError(f"'{name}' takes its sensitivity from the sensor (teds): there is none to calibrate.")
    if standing:
        check_static(profile, channel)
    return channel


def card_tone(profile: RigProfile, level: float, frequency: float) -> Sine:
    """The tone for a card's volts, at ``level`` (0 to 1) of what its output can do."""
    card_profile(profile)
    return Sine(level * float(profile.instruments["exciter"].get("full_scale", 1.0)), frequency)


def check_card(profile: RigProfile, tone: Sine, heard: Samples, rate: float) -> None:
    """DataError in a sentence if what the loop-back hears cannot calibrate anything."""
    loopback = card_profile(profile).name
    clean_tone(heard[_row(profile, loopback)], rate, tone.frequency, loopback)


def card_volts(profile: RigProfile, tone: Sine, volts: float, heard: Samples, rate: float) -> Calibration:
    """A card's volts, from what a voltmeter showed (V rms) and the loop-back heard."""
    loopback = card_profile(profile).name
    response = clean_tone(heard[_row(profile, loopback)], rate, tone.frequency, loopback)
    scale = card_scale(profile, tone.amplitude, volts, response)
    return Calibration(scale.output, scale.input)


def by_known_motion(
    profile: RigProfile, name: str, known: float, heard: Samples, rate: float,
    at: float | None = None, scale: float | None = None,
) -> SensorFound:  # fmt: skip
    """A sensor on a motion of known size (rms, in its unit).

    ``at``: its frequency in Hz, by default the strongest; ``scale``: V that are 1.0 at a card's input, if
    they were found just now.
    """
    channel = check_sensor(profile, name)
    frequency, response = known_tone(heard[_row(profile, name)], rate, name, at)
    volts = sensitivity(profile, channel, response, known, scale)
    return SensorFound(name, channel.unit, volts, response.stderr / response.amplitude, frequency)


def standing_point(profile: RigProfile, name: str, value: float, heard: Samples) -> StaticPoint:
    """What a sensor shows at a known value that stands still."""
    check_sensor(profile, name, standing=True)
    signal = heard[_row(profile, name)]
    return StaticPoint(value, float(signal.mean()), float(signal.std()))


def by_known_values(profile: RigProfile, name: str, points: Sequence[StaticPoint]) -> SensorFound:
    """A sensor by the line through known values."""
    channel = check_sensor(profile, name, standing=True)
    line = static_line(channel, points)
    return SensorFound(
        name, channel.unit, line.sensitivity, line.stderr, zero=line.zero, deviation=line.deviation
    )


def _row(profile: RigProfile, channel: str) -> int:
    return [c.name for c in profile.channels].index(channel)
