"""`shakedown doctor`: is this machine fit? One page for a person, or for a bug report."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from app.output import add_json_option, write_json


def configure(parser: argparse.ArgumentParser) -> None:
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from app.fitness import as_text, examine

    sections = examine()
    wrong = sum(f.state == "bad" for s in sections for f in s.findings)
    if not write_json(args.json, {"sections": [asdict(s) for s in sections], "problems": wrong}):
        print(as_text(sections))
    return 1 if wrong else 0
