"""Names that a command is given: a recording, model or fit of the project we are in needs no path.

Each function is the ``type`` of a command's argument. What is there under the given path is taken as it is.
Else it is looked for in the project, as a path from the project's folder, and then by its name, with or
without an ending, in the folder that holds such files. What is not found stays as it was given, and whoever
reads it says so.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from analysis import DataError
from app.output import printable
from app.project import find_folder

MODEL = "a model of the library or a model file"  # help of such arguments
FIT = "what identify wrote with --json"
UNFINISHED = (".journal", ".part")  # endings of what is still being written


def recording(text: str) -> str:
    """The recording of a name."""
    return _found(text, "recordings")


def fit(text: str) -> str:
    """The result of `identify --json` of a name."""
    return _found(text, "fits")


def model(text: str) -> str:
    """The model of a name; one of the project goes before one of the library, and that is said."""
    path = _found(text, "models")
    if path != text:
        from drivers.library import model_files

        if text in model_files():
            words = f"{printable(text)} is the project's own {path}, not the model of the library."
            sys.stderr.write(f"shakedown: {words}\n")
    return path


def _found(text: str, kind: str) -> str:
    folder = find_folder()
    if folder is None or not text or "\0" in text:
        return text
    try:
        if Path(text).is_file():
            return text
        from_top = folder / text
        paths = [from_top] if from_top.is_file() else _named(folder / kind, text)
    except OSError:  # no name that a file could have
        return text
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        raise DataError(f"`{text}` may be any of {names} in {folder / kind}: say which, with its ending.")
    return os.path.relpath(paths[0]) if paths else text


def _named(folder: Path, text: str) -> list[Path]:
    """The file of that name, else all that are called so but for the ending."""
    if (folder / text).is_file():
        return [folder / text]
    if not folder.is_dir():
        return []
    there = (path for path in sorted(folder.iterdir()) if path.suffix not in UNFINISHED)
    return [path for path in there if path.stem == text and path.is_file()]
