"""Options of the commands that read files of other programs: every guess can be changed."""

from __future__ import annotations

import argparse

from drivers.formats.options import DECIMALS, SEPARATORS, Options


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """The choices of the import preview."""
    parser.add_argument(
        "--rate", type=float, metavar="HZ", help="sample rate of a file that does not tell it"
    )
    parser.add_argument(
        "--table", type=int, metavar="N", help="which set of signals, where there are several"
    )
    parser.add_argument("--time", metavar="COLUMN", help="the column of times; none: there is none")
    parser.add_argument("--separator", choices=tuple(SEPARATORS), help="of a table of text")
    parser.add_argument("--decimal", choices=DECIMALS, help="its decimal mark")
    parser.add_argument("--header", type=int, metavar="LINE", help="the line with its titles")


def reading_options(args: argparse.Namespace) -> Options:
    """What the options say about the file."""
    return Options(
        rate=args.rate,
        resample=getattr(args, "resample", None),
        table=args.table,
        time="" if args.time == "none" else args.time,
        separator=args.separator,
        decimal=args.decimal,
        header=args.header,
    )


def pairs(given: list[str]) -> dict[str, str]:
    """``NAME=VALUE`` as a dictionary; DataError for anything else."""
    from analysis import DataError

    found = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise DataError(f"'{text}' is not of the form NAME=VALUE.")
        found[name.strip()] = value.strip()
    return found
