"""Do the 95 % intervals cover the truth in 95 % of runs? Monte Carlo over noise, any method, any system.

python -m benchmarks.coverage [CASE ...] [--runs 200]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.errors import ShakedownError
from analysis.methods import identify
from analysis.model import Model
from analysis.record import Record
from analysis.simulation import simulate
from app.output import table
from drivers.library import load_model


@dataclass(frozen=True)
class Case:
    """A system with known parameters, its noise drawn anew for each seed."""

    draw: Callable[[int], tuple[Model, Record]]
    truth: Mapping[str, float]
    method: str = "weak"
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Coverage:
    """Share of runs whose interval holds the truth, by parameter, and the scatter over the stated error."""

    runs: int
    failed: int
    covered: dict[str, float]
    ratio: dict[str, float]  # standard deviation of the estimates over the mean standard error


def coverage(case: Case, runs: int) -> Coverage:
    """Run a case with seeds 0 .. runs - 1."""
    hits: dict[str, list[bool]] = {name: [] for name in case.truth}
    values: dict[str, list[float]] = {name: [] for name in case.truth}
    errors: dict[str, list[float]] = {name: [] for name in case.truth}
    failed = 0
    for seed in range(runs):
        model, record = case.draw(seed)
        try:
            result = identify(model, record, case.method, **(case.options or {}))
        except ShakedownError:
            failed += 1
            continue
        failed += not result.converged
        for name, truth in case.truth.items():
            estimate = result.parameters[name]
            hits[name].append(estimate.covers(truth))
            values[name].append(estimate.value)
            errors[name].append(estimate.stderr)
    return Coverage(
        runs,
        failed,
        {name: float(np.mean(h)) for name, h in hits.items()},
        {name: float(np.std(values[name]) / np.mean(errors[name])) for name in case.truth},
    )


def simulated(name: str, seconds: float, rate: float, decibels: float, free: tuple[str, ...]) -> Case:
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

    return Case(draw, truth)


def miura(decibels: float) -> Case:
    from app.reproduce.liu2018 import miura_case

    truth = load_model("miura_ori_measured")

    def draw(seed: int) -> tuple[Model, Record]:
        _, record = miura_case(decibels, seed)
        near = {name: 1.1 * truth.parameters[name].value for name in truth.free}
        return truth.with_values(near), record.cut(0, 2000)

    return Case(draw, {name: truth.parameters[name].value for name in truth.free})


CASES: dict[str, Callable[[], Case]] = {
    "lorenz-30": lambda: simulated("lorenz", 20, 100, 30, ("sigma", "rho", "beta")),
    "lorenz-20": lambda: simulated("lorenz", 20, 100, 20, ("sigma", "rho", "beta")),
    "duffing-30": lambda: simulated("duffing", 60, 20, 30, load_model("duffing").free),
    "duffing-20": lambda: simulated("duffing", 60, 20, 20, load_model("duffing").free),
    "miura-30": lambda: miura(30),
    "miura-20": lambda: miura(20),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--runs", type=int, default=200)
    args = parser.parse_args()
    rows = []
    for name in args.cases:
        started = time.process_time()
        found = coverage(CASES[name](), args.runs)
        spent = (time.process_time() - started) / args.runs
        for parameter, share in found.covered.items():
            rows.append((name, parameter, 100 * share, found.ratio[parameter], found.failed, spent))
        columns = ("case", "parameter", "covered %", "scatter/error", "failed", "CPU s a run")
        print(table(columns, rows[-len(found.covered) :]))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
