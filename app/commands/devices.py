"""`shakedown devices`: what is connected to this machine."""

from __future__ import annotations

import argparse
import contextlib
import sys

from app.output import add_json_option, table, write_json


def configure(parser: argparse.ArgumentParser) -> None:
    add_json_option(parser)


def run(args: argparse.Namespace) -> None:
    from drivers.instruments.discovery import find_devices

    with contextlib.redirect_stdout(sys.stderr):  # what a driver prints is no part of the answer
        devices, notes = find_devices()
    payload = {"devices": [vars(d) for d in devices], "notes": notes}
    if write_json(args.json, payload):
        return
    if devices:
        print(table(["kind", "address", "what it is"], [(d.kind, d.address, d.description) for d in devices]))
    for note in notes:
        print(note)
