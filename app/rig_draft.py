"""A rig that is being put together: instrument, channels, limits of its shaker; at the end a profile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from analysis import ShakedownError
from app.sensors import Sensor
from drivers.instruments.discovery import Device, Terminals
from drivers.rig.profile import load_rig, rig_from_text

SOURCES = ("nidaqmx", "opendaq", "sound", "virtual")  # devices that a rig is made of here
MOST_INPUTS = 32
OUTPUT = "output "  # of a sound card, which has numbers for them
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
class CardScale:
    """V that are 1.0 in a sound card's numbers: no card tells it; and the channel that hears its output."""

    input: float = math.nan
    output: float = math.nan
    loopback: str = ""

    def problem(self, driven: bool, peak: float) -> str:
        """What is missing or cannot be, in one sentence."""
        if not self.input > 0:
            return "Say how many volts at the card's inputs are full scale; `shakedown calibrate` finds it."
        if driven and not self.output > 0:
            return "Say how many volts the card's output gives at full scale; `shakedown calibrate` finds it."
        if driven and peak > self.output:
            return f"The limit of {peak:g} V is more than the card's output gives ({self.output:g} V)."
        return ""


@dataclass(frozen=True)
class RigDraft:
    """A rig without a shaker has no output."""

    kind: str = ""  # driver of the instrument
    address: str = ""
    rate: float = 2048.0
    channels: tuple[DraftChannel, ...] = ()
    output: str = ""
    limits: ShakerLimits = field(default_factory=ShakerLimits)
    card: CardScale = field(default_factory=CardScale)
    told: Terminals = field(default_factory=Terminals)  # by the instrument; empty: it was not asked
    generators: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # driver and port, by words

    # -- instrument

    def terminals(self) -> list[str]:
        """Where a channel can be connected."""
        if self.told.inputs:
            return list(self.told.inputs)
        if self.kind == "nidaqmx":
            return [f"{self.address}/ai{i}" for i in range(MOST_INPUTS)]
        if self.kind == "virtual":
            return [str(value) for value in self._base()["instruments"]["source"]["wiring"].values()]
        if self.kind == "sound":
            return ["0", "1"]
        return [f"AI{i}" for i in range(MOST_INPUTS)]

    def source_table(self) -> Mapping[str, Any]:
        """The instrument as a profile names it, as far as it matters for asking its sensors."""
        return {"driver": self.kind}

    def outputs(self) -> list[str]:
        """Where a shaker can be connected: outputs of the instrument itself, and generators."""
        if self.kind == "virtual":
            return ["virtual shaker"]
        own = [f"{self.address}/ao{i}" for i in range(4)] if self.kind == "nidaqmx" else []
        own = list(self.told.outputs) if self.told.inputs else own
        if self.kind == "sound":
            own = [f"{OUTPUT}{number}" for number in own]
        return [*own, *self.generators]

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
        if words := self._unstated():
            return words
        try:
            rig_from_text(self.text("new"), "new", "This rig")
        except ShakedownError as error:
            return str(error)
        return ""

    def _unstated(self) -> str:
        """What only a person can say, and has not."""
        if self.output and (missing := self.limits.missing()):
            return f"The shaker's limits are not whole: {', '.join(missing)}."
        return self.card.problem(self.driven_by_card, self.limits.amplitude) if self.kind == "sound" else ""

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
        if self.kind == "sound":
            source = {
                "driver": self.kind, "device": self.address, "full_scale": self.card.input,
                "wiring": {name: _number_of(terminal) for name, terminal in wiring.items()},
            }  # fmt: skip
            if self.driven_by_card and self.card.loopback:
                source["loopback"] = self.card.loopback
        if self.kind == "opendaq":
            source["device"] = self.address
        return {"source": source, **({"exciter": self._exciter()} if self.output else {})}

    def _exciter(self) -> dict[str, Any]:
        if self.output in self.generators:
            driver, port = self.generators[self.output]
            return {"driver": driver, "port": port}
        if self.kind == "sound":
            number = _number_of(self.output.removeprefix(OUTPUT))
            return {"driver": self.kind, "output": number, "full_scale": self.card.output}
        return {"driver": self.kind, "output": self.output}

    @property
    def driven_by_card(self) -> bool:
        """Whether the sound card itself drives the shaker."""
        return self.kind == "sound" and bool(self.output) and self.output not in self.generators


def _number_of(terminal: str) -> int:
    if not terminal.isdecimal():
        raise ShakedownError(f"The inputs of a sound card are numbers, not `{terminal}`.")
    return int(terminal)


def generators_among(devices: Sequence[Device]) -> dict[str, tuple[str, str]]:
    """What may be a function generator: a line does not tell what is at its end."""
    found = {}
    for device in devices:
        if device.kind == "serial":
            found[f"Stanford DS345 at {device.address}"] = ("ds345", device.address)
        if device.kind in ("serial", "visa"):
            found[f"SCPI generator at {device.address}"] = ("scpi", device.address)
    return found


def channel_table(channel: DraftChannel) -> dict[str, Any]:
    """The channel as the profile tells it."""
    table: dict[str, Any] = {"name": channel.name}
    table |= {"unit": "V"} if channel.sensor is None else channel.sensor.channel()
    if channel.limit is not None:
        table["limit"] = channel.limit
    return table
