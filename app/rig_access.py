"""The rig that a command asks for, opened, and the file that it is to record into."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from analysis import DataError
from app.ctrl_c import check_noted

if TYPE_CHECKING:
    from drivers.rig.profile import Rig, RigProfile


def add_virtual_options(parser: argparse.ArgumentParser) -> None:
    """What a command may say of a virtual rig."""
    parser.add_argument("--fast", action="store_true", help="virtual rigs: as fast as the machine can")
    parser.add_argument("--seed", type=int, default=0, help="of a virtual rig's noise")
    parser.add_argument(
        "--specimen",
        type=int,
        default=0,
        metavar="N",
        help="number of the virtual specimen (0: the profile's)",
    )


def asked_profile(args: argparse.Namespace) -> RigProfile:
    """The rig named on the command line, with the specimen asked for."""
    from drivers.rig.profile import load_rig
    from drivers.virtual.specimens import with_specimen

    profile = with_specimen(load_rig(args.rig), args.specimen)
    if args.fast and not profile.virtual:
        raise DataError(f"The rig '{profile.key}' is real: it cannot run faster than time.")
    return profile


def open_for_command(profile: RigProfile, fast: bool, seed: int, patience: float | None = None) -> Rig:
    """In a process of its own, or in this one where a virtual rig runs faster than time.

    ``patience``: seconds without a sign of life of this process after which the drive ends.
    """
    if fast:
        from drivers.base.clock import InstantClock
        from drivers.rig.profile import open_rig

        return open_rig(profile, InstantClock(), seed)
    from drivers.acquisition.guarded import PATIENCE, open_guarded

    told: set[str] = set()

    def waiting(what: str) -> None:
        check_noted()
        if what not in told:
            told.add(what)
            sys.stderr.write(f"shakedown: Still waiting for {what}. Ctrl-C gives it up.\n")

    return open_guarded(profile, seed, PATIENCE if patience is None else patience, waiting=waiting)


def check_free(path: Path) -> None:
    """Refuse before the shaker moves what could only fail after it."""
    if not path.parent.is_dir():
        raise DataError(f"There is no folder {path.parent} to record into.")
    if path.exists():
        raise DataError(f"{path} is already there: recordings are never overwritten, not even with --force.")


def recording_file(out: str) -> Path:
    """The file that --out names, with its ending."""
    path = Path(out)
    return path.with_name(path.name.removesuffix(".h5") + ".h5")
