"""Rig profiles: TOML files that say which instruments, channels, calibration and limits make up a rig.

    name = "Two-well beam"
    rate = 187.5                          # Hz
    [shaker]                              # what the drive makes of the specimen's input, for planning
    [drive]                               # what plays when the rig is switched on: a waveform
    [limits]                              # amplitude, frequency, slew, displacement of the drive
    [[channels]]                          # name, unit, sensor, sensitivity, range ... of each signal
    [instruments.source]                  # driver = "virtual", "nidaqmx" ..., and how the channels are wired
    [instruments.exciter]                 # driver = "virtual", "nidaqmx", "ds345", "scpi" ...
    [instruments.NAME]                    # further ones: controllers of sensors, such as "ofv5000"

A profile for real hardware differs from one for the virtual rig only in its instruments.
"""

from __future__ import annotations

import logging
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from difflib import get_close_matches
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from analysis import DataError, ShakedownError, not_used, package_of, parse_toml, plugged
from drivers.base.clock import Clock
from drivers.base.drive_page import DriveStatus
from drivers.base.files import read_text
from drivers.base.foreign_error import in_words
from drivers.base.latch import DriveStopped
from drivers.base.limits import Limits
from drivers.base.protocols import ChannelInfo, Exciter, Perturbable, SensorController, Source, status_of
from drivers.base.waveform import Waveform, waveform_from
from drivers.rig import registry
from drivers.rig.source_check import check_source

_log = logging.getLogger(__name__)

T = TypeVar("T")


class RigError(ShakedownError):
    """A rig profile that cannot be understood or opened."""


@dataclass(frozen=True)
class ChannelProfile:
    """One channel: what the sensor is, how it is calibrated and connected."""

    name: str
    unit: str = ""
    sensor: str = ""
    kind: str = "voltage"  # voltage, iepe, bridge, force
    sensitivity: float = 1.0  # V per unit (iepe: mV/g style values converted by the author of the profile)
    zero: float = 0.0  # reading at 0 V, in the unit
    range: float = 10.0  # V, plus and minus
    coupling: str = "dc"  # dc or ac
    noise: float = 0.0  # V rms, of the virtual sensor
    limit: float | None = None  # beyond this, in the unit, the drive is stopped
    excitation_current: float | None = None  # A, of IEPE sensors; None: 4 mA where the device has it
    teds: bool = False  # sensitivity from the sensor's own data (IEEE 1451.4), of iepe and force
    bridge: str = "full"  # quarter, half, full
    gauge_factor: float = 2.0
    bridge_excitation: float = 2.5  # V
    bridge_resistance: float = 350.0  # ohm
    initial_bridge_voltage: float = 0.0  # V, from null-offset calibration
    shunt_gain: float = 1.0  # from shunt calibration
    calibrated: str = ""  # day of the last null or shunt calibration

    def __post_init__(self) -> None:
        for name, allowed in (
            ("kind", ("voltage", "iepe", "bridge", "force")),
            ("coupling", ("dc", "ac")),
            ("bridge", ("quarter", "half", "full")),
        ):
            if (value := getattr(self, name)) not in allowed:
                raise RigError(
                    f"channel '{self.name}': {name} is one of {', '.join(allowed)}, not '{value}'."
                )
        if self.teds is not False and (self.teds is not True or self.kind not in ("iepe", "force")):
            raise RigError(
                f"channel '{self.name}': teds is true or false, and for sensors of kind iepe or force only."
            )
        if self.sensitivity == 0 or not math.isfinite(self.sensitivity) or not 0 < self.range < math.inf:
            raise RigError(
                f"channel '{self.name}': the sensitivity must not be 0 and the range must be positive."
            )
        if not 0 <= self.noise < math.inf:
            raise RigError(
                f"channel '{self.name}': noise must be a number of at least 0, not {self.noise:g}."
            )
        if self.limit is not None and not self.limit > 0:
            raise RigError(f"channel '{self.name}': the limit must be positive, not {self.limit:g}.")

    def info(self) -> ChannelInfo:
        """The channel as a source shows it; the range in its unit."""
        ends = sorted((-self.range / self.sensitivity + self.zero, self.range / self.sensitivity + self.zero))
        defaults = {f.name: f.default for f in fields(self)}
        kept = {
            k: v for k, v in vars(self).items()
            if k not in ("name", "unit", "sensor", "limit", "noise") and v != defaults[k]
        }  # fmt: skip
        return ChannelInfo(self.name, self.unit, ends[0], ends[1], self.sensor, kept)


