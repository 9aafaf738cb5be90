"""The arguments of a command, checked before it runs: numbers are numbers, mistakes are one sentence."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from analysis import ShakedownError
from app.output import printable

LONGEST_WHOLE = 40  # characters of a whole number that are looked at
LARGEST_WHOLE = 1 << 53  # counts of samples, seeds: what a real number holds exactly


class Parser(argparse.ArgumentParser):
    """argparse with one sentence for each mistake; every number given is finite."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.register("type", float, _finite)
        self.register("type", int, _whole)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {printable(message)} ({self.prog} --help explains).\n")

    def parse_command(self, argv: Sequence[str]) -> argparse.Namespace:
        """The arguments of one command; ends the program with code 2 for wrong usage."""
        for text in argv:
            if re.fullmatch(r"--[\w-]+=--", text):  # argparse loses the value and fails
                self.error(f"argument {text[:-3]}: -- is no value")
        args = self.parse_args(argv)
        if getattr(args, "seed", 0) < 0:
            raise ShakedownError("The seed must not be negative.")
        return args

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except ShakedownError as error:
            name = "/".join(action.option_strings) or action.metavar or action.dest
            raise ShakedownError(f"{name} {error}") from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ShakedownError(f"needs a finite number (positive, negative or 0), not {text.strip()[:40]}.")
    return number


def _whole(text: str) -> int:
    number = int(text[:LONGEST_WHOLE])
    if abs(number) > LARGEST_WHOLE or len(text) > LONGEST_WHOLE:
        raise ShakedownError(f"cannot be as large as {text[:20]}.")
    return number


def add_channel_options(parser: argparse.ArgumentParser) -> None:
    """What a command that puts a model beside a recording asks of its channels."""
    parser.add_argument(
        "--map", action="append", default=[], metavar="NAME=CHANNEL",
        help="the channel that stands for an output or input of the model",
    )  # fmt: skip
    parser.add_argument("--rate", type=float, help="sample rate in Hz, for files without times")
