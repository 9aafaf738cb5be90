"""`shakedown stop`: stop every drive that runs on this machine, at once."""

from __future__ import annotations

import argparse

from app.output import add_json_option, write_json


def configure(parser: argparse.ArgumentParser) -> None:
    add_json_option(parser)


def run(args: argparse.Namespace) -> None:
    from drivers.acquisition.safety import stop_all

    stopped = stop_all()
    if not write_json(args.json, {"stopped": stopped}):
        print(
            f"{stopped} drive{'' if stopped == 1 else 's'} stopped." if stopped else "No drive was running."
        )