@dataclass(frozen=True)
class RigProfile:
    """A rig as its file describes it."""

    key: str  # file name without ending
    name: str
    rate: float
    channels: tuple[ChannelProfile, ...]
    limits: Limits
    instruments: Mapping[str, Mapping[str, Any]]
    drive: Waveform | None = None
    description: str = ""
    model: str = ""  # of the library: the equations that are meant to describe the specimen
    settle: float = 0.0  # s of motion to let pass before a recording means anything
    shaker: Mapping[str, Any] = field(default_factory=dict)  # from the drive to the specimen (shaker_path.py)
    folder: Path = field(default=Path(), compare=False)

    @property
    def virtual(self) -> bool:
        return self.instruments["source"].get("driver") == "virtual"

    def with_changes(
        self,
        rate: float | None = None,
        specimen: Mapping[str, float] | None = None,
        number: int | None = None,
        **drive: float,
    ) -> RigProfile:
        """A copy with another rate, drive (amplitude, frequency ...) or parameters of a virtual specimen.

        ``number`` is that of the specimen (see virtual/specimens.py).
        """
        profile = self if rate is None else replace(self, rate=positive("rate", rate))
        if drive:
            if profile.drive is None:
                raise RigError(f"The rig '{self.key}' has no drive to change.")
            profile = replace(profile, drive=waveform_from({**profile.drive.describe(), **drive}))
        if specimen:
            if not self.virtual:
                raise RigError(f"The rig '{self.key}' is real: {', '.join(specimen)} cannot be set on it.")
            source = dict(profile.instruments["source"])
            part = dict(source.get("specimen", {}))
            part["parameters"] = {**part.get("parameters", {}), **specimen}
            if number is not None:
                part["number"] = number
            profile = replace(
                profile, instruments={**profile.instruments, "source": {**source, "specimen": part}}
            )
        return profile


@dataclass
class Rig:
    """A rig that has been opened."""

    profile: RigProfile
    source: Source
    exciter: Exciter | None = None
    controllers: dict[str, SensorController] = field(default_factory=dict)
    specimen: Perturbable | None = None
    notices: list[str] = field(default_factory=list)  # what the person at the rig should know

    def play(self) -> None:
        """Start the profile's own drive."""
        if self.exciter is not None and self.profile.drive is not None:
            self.exciter.play(self.profile.drive)

    def beat(self) -> None:
        """A sign of life of the window; a rig that runs in the window's own process needs none."""

    def emergency_stop(self, reason: str = "STOP") -> None:
        """STOP the drive, from any thread, without waiting; nothing plays until ``arm``."""
        if self.exciter is not None:
            self.exciter.request_stop(reason)

    def arm(self, seen: int | None = None) -> None:
        """Allow the drive to be played again after STOP; ``seen``: the stops that the person knows of."""
        if self.exciter is not None:
            self.exciter.arm()

    def drive_status(self) -> DriveStatus:
        """The drive in the words that are shown."""
        return DriveStatus("off") if self.exciter is None else status_of(self.exciter)

    def check_drive(self) -> None:
        """DriveStopped if STOP or a trip has ended the drive: what is being made with it is to end."""
        status = self.drive_status()
        if status.latched:
            raise DriveStopped(f"The drive was stopped: {status.reason.rstrip('.')}.")

    def close(self) -> None:
        """Ramp down and let go of every instrument, whatever one of them says."""
        problems = []
        for part in (self.exciter, self.source, *self.controllers.values()):
            try:
                if part is not None:
                    part.close()
            except ShakedownError as error:
                problems.append(str(error))
            except Exception as error:  # of somebody else's driver: the others are closed all the same
                problems.append(f"An instrument did not close ({in_words(error)}).")
        if problems:
            raise RigError(" ".join(problems))


@dataclass(frozen=True)
class KnownRigs:
    """Profiles of the program and of other packages, and sentences about what is not used."""

    files: dict[str, Path]  # by name
    refused: dict[str, str]  # mistakes in profiles of other packages, by name
    unlisted: list[str]  # packages whose rigs nobody knows
    taken: list[str]  # names that were there before

    @property
    def notes(self) -> list[str]:
        return [*self.unlisted, *self.refused.values(), *self.taken]


