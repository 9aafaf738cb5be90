"""A beam on a rig, described in TOML: geometry, supports, what is known and what is to be found, sensors.

name = "Cantilever on a shaker"
[beam]
length = 0.76                    # m
left = "clamped"                 # clamped | pinned | free | elastic (with [supports.left])
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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ModelError
from analysis.base.parsing import parse_toml

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
SPRINGS = {  # of an elastic end: unit
    "translation": "N/m",
    "rotation": "N m/rad",
}


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
class Shapes:
    """Measured mode shapes, one row for each measured frequency; the scale of a row means nothing."""

    places: Array  # m, [S]
    values: Array  # [modes, S]
    error: float = 0.01  # standard error of a value, of the largest one of its row


@dataclass(frozen=True, eq=False)
class MeasuredResponse:
    """A frequency response: what a sensor saw over the drive."""

    at: float  # of the sensor, m
    kind: str  # of the sensor
    drive: BeamInput
    frequencies: Array  # Hz, [F]
    values: NDArray[np.complex128]  # sensor over drive, [F]
    error: float = 0.02  # standard error of the real and of the imaginary part, over the size
    with_base: bool = False  # the sensor sees the motion of the base as well


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
    shapes: Shapes | None = None
    responses: tuple[MeasuredResponse, ...] = ()
    supports: Mapping[str, Scalar] = field(default_factory=dict)  # springs by name: "left rotation", ...
    length_error: float = 0.0  # relative standard error of the length; 0: exact
    mass_error: float = 0.0  # of a common factor of the known mass per length
    total_mass: float | None = None  # weighed, without the tip mass
    total_mass_error: float = 0.001  # relative
    start: str = "rest"  # "rest", or "free": the motion at the first sample is estimated along
    start_modes: int = 4
    inertia: float | None = None  # second moment of area of the section, m^4: turns EI into E
    gyration: float = 0.0  # squared radius of gyration of the section, m^2; 0: not known
    shear: float | None = None  # E/(kappa G); None: neither shear nor rotary inertia
    text: str = ""

    @classmethod
    def from_toml(cls, text: str, source: str = "") -> Beam:
        try:
            raw = parse_toml(text)
        except tomllib.TOMLDecodeError as error:
            raise ModelError(f"{source or 'The beam'}: {error}.") from None
        from analysis.estimate.functions.beam.reader import Reader

        return Reader(source or "the beam").beam(raw, text)

    @property
    def free(self) -> tuple[str, ...]:
        """Symbols of what is to be found."""
        names = [p.symbol for p in self.profiles.values() if p.free]
        return tuple(names + [key for key, scalar in self.scalars.items() if scalar.free])

    @property
    def scalars(self) -> dict[str, Scalar]:
        """Numbers beside the properties, by name."""
        return {"tip_mass": self.tip_mass, "load": self.load, **self.supports}

    def holds(self, side: str, spring: str) -> bool:
        """Whether an end resists its translation or its rotation."""
        end = self.left if side == "left" else self.right
        if end == "elastic":
            return spring == "translation" or f"{side} {spring}" in self.supports
        return end == "clamped" or (end == "pinned" and spring == "translation")

    def with_profile(self, key: str, **changes: Any) -> Beam:
        """A copy with a property changed; ``shape`` may be a number or a function of x."""
        old = self.profiles.get(key) or Profile(*PROFILES[key], constant(0.0))
        if "shape" in changes and not callable(changes["shape"]):
            changes["shape"] = constant(float(changes["shape"]))
        return replace(self, profiles={**self.profiles, key: replace(old, **changes)})


def constant(value: float) -> Callable[[Array], Array]:
    return lambda x: np.full(np.shape(x), value)
