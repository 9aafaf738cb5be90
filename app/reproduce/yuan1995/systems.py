"""The systems of chapter 3 with all the superfluous terms that are fitted, and their records."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from analysis import Excitation, Model, Record, simulate
from app.reproduce.yuan1995.comparison import Printed
from drivers.library import load_model

Array = NDArray[np.float64]

SEED = 1995


def powers(prefix: str, count: int, factor: str = "") -> str:
    """prefix1*x + prefix2*x**2 + ..., each term times ``factor``."""
    return " + ".join(f"{prefix}{i}*x**{i}{factor}" for i in range(1, count + 1))


def oscillator(
    name: str, force: str, unknown: Sequence[str], known: Printed, input_: str, guesses: Printed
) -> Model:
    guess = {n: {"guess": guesses.get(n, 0.0)} for n in unknown}
    given = {n: {"value": value} for n, value in known.items()}
    return Model.from_equations(
        {"x": "v", "v": f"({force})/m"}, {**guess, **given}, name=name, inputs={"f": input_}
    )


@lru_cache(maxsize=4)
def states_of(name: str, samples: int, step: float, skipped: int) -> Array:
    """A library model's motion at its own values, after ``skipped`` samples, which must be whole periods."""
    model = load_model(name)
    return simulate(model, np.asarray(step * np.arange(samples + skipped), dtype=np.float64)).states[
        :, skipped:
    ]


def forced_record(name: str, drive: float, noise: float = 0.0, samples: int = 50_000) -> Record:
    """x and v of a library model, 100 samples a drive period; ``drive`` is the circular frequency."""
    step = 2 * np.pi / drive / 100
    states = states_of(name, samples, step, 5000)
    return noisy_record(("x", "v"), states, step, noise, Excitation(drive / (2 * np.pi), phase=0.0))


def noisy_record(
    names: Sequence[str], states: Array, step: float, noise: float, drive: Excitation | None = None
) -> Record:
    rng = np.random.default_rng(SEED)
    added = noise * np.abs(states).max(axis=1, keepdims=True) * rng.uniform(-1, 1, states.shape)
    return Record.from_arrays(1 / step, dict(zip(names, states + added, strict=True)), excitation=drive)