def rig_files() -> dict[str, Path]:
    """The profiles that come with the program and with other packages, by name."""
    return known_rigs().files


def known_rigs() -> KnownRigs:
    """Every profile that is there; one mistake of a package must not hide all other rigs."""
    folder = Path(str(files("resources"))) / "rigs"
    known = KnownRigs({path.stem: path for path in sorted(folder.glob("*.toml"))}, {}, [], not_used("rigs"))
    owners = dict.fromkeys(known.files, "Shakedown")
    for entry in plugged("rigs").values():
        package = package_of(entry)
        try:
            profiles = _profiles_in(entry.value)
        except (Exception, SystemExit) as error:  # whatever happens when a package around it is imported
            _log.warning("rigs of %s cannot be listed", entry.value, exc_info=error)
            known.unlisted.append(f"The rigs of {package} cannot be listed ({in_words(error)}).")
            continue
        for path in profiles:
            unused = f"The rig '{path.stem}' of {package} is not used:"
            try:
                rig_from_text(read_text(path, "a rig profile"), path.stem, path.name)
            except ShakedownError as error:
                known.refused[path.stem] = f"{unused} {error}"
                continue
            if path.stem in owners:
                known.taken.append(f"{unused} {owners[path.stem]} has one of that name.")
            else:
                known.files[path.stem], owners[path.stem] = path, package
    return known


def _profiles_in(package: str) -> list[Path]:
    """The rig profiles in a package, which is not imported for that: its code may be broken."""
    spec = find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise RigError(f"there is no package '{package}'")
    return sorted(path for place in spec.submodule_search_locations for path in Path(place).glob("*.toml"))


def list_virtual_rigs() -> tuple[list[tuple[str, str]], str]:
    """Key and name of each virtual rig, and what is wrong with rigs of other packages."""
    known = known_rigs()
    profiles = [load_rig(name) for name in known.files]
    return [(p.key, p.name) for p in profiles if p.virtual], " ".join(known.notes)


def load_rig(name_or_path: str | Path) -> RigProfile:
    """A rig profile by its name or by the path of a profile file."""
    wanted = str(name_or_path)
    known = known_rigs()
    path = known.files.get(wanted, Path(wanted))
    if path.suffix != ".toml" and not path.is_file():
        if wanted in known.refused:
            raise RigError(known.refused[wanted])
        close = get_close_matches(wanted, known.files, 1, 0.5)
        hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(known.files)}."
        raise RigError(" ".join([f"No rig '{wanted}': {hint}", *known.unlisted]))
    try:
        text = read_text(path, "a rig profile")
    except DataError as error:
        raise RigError(str(error)) from None
    return replace(rig_from_text(text, path.stem, path.name), folder=path.parent)


def rig_from_text(text: str, key: str, source: str = "rig") -> RigProfile:
    """A profile from its text; every mistake is one sentence that names the place."""
    try:
        table = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise RigError(f"{source}: {error}.") from None
    try:
        return _profile(table, key)
    except ShakedownError as error:
        raise RigError(f"{source}: {error}") from None


def _profile(table: dict[str, Any], key: str) -> RigProfile:
    known = {
        "name", "description", "rate", "model", "settle", "drive", "limits", "channels", "instruments",
        "shaker",
    }  # fmt: skip
    _only(table, known, "a rig profile")
    for needed in ("name", "rate", "channels", "instruments"):
        if needed not in table:
            raise RigError(f"'{needed}' is missing.")
    channels = tuple(build(ChannelProfile, c, f"channel {i + 1}") for i, c in enumerate(table["channels"]))
    names = [c.name for c in channels]
    if not channels or not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
        raise RigError("every channel needs a name of its own, and there must be at least one.")
    instruments = table["instruments"]
    if not isinstance(instruments, dict) or "source" not in instruments:
        raise RigError("[instruments.source] is missing: it says where the samples come from.")
    for name, instrument in instruments.items():
        _driver(name, instrument)
    _wired(instruments["source"], names)
    return RigProfile(
        key,
        str(table["name"]),
        positive("rate", table["rate"]),
        channels,
        build(Limits, table.get("limits", {"amplitude": 1.0}), "limits"),
        instruments,
        waveform_from(table["drive"]) if "drive" in table else None,
        str(table.get("description", "")),
        str(table.get("model", "")),
        _settle(table.get("settle", 0.0)),
        dict(table.get("shaker", {})),
    )


