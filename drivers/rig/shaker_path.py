"""The way from the drive to the specimen, as a profile states it: what a voltage makes of the table.

[shaker]                              # of a virtual rig: [instruments.source.shaker] and its specimen's
gain = 0.16667                        # table units per unit of drive
lag = 0.0005                          # s:  lag ds/dt + s = gain v
travel = 2.0                          # end stops of the table, in its unit
inputs = { f = "table" }              # which measured input of the model is the table or its velocity
scale = { f = 1.0 }                   # units of that input in one of the table's
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from drivers.rig.profile import RigError, build

if TYPE_CHECKING:
    from drivers.rig.profile import RigProfile

Array = NDArray[np.float64]
_KINDS = ("table", "table velocity")


@dataclass(frozen=True)
class ShakerPath:
    """Amplifier and shaker as a first-order lag, and the inputs of the model that it moves."""

    gain: float
    lag: float = 0.0  # s
    travel: float = np.inf
    inputs: Mapping[str, str] = field(default_factory=dict)
    scale: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.gain) and self.gain != 0 and self.lag >= 0 and self.travel > 0):
            raise RigError(
                "the shaker needs a gain that is not 0, a lag of at least 0 and a positive travel."
            )
        for name, kind in self.inputs.items():
            if kind not in _KINDS:
                raise RigError(f"the shaker moves '{name}' as one of {', '.join(_KINDS)}, not '{kind}'.")

    def table(self, drive: Array, rate: float) -> tuple[Array, Array]:
        """Motion and velocity of the table under samples of the drive (straight lines between them)."""
        wanted = self.gain * np.asarray(drive, dtype=np.float64)
        if self.lag == 0:
            return wanted, np.gradient(wanted, 1 / rate)
        from scipy.signal import lfilter

        h = 1 / (rate * self.lag)
        decay, ramp = np.exp(-h), (1 - np.exp(-h)) / h
        # exact for straight lines: s' = decay s + (ramp - decay) w + (1 - ramp) w'
        place = lfilter([1 - ramp, ramp - decay], [1, -decay], wanted)
        return np.asarray(place), np.asarray((wanted - place) / self.lag)

    def inputs_of(self, names: Sequence[str], drive: Array, rate: float) -> Array:
        """The model's measured inputs [m, N] under samples of the drive."""
        missing = [name for name in names if name not in self.inputs]
        if missing:
            raise RigError(
                f"The profile does not say how the drive reaches the input '{missing[0]}' of the model: "
                "add it to 'inputs' of its [shaker]."
            )
        motion = dict(zip(_KINDS, self.table(drive, rate), strict=True))
        return np.array([self.scale.get(name, 1.0) * motion[self.inputs[name]] for name in names])


def shaker_path(profile: RigProfile) -> ShakerPath:
    """The path that a profile states; RigError where it does not."""
    table = dict(profile.shaker)
    if not table and profile.virtual:
        source = profile.instruments["source"]
        specimen = source.get("specimen", {})
        if specimen.get("time_scale", 1.0) != 1.0:
            raise RigError(
                f"The specimen of '{profile.key}' has a time of its own: nothing can be planned on it."
            )
        table = dict(source.get("shaker", {}))
        table |= {"inputs": specimen.get("inputs", {}), "scale": specimen.get("scale", {})}
    if not table:
        raise RigError(
            f"The profile of '{profile.key}' does not say what the drive makes of the specimen's input: "
            'give it a [shaker] with gain, lag and inputs, such as inputs = { f = "table" }.'
        )
    return build(ShakerPath, table, "shaker")
