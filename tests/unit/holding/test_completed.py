"""Multipliers of a specimen whose model lacks friction and a fifth power, from a record of its motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from analysis import Channel, Record, Subject, identify, prepare_subject
from analysis.dynamics.shooting import periodic_orbit
from analysis.dynamics.tone_drive import driven_by_a_tone
from analysis.holding.completed import FARTHEST, completed_models, completed_orbit
from analysis.holding.hold import HeldOrbit
from analysis.holding.linearise import linearise
from analysis.holding.mode_tones import tones_of_modes
from analysis.holding.plant import ActuatorPath, LoopPlant, Mode
from analysis.holding.target import Target
from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import simulate

NODES, NOISE = 50, 2e-3
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


def _seen() -> tuple[Model, Record, np.ndarray]:
    """The specimen, its record with noise, and the spread of its states."""
    specimen = Model.from_toml(BEAM.replace("MORE", MISSED)).with_values({"c": 0.1, "k": 1.0, "b": 1.0})
    t = np.arange(4000) / 25
    force = 0.35 * np.cos(2 * np.pi * t) + 0.1 * np.cos(2 * np.pi * 0.618 * t + 1)
    states = simulate(
        specimen, t, {"x": 1.0, "v": 0.0}, inputs=Inputs.from_samples(0, 0.04, [force], "cubic"), rtol=1e-9
    ).states
    rng = np.random.default_rng(6)
    seen = states + NOISE * rng.standard_normal(states.shape)
    rows = zip("xvf", (*seen, force), strict=True)
    return specimen, Record(25.0, {n: Channel(row) for n, row in rows}), np.std(states, axis=1)


def _plant(subject: Subject, spread: np.ndarray, *modes: Mode) -> LoopPlant:
    return LoopPlant(
        subject.model, ("x", "v"), np.full(2, NOISE), 1.0, float(NODES), 2.0, np.array([0.0, 0.3, 0.0]),
        ActuatorPath(0.15, 0.0, 0.04), spread, modes=modes,
    )  # fmt: skip


def test_when_the_model_lacks_terms_then_its_completion_has_the_multipliers_of_the_specimen() -> None:
    model = Model.from_toml(BEAM.replace("MORE", ""))
    specimen, record, spread = _seen()
    fit = identify(model, record, "weak", finish=False)
    subject = prepare_subject(model, record, fit.values())
    # The unstable orbit between the wells, by shooting on the specimen's own equations.
    driven = driven_by_a_tone(specimen, 1.0, 0.3)
    angle = 2 * np.pi * np.arange(8) / 8
    along = 0.15 * np.array([-np.cos(angle), np.sin(angle)]) + 1e-3
    orbit = periodic_orbit(driven, along[:, 0], 1.0, segments=8, along=along)
    assert orbit.converged
    on_it = simulate(driven, np.arange(NODES) / NODES, orbit.state, rtol=1e-11).states
    plant = _plant(subject, spread)

    best, second = completed_models(subject, plant)

    def off(known: Model) -> float:
        found = linearise(replace(plant, model=known), on_it).multipliers[0]
        return float(abs(found / orbit.multipliers[0] - 1))

    assert off(subject.model) > 0.03
    assert off(best.model) < 0.01 and off(second.model) < 0.03
    drawn = [linearise(replace(plant, model=best.model), on_it, values=v).multipliers[0] for v in best.draws]
    assert np.std(drawn) < 0.01 * abs(orbit.multipliers[0])
    # Averages of v alone, and what the model that lacks terms makes of the position.
    plant = replace(plant, channels=("v",), noise=np.full(1, NOISE))
    best, second = (replace(one, tones=one.tones[1:]) for one in (best, second))
    wrong = on_it + np.array([[0.01], [0.0]])
    held = HeldOrbit(
        Target(1, wrong, orbit.multipliers), "held", "", averaged=on_it[1:],
        averaged_halves=(on_it[1:], on_it[1:]), averaged_band=np.full((1, NODES), 2e-4),
    )  # fmt: skip
    found = completed_orbit(plant, held, (best, second))
    assert np.abs(found.states - on_it).max() < 2e-3
    away = abs(found.multipliers[0] - orbit.multipliers[0])
    assert away < 2 * found.multiplier_errors[0] < 0.1 * abs(orbit.multipliers[0])
    assert found.away < 0.5 < FARTHEST
    z = []
    for seed in range(12):
        off = 2e-4 * np.random.default_rng(seed).standard_normal((2, 1, NODES)) * np.sqrt(2)
        drawn = replace(held, averaged=on_it[1:] + off.mean(axis=0), averaged_halves=tuple(on_it[1:] + off))
        again = completed_orbit(plant, drawn, (best, second))
        z.append((again.shown - on_it[1:]) / again.band)
    assert 0.6 < np.sqrt(np.mean(np.square(z))) < 1.2
    # A smooth path that the model follows with a little help, and that is no orbit of its own.
    ghost = replace(held, averaged=on_it[1:] + 4 * NOISE * np.sin(2 * np.pi * np.arange(NODES) / NODES))
    assert completed_orbit(plant, ghost, (best, second)).away > 2 * FARTHEST
    elsewhere = replace(held, averaged=on_it[1:] + 0.05 * np.sign(on_it[:1]))
    assert completed_orbit(plant, elsewhere, (best, second)).away > FARTHEST


def test_when_a_mode_is_known_to_percents_then_the_record_tells_what_it_adds() -> None:
    """The mode of the dither test adds a tone that is 6 and 9 times the noise off."""
    specimen, record, spread = _seen()
    tones = np.array([0.05 - 0.01j, -0.02 + 0.04j])
    turn = np.exp(2j * np.pi * np.arange(len(record)) / record.rate)
    added = {c: record[c] + (tone * turn).real for c, tone in zip("xv", tones, strict=True)}
    record = record.with_channels(**added)
    model = Model.from_toml(BEAM.replace("MORE", ""))
    subject = replace(prepare_subject(model, record, {"c": 0.1, "k": 1.0, "b": 1.0}), base=1.0)
    mode = Mode(40.0, 0.01, ((204.0, 0.0), (-60.0, 22.0)))  # mainly x's place and v's speed
    plant = _plant(subject, spread, mode)
    off = np.abs(tones_of_modes(plant) - tones)
    assert (off > 4 * NOISE).all()

    best = completed_models(subject, plant)[0]

    assert np.abs(tones_of_modes(plant) + best.tones - tones).max() < 0.2 * NOISE
    x = np.array([[0.3, -0.2, 0.8], [0.1, 0.4, -0.3]])
    here, there = (_accelerations(one, x) for one in (best.model, specimen))
    assert np.abs(here - there).max() < 0.02 * np.abs(there).max()


def _accelerations(model: Model, states: np.ndarray) -> np.ndarray:
    found, rate = [], np.empty(2)
    for state in states.T:
        model.kernels().rhs(0.0, np.ascontiguousarray(state), np.zeros(1), model.values(), rate)
        found.append(rate[1])
    return np.array(found)
