"""The channels of a rig that is there already: added, removed, copied, put in another order."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis import ShakedownError
from app.profile_text import rearranged
from app.rig_draft import MOST_INPUTS, DraftChannel, RigDraft, channel_table
from drivers.rig.profile import rig_from_text


@dataclass(frozen=True)
class EditedRig(RigDraft):
    """A draft whose channels come from a profile; all else of the profile stays as it is."""

    profile: str = ""  # text of the profile

    @classmethod
    def of(cls, text: str) -> EditedRig:
        """The channels of a profile as they are."""
        rig_from_text(text, "edited", "This rig")
        raw = tomllib.loads(text)
        source = raw["instruments"]["source"]
        channels = tuple(
            DraftChannel(c["name"], str(source["wiring"][c["name"]]), limit=c.get("limit"), origin=c["name"])
            for c in raw["channels"]
        )
        return cls(str(source["driver"]), "", float(raw["rate"]), channels, profile=text)

    def _raw(self) -> dict[str, Any]:
        return tomllib.loads(self.profile)

    def original(self, channel: DraftChannel) -> Mapping[str, Any]:
        """The table that a channel had; empty for a new one."""
        return next((c for c in self._raw()["channels"] if c["name"] == channel.origin), {})

    def terminals(self) -> list[str]:
        """Inputs in use first, then those beside them."""
        used = [str(terminal) for terminal in self._raw()["instruments"]["source"]["wiring"].values()]
        used += [channel.terminal for channel in self.channels]
        more = self._of_specimen() if self.kind == "virtual" else []
        for terminal in used:
            stem = terminal.rstrip("0123456789")
            if stem != terminal and self.kind != "virtual":
                more += [f"{stem}{number}" for number in range(MOST_INPUTS)]
        return list(dict.fromkeys((*used, *more)))

    def source_table(self) -> Mapping[str, Any]:
        return dict(self._raw()["instruments"]["source"])

    def _of_specimen(self) -> list[str]:
        """What can be measured on a virtual rig."""
        from drivers.library import load_model

        model = load_model(self._raw()["instruments"]["source"]["specimen"]["model"])
        return ["drive", "table", "table velocity", *model.states, *model.inputs]

    def lost_stops(self) -> list[str]:
        """Channels that stopped the drive and no longer do."""
        guarded = {c["name"] for c in self._raw()["channels"] if c.get("limit") is not None}
        return sorted(guarded - {c.origin for c in self.channels if c.limit is not None})

    def problem(self) -> str:
        """What keeps the channels from being saved, in one sentence."""
        return self._needed_elsewhere() or super().problem()

    def _unstated(self) -> str:
        return ""  # the profile says it all

    def _needed_elsewhere(self) -> str:
        """A channel by whose name an instrument knows it must stay, and keep its name."""
        raw = self._raw()
        there = {channel.name for channel in self.channels if channel.name == channel.origin}
        lost = {channel["name"] for channel in raw["channels"]} - there
        for name, instrument in raw["instruments"].items():
            wanted = [instrument.get(key) for key in ("channel", "loopback")]
            wanted += list(instrument.get("offsets", {}))
            if gone := next((channel for channel in wanted if channel in lost), ""):
                return f"[instruments.{name}] needs channel {gone} by this name: it has to stay."
        return ""

    def text(self, title: str) -> str:
        """The profile with these channels; its own name stays."""
        wiring = self._raw()["instruments"]["source"]["wiring"]
        whole = bool(wiring) and all(type(terminal) is int for terminal in wiring.values())
        try:
            connected = {c.name: int(c.terminal) if whole else c.terminal for c in self.channels}
        except ValueError:
            raise ShakedownError("The inputs of this instrument are numbers.") from None
        return rearranged(self.profile, [(c.origin, self._channel(c)) for c in self.channels], connected)

    def _channel(self, channel: DraftChannel) -> dict[str, Any]:
        """Its own table with what was changed; another sensor replaces all that the old one said."""
        old = self.original(channel)
        if channel.sensor is not None or not old:
            return channel_table(channel)
        table = {**old, "name": channel.name, "limit": channel.limit}
        return {name: value for name, value in table.items() if value is not None}
