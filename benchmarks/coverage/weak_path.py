"""Weak form, path, and the automatic choice: all states measured in white noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from analysis.model import Model
from analysis.record import Record
from analysis.simulation import simulate
from benchmarks.coverage.core import Case
from drivers.library import load_model


def simulated(
    name: str, seconds: float, rate: float, decibels: float, free: tuple[str, ...], method: str = "weak"
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


def lorenz(decibels: float, method: str = "weak") -> Case:
    return simulated("lorenz", 20, 100, decibels, ("sigma", "rho", "beta"), method)


def duffing(decibels: float, method: str = "weak") -> Case:
    return simulated("duffing", 60, 20, decibels, load_model("duffing").free, method)


def miura(decibels: float) -> Case:
    from app.reproduce.liu2018 import miura_case

    truth = load_model("miura_ori_measured")

    def draw(seed: int) -> tuple[Model, Record]:
        _, record = miura_case(decibels, seed)
        near = {name: 1.1 * truth.parameters[name].value for name in truth.free}
        return truth.with_values(near), record.cut(0, 2000)

    about = f"{truth.name}, 2 s at 1000 Hz, {decibels:g} dB"
    return Case(draw, {name: truth.parameters[name].value for name in truth.free}, about=about)


def plain(case: Case) -> Case:
    """The weak form by itself, without the finish by maximum likelihood."""
    return replace(case, options={"finish": False}, about=f"{case.about}, not finished")


CASES: dict[str, Callable[[], Case]] = {
    "lorenz-30": lambda: lorenz(30),
    "lorenz-20": lambda: lorenz(20),
    "duffing-30": lambda: duffing(30),
    "duffing-20": lambda: duffing(20),
    "auto-lorenz-20": lambda: lorenz(20, "auto"),
    "miura-30": lambda: miura(30),
    "miura-20": lambda: miura(20),
}
