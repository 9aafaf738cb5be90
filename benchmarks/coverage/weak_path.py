"""The default method (weak form, finished by the path) in white noise of sensors and of a measured force."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from analysis.base.record import Record
from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import simulate
from benchmarks.coverage.core import Case
from drivers.library import load_model


def simulated(
    name: str, seconds: float, rate: float, decibels: float, free: tuple[str, ...], method: str = "auto"
) -> Case:
    """A model of the library with all states measured in white noise, guesses 20 % off."""
    model = load_model(name).with_free(free)
    truth = {parameter: model.parameters[parameter].value for parameter in free}
    times = np.arange(int(seconds * rate)) / rate
    start = np.array([model.initial[s].value if s in model.initial else 0.1 for s in model.states])
    clean = simulate(model, times, start, rtol=1e-10, atol=1e-12).states
    noise = clean.std(axis=1, keepdims=True) * 10 ** (-decibels / 20)

    def draw(seed: int) -> tuple[Model, Record]:
        rng = np.random.default_rng(seed)
        data = clean + noise * rng.standard_normal(clean.shape)
        guess = {p: v * (1 + 0.2 * rng.choice([-1.0, 1.0])) for p, v in truth.items()}
        return model.with_values(guess), Record.from_arrays(rate, dict(zip(model.states, data, strict=True)))

    return Case(draw, truth, method, f"{model.name}, {seconds:g} s at {rate:g} Hz, {decibels:g} dB")


def lorenz(decibels: float) -> Case:
    return simulated("lorenz", 20, 100, decibels, ("sigma", "rho", "beta"))


def duffing(decibels: float) -> Case:
    return simulated("duffing", 60, 20, decibels, load_model("duffing").free)


def miura(decibels: float) -> Case:
    from app.reproduce.liu2018 import miura_case

    truth = load_model("miura_ori_measured")

    def draw(seed: int) -> tuple[Model, Record]:
        _, record = miura_case(decibels, seed)
        near = {name: 1.1 * truth.parameters[name].value for name in truth.free}
        return truth.with_values(near), record.cut(0, 2000)

    about = f"{truth.name}, 2 s at 1000 Hz, {decibels:g} dB"
    return Case(draw, {name: truth.parameters[name].value for name in truth.free}, "auto", about)


def random_force(noise: float) -> Case:
    """A Duffing oscillator under a random force; displacement in 0.5 % noise, the force in its own."""
    truth = {"c": 0.2, "k1": 1.0, "k3": 1.0, "g": 1.0}
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k1*x - k3*x**3 + g*f"},
        {name: {"guess": 1.2 * value} for name, value in truth.items()},
        inputs={"f": "measured"},
        outputs={"x": "x"},
    )
    times = np.arange(1500) * 0.05
    rng = np.random.default_rng(100)
    frequencies, phases = rng.uniform(0.02, 0.5, 40), rng.uniform(0, 2 * np.pi, 40)
    force = 0.6 * np.cos(2 * np.pi * frequencies[:, None] * times + phases[:, None]).sum(axis=0)
    inputs = Inputs.from_samples(0.0, 0.05, force[None])
    clean = simulate(model, times, np.array([0.5, 0.0]), truth, inputs, rtol=1e-10, atol=1e-12).states[0]

    def draw(seed: int) -> tuple[Model, Record]:
        rng = np.random.default_rng(seed)
        x = clean + 0.005 * clean.std() * rng.standard_normal(len(clean))
        f = force + noise * force.std() * rng.standard_normal(len(force))
        return model, Record.from_arrays(20.0, {"x": x, "f": f})

    about = f"Duffing oscillator, 75 s at 20 Hz, 0.5 % noise, measured random force in {100 * noise:g} %"
    return Case(draw, truth, "auto", about)


CASES: dict[str, Callable[[], Case]] = {
    "lorenz-30": lambda: lorenz(30),
    "lorenz-20": lambda: lorenz(20),
    "duffing-30": lambda: duffing(30),
    "duffing-20": lambda: duffing(20),
    "miura-30": lambda: miura(30),
    "miura-20": lambda: miura(20),
    "random-force-1": lambda: random_force(0.01),
    "random-force-5": lambda: random_force(0.05),
}
