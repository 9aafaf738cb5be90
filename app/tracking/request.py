"""A branch that is asked for: which one, how far, seen by which channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from analysis import DataError

if TYPE_CHECKING:
    from analysis import Model
    from drivers.rig.profile import ChannelProfile, RigProfile

Kind = Literal["backbone", "force", "frequency"]
KINDS = {"backbone": "backbone", "force": "response over force", "frequency": "response over frequency"}
LEAST, LEAST_RESPONSE = 3, 8  # points
BEGIN = 0.05  # of the largest amplitude
UNITS = {
    "m/s": "velocity",
    "mm/s": "velocity",
    "m/s^2": "acceleration",
    "m/s²": "acceleration",
    "g": "acceleration",
}


@dataclass(frozen=True)
class TrackRequest:
    """What is asked for, checked. Amplitudes in the unit of the response."""

    kind: Kind  # backbone, or a response curve over the force or the frequency
    to: float  # largest amplitude; the drive ends at 1.5 times as much
    begin: float | None = None  # smallest; None: a twentieth of the largest
    points: int = 20  # on the way out
    at: float = 0.0  # Hz of a curve over the force, force amplitude of one over the frequency
    near: float | None = None  # Hz, where the resonance of small motions is, about; None: the rig's drive
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.to > 0:
            raise DataError("The largest response amplitude is positive.")
        if self.points < LEAST:
            raise DataError(f"A branch has {LEAST} points at least.")
        if self.kind != "backbone" and self.points < LEAST_RESPONSE:
            raise DataError(f"Folds are found with {LEAST_RESPONSE} points at least.")
        if self.begin is not None and not 0 < self.begin < self.to:
            raise DataError("The smallest amplitude is positive and below the largest.")
        if self.kind != "backbone" and not self.at > 0:
            raise DataError("The frequency or force at which the curve is followed is positive.")

    def nearby(self, profile: RigProfile) -> float:
        """Where the resonance of small motions is looked for, in Hz."""
        from drivers.base.waveform import Sine

        if self.near is not None:
            return self.near
        if isinstance(profile.drive, Sine):
            return profile.drive.frequency
        raise DataError("Where is the resonance of small motions, about? Name its frequency.")


@dataclass(frozen=True)
class TrackChannels:
    """The two channels of the loop, and what the first of them sees."""

    response: ChannelProfile
    force: ChannelProfile
    sees: str

    @property
    def names(self) -> tuple[str, str]:
        return self.response.name, self.force.name

    @property
    def units(self) -> dict[str, str]:
        return {"amplitude": self.response.unit, "force": self.force.unit}

    @property
    def labels(self) -> tuple[str, str]:
        """Response and force with their units."""
        labels = [f"{c.name} [{c.unit}]" if c.unit else c.name for c in (self.response, self.force)]
        return labels[0], labels[1]


def track_channels(
    profile: RigProfile, response: str | None = None, force: str | None = None, sees: str | None = None
) -> TrackChannels:
    """The channels by their names; by default the rig's first one, and the input of the rig's model."""
    by_name = {c.name: c for c in profile.channels}

    def channel(name: str) -> ChannelProfile:
        if name not in by_name:
            raise DataError(
                f"The rig '{profile.key}' has no channel '{name}': there are {', '.join(by_name)}."
            )
        return by_name[name]

    if force is None:
        from drivers.library import load_model

        inputs = load_model(profile.model).inputs if profile.model else ()
        found = [name for name in (*inputs, "f", "force") if name in by_name]
        if not found:
            raise DataError(f"Which channel of '{profile.key}' is the force? Name it.")
        force = found[0]
    first = channel(response) if response else profile.channels[0]
    if first.name == force:
        raise DataError(f"'{force}' cannot be response and force at once.")
    return TrackChannels(first, channel(force), sees or UNITS.get(first.unit, "displacement"))


def check_model(model: Model, channels: TrackChannels) -> None:
    """Refuse a model that cannot be set beside the branch."""
    if channels.response.name not in model.outputs or tuple(model.inputs) != (channels.force.name,):
        raise DataError(
            f"{model.name} must have the output '{channels.response.name}' and the one measured input "
            f"'{channels.force.name}' to be set beside the branch."
        )
