"""`shakedown stop`: stop every drive that runs on this machine, at once.

Exit code 0: stopped; 4: nothing was running; 1: a drive runs that could not be stopped, and how it can be.
"""

from __future__ import annotations

import argparse
import sys

NOTHING_RUNNING = 4


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON ('-': standard output)")


def run(args: argparse.Namespace) -> int:
    from drivers.acquisition.stopping import stop_all

    drives = stop_all()
    stopped = [d for d in drives if d.stopped]
    running = [d for d in drives if not d.stopped]
    if args.json:
        from app.output import write_json

        write_json(args.json, {"stopped": len(stopped), "drives": [vars(d) for d in drives]})
    if args.json != "-":
        for drive in stopped:
            note = "" if drive.word == "stopped" else f" ({drive.word})"
            print(f"Stopped: {drive.rig}, process {drive.pid} of {drive.user}{note}.")
        if not drives:
            print(f"No drive{_where()} was running.")
    for drive in running:
        what = f"process {drive.pid} of {drive.user}"
        print(f"shakedown: A drive still runs, {what}: {drive.word}.", file=sys.stderr)
    return 1 if running else 0 if stopped else NOTHING_RUNNING


def _where() -> str:
    """What "no drive" means where not everything can be seen."""
    from drivers.acquisition.stopping import others_are_hidden
    from drivers.base.control_folder import restricted

    if folder := restricted():
        return f" in {folder}"
    return " of yours (this system hides the processes of others)" if others_are_hidden() else ""
