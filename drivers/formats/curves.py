"""Measured curves as tables: frequency, amplitude, phase, force, with standard errors where known; decays
with times instead of a force.

Columns are found by their names, whatever else the table holds; units in square brackets: frequencies in Hz
or rad/s, phases in rad or deg. Comma, semicolon or tab between columns, decimal commas where it is not the
comma; lines that start with # or % are comments. A `phase lag` counts a lag as positive.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis import DataError, MeasuredCurve, MeasuredDecay
from drivers.base.files import read_text, replaced
from drivers.formats.names import split_unit

Array = NDArray[np.float64]

NAMES = ("frequency", "amplitude", "phase", "force")
ALSO = {"freq": "frequency", "response": "amplitude", "excitation": "force", "t": "time"}
LAGS = ("phase lag", "lag")  # of which a positive one is what a negative phase is
LETTERS = {("f", "hz"): "frequency", ("f", "n"): "force"}  # titles that only their unit tells apart
FACTORS = {
    ("frequency", "rad/s"): 1 / (2 * np.pi), ("frequency", "khz"): 1e3, ("time", "ms"): 1e-3,
    ("phase", "deg"): np.pi / 180, ("phase", "°"): np.pi / 180, ("phase", "degrees"): np.pi / 180,
}  # fmt: skip
KNOWN_UNITS = {"frequency": ("", "hz"), "phase": ("", "rad"), "time": ("", "s")}
TURN = 2 * np.pi + 1e-9


def is_curve(path: Path | str) -> bool:
    """Whether a file is a table of a measured curve or decay: frequency and amplitude in its header."""
    if Path(path).suffix.lower() not in (".csv", ".txt", ".tsv", ".dat"):
        return False
    try:
        header, _ = _rows(path)
    except DataError:
        return False
    names = {_plain(name)[0] for name in header}
    return {"frequency", "amplitude"} <= names


def read_curve(path: Path | str, output: str = "") -> MeasuredCurve | MeasuredDecay:
    """The curve of a table, or the decay of one with times. ``output``: what its amplitude is of."""
    found, units = _columns(path)
    missing = [n for n in ("frequency", "amplitude") if n not in found]
    if missing:
        raise DataError(f"{Path(path).name} has no column '{missing[0]}'.")
    nothing = np.full(len(found["frequency"]), np.nan)
    values_of = {n: found.get(n, nothing) for n in NAMES}
    errors_of = {n: found.get(f"{n}_error", nothing) for n in NAMES}
    f, a, p, u = values_of.values()
    ef, ea, ep, eu = errors_of.values()
    name = Path(path).name
    if "time" in found:
        return MeasuredDecay(found["time"], a, f, ea, ef, output, name, units.get("amplitude", ""))
    return MeasuredCurve(
        f, a, p, u, ef, ea, ep, eu, output, name, units.get("amplitude", ""), units.get("force", "")
    )


def _columns(path: Path | str) -> tuple[dict[str, Array], dict[str, str]]:
    """Columns by name, in Hz, rad and s; errors as `frequency_error`. Units as told."""
    header, rows = _rows(path)
    found: dict[str, Array] = {}
    units: dict[str, str] = {}
    for column, title in enumerate(header):
        name, unit, error = _plain(title)
        lag = name in LAGS
        name = "phase" if lag else name
        if name not in (*NAMES, "time"):
            continue
        values = np.array([_number(row[column], path) for row in rows])
        key = f"{name}_error" if error else name
        if key in found:
            raise DataError(f"{Path(path).name} has two columns '{key.replace('_', ' ')}'.")
        if name in ("amplitude", "force"):
            _check_linear(name, unit, path)
            if units.setdefault(name, unit) != unit:
                raise DataError(f"{Path(path).name}: {name} and its error have different units.")
        found[key] = (
            values * _factor(name, unit.lower(), title, path, values) * (-1.0 if lag and not error else 1.0)
        )
    return found, units


def _check_linear(name: str, unit: str, path: Path | str) -> None:
    """A level, or a ratio of the two, is not what the equations of a nonlinear specimen know."""
    if unit.lower().startswith("db"):
        raise DataError(f"{Path(path).name}: the {name} is in {unit}: write it in its unit, not as a level.")
    if name == "amplitude" and re.search(r"/\s*(k|m)?(N|V|lbf)\b", unit):
        raise DataError(
            f"{Path(path).name}: an amplitude in {unit} is over the force: write amplitude and force "
            "apart, as a nonlinear specimen's response is not in proportion."
        )


def write_curve(
    curve: MeasuredCurve, path: Path | str, units: Mapping[str, str], more: Mapping[str, Sequence[object]]
) -> None:
    """The curve as a table; ``units`` of amplitude and force, ``more`` columns behind the others."""
    told = {"frequency": "Hz", "phase": "rad", **units}
    head = [n + (f" [{told[n]}]" if told.get(n) else "") for n in NAMES]
    columns = [getattr(curve, n) for n in NAMES] + [getattr(curve, f"{n}_error") for n in NAMES]
    with replaced(Path(path)) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            [*head, *(f"{h.split(' [')[0]} error{h[len(h.split(' [')[0]) :]}" for h in head), *more]
        )
        for i in range(len(curve)):
            numbers = [f"{c[i]:.10g}" if np.isfinite(c[i]) else "" for c in columns]
            writer.writerow([*numbers, *(values[i] for values in more.values())])


def _rows(path: Path | str) -> tuple[list[str], list[list[str]]]:
    lines = [
        line for line in read_text(path, "a table of numbers").splitlines()
        if line.strip() and line.lstrip()[0] not in "#%"
    ]  # fmt: skip
    if len(lines) < 2:
        raise DataError(f"{Path(path).name} is not a table with a header and rows of numbers.")
    sign = max((",", ";", "\t"), key=lines[0].count)
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=sign)]
    if sign != ",":
        rows[1:] = [[cell.replace(",", ".") for cell in row] for row in rows[1:]]
    if any(len(row) < len(rows[0]) for row in rows):
        raise DataError(f"{Path(path).name}: a row is shorter than the header.")
    return rows[0], rows[1:]


def _plain(title: str) -> tuple[str, str, bool]:
    """Name, unit, and whether the column holds standard errors."""
    text, unit = split_unit(title)
    words = text.lower().replace("_", " ").split()
    error = bool(words) and words[-1] in ("error", "stderr", "std")
    name = " ".join(words[:-1] if error else words)
    unit = unit.strip()
    return LETTERS.get((name, unit.lower()), ALSO.get(name, name)), unit, error


def _factor(name: str, unit: str, title: str, path: Path | str, values: Array) -> float:
    if (name, unit) in FACTORS:
        return FACTORS[name, unit]
    if unit not in KNOWN_UNITS.get(name, (unit,)):
        raise DataError(f"{Path(path).name}: the unit of '{title}' is not known.")
    if name == "phase" and not unit and np.nanmax(np.abs(values), initial=0.0) > TURN:
        raise DataError(f"{Path(path).name}: is the phase in degrees? Write 'phase [deg]' or 'phase [rad]'.")
    return 1.0


def _number(text: str, path: Path | str) -> float:
    if not text:
        return float("nan")
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{Path(path).name}: '{text[:30]}' is no number.") from None
