"""A beam on a rig, described in TOML: geometry, supports, what is known and what is to be found, sensors.

name = "Cantilever on a shaker"
[beam]
length = 0.76                    # m
left = "clamped"                 # clamped | pinned | free
right = "free"
[stiffness]                      # EI(x), N m^2
guess = 20.0                     # value: known; guess: to be found
intervals = 8                    # cubic splines on 8 intervals; 0: one number for the whole beam
[mass]                           # rho(x), kg/m
value = 2.04
[viscous]                        # force per length and velocity, N s/m^2
guess = 0.5
[excitation.a]                   # channel a of the record
kind = "base acceleration"
[sensors.v1]
at = 0.2                         # m
kind = "velocity"
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ModelError
from analysis.base.parsing import parse_toml
from analysis.estimate.functions.beam.galerkin import ENDS

Array = NDArray[np.float64]
PROFILES = {  # table in the file: symbol, unit
    "stiffness": ("EI", "N m^2"),
    "mass": ("rho", "kg/m"),
    "viscous": ("c", "N s/m^2"),
    "kelvin_voigt": ("cI", "N m^2 s"),
}
INPUT_KINDS = {  # how often the channel is differentiated on its way to the load
    "force": 0,
    "base acceleration": 0,
    "base velocity": 1,
    "base displacement": 2,
}
SENSOR_KINDS = {"displacement": 0, "velocity": 1, "acceleration": 2}


@dataclass(frozen=True)
class Profile:
    """A property along the beam: known, or to be found as (the exponential of) a cubic spline."""

    symbol: str
    unit: str
    shape: Callable[[Array], Array]  # the known values, or the guess
    free: bool = False
    intervals: int = 0  # 0: one number for the whole beam


@dataclass(frozen=True)
class Scalar:
    value: float
    free: bool = False
    unit: str = ""


@dataclass(frozen=True)
class BeamInput:
    """A measured drive. ``at`` is where a force acts."""

    name: str
    kind: str
    at: float | None = None

    @property
    def base(self) -> bool:
        return self.kind.startswith("base")


@dataclass(frozen=True)
class Sensor:
    """A point sensor. ``at``: place, or the name of a record's metadata that holds it (a scan)."""

    name: str
    at: float | str
    kind: str = "displacement"
    relative: bool = False  # True: moves with the base; False: sees base and beam, as a vibrometer does
    offset: bool = False  # True: an unknown constant is estimated along


