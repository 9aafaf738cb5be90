"""A rig that is being put together: instrument, channels, limits of its shaker; at the end a profile."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from analysis import ShakedownError
from app.sensors import Sensor
from drivers.rig.profile import load_rig, rig_from_text

SOURCES = ("nidaqmx", "opendaq", "virtual")  # devices that a rig is made of here
MOST_INPUTS = 32
STOP_TIME = 0.040  # s within which the drive must come down (see drivers/base/limits.py)


@dataclass(frozen=True)
class DraftChannel:
    """A channel: its name, where it is connected, which sensor, and where the drive stops."""

    name: str
    terminal: str
    sensor: Sensor | None = None
    limit: float | None = None  # in the sensor's unit
    origin: str = ""  # the channel of the profile being edited that it comes from


@dataclass(frozen=True)
class ShakerLimits:
    """What the drive must never exceed: V, Hz, V/s. Nothing here has a value before a person gave it."""

    amplitude: float = math.nan
    lowest: float = math.nan
    highest: float = math.nan
    ramp: float = math.nan

    def missing(self) -> list[str]:
        """The limits that nobody has given yet, in words."""
        words = {"amplitude": "amplitude", "lowest": "lowest frequency", "highest": "highest frequency",
                 "ramp": "ramp"}  # fmt: skip
        return [text for name, text in words.items() if not getattr(self, name) > 0]


@dataclass(frozen=True)
class RigDraft:
    """A rig without a shaker has no output."""

    kind: str = ""  # driver of the instrument
    address: str = ""
    rate: float = 2048.0
    channels: tuple[DraftChannel, ...] = ()
    output: str = ""
    limits: ShakerLimits = field(default_factory=ShakerLimits)

    # -- instrument

    def terminals(self) -> list[str]:
        """Where a channel can be connected."""
        if self.kind == "nidaqmx":
            return [f"{self.address}/ai{i}" for i in range(MOST_INPUTS)]
        if self.kind == "virtual":
            return [str(value) for value in self._base()["instruments"]["source"]["wiring"].values()]
        return [f"AI{i}" for i in range(MOST_INPUTS)]

    def outputs(self) -> list[str]:
        """Where a shaker can be connected; none: this instrument drives nothing."""
        if self.kind == "nidaqmx":
            return [f"{self.address}/ao{i}" for i in range(4)]
        return ["virtual shaker"] if self.kind == "virtual" else []

    def _base(self) -> dict[str, Any]:
        """The profile of the virtual rig whose instruments are used."""
        import tomllib

        profile = load_rig(self.address)
        return tomllib.loads((profile.folder / f"{profile.key}.toml").read_text(encoding="utf-8"))

    # -- channels

    def with_channel(self) -> Self:
        """One channel more, at the next free terminal."""
        used = {channel.terminal for channel in self.channels}
        free = [terminal for terminal in self.terminals() if terminal not in used]
        if not free:
            raise ShakedownError("Every input of this instrument is in use.")
        return replace(self, channels=(*self.channels, DraftChannel(self._free_name("x"), free[0])))

    def without(self, row: int) -> Self:
        return replace(self, channels=(*self.channels[:row], *self.channels[row + 1 :]))

    def duplicated(self, row: int) -> Self:
        """The same sensor once more, below, at the next free terminal."""
        made = self.with_channel().channels[-1]
        old = self.channels[row]
        copy = replace(old, name=self._free_name(old.name.rstrip("0123456789")), terminal=made.terminal)
        return replace(self, channels=(*self.channels[: row + 1], copy, *self.channels[row + 1 :]))

    def moved(self, row: int, by: int) -> Self:
        """A channel further up (-1) or down (1); at the ends it stays."""
        rows = list(self.channels)
        target = row + by
        if 0 <= target < len(rows):
            rows[row], rows[target] = rows[target], rows[row]
        return replace(self, channels=tuple(rows))

    def changed(self, row: int, **values: Any) -> Self:
        rows = list(self.channels)
        rows[row] = replace(rows[row], **values)
        return replace(self, channels=tuple(rows))

    def _free_name(self, stem: str) -> str:
        used = {channel.name for channel in self.channels}
        names = (stem, *(f"{stem}{n}" for n in range(2, len(used) + 3)))
        return next(name for name in names if name and name not in used)

    # -- the profile

    def problem(self) -> str:
        """What is still missing, in one sentence; empty: it can be saved."""
        if not self.kind:
            return "Choose the instrument."
        if not self.channels:
            return "Add a channel."
        if not all(channel.name.strip() for channel in self.channels):
            return "Every channel needs a name."
        terminals = [channel.terminal for channel in self.channels]
        twice = next((t for t in terminals if terminals.count(t) > 1), "")
        if twice:
            return f"Two channels are connected to {twice}."
        if self.output and (missing := self.limits.missing()):
            return f"The shaker's limits are not whole: {', '.join(missing)}."
        try:
            rig_from_text(self.text("new"), "new", "This rig")
        except ShakedownError as error:
            return str(error)
        return ""

    def text(self, title: str) -> str:
        """The profile."""
        import tomli_w

        return tomli_w.dumps(self._table(title))

    def _table(self, title: str) -> dict[str, Any]:
        table: dict[str, Any] = {"name": title, "rate": self.rate}
        if self.output:
            limits = self.limits
            # No allowed sine is steeper than this; and STOP must come down in time.
            slew = max(2 * math.pi * limits.highest, 1 / STOP_TIME) * limits.amplitude
            table["limits"] = {
                "amplitude": limits.amplitude, "lowest_frequency": limits.lowest,
                "highest_frequency": limits.highest, "slew": math.ceil(slew), "ramp": limits.ramp,
            }  # fmt: skip
        table["channels"] = [channel_table(channel) for channel in self.channels]
        table["instruments"] = self._instruments()
        return table

    def _instruments(self) -> Mapping[str, Any]:
        wiring = {channel.name: channel.terminal for channel in self.channels}
        if self.kind == "virtual":
            base = self._base()["instruments"]
            found = {"source": {**base["source"], "wiring": wiring}}
            return {**found, "exciter": base["exciter"]} if self.output else found
        source: dict[str, Any] = {"driver": self.kind, "wiring": wiring}
        if self.kind == "opendaq":
            source["device"] = self.address
        exciter = {"exciter": {"driver": self.kind, "output": self.output}} if self.output else {}
        return {"source": source, **exciter}


def channel_table(channel: DraftChannel) -> dict[str, Any]:
    """The channel as the profile tells it."""
    table: dict[str, Any] = {"name": channel.name}
    table |= {"unit": "V"} if channel.sensor is None else channel.sensor.channel()
    if channel.limit is not None:
        table["limit"] = channel.limit
    return table
