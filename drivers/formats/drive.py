"""The drive, the clock and markers in formats that hold plain named values, under names of our own."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from analysis import Excitation, Marker
from drivers.recording.lazy import Description

PREFIX = "shakedown_drive_"  # so that no other program's property is taken for ours
CLOCK = "shakedown_clock_time"  # the first sample's time by the clock of the file that was imported
MARKERS = "shakedown_markers"  # JSON: [[index of the sample, words], ...]
MOST_MARKERS = 10_000


def own_fields(about: Description) -> dict[str, float | str]:
    """Drive and clock at the first sample, and what a person marked, by name."""
    fields = drive_fields(about)
    if about.markers:
        fields[MARKERS] = json.dumps([[marker.index, marker.text] for marker in about.markers])
    return fields


def markers_from(fields: Mapping[str, Any]) -> tuple[Marker, ...]:
    """What a person marked; whatever is no marker is passed over."""
    try:
        found = json.loads(str(fields.get(MARKERS, "[]")))
        pairs = [(index, text) for index, text in found[:MOST_MARKERS]]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ()
    whole = [(i, t) for i, t in pairs if type(i) is int and 0 <= i < 1 << 53 and isinstance(t, str)]
    return tuple(Marker(index, text) for index, text in whole)


def drive_fields(about: Description) -> dict[str, float | str]:
    """What is known of the drive and of the clock at the first sample, by name."""
    drive = about.excitation
    found: dict[str, float | str | None] = {"time": about.drive_time}
    if drive is not None:
        found |= {
            "frequency": drive.frequency,
            "amplitude": drive.amplitude,
            "phase": drive.phase,
            "waveform": drive.waveform,
            "until": drive.until,
        }
    fields = {PREFIX + name: value for name, value in found.items() if value is not None}
    return fields if about.clock_time is None else {**fields, CLOCK: about.clock_time}


def drive_from(fields: Mapping[str, Any]) -> tuple[Excitation | None, float | None]:
    """The drive, and its time at the first sample; None where the file does not tell."""

    def number(name: str) -> float | None:
        return _number(fields.get(PREFIX + name))

    frequency = number("frequency")
    if frequency is None or frequency < 0:
        return None, number("time")
    waveform = str(fields.get(PREFIX + "waveform", "sine"))
    drive = Excitation(frequency, number("amplitude"), number("phase"), waveform, number("until"))
    return drive, number("time")


def clock_from(fields: Mapping[str, Any]) -> float | None:
    """The first sample's time by the clock of the file that was imported; None if this one does not tell."""
    return _number(fields.get(CLOCK))


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def without_drive(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The other values of a file."""
    return {name: value for name, value in fields.items() if not name.startswith((PREFIX, CLOCK, MARKERS))}