def _settle(value: Any) -> float:
    if not _is_number(value) or not 0 <= value < math.inf:
        raise RigError(f"settle must be a number of seconds, not {_shown(value)}.")
    return float(value)


def open_rig(
    profile: RigProfile,
    clock: Clock | None = None,
    seed: int = 0,
    told: Callable[[str], object] = lambda what: None,
) -> Rig:
    """Open every instrument of a profile; if one fails those opened before are closed again.

    ``told`` hears which instrument is opened now: one that hangs can be named.
    """
    told(instrument_called("source", profile))
    rig = Rig(profile, _driver("source", profile.instruments["source"])(profile, clock, seed))
    try:
        name = str(profile.instruments["source"]["driver"])
        check_source(rig.source, profile.channels, registry.called("sources", name))
        rig.notices += getattr(rig.source, "notices", ())
        if isinstance(rig.source, Perturbable):
            rig.specimen = rig.source
        for name, instrument in profile.instruments.items():
            if name == "source":
                continue
            opened = _driver(name, instrument)
            told(instrument_called(name, profile))
            if name == "exciter":
                rig.exciter = opened(profile, rig.source)
                rig.notices += getattr(rig.exciter, "notices", ())
            else:
                rig.controllers[name] = opened(instrument)
    except BaseException:
        rig.close()
        raise
    return rig


def instrument_called(name: str, profile: RigProfile) -> str:
    """An instrument as a message names it."""
    kind = f"the {name}" if name in ("source", "exciter") else f"the sensor controller '{name}'"
    return f"{kind} (driver '{profile.instruments[name].get('driver')}')"


def _driver(name: str, instrument: Mapping[str, Any]) -> Callable[..., Any]:
    """The function that opens an instrument (as a promise: its module is imported when it is called)."""
    group = {"source": "sources", "exciter": "exciters"}.get(name, "controllers")
    chosen = instrument.get("driver") if isinstance(instrument, Mapping) else None
    try:
        return registry.driver(group, str(chosen))
    except KeyError:
        known = ", ".join(registry.names(group))
        raise RigError(f"[instruments.{name}]: driver is one of {known}, not '{chosen}'.") from None


def _wired(source: Mapping[str, Any], names: list[str]) -> None:
    wiring = source.get("wiring", {})
    missing = [n for n in names if n not in wiring]
    unknown = [n for n in wiring if n not in names]
    if missing:
        raise RigError(f"[instruments.source] wiring: channel '{missing[0]}' is connected to nothing.")
    if unknown:
        raise RigError(f"[instruments.source] wiring: there is no channel '{unknown[0]}'.")


def build(kind: Callable[..., T], table: Any, where: str) -> T:
    """A dataclass from a table, with the table's mistakes in words."""
    if not isinstance(table, dict):
        raise RigError(f"{where}: a table of values is needed.")
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    _only(table, set(known), where)
    for name, field_ in known.items():
        if field_.default is MISSING and field_.default_factory is MISSING and name not in table:
            raise RigError(f"{where}: '{name}' is missing.")
    for name, value in table.items():
        wanted = str(known[name].type)
        if wanted in ("float", "float | None") and not _is_number(value):
            raise RigError(f"{where}: {name} must be a number, not {_shown(value)}.")
        if wanted == "int" and (isinstance(value, bool) or not isinstance(value, int)):
            raise RigError(f"{where}: {name} must be a whole number, not {_shown(value)}.")
    return kind(**table)


def _only(table: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in table:
        if name not in known:
            close = get_close_matches(name, known, 1, 0.6)
            hint = f"did you mean '{close[0]}'?" if close else f"it takes {', '.join(sorted(known))}."
            raise RigError(f"{where} has no '{name}': {hint}")


def _is_number(value: Any) -> bool:
    """A number, perhaps infinite; NaN would pass every comparison with a limit, and disable that."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e300 or value in (math.inf, -math.inf)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:56]} ..."


def positive(name: str, value: Any) -> float:
    """A value of a profile that must be a positive number of a sensible size."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        raise RigError(f"{name} must be a positive number, not {_shown(value)}.")
    return float(value)
