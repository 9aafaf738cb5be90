"""A stretch of the loop's work, folded over the period of an orbit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.holding.holder import Estimator, OrbitHolder, outputs_along
from analysis.holding.plant import LoopPlant
from analysis.holding.target import Target

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Stretch:
    """What the loop saw and did at successive samples."""

    samples: Array  # [channels, N]
    phase: Array  # [N] of the drive, growing through the turns, rad
    command: Array  # [N] corrections in volts
    holding: NDArray[np.bool_]  # [N]

    @property
    def held(self) -> bool:
        return bool(self.holding.all())

    def joined(self, other: Stretch) -> Stretch:
        return Stretch(
            np.concatenate([self.samples, other.samples], axis=1),
            np.concatenate([self.phase, other.phase]),
            np.concatenate([self.command, other.command]),
            np.concatenate([self.holding, other.holding]),
        )

    def last(self, turns: float) -> Stretch:
        """The end of it, in turns of the drive."""
        keep = self.phase > self.phase[-1] - 2 * np.pi * turns
        return Stretch(self.samples[:, keep], self.phase[keep], self.command[keep], self.holding[keep])


class LoopRig(Protocol):
    """A rig whose drive takes corrections: the rig's process, or a simulation of it."""

    def install(self, controller: OrbitHolder) -> None:
        """Let this controller decide from now on; it goes on from the estimate of the one before."""
        ...

    def run(self, periods: float) -> Stretch:
        """Let so many periods of the drive pass and give what happened in them."""
        ...


def ticks_of(stretch: Stretch, every: int) -> Stretch:
    """The samples at which the loop decided: the command changes there."""
    if every == 1:
        return stretch
    changes = np.flatnonzero(np.diff(stretch.command)) + 1
    counts = np.bincount(changes % every, minlength=every) if len(changes) else np.zeros(every)
    first = int(np.argmax(counts))
    return Stretch(
        stretch.samples[:, first::every], stretch.phase[first::every], stretch.command[first::every],
        stretch.holding[first::every],
    )  # fmt: skip


def folded(rows: Array, phase: Array, multiple: int, nodes: int) -> Array:
    """[rows, cycles, multiple nodes] samples at the nodes of every whole cycle of ``multiple`` turns."""
    from scipy.interpolate import CubicSpline

    step = 2 * np.pi / nodes
    count = multiple * nodes
    first = int(np.ceil(phase[0] / step - 1e-6))
    first = -(-first // count) * count  # cycles begin at turns that are multiples of the orbit's
    cycles = int((np.floor(phase[-1] / step + 1e-6) - first + 1) // count)
    if cycles < 1:
        raise DataError("The stretch is shorter than one period of the orbit.")
    at = (first + np.arange(cycles * count)) * step
    at = np.clip(at, phase[0], phase[-1])
    return np.asarray(CubicSpline(phase, rows, axis=1)(at).reshape(len(rows), cycles, count))


def estimated(plant: LoopPlant, stretch: Stretch, target: Target) -> tuple[Stretch, Array]:
    """The ticks of a stretch and the estimator's states at them, begun on the target that was held."""
    ticks = ticks_of(stretch, plant.every)
    estimator = Estimator(plant).near(_begun_at(plant, ticks, target))
    states, *_ = estimator.follow(ticks.samples, ticks.phase % (2 * np.pi), ticks.command)
    return ticks, states


def _begun_at(plant: LoopPlant, ticks: Stretch, target: Target) -> Array:
    """The target's states at the first tick, turned by the whole periods that the channels show."""
    count = target.states.shape[1]
    shown = outputs_along(plant, target.states, target.multiple)[plant.rows]
    place = np.rint(ticks.phase[:count] / (2 * np.pi) * plant.nodes).astype(np.int64)
    shifts = range(0, count, plant.nodes)
    seen = ticks.samples[:, : len(place)] / plant.noise[:, None]
    away = [np.nanmean((seen - shown[:, (place + s) % count] / plant.noise[:, None]) ** 2) for s in shifts]
    best = list(shifts)[int(np.argmin(away))]
    return np.asarray(target.states[:, (place[0] + best) % count])
