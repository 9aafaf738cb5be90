"""Descriptions other than equations, such as a beam's, with the measured responses that they name.

``file = "frf.uff"`` stands for ``hz``, ``real`` and ``imaginary`` of a table ``[[responses]]``;
``function = 2`` takes the second response of the file, ``scale`` turns its unit into the description's. The
numbers are written into the text, so that what is kept of a fit needs no other file.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from analysis import DataError, ModelError
from drivers.formats.measured_responses import MeasuredFunction, read_responses
from drivers.library import read_description

_UNITS = {"displacement": "m", "velocity": "m/s", "acceleration": "m/s^2"}
_HEADER = re.compile(r"^\s*\[\[?\s*[A-Za-z_\"']")  # of a table; a row of numbers is none
_TABLE = re.compile(r"^\s*\[\[\s*responses\s*\]\]")
_KEY = re.compile(r"^\s*(file|function|scale)\s*=")


def load_description(name_or_path: str | Path, folder: str) -> tuple[str, str]:
    """Text and file name of a description (such as a beam) by its name in resources or by its path."""
    known = {p.stem: p for p in sorted((Path(str(files("resources"))) / folder).glob("*.toml"))}
    wanted = str(name_or_path)
    path = known.get(wanted, Path(wanted))
    if path.suffix != ".toml" and not path.is_file():
        raise ModelError(f"No description `{wanted}`: there are {', '.join(known)}, or give a file.")
    return with_responses(read_description(path), path.parent, path.name), path.name


def with_responses(text: str, folder: Path, source: str) -> str:
    """The description with the numbers of every ``file`` that a table ``[[responses]]`` names."""
    try:
        tables = tomllib.loads(text).get("responses", [])
    except tomllib.TOMLDecodeError:
        return text  # the reader of descriptions says what is wrong
    if not isinstance(tables, list) or not any(isinstance(t, dict) and "file" in t for t in tables):
        return text
    lines, number, inside = [], -1, False
    for line in text.splitlines():
        if _HEADER.match(line):
            inside = bool(_TABLE.match(line))
            number += inside
        if inside and "file" in tables[number] and (key := _KEY.match(line)):
            lines += _numbers(tables[number], folder, source) if key[1] == "file" else []
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _numbers(table: dict[str, Any], folder: Path, source: str) -> list[str]:
    """Lines ``hz``, ``real`` and ``imaginary`` of the response that the table asks for."""
    path = folder / str(table["file"])
    found = read_responses(path)
    which = table.get("function", 1 if len(found) == 1 else None)
    if type(which) is not int or not 1 <= which <= len(found):
        names = ", ".join(f"{k} {one.name}" for k, one in enumerate(found, start=1))
        raise DataError(
            f"{source}: {path.name} holds {names}: say which one, function = 1, in [[responses]]."
        )
    one = found[which - 1]
    scale = _scale(table, one, source)
    moving = one.hz > 0
    values = scale * one.values[moving]
    rows = {"hz": one.hz[moving], "real": values.real, "imaginary": values.imag}
    return [f"{key} = {[float(v) for v in row]!r}" for key, row in rows.items()]


def _scale(table: dict[str, Any], one: MeasuredFunction, source: str) -> float:
    """What turns the file's unit into that of the description: 1 where the units are known to agree."""
    if "scale" in table:
        scale = table["scale"]
        if (
            isinstance(scale, bool)
            or not isinstance(scale, int | float)
            or not np.isfinite(scale)
            or not scale
        ):
            raise DataError(f"{source}: [[responses]] wants a number other than zero for 'scale'.")
        return float(scale)
    sensor, drive = (t if isinstance(t, dict) else {} for t in (table.get("sensor"), table.get("drive")))
    kind = str(drive.get("kind", "force"))
    over = "N" if kind == "force" else _UNITS.get(kind.removeprefix("base "), "?")
    wanted = f"{_UNITS.get(str(sensor.get('kind', 'displacement')), '?')}/{over}"
    if _plain(one.unit) == wanted:
        return 1.0
    told = f"is in {one.unit}" if one.unit else "does not tell its unit"
    raise DataError(
        f"{source}: the response {one.name} {told}, and {wanted} is wanted: say scale = ..., the number that "
        "turns its values into those units, in [[responses]]."
    )


def _plain(unit: str) -> str:
    """A unit without blanks and brackets, squares written as ^2."""
    bare = re.sub(r"[\s()\[\]]", "", unit).replace("²", "^2").replace("**", "^")
    return re.sub(r"(?<=s)2", "^2", bare)
