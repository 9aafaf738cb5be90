"""Orbits and multipliers from one channel of 20 000 samples, against Newton's method on the equations."""

from __future__ import annotations

import time

import numpy as np

from analysis.orbits.autonomous import autonomous_orbits, mean_turn
from analysis.orbits.forced import forced_orbits
from analysis.orbits.orbit import Orbits
from analysis.orbits.search_space import SearchSpace, channel_space
from benchmarks.chaos.orbit_truth import true_orbit
from benchmarks.chaos.systems import NOT_CHAOS, Array, Flow

SAMPLES = 20_000
_LONGEST = 10  # drive periods
_MOST = 20  # orbits of a record that are compared, evenly over the periods


def compare(title: str, flows: list[Flow], seeds: int, noises: tuple[float, ...]) -> None:
    """A line for each record, then those of all: orbits that are real, errors and signs of multipliers."""
    for noise in noises:
        rows = [row for flow in flows for seed in range(seeds) for row in _record(flow, seed, noise)]
        if not rows:
            continue
        table = np.array(rows)
        told = table[np.isfinite(table[:, 1])]
        real = 100 * np.mean(table[:, 0])
        words = (
            f"{title}, noise {noise:g}: {len(table)} confirmed orbits, {real:.0f} % real; {len(told)} told",
            f"median error {100 * np.median(told[:, 1]):.1f} %",
            f"wrong signs {100 * np.mean(told[:, 2]):.1f} %",
            f"within two standard errors {100 * np.mean(told[:, 3] < 2):.0f} %",
        )
        print(", ".join(words), flush=True)


def _record(flow: Flow, seed: int, noise: float) -> list[tuple[float, float, float, float]]:
    """Of each orbit compared: whether it is real, error, wrong sign and z of its multiplier (or nan)."""
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
    print(
        f"{flow.name:22s} noise {noise:4g} {len(found)} confirmed, {len(found.unconfirmed)} not; of "
        f"{len(rows)} compared {real:.0f} real; {spent:.0f} s",
        flush=True,
    )
    return rows


def _found(space: SearchSpace, period: float | None) -> Orbits:
    view = space.view
    if period is None:
        return autonomous_orbits(view.points, scale=view.scale, noise=view.noise, views=space.views)
    multiples = range(1, _LONGEST + 1)
    return forced_orbits(
        view.points, period, multiples=multiples, scale=view.scale, noise=view.noise, views=space.views
    )


def invented(count: int) -> None:
    """Orbits that confirmation alone, without the verdict on the motion, lets through."""
    for name, make in NOT_CHAOS.items():
        if name == "periodic":
            continue
        candidates = confirmed = 0
        for seed in range(count):
            x: Array = make(np.random.default_rng(2000 + seed), SAMPLES // 2)
            found = _found(channel_space(x, np.ones(len(x), dtype=bool)), None)
            candidates += len(found) + len(found.unconfirmed)
            confirmed += len(found)
        print(f"{name}: {count} records, {candidates} close returns, {confirmed} confirmed", flush=True)
