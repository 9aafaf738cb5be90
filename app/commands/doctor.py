"""`shakedown doctor`: is this machine fit? One page for a person, or for a bug report."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from app.output import add_json_option, write_json


def configure(parser: argparse.ArgumentParser) -> None:
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from app.fitness import examine

    sections = examine()
    wrong = [f for s in sections for f in s.findings if f.state == "bad"]
    if not write_json(args.json, {"sections": [asdict(s) for s in sections], "problems": len(wrong)}):
        marks = {"good": " ", "note": "-", "bad": "!"}
        for section in sections:
            print(f"{section.title}")
            for finding in section.findings:
                print(f"  {marks[finding.state]} {finding.what}: {finding.words}")
        print("Nothing is wrong." if not wrong else f"{len(wrong)} to look at: the lines that begin with !")
    return 1 if wrong else 0
