"""Reads the description of a beam; every complaint names the file, the table and the likely fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ModelError
from analysis.estimate.functions.beam.description import (
    INPUT_KINDS,
    PROFILES,
    SENSOR_KINDS,
    SPRINGS,
    Beam,
    BeamInput,
    MeasuredResponse,
    Profile,
    Scalar,
    Sensor,
    Shapes,
    constant,
)
from analysis.estimate.functions.beam.galerkin import ENDS

Array = NDArray[np.float64]

TABLES = {
    "name", "beam", "excitation", "sensors", "frequencies", "start", "tip_mass", "load", "section",
    "supports", "shapes", "responses",
}  # fmt: skip


class Reader:
    """Reads the tables of one file."""

    def __init__(self, source: str) -> None:
        self.source = source

    def fail(self, message: str) -> ModelError:
        return ModelError(f"{self.source}: {message}")

    def beam(self, raw: dict[str, Any], text: str) -> Beam:
        self.only(raw, TABLES | set(PROFILES), "the file")
        shape = self.table(raw, "beam")
        self.only(shape, {"length", "length_error", "left", "right", "elements"}, "[beam]")
        length = self.positive(shape, "length", "[beam]")
        ends = [shape.get(side, "free") for side in ("left", "right")]
        for end in ends:
            if end not in ENDS:
                raise self.fail(f"an end is {', '.join(ENDS)}, not '{end}'.")
        mass = self.table(raw, "mass")
        total = self.positive(mass, "total", "[mass]") if "total" in mass else None
        modes = self.table(raw, "frequencies")
        start = self.table(raw, "start")
        self.only(modes, {"hz", "error", "modes"}, "[frequencies]")
        self.only(start, {"motion", "modes"}, "[start]")
        if start.get("motion", "rest") not in ("rest", "free"):
            raise self.fail('[start] motion is "rest" or "free".')
        beam = Beam(
            name=str(raw.get("name", "beam")),
            length=length,
            left=ends[0],
            right=ends[1],
            profiles=self.profiles(raw, length),
            elements=self.whole(shape, "elements", "[beam]", 16, 2),
            tip_mass=self.scalar(raw, "tip_mass", "kg"),
            load=self.scalar(raw, "load", "N/m"),
            inputs=tuple(
                self.drive(n, t, length, f"[excitation.{n}]")
                for n, t in self.table(raw, "excitation").items()
            ),
            sensors=tuple(
                self.sensor(n, t, length, f"[sensors.{n}]") for n, t in self.table(raw, "sensors").items()
            ),
            frequencies=tuple(self.numbers(modes, "hz", "[frequencies]")),
            frequency_error=float(modes.get("error", 0.003)),
            frequency_modes=self.mode_numbers(modes),
            total_mass=total,
            total_mass_error=float(mass.get("total_error", 0.001)),
            start=start.get("motion", "rest"),
            start_modes=self.whole(start, "modes", "[start]", 4, 1),
            shapes=self.shapes(raw, length),
            responses=self.responses(raw, length),
            supports=self.supports(raw, ends),
            length_error=self.share(shape, "length_error", "[beam]"),
            mass_error=self.share(mass, "error", "[mass]"),
            **self.section(raw),
            text=text,
        )
        if not beam.free:
            raise self.fail(
                "nothing is to be found: give at least one property a 'guess' instead of a 'value'."
            )
        return beam

    def section(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Of a rectangular section, bent across its thickness."""
        if "section" not in raw:
            return {}
        table = self.table(raw, "section")
        self.only(table, {"width", "thickness", "shear"}, "[section]")
        thickness = self.positive(table, "thickness", "[section]")
        found = {"gyration": thickness**2 / 12.0}
        if "width" in table:
            found["inertia"] = self.positive(table, "width", "[section]") * thickness**3 / 12.0
        if "shear" in table:
            found["shear"] = self.number(table, "shear", "[section]")
        return found

    def supports(self, raw: dict[str, Any], ends: list[str]) -> dict[str, Scalar]:
        """Springs of elastic ends; a direction without a spring is rigid (translation) or free (rotation)."""
        tables, found = self.table(raw, "supports"), {}
        self.only(tables, {"left", "right"}, "[supports]")
        for side, end in zip(("left", "right"), ends, strict=True):
            if (end == "elastic") != (side in tables):
                raise self.fail(f'an elastic {side} end wants {side} = "elastic" and [supports.{side}].')
            table = self.table(tables, side)
            self.only(table, set(SPRINGS), f"[supports.{side}]")
            if side in tables and not table:
                raise self.fail(f"[supports.{side}] wants a spring: {', '.join(SPRINGS)}.")
            for spring in table:
                scalar = self.scalar(table, spring, SPRINGS[spring])
                if scalar.value <= 0:
                    raise self.fail(f"[supports.{side}] {spring} must be positive.")
                found[f"{side} {spring}"] = scalar
        return found

    def shapes(self, raw: dict[str, Any], length: float) -> Shapes | None:
        if "shapes" not in raw:
            return None
        table, count = self.table(raw, "shapes"), len(self.table(raw, "frequencies").get("hz", []))
        self.only(table, {"at", "values", "error"}, "[shapes]")
        try:
            places = np.array(table.get("at", []), dtype=np.float64)
            values = np.array(table.get("values", []), dtype=np.float64)
        except (TypeError, ValueError):
            raise self.fail("[shapes] wants numbers for 'at' and rows of numbers for 'values'.") from None
        if places.ndim != 1 or len(places) < 2 or values.shape != (count, len(places)):
            raise self.fail(
                "[shapes] wants at least two places 'at' and, in 'values', a row of as many numbers for each "
                "of [frequencies] hz."
            )
        if not np.all(np.isfinite(values)) or np.any(np.all(values == 0, axis=1)):
            raise self.fail("[shapes] values must be finite, and no row all zero.")
        if not np.all((places >= 0) & (places <= length)):
            raise self.fail(f"[shapes] at lies outside the beam (0 to {length:g}).")
        error = self.positive(table, "error", "[shapes]") if "error" in table else 0.01
        return Shapes(places, values, error)

    def responses(self, raw: dict[str, Any], length: float) -> tuple[MeasuredResponse, ...]:
        tables = raw.get("responses", [])
        if not isinstance(tables, list):
            raise self.fail("[[responses]] wants two brackets: one table for each sensor.")
        return tuple(self.response(table, length) for table in tables)

    def response(self, table: Any, length: float) -> MeasuredResponse:
        where = "[[responses]]"
        self.only(table, {"sensor", "drive", "hz", "real", "imaginary", "error"}, where)
        sensor = self.sensor("", self.table(table, "sensor"), length, f"{where} sensor")
        drive = self.drive("", self.table(table, "drive"), length, f"{where} drive")
        frequencies = np.array(self.numbers(table, "hz", where))
        try:
            real, imaginary = (np.array(table.get(k, []), dtype=np.float64) for k in ("real", "imaginary"))
        except (TypeError, ValueError):
            raise self.fail(f"{where} wants numbers for 'real' and 'imaginary'.") from None
        if len(frequencies) < 2 or not real.shape == imaginary.shape == frequencies.shape:
            raise self.fail(f"{where} wants at least two 'hz' and as many numbers 'real' and 'imaginary'.")
        values = real + 1j * imaginary
        if not np.all(np.isfinite(values)) or not np.any(values):
            raise self.fail(f"{where} 'real' and 'imaginary' must be finite, and not all zero.")
        with_base = drive.base and not sensor.relative
        if with_base and drive.kind.removeprefix("base ") != sensor.kind:
            raise self.fail(
                f"{where} a {sensor.kind} that sees the base too cannot be had from the {drive.kind}: "
                "give both alike, or say relative = true if the base motion is already taken off."
            )
        if isinstance(sensor.at, str):
            raise self.fail(f"{where} sensor wants a number for 'at'.")
        error = self.positive(table, "error", where) if "error" in table else 0.02
        return MeasuredResponse(sensor.at, sensor.kind, drive, frequencies, values, error, with_base)

    def share(self, table: dict[str, Any], key: str, where: str) -> float:
        """A relative standard error."""
        value = self.number(table, key, where) if key in table else 0.0
        if not 0 <= value < 0.5:
            raise self.fail(f"{where} {key} is a relative standard error: 0 to 0.5.")
        return value

    def profiles(self, raw: dict[str, Any], length: float) -> dict[str, Profile]:
        found = {}
        for key, (symbol, unit) in PROFILES.items():
            if key not in raw:
                if key in ("stiffness", "mass"):
                    raise self.fail(f"[{key}] is missing: give it a value or a guess.")
                continue
            table = self.table(raw, key)
            known = {"value", "guess", "intervals", "unit"}
            known |= {"total", "total_error", "error"} if key == "mass" else set()
            self.only(table, known, f"[{key}]")
            if ("value" in table) == ("guess" in table):
                raise self.fail(f"[{key}] wants either a value (known) or a guess (to be found).")
            free = "guess" in table
            if free and "error" in table:
                raise self.fail(f"[{key}] error belongs to a value; a guess is not known.")
            shape = self.shape(table["guess" if free else "value"], key, length, free)
            intervals = self.whole(table, "intervals", f"[{key}]", 0, 0)
            found[key] = Profile(symbol, str(table.get("unit", unit)), shape, free, intervals)
        return found

    def shape(self, value: Any, key: str, length: float, free: bool) -> Callable[[Array], Array]:
        """A number, or a table [[x, value], ...] joined by straight lines."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            if value < 0 or (free and value == 0) or (value == 0 and key in ("stiffness", "mass")):
                raise self.fail(f"[{key}] must be positive.")
            return constant(float(value))
        try:
            pairs = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise self.fail(f"[{key}] is a number or pairs [[x, value], ...].") from None
        if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) < 2 or np.any(np.diff(pairs[:, 0]) <= 0):
            raise self.fail(f"[{key}] pairs must be [[x, value], ...] with x rising.")
        if np.any(pairs[:, 1] <= 0):
            raise self.fail(f"[{key}] must be positive everywhere.")
        return lambda x: np.interp(x, pairs[:, 0], pairs[:, 1])

    def scalar(self, raw: dict[str, Any], key: str, unit: str) -> Scalar:
        if key not in raw:
            return Scalar(0.0, unit=unit)
        table = self.table(raw, key)
        self.only(table, {"value", "guess", "unit"}, f"[{key}]")
        if ("value" in table) == ("guess" in table):
            raise self.fail(f"[{key}] wants either a value (known) or a guess (to be found).")
        free = "guess" in table
        name = "guess" if free else "value"
        value = self.positive(table, name, f"[{key}]") if free else self.number(table, name, f"[{key}]")
        if key == "tip_mass" and value < 0:
            raise self.fail("[tip_mass] must not be negative.")
        return Scalar(value, free, str(table.get("unit", unit)))

    def drive(self, name: str, table: Any, length: float, where: str) -> BeamInput:
        self.only(table, {"kind", "at"}, where)
        kind = table.get("kind")
        if kind not in INPUT_KINDS:
            raise self.fail(f"{where} kind is {', '.join(INPUT_KINDS)}.")
        at = self.place(table, where, length) if kind == "force" else None
        return BeamInput(name, kind, at)

    def sensor(self, name: str, table: Any, length: float, where: str) -> Sensor:
        self.only(table, {"at", "kind", "relative", "offset"}, where)
        kind = table.get("kind", "displacement")
        if kind not in SENSOR_KINDS:
            raise self.fail(f"{where} kind is {', '.join(SENSOR_KINDS)}.")
        place = table.get("at")
        at = place if isinstance(place, str) else self.place(table, where, length)
        return Sensor(name, at, kind, bool(table.get("relative", False)), bool(table.get("offset", False)))

    def place(self, table: dict[str, Any], where: str, length: float) -> float:
        at = self.number(table, "at", where)
        if not 0 <= at <= length:
            raise self.fail(f"{where} at = {at:g} lies outside the beam (0 to {length:g}).")
        return at

    def table(self, raw: dict[str, Any], key: str) -> dict[str, Any]:
        value = raw.get(key, {})
        if not isinstance(value, dict):
            raise self.fail(f"[{key}] must be a table.")
        return value

    def only(self, table: Any, known: set[str], where: str) -> None:
        if not isinstance(table, dict):
            raise self.fail(f"{where} must be a table.")
        unknown = sorted(set(table) - known)
        if unknown:
            raise self.fail(f"{where} does not know '{unknown[0]}': {', '.join(sorted(known))}.")

    def number(self, table: dict[str, Any], key: str, where: str) -> float:
        value = table.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise self.fail(f"{where} wants a number for '{key}'.")
        return float(value)

    def positive(self, table: dict[str, Any], key: str, where: str) -> float:
        value = self.number(table, key, where)
        if value <= 0:
            raise self.fail(f"{where} wants a positive '{key}'.")
        return value

    def whole(self, table: dict[str, Any], key: str, where: str, default: int, least: int) -> int:
        value = table.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.fail(f"{where} wants a whole number of at least {least} for '{key}'.")
        return value

    def mode_numbers(self, table: dict[str, Any]) -> tuple[int, ...]:
        """Numbers of the modes whose frequencies were measured."""
        values, count = table.get("modes", []), len(table.get("hz", []))
        if not isinstance(values, list) or not all(type(v) is int and v > 0 for v in values):
            raise self.fail("[frequencies] modes wants whole numbers from 1 on.")
        if values and (len(values) != count or sorted(set(values)) != values):
            raise self.fail("[frequencies] modes wants a number for each of hz, rising.")
        return tuple(values)

    def numbers(self, table: dict[str, Any], key: str, where: str) -> list[float]:
        values = table.get(key, [])
        if not isinstance(values, list) or not all(
            isinstance(v, int | float) and not isinstance(v, bool) and v > 0 for v in values
        ):
            raise self.fail(f"{where} wants positive numbers for '{key}'.")
        return [float(v) for v in values]
