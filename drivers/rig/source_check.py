"""What a source must show before anything of it is believed: a rate, and the channels of its profile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from drivers.base.protocols import ChannelInfo, InstrumentError, Source

if TYPE_CHECKING:
    from drivers.rig.profile import ChannelProfile


def check_source(source: Source, stated: Sequence[ChannelProfile], driver: str) -> None:
    """InstrumentError in one sentence unless the source fits its profile. ``driver``: its name, in words.

    Limits are watched by the place and in the unit of a profile's channel, so both must be the source's, too.
    Channels behind those of the profile are the driver's own.
    """
    rate = source.rate
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < math.inf:
        raise InstrumentError(f"{driver} has the rate {rate!r}: it must be a float or an int above 0, in Hz.")
    channels = source.channels
    if not isinstance(channels, tuple) or not all(isinstance(c, ChannelInfo) for c in channels):
        raise InstrumentError(f"{driver} has channels that are no tuple of ChannelInfo.")
    names, wanted = [c.name for c in channels], [c.name for c in stated]
    if names[: len(wanted)] != wanted or len(set(names)) < len(names):
        raise InstrumentError(
            f"{driver} has the channels {', '.join(names) or 'none'}; "
            f"those of the rig are {', '.join(wanted)}, in this order, each once."
        )
    for channel, own in zip(channels, stated, strict=False):
        if channel.unit != own.unit:
            raise InstrumentError(
                f"{driver} gives channel '{own.name}' in '{channel.unit}'; the rig has it in '{own.unit}'."
            )
