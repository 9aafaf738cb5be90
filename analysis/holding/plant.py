"""What a controller knows of the rig: the model, the path of a correction to the force, the sensors.

The drive V cos(theta) moves the specimen with the force f0(theta), a few harmonics of the drive. A correction
of c volts that is decided at a sample adds to it

    lag ds/dt + s = gain c(t - delay),          f = f0(theta) + s,

where ``delay`` reaches from the sample to the moment at which the correction stands at the shaker.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ModelError
from analysis.model import Model

Array = NDArray[np.float64]

TICKS = 100  # decisions in a period of the drive that are enough
SUBSTEP = 0.09  # rad of the drive, longest integration step inside a tick
MODE_STEP = 0.4  # rad of the fastest mode


@dataclass(frozen=True)
class Mode:
    """A resonance that the sensors see and the model does not have: q'' + 2 z w q' + w^2 q = f."""

    frequency: float  # rad/s
    damping: float  # of the critical one
    shows: tuple[tuple[float, float], ...]  # by channel: what it adds for one unit of q and of q'


@dataclass(frozen=True)
class ActuatorPath:
    """From a correction in volts to the force on the specimen."""

    gain: float  # units of the model's input per volt
    lag: float  # s, of amplifier and shaker
    delay: float  # s, from a sample to the correction that it leads to
    jitter: float = 0.0  # s, standard deviation of the delay


@dataclass(frozen=True, eq=False)
class LoopPlant:
    """A specimen in a loop, as far as it is known."""

    model: Model  # with its values; one measured input, no t in the equations
    channels: tuple[str, ...]  # outputs of the model that the rig measures
    noise: Array  # standard deviation of each channel
    frequency: float  # Hz, of the drive
    rate: float  # Hz, samples
    amplitude: float  # V, of the drive
    force: Array  # f0: offset, then cosine and sine of each harmonic of the drive's phase
    path: ActuatorPath
    scale: Array  # [n] spread of each state: the unit of distances
    process: float = 1e-3  # what the model misses: spread of the states' drift in a radian of the drive
    modes: tuple[Mode, ...] = field(default=())

    def __post_init__(self) -> None:
        if len(self.model.inputs) != 1:
            raise ModelError(
                f"{self.model.name} has {len(self.model.inputs)} measured inputs: a loop needs exactly one, "
                "the force or motion that the drive makes."
            )
        if self.model.equations.hold_time:
            raise ModelError(f"{self.model.name} holds the time t: a loop needs the drive as measured input.")
        for name in self.channels:
            if name not in self.model.outputs:
                raise ModelError(f"{self.model.name} has no output '{name}'.")

    def __getstate__(self) -> dict[str, Any]:
        """To another process goes the text of the model: it is compiled there."""
        kept = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**kept, "model": self.model.to_toml()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in {**state, "model": Model.from_toml(state["model"])}.items():
            object.__setattr__(self, name, value)

    @property
    def every(self) -> int:
        """Samples from one decision to the next."""
        return max(1, int(self.rate / self.frequency / TICKS))

    @property
    def tick(self) -> float:
        """s between two decisions."""
        return self.every / self.rate

    @property
    def nodes(self) -> int:
        """Places on an orbit in a period of the drive: one a tick, nearly."""
        return max(8, round(1.0 / (self.frequency * self.tick)))

    @property
    def omega(self) -> float:
        """rad/s of the drive."""
        return 2 * np.pi * self.frequency

    @property
    def steps(self) -> int:
        """Integration steps in a tick."""
        steps = self.omega * self.tick / SUBSTEP
        fastest = max((m.frequency for m in self.modes), default=0.0)
        return max(1, int(np.ceil(max(steps, fastest * self.tick / MODE_STEP))))

    @property
    def rows(self) -> NDArray[np.int64]:
        """The model's output that each channel shows."""
        return np.array([self.model.outputs.index(name) for name in self.channels], dtype=np.int64)

    @cached_property
    def mode_table(self) -> Array:
        """[modes, 2 + 2 channels]: frequency, damping, then what each channel sees of q and q'."""
        rows = [[m.frequency, m.damping, *(x for pair in m.shows for x in pair)] for m in self.modes]
        return np.array(rows, dtype=np.float64).reshape(len(rows), 2 + 2 * len(self.channels))

    @cached_property
    def process_noise(self) -> Array:
        """[n + 2 modes] variance that the model's gaps add in a tick; most where the force acts."""
        n = len(self.model.states)
        by_force = np.zeros((n, 1))
        state = np.zeros(n)
        self.model.kernels().jac_u(0.0, state, np.zeros(1), self.model.values(), by_force)
        share = np.where(by_force[:, 0] != 0, 1.0, 0.03)
        variance = (self.process * share * self.scale) ** 2 * self.omega * self.tick
        modes = (self.process * self.mode_scale) ** 2 * self.omega * self.tick
        return np.concatenate([variance, modes])

    @cached_property
    def mode_scale(self) -> Array:
        """[2 modes] size of the place and speed of each mode under the drive."""
        force = float(np.linalg.norm(self.force))
        sizes = [force / m.frequency**2 * np.array([1.0, self.omega]) for m in self.modes]
        return np.concatenate([*sizes, np.zeros(0)])
