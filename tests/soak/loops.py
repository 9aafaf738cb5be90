"""Controllers in each state that a control loop can be in, for :mod:`tests.soak.stops`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.holding.dither import Dither
from analysis.holding.holder import OrbitHolder
from analysis.holding.linearise import linearise
from analysis.holding.plant import ActuatorPath, LoopPlant
from analysis.holding.regulator import regulate
from analysis.holding.target import Target
from analysis.tracking.linear_test import LinearPlant
from analysis.tracking.tracker import Goal, Task, Tracker
from drivers.library import load_model

FREQUENCY = 50.0  # Hz, of the drive
VOLTS = 1.0  # of the drive, and the most that a tracker sends
DELAY = 0.005  # s
BEAM = {"c": 0.035, "k1": -0.28, "k2": 0.178, "k3": 0.336, "k4": -0.064}


class Hanging(Dither):
    """Corrects for a while, then does not come back from a sample for longer than a STOP may take."""

    def step(self, samples: NDArray[np.float64], phase: float, applied: float) -> float:
        if self._place == len(self._sequence) - 1:
            time.sleep(1.0)
        return super().step(samples, phase, applied)


def controller(kind: str, rate: float) -> Any:
    """A controller for the two-well beam at FREQUENCY that will be in the state ``kind``."""
    pushing = 0.2 * np.array([1, -1, 0.5])
    if kind == "dither":
        return Dither(("x",), pushing)
    if kind == "hanging":
        return Hanging(("x",), np.tile(pushing, 10))
    if kind == "tracking":  # a response that is never reached: all that it may send
        plant = LinearPlant(rate, FREQUENCY, 0.01, 1.0, 0, DELAY, 0.0, 0.1)
        task = Task(True, False, 10.0, 40.0, 60.0, VOLTS)
        return Tracker(plant, task, ("x", "f"), Goal(10.0, plant.lag), Goal(0.0, plant.lag), 5.0)
    return _holder(rate, holding=kind == "holding")


def _holder(rate: float, holding: bool) -> OrbitHolder:
    """An orbit in one of the wells: near wherever the beam is, or far from it."""
    model = load_model("beam_on_shaker").with_values(BEAM)
    spread = np.full(2, 10.0 if holding else 0.01)
    plant = LoopPlant(
        model, ("x", "v"), np.array([2e-4, 3e-4]), FREQUENCY, rate, VOLTS, np.array([0.0, 0.16667, 0.0]),
        ActuatorPath(0.16667, 0.0, DELAY), spread,
    )  # fmt: skip
    states = np.zeros((2, plant.nodes))
    states[0] = 0.75 if holding else 3.0
    return OrbitHolder(plant, Target(1, states, np.array([0.5, 0.5], complex)), _regulator(plant, states))


def _regulator(plant: LoopPlant, states: NDArray[np.float64]) -> Any:
    return regulate(linearise(plant, states))
