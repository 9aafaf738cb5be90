"""A rig opened for a command, and the file that it is to record into."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis import DataError

if TYPE_CHECKING:
    from drivers.rig.profile import Rig, RigProfile


def open_for_command(profile: RigProfile, fast: bool, seed: int, patience: float | None = None) -> Rig:
    """In a process of its own, or in this one where a virtual rig runs faster than time.

    ``patience``: seconds without a sign of life of this process after which the drive ends.
    """
    if fast:
        from drivers.base.clock import InstantClock
        from drivers.rig.profile import open_rig

        return open_rig(profile, InstantClock(), seed)
    from drivers.acquisition.guarded import PATIENCE, open_guarded

    return open_guarded(profile, seed, PATIENCE if patience is None else patience)


def check_free(path: Path) -> None:
    """Refuse before the shaker moves what could only fail after it."""
    if not path.parent.is_dir():
        raise DataError(f"There is no folder {path.parent} to record into.")
    if path.exists():
        raise DataError(f"{path} is already there: recordings are never overwritten.")
