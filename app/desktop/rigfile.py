"""Writing into a rig's profile: what a calibration found is kept in the file that the rig is opened from.

Profiles that come with the program are never changed: the first change makes a copy among the user's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.desktop.opening import rig_paths, rigs_folder
from app.profile_text import edited
from drivers.base import system
from drivers.base.files import read_text
from drivers.rig.profile import RigError, rig_from_text


def key_of(name: str) -> str:
    """The file name, without ending, for a name given by a person."""
    return "".join(ch if ch.isalnum() or ch in "-_" else "_" for ch in name)


def save_text(text: str, key: str) -> Path:
    """Check a profile and write it among the user's own in one move."""
    rig_from_text(text, key, key)
    folder = rigs_folder()
    path, part = folder / f"{key}.toml", folder / f"{key}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        system.replace(part, path)
    except OSError as error:
        raise RigError(f"{path} cannot be written: {error.strerror or error}.") from None
    return path


def keep(name: str, channel: str, values: Mapping[str, Any], controller: str = "") -> str:
    """Store values of a channel in the profile of a rig; the name of the rig to open from now on.

    ``controller``: the instrument that told the values; it is noted as belonging to the channel.
    """
    path = rig_paths().get(name, Path(name))
    return keep_text(path, changed(read_text(path, "a rig profile"), channel, values, controller))


def keep_text(path: Path, text: str) -> str:
    """Store another text of a rig's profile; the name of the rig to open from now on."""
    key = path.stem if path.parent == rigs_folder() else free_key(path.stem)
    save_text(text, key)
    return key


def changed(text: str, channel: str, values: Mapping[str, Any], controller: str = "") -> str:
    """The profile's text with other values, its comments and order kept where it is written line by line."""
    return edited(text, {channel: values}, {controller: {"channel": channel}} if controller else {})


def free_key(stem: str) -> str:
    """A name for a copy of a rig that none of the user's own has."""
    stem = stem.removeprefix("my_")
    key, number = f"my_{stem}", 2
    while (rigs_folder() / f"{key}.toml").exists():
        key, number = f"my_{stem}_{number}", number + 1
    return key
