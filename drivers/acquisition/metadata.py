"""What a recording says about itself: built here, for the window, the command line and sequences alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis import __version__
from drivers.base.protocols import Source
from drivers.rig.profile import RigProfile
from drivers.virtual.specimens import number_of


def recording_metadata(
    source: Source,
    profile: RigProfile | None,
    *,
    title: str = "",
    operator: str = "",
    notes: str = "",
    tags: Sequence[str] = (),
    driven: bool = True,
    seed: int | None = None,
    test: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The facts of a recording that is about to be made.

    ``rig`` is the profile's key and ``rig_title`` its name for people; a source without a profile (a replay)
    has its title only. ``drive`` is the profile's own one, unless the shaker is not used. ``test``: what is
    known of the test that the recording belongs to.
    """
    metadata: dict[str, Any] = {
        "rig": title or source.name if profile is None else profile.key,
        "rig_title": title or source.name if profile is None else profile.name,
        "operator": operator,
        "notes": notes,
        "tags": list(tags),
        "calibration": _calibration(source),
        "versions": {"shakedown": __version__},
    }
    if test:
        metadata["test"] = dict(test)
    if profile is None:
        return metadata
    if profile.model:
        metadata["model"] = profile.model  # the equations that are meant to describe the specimen
    if driven and profile.drive is not None:
        metadata["drive"] = profile.drive.describe()
    if profile.virtual and seed is not None:
        metadata["seed"] = seed
    if number_of(profile):
        metadata["specimen"] = number_of(profile)
    watchdog = profile.instruments.get("exciter", {}).get("watchdog")
    if watchdog:
        metadata["watchdog"] = watchdog  # s
    return metadata


def _calibration(source: Source) -> dict[str, Any]:
    known = [c for c in source.channels if c.sensor or c.calibration]
    return {c.name: {"sensor": c.sensor, **c.calibration} for c in known}
