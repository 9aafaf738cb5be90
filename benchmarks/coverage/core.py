"""A case of the Monte Carlo study, how it is run, and how its results are kept."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from analysis.base.errors import ShakedownError
from analysis.base.identification import Z95, Curve, Estimate, Identification
from analysis.base.record import Record
from analysis.estimate.methods import identify
from benchmarks.machine import version

RESULTS = Path(__file__).parents[1] / "results" / "coverage.json"


@dataclass(frozen=True)
class Case:
    """A system with known truth whose noise is drawn anew for each seed.

    ``draw`` gives the model (or beam) with its guesses, and one record or several. ``identify`` replaces the
    call of the method, ``read`` the estimates that are compared with the truth (default: the parameters).
    """

    draw: Callable[[int], tuple[Any, Record | Sequence[Record]]]
    truth: Mapping[str, float]
    method: str = "weak"
    about: str = ""  # system, length, noise, in words
    options: Mapping[str, Any] | None = None
    identify: Callable[[Any, Record | Sequence[Record]], Identification] | None = None
    read: Callable[[Identification], Mapping[str, Estimate]] | None = None

    def run(self, seed: int) -> tuple[bool, Mapping[str, Estimate]]:
        """Whether the method converged, and the estimates of one draw."""
        model, records = self.draw(seed)
        if self.identify is None:
            found = identify(model, records, self.method, **(self.options or {}))
        else:
            found = self.identify(model, records)
        return found.converged, found.parameters if self.read is None else self.read(found)


@dataclass(frozen=True)
class Tally:
    """One parameter over all runs that gave an answer."""

    covered: int  # runs whose interval holds the truth
    mean: float
    scatter: float  # standard deviation of the estimates
    error: float  # mean standard error

    @property
    def ratio(self) -> float:
        """Scatter of the estimates over the error that they state; 1 is honest, above 1 too sure."""
        return self.scatter / self.error if self.error > 0 else math.nan


@dataclass(frozen=True)
class Coverage:
    """What the runs of a case showed; seeds ``first`` to ``first + runs - 1``."""

    method: str
    about: str
    first: int
    runs: int
    failed: int  # no answer, or not converged
    answered: int  # runs that gave estimates
    cpu_seconds: float  # of one run, mean
    version: str
    parameters: dict[str, Tally]

    @property
    def covered(self) -> dict[str, float]:
        return {name: tally.covered / self.answered for name, tally in self.parameters.items()}

    @property
    def ratio(self) -> dict[str, float]:
        return {name: tally.ratio for name, tally in self.parameters.items()}

    def joined(self, other: Coverage) -> Coverage:
        """This and the runs that follow it, as if they had been run together."""
        runs = self.runs + other.runs
        return replace(
            other,
            first=self.first,
            runs=runs,
            failed=self.failed + other.failed,
            answered=self.answered + other.answered,
            cpu_seconds=(self.runs * self.cpu_seconds + other.runs * other.cpu_seconds) / runs,
            parameters={
                name: _pooled(tally, self.answered, other.parameters[name], other.answered)
                for name, tally in self.parameters.items()
            },
        )


@dataclass(frozen=True)
class Draw:
    """One run of a case."""

    converged: bool
    estimates: Mapping[str, Estimate] | None  # of the quantities whose truth is known; None: no answer
    seconds: float  # of the processor

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Draw:
        """From what ``asdict`` made of it."""
        told = raw["estimates"]
        return cls(**{**raw, "estimates": told and {name: Estimate(**e) for name, e in told.items()}})


def drawn(case: Case, seed: int) -> Draw:
    """One run; without an answer where the method refuses."""
    begun = time.process_time()
    try:
        converged, parameters = case.run(seed)
    except ShakedownError:
        return Draw(False, None, time.process_time() - begun)
    estimates = {name: parameters[name] for name in case.truth}
    return Draw(converged, estimates, time.process_time() - begun)


def coverage(case: Case, runs: int, first: int = 0) -> Coverage:
    """Run a case with the seeds first .. first + runs - 1, here and one after the other."""
    return tallied(case, [drawn(case, seed) for seed in range(first, first + runs)], first)


def tallied(case: Case, draws: Sequence[Draw], first: int = 0) -> Coverage:
    """What the runs of a case showed; a run without an answer counts as failed."""
    answers = [d.estimates for d in draws if d.estimates is not None]
    failed = sum(not d.converged for d in draws)
    spent = sum(d.seconds for d in draws) / len(draws)
    tallies = {n: _tally([a[n] for a in answers], t) for n, t in case.truth.items()} if answers else {}
    return Coverage(
        case.method, case.about, first, len(draws), failed, len(answers), spent, version(), tallies
    )


def at(curve: Curve, places: Sequence[float], name: str) -> dict[str, Estimate]:
    """A recovered function at some places, as estimates named ``H(0.5)``."""
    rows = (np.interp(places, curve.x, side) for side in (curve.y, curve.lower, curve.upper))
    return {
        f"{name}({place:g})": Estimate(float(y), float(up - low) / (2 * Z95), float(low), float(up))
        for place, y, low, up in zip(places, *rows, strict=True)
    }


def read_kept(path: Path = RESULTS) -> dict[str, Coverage]:
    """The kept results by case."""
    if not path.exists():
        return {}
    kept = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: Coverage(**{**raw, "parameters": {p: Tally(**t) for p, t in raw["parameters"].items()}})
        for name, raw in kept.items()
    }


def keep(name: str, found: Coverage, path: Path = RESULTS) -> Coverage:
    """Merge into the kept results: runs that follow the kept ones are added, others replace them."""
    kept = read_kept(path)
    before = kept.get(name)
    if before is not None and found.first == before.first + before.runs:
        found = before.joined(found)
    kept[name] = found
    path.parent.mkdir(exist_ok=True)
    text = json.dumps({case: asdict(kept[case]) for case in sorted(kept)}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    return found


def _tally(found: Sequence[Estimate], truth: float) -> Tally:
    values = np.array([e.value for e in found])
    return Tally(
        covered=int(sum(e.covers(truth) for e in found)),
        mean=float(values.mean()),
        scatter=float(values.std()),
        error=float(np.mean([e.stderr for e in found])),
    )


def _pooled(a: Tally, runs_a: int, b: Tally, runs_b: int) -> Tally:
    total = runs_a + runs_b
    mean = (runs_a * a.mean + runs_b * b.mean) / total
    squares = runs_a * (a.scatter**2 + (a.mean - mean) ** 2) + runs_b * (b.scatter**2 + (b.mean - mean) ** 2)
    error = (runs_a * a.error + runs_b * b.error) / total
    return Tally(a.covered + b.covered, mean, math.sqrt(squares / total), error)
