"""Orbits and multipliers from one channel of 20 000 samples, against Newton's method on the equations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.orbits.autonomous import autonomous_orbits, mean_turn
from analysis.orbits.forced import forced_orbits
from analysis.orbits.orbit import Orbits
from analysis.orbits.search_space import SearchSpace, channel_space
from app.campaign.calls import draws
from app.output import terminal_progress
from benchmarks.chaos.orbit_truth import true_orbit
from benchmarks.chaos.systems import NOT_CHAOS, Array, Flow, flow_named

SAMPLES = 20_000
_LONGEST = 10  # drive periods
_MOST = 20  # orbits of a record that are compared, evenly over the periods


def compare(
    title: str, flows: list[Flow], seeds: Sequence[int], noises: Sequence[float], cluster: str | None
) -> None:
    """A line for each record, then those of all: orbits that are real, errors and signs of multipliers."""
    each: list[dict[str, Any]] = [
        {"name": flow.name, "seed": seed, "noise": noise}
        for noise in noises
        for flow in flows
        for seed in seeds
    ]

    def came(number: int, answer: dict[str, Any]) -> None:
        print(answer["words"], flush=True)

    found = draws("benchmarks.chaos.orbits:orbits_draw", each, terminal_progress(), cluster, came=came)
    for noise in noises:
        some = [one["rows"] for one, asked in zip(found, each, strict=True) if asked["noise"] == noise]
        if rows := [row for many in some for row in many]:
            print(_told(f"{title}, noise {noise:g}", np.array(rows)), flush=True)


def _told(title: str, table: Array) -> str:
    """What the rows of all records say."""
    told = table[np.isfinite(table[:, 1])]
    real = 100 * np.mean(table[:, 0])
    words = [f"{title}: {len(table)} confirmed orbits, {real:.0f} % real; {len(told)} told"]
    if len(told):
        words += [
            f"median error {100 * np.median(told[:, 1]):.1f} %",
            f"wrong signs {100 * np.mean(told[:, 2]):.1f} %",
            f"within two standard errors {100 * np.mean(told[:, 3] < 2):.0f} %",
        ]
    return ", ".join(words)


def orbits_draw(name: str, seed: int, noise: float) -> dict[str, Any]:
    """In a process of the engine: one record in words, and of each orbit compared whether it is real, error,
    wrong sign and z of its multiplier (or nan)."""
    flow = flow_named(name)
    states = flow.states(SAMPLES, seed)
    clean = states[flow.channel]
    x = clean + noise * clean.std() * np.random.default_rng(seed).standard_normal(SAMPLES)
    begun = time.process_time()
    space = channel_space(x, np.ones(SAMPLES, dtype=bool))
    found = _found(space, flow.samples_a_period)
    spent = time.process_time() - begun
    turn = flow.samples_a_period or mean_turn(space.view.points, space.view.noise)
    some = np.unique(np.linspace(0, max(len(found) - 1, 0), _MOST).astype(int))[: len(found)]
    rows = []
    for orbit in (found.orbits[i] for i in some):
        truth = true_orbit(flow, states, orbit, turn)
        row = (float(truth is not None), np.nan, np.nan, np.nan)
        if truth is not None and len(orbit.multipliers):
            value, off = orbit.multipliers[0], abs(orbit.multipliers[0] - truth.multiplier)
            wrong = np.sign(value.real) != np.sign(truth.multiplier.real)
            row = (1.0, off / abs(truth.multiplier), float(wrong), off / orbit.multiplier_stderr)
        rows.append(row)
    real = sum(row[0] for row in rows)
    words = (
        f"{flow.name:22s} noise {noise:4g} {len(found)} confirmed, {len(found.unconfirmed)} not; of "
        f"{len(rows)} compared {real:.0f} real; {spent:.0f} s"
    )
    return {"rows": rows, "words": words}


def _found(space: SearchSpace, period: float | None) -> Orbits:
    view = space.view
    if period is None:
        return autonomous_orbits(view.points, scale=view.scale, noise=view.noise, views=space.views)
    multiples = range(1, _LONGEST + 1)
    return forced_orbits(
        view.points, period, multiples=multiples, scale=view.scale, noise=view.noise, views=space.views
    )


def invented(first: int, count: int, cluster: str | None) -> None:
    """Orbits that confirmation alone, without the verdict on the motion, lets through."""
    names = [name for name in NOT_CHAOS if name != "periodic"]
    each = [{"name": name, "seed": seed} for name in names for seed in range(first, first + count)]
    found = draws("benchmarks.chaos.orbits:invented_draw", each, terminal_progress(), cluster)
    for name in names if count else ():
        own = [pair for pair, asked in zip(found, each, strict=True) if asked["name"] == name]
        candidates, confirmed = (sum(column) for column in zip(*own, strict=True))
        print(f"{name}: {count} records, {candidates} close returns, {confirmed} confirmed", flush=True)


def invented_draw(name: str, seed: int) -> tuple[int, int]:
    """In a process of the engine: close returns of one record that is not chaos, and those confirmed."""
    x: Array = NOT_CHAOS[name](np.random.default_rng(2000 + seed), SAMPLES // 2)
    found = _found(channel_space(x, np.ones(len(x), dtype=bool)), None)
    return len(found) + len(found.unconfirmed), len(found)
