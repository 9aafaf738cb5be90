"""`shakedown desktop`: the window."""

from __future__ import annotations

import argparse

from analysis import need_extra


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE", help="recordings to open")
    parser.add_argument("--rig", metavar="RIG", help="rig to start with; default: the last one")


def run(args: argparse.Namespace) -> int:
    need_extra("desktop")
    from app.desktop.main import start

    return start(args.rig, args.files)
