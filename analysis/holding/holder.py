"""The controller that holds an orbit: estimate, catch, correct, sample by sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.holding import step as s
from analysis.holding.kernel_address import addresses
from analysis.holding.linearise import timing_of
from analysis.holding.plant import LoopPlant
from analysis.holding.regulator import WEIGHT, Regulator
from analysis.holding.target import Target

Array = NDArray[np.float64]

FINE = 4  # columns of the orbit's table for one node: with cubics between them nothing is lost
BOUND = 0.5  # largest correction, of the drive's amplitude
NEAR, FAR = 0.35, 0.8  # distance (of the states' spread) to be caught and to be lost
SHARE = 1.0  # of what the bound can pay that a deviation may cost to be caught


class Estimator:
    """The Kalman filter of a plant, with its memory. ``step`` takes a tick's samples in."""

    def __init__(self, plant: LoopPlant) -> None:
        self.plant = plant
        self._build()

    def _build(self) -> None:
        plant = self.plant
        n, q, k = len(plant.model.states), len(plant.model.outputs), len(plant.model.parameters)
        size = n + 2 * len(plant.modes)
        self._kernels = plant.model.kernels()  # kept: the addresses are theirs
        self._functions = addresses(self._kernels)
        self._p = np.ascontiguousarray(plant.model.values())
        self._timing, self.whole = timing_of(plant, plant.tick)
        self._force = np.ascontiguousarray(plant.force)
        self._process, self._modes = plant.process_noise, plant.mode_table
        self._noise, self._rows = np.ascontiguousarray(plant.noise), plant.rows
        self.history = np.zeros(self.whole + 2)
        self.y, self.own = np.zeros((size, size + 4)), np.zeros(size + 4)
        spread = np.concatenate([plant.scale, plant.mode_scale])
        self.S = np.diag(spread**2)
        self.memory = np.zeros(11)
        self.begun = False
        self.fixed = (  # arguments that stay the same
            self._functions, self._p, self._timing, self._force, self._process, self._modes, self.history,
            self.y, self.S, self.own, self._noise, self._rows, self.memory, np.empty((size, size)),
            np.empty((size, size)), np.empty((3, size, size + 4)), np.empty(n),
            np.empty(1), np.empty(n), np.empty((n, n)), np.empty((n, k)), np.empty((n, 1)), np.empty(q),
            np.empty((q, n)), np.empty((q, k)), spread,
        )  # fmt: skip

    @property
    def states(self) -> Array:
        """The estimate of the model's states now."""
        return np.asarray(self.y[: len(self.plant.model.states), -1])

    def near(self, states: Array) -> Estimator:
        """Begin near these states [n]; the estimator itself."""
        self.y[: len(states), -1] = states
        self.S *= NEAR**2
        return self

    def step(self, samples: Array, theta: float, applied: float) -> None:
        """Take in the samples of this tick at phase ``theta``; ``applied``: the last command, in volts."""
        s.estimate(samples, theta, applied, self.begun, *self.fixed)
        self.begun = True

    def follow(self, samples: Array, thetas: Array, commands: Array) -> tuple[Array, float, float]:
        """States [n, N] over ticks of a record; minus two log likelihoods and squared misses a sample.

        ``commands[j]`` is what went out at tick j. The first tenth is left out of the two sums.
        """
        count = samples.shape[1]
        states = np.empty((len(self.plant.model.states), count))
        likelihood = misses = 0.0
        rows = np.ascontiguousarray(samples.T)
        skip = count // 10
        for j in range(count):
            self.step(rows[j], float(thetas[j]), float(commands[j - 1]) if j else 0.0)
            states[:, j] = self.states
            if j >= skip:
                likelihood += self.memory[s.INNOVATION]
                misses += self.memory[s.SEEN]
        seen = max(1, int(np.isfinite(samples[:, skip:]).sum()))
        return states, likelihood / seen, misses / seen

    def adopt(self, other: Estimator) -> None:
        """Go on from where another estimator of the same plant stands."""
        if other.y.shape != self.y.shape:
            return
        for mine, theirs in ((self.y, other.y), (self.own, other.own), (self.S, other.S)):
            mine[:] = theirs
        count = min(len(self.history), len(other.history))
        self.history[:count] = other.history[:count]
        for place in (s.PHASE, s.TURN, s.COMMAND):
            self.memory[place] = other.memory[place]
        self.begun = other.begun

    def __getstate__(self) -> dict[str, Any]:
        return {"plant": self.plant}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.plant = state["plant"]
        self._build()


