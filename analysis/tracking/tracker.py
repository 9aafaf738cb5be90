"""The controller that keeps a specimen on a branch of periodic motions while a goal moves along it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.tracking import step as s
from analysis.tracking.linear_test import LinearPlant

Array = NDArray[np.float64]

FILTER = 0.3  # rate of the adaptive filters over the drive's angular frequency, at most
DELAYED = 0.25  # the same times the loop's delay, at most
HARMONICS = 5  # that the filters follow, where the sample rate lets them
SAMPLES_A_HARMONIC = 6  # in a period, at least
GRACE = 8.0  # turns in which the filters fill before the phase is acted upon
LONGEST_DELAY = 0.3  # periods: with a slower loop the gains are too small for most folds
RUNAWAY = 1.5  # response over the largest that is asked for at which the drive ends


@dataclass(frozen=True)
class Goal:
    """Where on the branch to stay: amplitude held (response or force), phase of the response, frequency."""

    amplitude: float
    phase: float = 0.0  # rad, response behind force; of no use where the frequency is given
    frequency: float = 0.0  # Hz; of no use where the phase decides


@dataclass(frozen=True)
class Task:
    """What is held by what: one of the three experiments."""

    by_frequency: bool  # the phase by the drive's frequency; else by the phase of the drive itself
    holds_force: bool  # the force's amplitude; else the response's
    most: float  # largest response amplitude that will be asked for
    lowest: float  # Hz
    highest: float
    bound: float  # V, of the drive


class Tracker:
    """Controller as the rig's process runs it (see drivers.rig.loop.Controller)."""

    def __init__(
        self, plant: LinearPlant, task: Task, channels: tuple[str, str], goal: Goal, before: Goal, ramp: float
    ) -> None:
        """``ramp``: periods in which the goal moves to ``goal`` from ``before``."""
        self.plant, self.task, self.channels = plant, task, channels
        self.goal, self.before, self.ramp = goal, before, ramp
        self._build()

    def _build(self) -> None:
        plant, task, goal, before = self.plant, self.task, self.goal, self.before
        self.bound = task.bound
        frequency = plant.frequency if task.by_frequency else goal.frequency
        self._rules = rules_of(plant, task, frequency)
        self._goal = np.array(
            [
                before.amplitude, goal.amplitude, before.phase, goal.phase, before.frequency, goal.frequency,
                self.ramp * plant.rate / frequency,
            ]
        )  # fmt: skip
        self.memory = np.zeros(15)
        self.memory[s.OMEGA] = self.memory[s.PHASE_SUM] = 2 * np.pi * frequency
        self.memory[s.FADE] = 1.0
        count = harmonics_for(plant.rate / (task.highest if task.by_frequency else frequency))
        self._response = np.zeros(count + 1, dtype=np.complex128)
        self._force = np.zeros(count + 1, dtype=np.complex128)

    def step(self, samples: Array, phase: float, applied: float) -> float:
        """The drive in volts from the samples of response and force."""
        return float(s.track(samples, self._rules, self._goal, self.memory, self._response, self._force))

    def prepare(self) -> None:
        """Have everything compiled before the first sample counts."""
        Tracker(self.plant, self.task, self.channels, self.goal, self.before, self.ramp).step(
            np.zeros(2), 0.0, 0.0
        )

    @property
    def holding(self) -> bool:
        return self.memory[s.LOST] == 0.0

    @property
    def shown(self) -> float:
        """The response that is wanted now: its phase is the loop's own."""
        level, theta = self.memory[s.LEVEL], self.memory[s.THETA]
        if not self.task.by_frequency:
            return float(level * np.cos(theta))
        size = abs(self._response[1]) if self.task.holds_force else level
        return float(size * np.cos(theta + np.angle(self._force[1]) + self.memory[s.PHASE_GOAL]))

    def adopt(self, other: object) -> None:
        """Go on from filters, phase, sums and drive of the tracker before it."""
        if not isinstance(other, Tracker) or other.task.by_frequency != self.task.by_frequency:
            return
        self.memory[:] = other.memory
        self.memory[s.PASSED] = 0.0
        if len(other._response) == len(self._response):
            self._response[:], self._force[:] = other._response, other._force

    def __getstate__(self) -> dict[str, Any]:
        names = ("plant", "task", "channels", "goal", "before", "ramp")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._build()


def harmonics_for(samples_a_period: float) -> int:
    """Harmonics that the filters follow at so many samples a period."""
    return int(np.clip(samples_a_period / SAMPLES_A_HARMONIC, 1, HARMONICS))


def filter_rate(plant: LinearPlant, frequency: float) -> float:
    """Rate of the adaptive filters in 1/s: as fast as the period and the loop's delay allow."""
    return min(FILTER * 2 * np.pi * frequency, DELAYED / max(plant.delay, 1e-9))


def rules_of(plant: LinearPlant, task: Task, frequency: float) -> Array:
    """Gains from the linear test.

    Amplitude and phase of a resonance follow drive and frequency as 1/(s + d); with a filter of rate a the
    proportional gain a/2 gives a damping of 0.7, the integral a quarter of that.
    """
    rate = filter_rate(plant, frequency)
    proportional = 0.5 * rate
    integral = 0.25 * proportional**2
    rules = np.zeros(17)
    rules[s.MODE] = s.BY_FREQUENCY if task.by_frequency else s.BY_FORCE
    rules[s.HELD] = s.FORCE if task.holds_force else s.RESPONSE
    rules[s.RATE], rules[s.FILTER] = plant.rate, rate
    rules[s.PROPORTIONAL], rules[s.INTEGRAL] = proportional, integral
    rules[s.PHASE_PROPORTIONAL], rules[s.PHASE_INTEGRAL] = 0.5 * proportional, integral
    rules[s.BOUND] = task.bound
    growth = plant.growth(frequency)
    rules[s.GAIN], rules[s.TURN], rules[s.DAMPING] = abs(growth), np.angle(growth), plant.decay
    if task.holds_force:  # the path has no memory: the sum alone holds it
        rules[s.PROPORTIONAL], rules[s.INTEGRAL] = 0.0, rate / 6
        rules[s.GAIN], rules[s.DAMPING] = plant.force_gain, 1.0
    rules[s.LOWEST], rules[s.HIGHEST] = task.lowest, task.highest
    rules[s.SKEW], rules[s.MOST], rules[s.GRACE] = plant.skew, RUNAWAY * task.most, GRACE
    return rules
