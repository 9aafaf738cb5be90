"""Calibration by a tone or by known values: a sound card's numbers to volts, a sensor's volts to its unit.

A sound card's numbers run from -1 to 1, and how many volts that are depends on the card, its mixer and its
knobs. A voltmeter at the output tells it for the output; the loop-back channel, which hears the same voltage,
then tells it for the input. A sensor on a motion that is known (a hand-held calibrator), or at values that
are known and stand still (gauge blocks, weights), tells the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis import ToneResponse, strongest_line, tone_response
from drivers.base.protocols import InstrumentError
from drivers.rig.profile import ChannelProfile, RigError, RigProfile

DISTORTED = 0.05  # share of the harmonics that a card's own electronics do not make
WANDERING = 0.01  # relative change of the level from the first half to the second
SHORTEST = 20  # periods


@dataclass(frozen=True)
class CardScale:
    """Volts that are 1.0 in a card's numbers, at its output and at its input."""

    output: float
    input: float


def clean_tone(signal: NDArray[np.float64], rate: float, frequency: float, where: str) -> ToneResponse:
    """The tone of a channel; InstrumentError in a sentence if it is none that could calibrate anything."""
    count = len(signal) // 2
    found = tone_response(signal, np.zeros(len(signal)), rate, frequency)
    if not found.clear or found.noise > found.amplitude / 2:
        raise InstrumentError(
            f"No clear tone of {frequency:g} Hz is on '{where}': is it connected, and is the level enough?"
        )
    if count * frequency < SHORTEST * rate / 2:
        raise InstrumentError(f"{len(signal) / rate:.3g} s hold too few periods of {frequency:g} Hz.")
    if found.distortion > DISTORTED:
        raise InstrumentError(
            f"The tone on '{where}' is distorted ({100 * found.distortion:.0f} %): lower the level, "
            "and switch off whatever improves sound."
        )
    first, second = (
        tone_response(half, np.zeros(count), rate, frequency)
        for half in (signal[:count], signal[count : 2 * count])
    )
    if abs(second.amplitude / first.amplitude - 1) > WANDERING:
        raise InstrumentError(
            f"The level on '{where}' changes while the tone plays ({first.amplitude:.4g} to "
            f"{second.amplitude:.4g}): automatic gain? Switch off whatever improves sound."
        )
    return found


def card_profile(profile: RigProfile) -> ChannelProfile:
    """The loop-back channel of a sound card's rig; RigError if it is not one that can be calibrated."""
    source, exciter = profile.instruments["source"], profile.instruments.get("exciter", {})
    if source.get("driver") != "sound" or exciter.get("driver") != "sound":
        raise RigError(
            f"The rig '{profile.key}' is no sound card with input and output: its volts are known."
        )
    loopback = source.get("loopback")
    if loopback is None:
        raise RigError(
            "[instruments.source]: 'loopback' is missing. Wire the output to an input as well, and name that "
            "channel."
        )
    return next(c for c in profile.channels if c.name == loopback)


def card_scale(profile: RigProfile, played: float, volts_rms: float, heard: ToneResponse) -> CardScale:
    """The scale of a card that was told to play ``played`` (V, as its profile has it) and gave ``volts_rms``.

    ``heard``: the tone on the loop-back channel, in that channel's unit.
    """
    loopback = card_profile(profile)
    if not volts_rms > 0 or not np.isfinite(volts_rms):
        raise InstrumentError("The voltmeter's reading is a positive number of volts (rms).")
    volts = float(np.sqrt(2)) * volts_rms  # amplitude at the output, and at the input that is wired to it
    sent = played / float(profile.instruments["exciter"].get("full_scale", 1.0))
    taken = heard.amplitude * abs(loopback.sensitivity) / _input_scale(profile)
    return CardScale(volts / sent, volts / taken)


def sensitivity(
    profile: RigProfile,
    channel: ChannelProfile,
    heard: ToneResponse,
    known_rms: float,
    scale: float | None = None,
) -> float:
    """V per unit of a sensor that showed ``heard`` (in the unit, as the profile has it) on a known motion.

    ``scale``: volts that are 1.0 at the card's input, if they were found just now.
    """
    if not known_rms > 0 or not np.isfinite(known_rms):
        raise InstrumentError("The known motion is a positive number (rms, in the channel's unit).")
    volts = heard.amplitude * abs(channel.sensitivity)
    if scale is not None:
        volts *= scale / _input_scale(profile)
    return float(np.copysign(volts / (np.sqrt(2) * known_rms), channel.sensitivity))


def known_tone(
    signal: NDArray[np.float64], rate: float, channel: str, frequency: float | None
) -> tuple[float, ToneResponse]:
    """The tone that a calibrator makes, at its frequency or, if that is not told, the strongest one's."""
    found = strongest_line(signal, rate) if frequency is None else frequency
    return found, clean_tone(signal, rate, found, channel)


def _input_scale(profile: RigProfile) -> float:
    return float(profile.instruments["source"].get("full_scale", 1.0))


@dataclass(frozen=True)
class StaticPoint:
    """What a channel showed at a known value, both in its unit."""

    value: float
    reading: float  # mean, as the profile has it
    spread: float  # rms about the mean


@dataclass(frozen=True)
class StaticLine:
    """The straight line of a sensor through known values."""

    sensitivity: float  # V per unit; of a bridge, strain per unit
    zero: float  # reading at 0 V, in the unit
    stderr: float  # of the sensitivity, relative; not a number from two points
    deviation: float  # largest distance of a point from the line, relative to the span of the values


def check_static(profile: RigProfile, channel: ChannelProfile) -> None:
    """InstrumentError in a sentence if a value that stands still does not reach the converter."""
    if profile.instruments["source"].get("driver") == "sound":
        raise InstrumentError("A sound card does not see a value that stands still: use a calibrator's tone.")
    if channel.kind in ("iepe", "force") or channel.coupling == "ac":
        raise InstrumentError(
            f"'{channel.name}' does not see a value that stands still: use a calibrator's tone."
        )


def static_line(channel: ChannelProfile, points: Sequence[StaticPoint]) -> StaticLine:
    """The line V = sensitivity (value - zero) through the points, by least squares in V."""
    values = np.array([point.value for point in points])
    if len(np.unique(values)) < 2:
        raise InstrumentError("Two different known values are needed at least.")
    readings = np.array([point.reading for point in points])
    if np.ptp(readings) < 3 * max(point.spread for point in points):
        raise InstrumentError(
            f"'{channel.name}' hardly changes between the values: is it connected, and do they differ enough?"
        )
    volts = (readings - channel.zero) * channel.sensitivity
    middle = float(values.mean())
    slope, height = (float(part) for part in np.polyfit(values - middle, volts, 1))
    left = volts - (height + slope * (values - middle))
    free = len(values) - 2
    variance = float(left @ left) / free if free else math.nan
    return StaticLine(
        slope,
        middle - height / slope,
        math.sqrt(variance / float(np.sum((values - middle) ** 2))) / abs(slope),
        float(np.abs(left / slope).max() / np.ptp(values)),
    )
