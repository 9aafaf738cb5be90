"""What the tables of the three systems share: records, guesses at the bounds, misfits."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from analysis import Identification, Model, Record, identify, simulate
from app.reproduce.rows import Row, least
from drivers.library import load_model

GLOBAL = {"GA": "genetic", "PSO": "particle_swarm"}
SEED = 2020


@lru_cache(maxsize=8)
def clean_record(name: str, seconds: float, rate: float, channel: str) -> Record:
    """What the only sensor sees of a library model at its own values."""
    times = np.arange(round(seconds * rate) + 1) / rate
    motion = simulate(load_model(name), times, rtol=1e-12, atol=1e-14)
    return Record.from_arrays(rate, {channel: motion[channel]}, drive_time=0.0)


def with_noise(record: Record, percent: float) -> Record:
    """Eq. (9): each sample times 1 + NSR r, r standard normal."""
    rng = np.random.default_rng(SEED)
    (name,) = record.names
    return record.with_channels(**{name: record[name] * (1 + percent / 100 * rng.normal(size=len(record)))})


def at_bound(name: str, side: str) -> Model:
    """A library model whose guesses are all at the upper or lower bounds."""
    model = load_model(name)
    return model.with_values({n: getattr(model.parameters[n], side) for n in model.free})


def by_strategy(strategy: str, start: Model, record: Record, gain: float, generations: int) -> Identification:
    """The published controllers (PD, PID with ki = 0.02), or a global search stopped early."""
    if strategy in GLOBAL:
        return identify(
            start, record, "global", algorithm=GLOBAL[strategy], generations=generations, finish=False
        )
    integral = 0.02 if strategy == "PID" else 0.0
    return identify(start, record, "homotopy", plain=True, gain=gain, integral_gain=integral, finish=False)


def misfit(result: Identification, record: Record) -> float:
    """J of eq. (5), 1/2 int (measured - model)^2 dt."""
    if "J" in result.residual.other:
        return result.residual.other["J"]
    (rms,) = result.residual.rms.values()  # of the only sensor
    return 0.5 * rms**2 * record.duration


def effort(
    case: str, printed: tuple[int, int, float], found: Identification, ours: Identification, record: Record,
    factor: float = 1.0,
) -> list[Row]:  # fmt: skip
    """Iterations, evaluations and J (times ``factor``) of a strategy beside the default."""
    numbers: list[tuple[str, float, float]] = [
        ("iterations", found.iterations, ours.iterations),
        ("evaluations", found.evaluations, ours.evaluations),
        ("J", factor * misfit(found, record), factor * misfit(ours, record)),
    ]
    return [
        least(case, quantity, number, plain, mine)
        for number, (quantity, plain, mine) in zip(printed, numbers, strict=True)
    ]


BESIDE = (
    "'plain' is the strategy named in the case, 'ours' always the default homotopy, whose evaluations are "
    "runs with sensitivities: each gives the residuals and all their derivatives."
)