class OrbitHolder:
    """Holds one orbit: a controller as the rig's process runs it (see drivers.base.protocols.Controller)."""

    def __init__(
        self,
        plant: LoopPlant,
        target: Target,
        regulator: Regulator,
        active: bool = True,
        weight: float = WEIGHT,
    ) -> None:
        self.plant, self.target, self.regulator = plant, target, regulator
        self.active, self._weight = active, weight
        self._build()

    def _build(self) -> None:
        plant, target = self.plant, self.target
        self.channels = plant.channels
        self.bound = BOUND * plant.amplitude
        self.estimator = Estimator(plant)
        self._table = upsampled(target.states, FINE)
        first = plant.rows[0]
        self._shown = np.ascontiguousarray(outputs_along(plant, self._table, target.multiple)[first][None, :])
        cost = SHARE * self._weight * BOUND**2
        self._rules = np.array(
            [
                target.multiple, plant.nodes, self.estimator.whole, plant.amplitude, self.bound, NEAR, FAR,
                cost, plant.path.gain * plant.amplitude, float(self.active),
            ]
        )  # fmt: skip
        gains, costs = self.regulator.gains, self.regulator.costs
        self._fixed = (
            *self.estimator.fixed, self._rules, self._table, self._shown, FINE,
            np.ascontiguousarray(plant.scale), np.ascontiguousarray(gains), np.ascontiguousarray(costs),
            np.zeros(gains.shape[1]), np.zeros(len(plant.scale)), np.zeros(1),
        )  # fmt: skip
        self._tick = 0

    def step(self, samples: Array, phase: float, applied: float) -> float:
        """The correction in volts from the samples of this moment, in the order of ``channels``."""
        self._tick += 1
        if (self._tick - 1) % self.plant.every:
            return float(self.estimator.memory[s.COMMAND])
        begun, self.estimator.begun = self.estimator.begun, True
        return s.decide(samples, phase, applied, begun, *self._fixed)

    def prepare(self) -> None:
        """Have everything compiled and in memory before the first sample counts."""
        twin = OrbitHolder(self.plant, self.target, self.regulator, False, self._weight)
        twin.step(np.zeros(len(self.channels)), 0.0, 0.0)
        twin.step(np.zeros(len(self.channels)), 0.0, 0.0)

    @property
    def holding(self) -> bool:
        return bool(self.estimator.memory[s.STATE] == s.HOLDING)

    @property
    def losses(self) -> int:
        """How often the orbit was lost."""
        return int(self.estimator.memory[s.LOSSES])

    @property
    def shown(self) -> float:
        """The target of the first channel at this moment, as recorded."""
        return float(self.estimator.memory[s.SHOWN])

    def adopt(self, other: object) -> None:
        """Take over the estimate of another controller, and the hold if it is of the same period."""
        if not isinstance(other, OrbitHolder):
            return
        self.estimator.adopt(other.estimator)
        self._tick = other._tick
        if other.target.multiple == self.target.multiple and self.active and other.holding:
            for place in (s.STATE, s.SHIFT):
                self.estimator.memory[place] = other.estimator.memory[place]

    def __getstate__(self) -> dict[str, Any]:
        return {
            "plant": self.plant, "target": self.target, "regulator": self.regulator, "active": self.active,
            "weight": self._weight,
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.plant, self.target, self.regulator = state["plant"], state["target"], state["regulator"]
        self.active, self._weight = state["active"], state["weight"]
        self._build()


def upsampled(states: Array, factor: int) -> Array:
    """A periodic row with ``factor`` columns for one, through all of them (trigonometric)."""
    count = states.shape[1]
    spectrum = np.fft.rfft(states, axis=1)
    if count % 2 == 0:
        spectrum[:, -1] *= 0.5
    return np.ascontiguousarray(np.fft.irfft(spectrum, factor * count, axis=1) * factor)


def outputs_along(plant: LoopPlant, states: Array, multiple: int) -> Array:
    """[outputs, K] the model's outputs along an orbit of ``multiple`` periods at evenly spaced phases."""
    count = states.shape[1]
    theta = 2 * np.pi * multiple * np.arange(count) / count
    force = base_forces(plant, theta)[None, :]
    out = np.empty((len(plant.model.outputs), count))
    plant.model.kernels().out_many(
        np.zeros(count), np.ascontiguousarray(states), np.ascontiguousarray(force), plant.model.values(), out
    )
    return out


def base_forces(plant: LoopPlant, theta: Array | Sequence[float]) -> Array:
    """The force of the drive itself at phases."""
    angle = np.asarray(theta, dtype=np.float64)
    total = np.full(len(angle), plant.force[0])
    for k in range(1, (len(plant.force) + 1) // 2):
        total += plant.force[2 * k - 1] * np.cos(k * angle) + plant.force[2 * k] * np.sin(k * angle)
    return total
