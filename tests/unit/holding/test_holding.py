"""A whole hold on a simulated specimen that is not the model: what passes is an orbit of the specimen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis.dynamics.shooting import PeriodicOrbit, periodic_orbit
from analysis.dynamics.tone_drive import driven_by_a_tone
from analysis.holding.hold import HeldOrbit, Holding
from analysis.holding.holder import Estimator, OrbitHolder
from analysis.holding.linearise import linearise
from analysis.holding.plant import ActuatorPath, LoopPlant
from analysis.holding.stretch import Stretch
from analysis.holding.target import Target
from analysis.model import Model
from analysis.simulation.simulate import simulate

Array = NDArray[np.float64]

NODES = 25
NOISE = 2e-3
BEAM = """
name = "Beam"
[states]
x = "w*v"
v = "w*(-c*v + k*x - b*x**3 + f)"
[inputs]
f = "measured"
[parameters]
w = 6.283185307179586
c = 0.3
k = 0.4
b = 1.0
"""


class SimulatedRig:
    """The specimen is carried on by the estimator's equations, whose samples are no numbers."""

    def __init__(self, plant: LoopPlant, start: Array, seed: int, lost: float = 0.0) -> None:
        self._rng = np.random.default_rng(seed)
        self._specimen = Estimator(replace(plant, process=1e-12))
        self._specimen.y[:, -1] = start
        self._start, self._plant, self._missed = start, plant, lost
        self._holder: OrbitHolder | None = None
        self._index, self._command = 0, 0.0

    def install(self, holder: OrbitHolder) -> None:
        if self._holder is not None:
            holder.adopt(self._holder)
        self._holder = holder

    def run(self, periods: float) -> Stretch:
        assert self._holder is not None
        count = round(periods * NODES)
        x, commands, holding = np.empty((1, count)), np.empty(count), np.empty(count, dtype=bool)
        phase = 2 * np.pi * (self._index + np.arange(count)) / NODES
        for j in range(count):
            theta = float(phase[j] % (2 * np.pi))
            self._specimen.step(np.array([np.nan]), theta, self._command)
            if not np.abs(self._specimen.states).max() < 1.2:  # away for good: as chaos would, it comes back
                self._specimen.y[:, -1] = self._start
            x[0, j] = self._specimen.states[0] + NOISE * self._rng.standard_normal()
            wanted = self._holder.step(x[:, j], theta, self._command)
            if self._rng.random() >= self._missed:
                self._command = wanted
            commands[j], holding[j] = self._command, self._holder.holding
        self._index += count
        return Stretch(x, phase, commands, holding)


def _plant(gain: float = 0.15, delay: float = 0.04, **values: float) -> LoopPlant:
    model = Model.from_toml(BEAM).with_values(values)
    path = ActuatorPath(gain, 0.004, delay)
    return LoopPlant(
        model, ("x",), np.array([NOISE]), 1.0, float(NODES), 2.0, np.array([0.0, 0.3, 0.0]), path,
        np.array([0.6, 0.5]), 3e-3,
    )  # fmt: skip


def _hilltop(plant: LoopPlant) -> PeriodicOrbit:
    """The unstable orbit between the wells."""
    model = driven_by_a_tone(plant.model, 1.0, 0.3)
    angle = 2 * np.pi * np.arange(8) / 8
    along = 0.2 * np.array([-np.cos(angle), np.sin(angle)]) + 1e-3
    orbit = periodic_orbit(model, along[:, 0], 1.0, segments=8, along=along)
    assert orbit.converged
    return orbit


def _target(plant: LoopPlant, orbit: PeriodicOrbit) -> Target:
    model = driven_by_a_tone(plant.model, 1.0, 0.3)
    states = simulate(model, np.arange(NODES) / NODES, orbit.state, rtol=1e-11).states
    return Target(1, states, orbit.multipliers)


def _hold(known: LoopPlant, specimen: LoopPlant, missed: float = 0.005) -> HeldOrbit:
    target = _target(known, _hilltop(known))
    rig = SimulatedRig(specimen, target.states[:, 0], 3, missed)
    rng = np.random.default_rng(5)  # the parameters as uncertain as they are wrong
    draws = [known.model.values() + rng.normal(0, [0, 0.02, 0.02, 0.1]) for _ in range(20)]
    return Holding(rig, known, target, draws, longest_wait=60).run(60)


def test_when_the_specimen_differs_from_the_model_then_its_own_orbit_is_held() -> None:
    known = _plant(gain=0.1515, delay=0.032)
    specimen = _plant(c=0.32, k=0.42, b=1.15)
    held = _hold(known, specimen)
    assert held.verdict == "held", held.reason
    truth = _target(specimen, _hilltop(specimen))
    # 60 periods: the plain average would be 0.13 of the noise away
    assert np.sqrt(np.mean((held.orbit[0] - truth.states[0]) ** 2)) < 0.1 * NOISE
    assert np.sqrt(np.mean((held.orbit[0] - _target(known, _hilltop(known)).states[0]) ** 2)) > NOISE
    assert np.median(np.abs(held.orbit[0] - truth.states[0]) / held.band[0]) < 3
    away = abs(held.multipliers[0] - truth.multipliers[0])
    assert away < 3 * held.multiplier_errors[0] and away < 0.1 * abs(truth.multipliers[0])
    assert np.allclose(linearise(specimen, truth.states).multipliers[0], truth.multipliers[0], rtol=1e-3)


@pytest.mark.parametrize(
    ("changed", "delay"),
    [
        ({"k": -1.6}, 0.04),  # one well: the orbit between two is the model's alone
        ({}, 0.45),  # a loop much slower than it says
    ],
)
def test_when_only_the_model_has_the_orbit_or_the_loop_swings_by_itself_then_it_is_not_held(
    changed: dict[str, float], delay: float
) -> None:
    known = _plant()
    found = _hold(known, _plant(delay=delay, **changed))
    assert not found.held
    assert found.verdict in ("invasive", "limit cycle", "another orbit", "lost", "not caught"), found.reason
