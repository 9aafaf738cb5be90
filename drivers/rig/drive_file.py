"""A drive in a file of its own: a [drive] table as in a rig profile, and how long to record it.

name = "Plan for the beam"
rig = "two_well_beam"                 # for which it was made
seconds = 60.0
[drive]
kind = "segments"
...
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from analysis import ShakedownError, parse_toml
from drivers.base.files import read_text
from drivers.base.waveform import Waveform, waveform_from
from drivers.rig.profile import RigError


@dataclass(frozen=True)
class DriveFile:
    """What is to be played, for how long, and on which rig it was meant to be."""

    waveform: Waveform
    seconds: float | None = None
    rig: str = ""
    name: str = ""


def load_drive(path: Path | str) -> DriveFile:
    """Read a drive file; RigError names the mistake."""
    path = Path(path)
    try:
        table = parse_toml(read_text(path, "a drive"))
        drive = table.get("drive")
        if not isinstance(drive, dict):
            raise RigError("there is no [drive] in it.")
        seconds = table.get("seconds")
        if seconds is not None and (
            isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e9
        ):
            raise RigError(f"seconds must be a positive number, not {seconds!r}.")
        length = None if seconds is None else float(seconds)
        return DriveFile(waveform_from(drive), length, str(table.get("rig", "")), str(table.get("name", "")))
    except (tomllib.TOMLDecodeError, ShakedownError) as error:
        raise RigError(f"{path.name}: {error}") from None
