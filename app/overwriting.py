"""What a command may write over.

Recordings, models and whatever a command reads are never replaced unless --force is given. An earlier result
of the same kind is: JSON by JSON, a figure by a figure of the same format, a report by a report.
"""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from analysis import DataError, ShakedownError

OUTPUTS = ("out", "output", "json", "plot", "states")  # options that name a file to be written
FIGURES = (".png", ".svg", ".pdf")
HEAD = 512  # bytes by which an earlier result is known


NEVER_REPLACING = ("acquire", "replay")  # commands whose recorder refuses a name that is taken, always


def check_outputs(command: str, args: argparse.Namespace) -> None:
    """Refuse what would destroy a file, before any work is done."""
    targets = {name: value for name in OUTPUTS if isinstance(value := getattr(args, name, None), str)}
    if targets.get("json") == "-":
        del targets["json"]
    if "plot" in targets:
        check_figure_name(targets["plot"])
    force = getattr(args, "force", False)
    inputs = [] if force else list(_inputs(args))
    taken: dict[str, str] = {}
    for option, target in targets.items():
        for name in _names(option, target):
            if taken.setdefault(name, option) != option:
                raise ShakedownError(f"{target} would be written twice, for {taken[name]} and for {option}.")
        if option == "out" and command in NEVER_REPLACING:
            continue
        check_target(target, "json" if option == "json" else Path(target).suffix.lower(), inputs, force)


def check_target(target: str, kind: str, inputs: list[Path], force: bool) -> None:
    """Refuse to write there if a file would be lost; ``kind`` is json or the ending of what is written."""
    path = Path(target)
    try:
        status = path.stat()
    except FileNotFoundError:
        if not target or not (parent := Path(os.path.realpath(path)).parent).is_dir():
            raise ShakedownError(f"'{target}' cannot be written: there is no folder {parent}.") from None
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ShakedownError(f"'{target}' cannot be written: {reason}.") from None
    if stat.S_ISDIR(status.st_mode) and kind not in ("json", *FIGURES):
        return  # a folder to write into, where the command takes one
    if not stat.S_ISREG(status.st_mode):
        raise ShakedownError(f"{target} cannot be written: it is not a file.")
    if force:
        return
    if any(_same(path, other) for other in inputs):
        raise DataError(f"{target} is what the command reads: it would be lost (--force replaces it).")
    if status.st_size and _kind(path) != kind:
        raise DataError(f"{target} is already there (--force replaces it).")


def check_figure_name(path: str | None) -> None:
    """Refuse a format that cannot be drawn before the work is done, not after."""
    if path is not None and Path(path).suffix.lower() not in FIGURES:
        raise ShakedownError(f"A figure is saved as png, svg or pdf, not as '{Path(path).name}'.")


def _inputs(args: argparse.Namespace) -> Iterator[Path]:
    """Every file that is there and that an argument names, outputs apart."""
    for option, value in vars(args).items():
        if option in OUTPUTS:
            continue
        for text in value if isinstance(value, list | tuple) else [value]:
            if isinstance(text, str) and text and "\0" not in text and _is_there(text):
                yield Path(text)


def _names(option: str, target: str) -> list[str]:
    """Names that the output may get, compared without regard to case: some file systems know none."""
    path = os.path.realpath(target).casefold() if "\0" not in target else target
    return [path, f"{path}.h5"] if option == "out" else [path]


def _is_there(text: str) -> bool:
    try:
        return Path(text).exists()
    except OSError:
        return False


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _kind(path: Path) -> str:
    """What the file holds, as far as it may be replaced; "" for all that may not."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError:
        return ""
    if head.startswith(b"\x89PNG"):
        return ".png"
    if head.startswith(b"%PDF"):
        return ".pdf"
    if head.lstrip()[:1] in (b"{", b"["):
        return "json"
    if b"<svg" in head:
        return ".svg"
    return ".html" if head.lstrip().lower().startswith(b"<!doctype html") else ""
