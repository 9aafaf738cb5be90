"""The sensors of a laboratory, with their calibration: one TOML file in the configuration folder.

[[sensors]]
name = "accelerometer 4711"      # as people call it
kind = "iepe"                    # voltage, iepe, force or bridge, as in a rig's profile
unit = "m/s²"
sensitivity = 0.0102             # V per unit
range = 5.0                      # V
calibrated = 2026-03-01
due = 2027-03-01                 # absent: a year after
teds = true                      # the sensor tells its sensitivity itself
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from analysis import DataError, ShakedownError, parse_toml
from app.settings import config_folder
from drivers.base.files import read_text, replaced
from drivers.instruments.teds import SensorData
from drivers.rig.profile import ChannelProfile

NAME = "sensors.toml"
VALID = timedelta(days=365)  # of a calibration, where nobody says otherwise
MOST = 10_000  # sensors


@dataclass(frozen=True)
class Sensor:
    """One sensor; sensitivity in V per unit, range in V."""

    name: str
    kind: str = "voltage"
    unit: str = ""
    sensitivity: float = 1.0
    range: float = 10.0
    calibrated: date | None = None
    due: date | None = None
    teds: bool = False
    gauge_factor: float = 2.0
    bridge: str = "full"

    @property
    def ends(self) -> date | None:
        """The day from which its calibration is out of date; None: it was never calibrated."""
        if self.due is not None:
            return self.due
        return None if self.calibrated is None else self.calibrated + VALID

    def words(self, today: date, told: Callable[[date], str] = date.isoformat) -> str:
        """How good its calibration is; ``told`` writes a day."""
        if self.ends is None:
            return "never calibrated"
        if self.ends < today:
            return f"out of date since {told(self.ends)}"
        return f"good until {told(self.ends)}"

    def channel(self) -> dict[str, Any]:
        """What it brings into a channel of a rig's profile."""
        table: dict[str, Any] = {
            "sensor": self.name, "kind": self.kind, "unit": self.unit,
            "sensitivity": self.sensitivity, "range": self.range,
        }  # fmt: skip
        if self.kind == "bridge":
            table |= {"gauge_factor": self.gauge_factor, "bridge": self.bridge}
        if self.teds:
            table["teds"] = True
        if self.calibrated is not None:
            table["calibrated"] = self.calibrated.isoformat()
        return table


def by_teds(told: SensorData) -> Sensor:
    """The sensor that tells of itself; what it says is asked again whenever the rig is opened."""
    day = told.calibrated
    due = None if day is None or not told.valid_days else day + timedelta(told.valid_days)
    return Sensor(
        told.name, told.kind, told.unit, told.sensitivity, range=5.0, calibrated=day, due=due, teds=True
    )


def database() -> Path:
    """The file of this machine's sensors; it may not be there."""
    return config_folder() / NAME


def load(path: Path | None = None) -> list[Sensor]:
    """The sensors of a file; of this machine's own, none if there is no file."""
    if path is None:
        path = database()
        if not path.exists():
            return []
    try:
        raw = parse_toml(read_text(path, "a list of sensors"))
    except ValueError as error:
        raise DataError(f"{path} cannot be read: {error}.") from None
    tables = raw.get("sensors")
    if not isinstance(tables, list) or not tables or len(tables) > MOST:
        raise DataError(f"{path} is no list of sensors: it needs a [[sensors]] for each.")
    sensors = [_sensor(table, f"{path.name}, sensor {n}") for n, table in enumerate(tables, 1)]
    names = [sensor.name for sensor in sensors]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{path.name} has two sensors named '{twice}'.")
    return sensors


def add(new: Sequence[Sensor]) -> list[Sensor]:
    """Put sensors into this machine's file; one that is there already is replaced. All of them then."""
    known = {sensor.name: sensor for sensor in load()}
    sensors = list({**known, **{sensor.name: sensor for sensor in new}}.values())
    import tomli_w

    try:
        database().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{database()} cannot be written: {error.strerror or error}.") from None
    with replaced(database()) as part:
        part.write_text(tomli_w.dumps({"sensors": [_table(s) for s in sensors]}), encoding="utf-8")
    return sensors


def _table(sensor: Sensor) -> dict[str, Any]:
    plain = Sensor(sensor.name)
    names = [f.name for f in fields(Sensor)]
    return {n: v for n in names if (v := getattr(sensor, n)) != getattr(plain, n) or n == "name"}


def _sensor(table: Any, where: str) -> Sensor:
    if not isinstance(table, dict) or not str(table.get("name", "")).strip():
        raise DataError(f"{where}: every sensor needs a name.")
    where = f"{where} ('{table['name']}')"
    unknown = set(table) - {f.name for f in fields(Sensor)}
    if unknown:
        raise DataError(f"{where}: '{min(unknown)}' is not known of a sensor.")
    values = {**table, "name": str(table["name"]).strip()}
    for name in ("calibrated", "due"):
        if name in values:
            values[name] = _day(values[name], f"{where}: {name}")
    for name in ("sensitivity", "range", "gauge_factor"):
        if name in values:
            values[name] = _number(values[name], f"{where}: {name}")
    sensor = Sensor(**values)
    try:  # what a profile would refuse is refused here
        ChannelProfile(name="x", **sensor.channel())
    except (ShakedownError, TypeError) as error:
        raise DataError(f"{where}: {error}") from None
    return sensor


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{where} is a number, not {value!r}.")
    return float(value)


def _day(value: Any, where: str) -> date:
    try:
        return value if type(value) is date else date.fromisoformat(str(value)[:10])
    except ValueError:
        raise DataError(f"{where} is a day such as 2026-03-01, not {value!r}.") from None
