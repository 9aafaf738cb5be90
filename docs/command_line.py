"""The reference of the command line, from the parsers themselves: `python -m docs.command_line`."""

from __future__ import annotations

import argparse
import re
import textwrap
from importlib import import_module
from pathlib import Path

from app.cli import COMMANDS

PAGE = Path(__file__).parent / "reference" / "command-line.md"
HEAD = """# The command line

`shakedown` alone opens the desktop. Everything it does can be done by a command. Exit code 0: done; 1: could
not, with one sentence on standard error; 2: wrong usage. `--json FILE` writes the result with stable keys;
`-` is standard output alone.
"""


def section(name: str) -> str:
    """One command: what it does, how it is called, its arguments."""
    module, words = COMMANDS[name]
    parser = argparse.ArgumentParser(prog=f"shakedown {name}", add_help=False)
    import_module(module).configure(parser)
    usage = _wrapped(parser.format_usage().removeprefix("usage: "))
    rows = [
        f"| {_called(a)} | {_words(a)} |"
        for a in parser._actions
        if a.help is not argparse.SUPPRESS
    ]
    table = ["", "| argument | meaning |", "| --- | --- |", *rows] if rows else []
    return "\n".join(
        [f"## {name}", "", f"{words[0].upper()}{words[1:]}.", "", usage, *table, ""]
    )


def page() -> str:
    return "\n".join([HEAD, *(section(name) for name in COMMANDS)])


def _wrapped(usage: str) -> str:
    """As a block of lines that fit into the page's column, an option never parted from its value."""
    pieces = re.findall(r"\[[^]]*\]|--\S+ [A-Z]\S*|\S+", " ".join(usage.split()))
    kept = [piece.replace(" ", "\N{NO-BREAK SPACE}") for piece in pieces]
    block = textwrap.fill(
        " ".join(kept),
        84,
        initial_indent="    ",
        subsequent_indent=" " * 8,
        break_on_hyphens=False,
    )
    return block.replace("\N{NO-BREAK SPACE}", " ")


def _called(action: argparse.Action) -> str:
    taken = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    return f"`{', '.join(action.option_strings)}{f' {taken}' if taken and action.nargs != 0 else ''}`"


def _words(action: argparse.Action) -> str:
    return (action.help or "").replace("|", "\\|").replace("%%", "%")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
