"""`shakedown sensors`: the sensors of this laboratory and until when their calibration is good."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path

from app.output import add_json_option, table, write_json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--add", metavar="FILE", help="take the [[sensors]] of a TOML file into the list")
    add_json_option(parser)


def run(args: argparse.Namespace) -> None:
    from app import sensors

    known = sensors.add(sensors.load(Path(args.add))) if args.add else sensors.load()
    today = date.today()
    rows = [(s.name, s.kind, s.sensitivity, s.unit, s.words(today)) for s in known]
    if write_json(args.json, [{**s.channel(), "state": s.words(today)} for s in known]):
        return
    if rows:
        print(table(["sensor", "kind", "V/unit", "unit", "calibration"], rows))
    else:
        print(f"No sensor is known: {sensors.database()} is not there. --add FILE takes some in.")
