"""Multipliers of a specimen whose model lacks friction and a fifth power, from a record of its motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from analysis import Channel, Record, identify, prepare_subject
from analysis.dynamics.shooting import periodic_orbit
from analysis.dynamics.tone_drive import driven_by_a_tone
from analysis.holding.completed import FARTHEST, completed_models, completed_orbit
from analysis.holding.hold import HeldOrbit
from analysis.holding.linearise import linearise
from analysis.holding.plant import ActuatorPath, LoopPlant
from analysis.holding.target import Target
from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import simulate

NODES = 50
BEAM = """
name = "Beam"
[states]
x = "w*v"
v = "w*(-c*v + k*x - b*x**3 + f)MORE"
[inputs]
f = "measured"
[parameters]
w = 6.283185307179586
c = { guess = 0.1 }
k = { guess = 1.0 }
b = { guess = 1.0 }
"""
MISSED = " - w*(0.006*tanh(v/0.02) + 0.05*x**5)"


def test_when_the_model_lacks_terms_then_its_completion_has_the_multipliers_of_the_specimen() -> None:
    model = Model.from_toml(BEAM.replace("MORE", ""))
    specimen = Model.from_toml(BEAM.replace("MORE", MISSED)).with_values({"c": 0.1, "k": 1.0, "b": 1.0})
    t = np.arange(4000) / 25
    force = 0.35 * np.cos(2 * np.pi * t) + 0.1 * np.cos(2 * np.pi * 0.618 * t + 1)
    states = simulate(
        specimen, t, {"x": 1.0, "v": 0.0}, inputs=Inputs.from_samples(0, 0.04, [force], "cubic"), rtol=1e-9
    ).states
    rng = np.random.default_rng(6)
    seen = states + 2e-3 * rng.standard_normal(states.shape)
    record = Record(25.0, {n: Channel(row) for n, row in zip("xvf", (*seen, force), strict=True)})
    fit = identify(model, record, "weak", finish=False)
    subject = prepare_subject(model, record, fit.values())
    # The unstable orbit between the wells, by shooting on the specimen's own equations.
    driven = driven_by_a_tone(specimen, 1.0, 0.3)
    angle = 2 * np.pi * np.arange(8) / 8
    along = 0.15 * np.array([-np.cos(angle), np.sin(angle)]) + 1e-3
    orbit = periodic_orbit(driven, along[:, 0], 1.0, segments=8, along=along)
    assert orbit.converged
    on_it = simulate(driven, np.arange(NODES) / NODES, orbit.state, rtol=1e-11).states
    plant = LoopPlant(
        subject.model, ("x", "v"), np.full(2, 2e-3), 1.0, float(NODES), 2.0, np.array([0.0, 0.3, 0.0]),
        ActuatorPath(0.15, 0.0, 0.04), np.std(states, axis=1),
    )  # fmt: skip

    best, second = completed_models(subject, plant)

    def off(known: Model) -> float:
        found = linearise(replace(plant, model=known), on_it).multipliers[0]
        return float(abs(found / orbit.multipliers[0] - 1))

    assert off(subject.model) > 0.03
    assert off(best.model) < 0.01 and off(second.model) < 0.03
    spread = [linearise(replace(plant, model=best.model), on_it, values=v).multipliers[0] for v in best.draws]
    assert np.std(spread) < 0.01 * abs(orbit.multipliers[0])
    # Averages of v alone, and what the model that lacks terms makes of the position.
    plant = replace(plant, channels=("v",), noise=np.full(1, 2e-3))
    wrong = on_it + np.array([[0.01], [0.0]])
    held = HeldOrbit(
        Target(1, wrong, orbit.multipliers), "held", "", halves=(wrong, wrong), averaged=on_it[1:],
        averaged_band=np.full((1, NODES), 2e-4),
    )  # fmt: skip
    found = completed_orbit(plant, held, (best, second))
    assert np.abs(found.states - on_it).max() < 2e-3
    away = abs(found.multipliers[0] - orbit.multipliers[0])
    assert away < 2 * found.multiplier_errors[0] < 0.1 * abs(orbit.multipliers[0])
    assert found.away < 0.5 < FARTHEST
    elsewhere = replace(held, averaged=on_it[1:] + 0.05 * np.sign(on_it[:1]))
    assert completed_orbit(plant, elsewhere, (best, second)).away > FARTHEST
