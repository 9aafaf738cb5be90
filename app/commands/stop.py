"""`shakedown stop`: stop every drive that runs on this machine, at once.

Exit code 0: stopped; 4: nothing was running; 1: a drive runs that could not be stopped, and how it can be.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from drivers.acquisition.stopping import StoppedDrive

NOTHING_RUNNING = 4


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON ('-': standard output)")


def run(args: argparse.Namespace) -> int:
    from drivers.acquisition.stopping import stop_all

    drives = stop_all()
    code = _tell(drives, quiet=args.json == "-")
    if args.json:
        from app.output import write_json
        from app.overwriting import check_outputs

        check_outputs("stop", args)
        stopped = sum(drive.stopped for drive in drives)
        write_json(args.json, {"stopped": stopped, "drives": [vars(d) for d in drives]})
    return code


def stop_at_once() -> int:
    """The command without options: nothing is loaded that STOP does not need."""
    from drivers.acquisition.stopping import stop_all

    return _tell(stop_all(), quiet=False)


def _tell(drives: list[StoppedDrive], quiet: bool) -> int:
    """Say what came of it; the exit code."""
    stopped = [d for d in drives if d.stopped]
    running = [d for d in drives if not d.stopped]
    if not quiet:
        for drive in stopped:
            note = "" if drive.word == "stopped" else f" ({drive.word})"
            print(_printable(f"Stopped: {drive.rig}, process {drive.pid} of {drive.user}{note}."))
        if not drives:
            print(f"No drive{_where()} was running.")
    for drive in running:
        what = f"process {drive.pid} of {drive.user}"
        print(_printable(f"shakedown: A drive still runs, {what}: {drive.word}."), file=sys.stderr)
    return 1 if running else 0 if stopped else NOTHING_RUNNING


def _printable(text: str) -> str:
    """Names of rigs come from files: what is no letter or sign is escaped."""
    return text if text.isascii() and text.isprintable() else ascii(text)[1:-1]


def _where() -> str:
    """What "no drive" means where not everything can be seen."""
    from drivers.acquisition.stopping import others_are_hidden
    from drivers.base.control_folder import restricted

    if folder := restricted():
        return f" in {folder}"
    return " of yours (this system hides the processes of others)" if others_are_hidden() else ""
