"""Kind of motion, largest exponent and dimension from one channel, against the equations."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.motion.dimension import Dimension, dimension_of_all
from analysis.motion.exponent import Exponent
from analysis.motion.verdict import examine
from analysis.reconstruct.delay import delay_by_mutual_information
from analysis.reconstruct.dimension import false_neighbours
from analysis.signal.noise import noise_level
from analysis.signal.timescale import theiler_window
from app.campaign.calls import draws
from app.output import terminal_progress
from benchmarks.chaos.systems import NOT_CHAOS, Array, Flow, flow_named

SAMPLES = 20_000
TURNS = 3000  # of the variational equations


def compare(
    title: str, flows: list[Flow], seeds: Sequence[int], noises: Sequence[float], cluster: str | None
) -> None:
    """A line for each record, then those of all: kinds, errors of the exponents and what intervals hold."""
    if not flows or not seeds:
        return
    names = [flow.name for flow in flows]
    known = draws(
        "benchmarks.chaos.motions:exponents", [{"name": n} for n in names], terminal_progress(), cluster
    )
    truths = dict(zip(names, known, strict=True))
    each = [{"name": name, "seed": seed, "noises": list(noises)} for name in names for seed in seeds]
    rows: list[tuple[bool, float, float, float]] = []

    def came(number: int, answer: list[dict[str, Any]]) -> None:
        name = str(each[number]["name"])
        rows.extend(_row(name, truths[name], one) for one in answer)

    draws("benchmarks.chaos.motions:chaotic_draw", each, terminal_progress(), cluster, came=came)
    table = np.array(rows, dtype=float)
    print(
        f"{title}: {len(rows)} cases; called chaotic {100 * table[:, 0].mean():.0f} %; median error "
        f"of the exponent {100 * np.nanmedian(table[:, 1]):.1f} %; held by its interval "
        f"{100 * np.nanmean(table[:, 2]):.0f} %; dimension held {100 * np.nanmean(table[:, 3]):.0f} %",
        flush=True,
    )


def _row(name: str, truth: dict[str, float], one: dict[str, Any]) -> tuple[bool, float, float, float]:
    """One record held against the equations: chaotic, error of the exponent, exponent and dimension held; not
    a number where none is told."""
    top = truth["exponent"]
    off, held, exponent = _held(one["exponent"], top, 2 * truth["stderr"])
    _, inside, dimension = _held(one["dimension"], truth["dimension"], 0.0)
    print(
        f"{name:22s} noise {one['noise']:4g} {one['kind']:12s} exponent {exponent}, dimension {dimension}, "
        f"{one['seconds']:.0f} s",
        flush=True,
    )
    return one["kind"] == "chaotic", off, held, inside


def _held(told: dict[str, float] | None, truth: float, slack: float) -> tuple[float, float, str]:
    """Relative error of a number, whether its interval holds the truth, and both in words."""
    if told is None:
        return np.nan, np.nan, "not told"
    held = told["lower"] - slack <= truth <= told["upper"] + slack
    words = f"{told['value']:.4g} ± {told['stderr']:.2g} of {truth:.4g} {'in' if held else 'OUT'}"
    return abs(told["value"] / truth - 1), float(held), words


def exponents(name: str) -> dict[str, float]:
    """In a process of the engine: the largest exponent of the equations and the dimension they give."""
    flow = flow_named(name)
    truth = flow.spectrum(TURNS)
    full = truth.dimension + (0.0 if flow.period is None else 1.0)
    return {
        "exponent": float(truth.exponents[0]),
        "stderr": float(truth.stderr[0]),
        "dimension": float(full),
    }


def chaotic_draw(name: str, seed: int, noises: list[float]) -> list[dict[str, Any]]:
    """In a process of the engine: one motion at each level of noise."""
    flow = flow_named(name)
    clean = flow.states(SAMPLES, seed)[flow.channel]
    rng = np.random.default_rng(seed)
    found = []
    for noise in noises:
        x = clean + noise * clean.std() * rng.standard_normal(SAMPLES)
        begun = time.process_time()
        motion = examine(x, flow.dt, period=flow.samples_a_period, rng=rng)
        size = _dimension(x, flow.samples_a_period, rng, 2.0) if motion.told else None
        found.append(
            {
                "noise": noise,
                "kind": motion.kind,
                "exponent": _plain(motion.told) if motion.told else None,
                "dimension": _plain(size) if size else None,
                "seconds": time.process_time() - begun,
            }
        )
    return found


def _plain(found: Exponent | Dimension) -> dict[str, float]:
    """A value with its error and interval, as it travels."""
    return {name: float(getattr(found, name)) for name in ("value", "stderr", "lower", "upper")}


def _dimension(x: Array, period: float | None, rng: np.random.Generator, least: float) -> Dimension:
    noise, theiler = noise_level(x).value, theiler_window(x)
    delay = delay_by_mutual_information(x, 1.0).samples
    dimension = false_neighbours(x, delay, theiler=theiler, noise=noise).dimension
    unfolded = dimension if period is None else max(dimension - 1, 2)
    return dimension_of_all(x, delay, unfolded, theiler, noise, period, rng, least)


def regular(first: int, count: int, noises: Sequence[float], cluster: str | None) -> None:
    """What records of motions that are not chaos are called."""
    each = [
        {"name": name, "seed": seed, "noise": noises[seed % len(noises)]}
        for name in NOT_CHAOS
        for seed in range(first, first + count)
    ]
    kinds = draws("benchmarks.chaos.motions:regular_draw", each, terminal_progress(), cluster)
    for name in NOT_CHAOS if count else ():
        called = Counter(kind for kind, one in zip(kinds, each, strict=True) if one["name"] == name)
        print(f"{name}: {count} records, called {dict(called)}", flush=True)


def regular_draw(name: str, seed: int, noise: float) -> str:
    """In a process of the engine: what one record is called."""
    rng = np.random.default_rng(1000 + seed)
    x = NOT_CHAOS[name](rng, SAMPLES)
    return examine(x + noise * x.std() * rng.standard_normal(SAMPLES), 1.0, rng=rng).kind