@dataclass(frozen=True)
class Beam:
    """A beam with supports, properties, drive, sensors, and other knowledge about it."""

    name: str
    length: float
    left: str
    right: str
    profiles: Mapping[str, Profile]
    elements: int = 16
    tip_mass: Scalar = Scalar(0.0, unit="kg")  # at the right end
    load: Scalar = Scalar(0.0, unit="N/m")  # constant distributed load, applied at t = 0
    inputs: tuple[BeamInput, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    frequencies: tuple[float, ...] = ()  # measured natural frequencies, Hz, from the lowest
    frequency_error: float = 0.003  # relative standard error of one of them
    frequency_modes: tuple[int, ...] = ()  # their numbers from 1 on; empty: 1, 2, ..., gaps are looked for
    total_mass: float | None = None  # weighed, without the tip mass
    total_mass_error: float = 0.001  # relative
    start: str = "rest"  # "rest", or "free": the motion at the first sample is estimated along
    start_modes: int = 4
    inertia: float | None = None  # second moment of area of the section, m^4: turns EI into E
    text: str = ""

    @classmethod
    def from_toml(cls, text: str, source: str = "") -> Beam:
        try:
            raw = parse_toml(text)
        except tomllib.TOMLDecodeError as error:
            raise ModelError(f"{source or 'The beam'}: {error}.") from None
        return _Reader(source or "the beam").beam(raw, text)

    @property
    def free(self) -> tuple[str, ...]:
        """Symbols of what is to be found."""
        names = [p.symbol for p in self.profiles.values() if p.free]
        names += ["tip_mass"] if self.tip_mass.free else []
        return tuple(names + (["load"] if self.load.free else []))

    def with_profile(self, key: str, **changes: Any) -> Beam:
        """A copy with a property changed; ``shape`` may be a number or a function of x."""
        old = self.profiles.get(key) or Profile(*PROFILES[key], _constant(0.0))
        if "shape" in changes and not callable(changes["shape"]):
            changes["shape"] = _constant(float(changes["shape"]))
        return replace(self, profiles={**self.profiles, key: replace(old, **changes)})


def _constant(value: float) -> Callable[[Array], Array]:
    return lambda x: np.full(np.shape(x), value)


class _Reader:
    """Reads the tables; every complaint names the file, the table and the likely fix."""

    def __init__(self, source: str) -> None:
        self.source = source

    def fail(self, message: str) -> ModelError:
        return ModelError(f"{self.source}: {message}")

    def beam(self, raw: dict[str, Any], text: str) -> Beam:
        known = {
            "name",
            "beam",
            "excitation",
            "sensors",
            "frequencies",
            "start",
            "tip_mass",
            "load",
            "section",
        }
        self.only(raw, known | set(PROFILES), "the file")
        shape = self.table(raw, "beam")
        self.only(shape, {"length", "left", "right", "elements"}, "[beam]")
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
            inputs=tuple(self.drive(n, t, length) for n, t in self.table(raw, "excitation").items()),
            sensors=tuple(self.sensor(n, t, length) for n, t in self.table(raw, "sensors").items()),
            frequencies=tuple(self.numbers(modes, "hz", "[frequencies]")),
            frequency_error=float(modes.get("error", 0.003)),
            frequency_modes=self.mode_numbers(modes),
            total_mass=total,
            total_mass_error=float(mass.get("total_error", 0.001)),
            start=start.get("motion", "rest"),
            start_modes=self.whole(start, "modes", "[start]", 4, 1),
            inertia=self.inertia(raw),
            text=text,
        )
        if not beam.free:
            raise self.fail(
                "nothing is to be found: give at least one property a 'guess' instead of a 'value'."
            )
        return beam

    def inertia(self, raw: dict[str, Any]) -> float | None:
        """Of a rectangular section, bent across its thickness."""
        if "section" not in raw:
            return None
        table = self.table(raw, "section")
        self.only(table, {"width", "thickness"}, "[section]")
        width, thickness = (self.positive(table, k, "[section]") for k in ("width", "thickness"))
        return width * thickness**3 / 12.0

    def profiles(self, raw: dict[str, Any], length: float) -> dict[str, Profile]:
        found = {}
        for key, (symbol, unit) in PROFILES.items():
            if key not in raw:
                if key in ("stiffness", "mass"):
                    raise self.fail(f"[{key}] is missing: give it a value or a guess.")
                continue
            table = self.table(raw, key)
            self.only(table, {"value", "guess", "intervals", "unit", "total", "total_error"}, f"[{key}]")
            if ("value" in table) == ("guess" in table):
                raise self.fail(f"[{key}] wants either a value (known) or a guess (to be found).")
            free = "guess" in table
            shape = self.shape(table["guess" if free else "value"], key, length, free)
            intervals = self.whole(table, "intervals", f"[{key}]", 0, 0)
            found[key] = Profile(symbol, str(table.get("unit", unit)), shape, free, intervals)
        return found

    def shape(self, value: Any, key: str, length: float, free: bool) -> Callable[[Array], Array]:
        """A number, or a table [[x, value], ...] joined by straight lines."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            if value < 0 or (free and value == 0) or (value == 0 and key in ("stiffness", "mass")):
                raise self.fail(f"[{key}] must be positive.")
            return _constant(float(value))
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

    def drive(self, name: str, table: Any, length: float) -> BeamInput:
        self.only(table, {"kind", "at"}, f"[excitation.{name}]")
        kind = table.get("kind")
        if kind not in INPUT_KINDS:
            raise self.fail(f"[excitation.{name}] kind is {', '.join(INPUT_KINDS)}.")
        at = self.place(table, f"[excitation.{name}]", length) if kind == "force" else None
        return BeamInput(name, kind, at)

    def sensor(self, name: str, table: Any, length: float) -> Sensor:
        self.only(table, {"at", "kind", "relative", "offset"}, f"[sensors.{name}]")
        kind = table.get("kind", "displacement")
        if kind not in SENSOR_KINDS:
            raise self.fail(f"[sensors.{name}] kind is {', '.join(SENSOR_KINDS)}.")
        where = table.get("at")
        at = where if isinstance(where, str) else self.place(table, f"[sensors.{name}]", length)
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
