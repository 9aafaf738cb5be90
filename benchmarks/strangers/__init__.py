"""`auto` on systems its authors never saw: how many end right, how many are wrong without a word.

    python -m benchmarks strangers [--seeds N] [--system NAME]

A fit is *right* when every parameter lies within four stated standard errors of the truth (and what cannot
be determined is said to be so). It is *silent* when it is not right and the verdict is `fits`, or `close`
beyond four of its honest errors; before there is a verdict, when it counts as converged without a warning
that the model misses the data. The records are identified by the engine of campaigns, on all processors.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from analysis.base.errors import ShakedownError
from analysis.base.identification import Identification
from analysis.estimate.methods import identify
from analysis.model import Model
from app.campaign.calls import draws
from app.output import terminal_progress
from benchmarks.measure import Measurement
from benchmarks.strangers.system import System, load, names
from benchmarks.strangers.truth import measured, true_record

LEVELS = (0.01, 0.05)  # noise over the spread of each channel
SEEDS = 20
WITHIN = 4.0  # stated standard errors
WANTED = 0.95  # share that must end right


@dataclass(frozen=True)
class Outcome:
    """One identification, held against the truth."""

    right: bool
    silent: bool
    verdict: str
    worst: float  # largest distance from the truth in stated errors
    seconds: float
    words: str = ""


def measure(quick: bool = False, seeds: int = SEEDS, system: str = "") -> list[Measurement]:
    """One row for each system and level of noise."""
    chosen = system.split(",") if system else names()
    count = 1 if quick else seeds
    each = [{"name": name, "seed": seed} for name in chosen for seed in range(count)]
    outcomes: dict[tuple[str, float], list[Outcome]] = {(n, level): [] for n in chosen for level in LEVELS}
    rows: dict[tuple[str, float], Measurement] = {}

    def came(number: int, answer: list[dict[str, Any]]) -> None:
        name, seed = each[number].values()
        for level, raw in zip(LEVELS, answer, strict=True):
            many = outcomes[name, level]
            many.append(Outcome(**raw))
            if not many[-1].right:
                print(f"{name} {100 * level:g} % seed {seed}: {many[-1].words}", flush=True)
            if len(many) == count:
                rows[name, level] = _row(name, level, many)

    draws("benchmarks.strangers:attempts", each, terminal_progress(), came=came)
    return [rows[place] for place in outcomes]


def attempts(name: str, seed: int) -> list[dict[str, Any]]:
    """In a process of the engine: one motion at both levels of noise, as plain data."""
    system, model = _prepared(name)
    truth = true_record(system, seed)
    return [asdict(attempt(system, model, measured(system, truth, level, seed))) for level in LEVELS]


@lru_cache(maxsize=1)
def _prepared(name: str) -> tuple[System, Model]:
    """A system and its model, compiled: the times are without that."""
    system = load(name)
    model = Model.from_toml(system.model)
    model.kernels().prepare("rhs", "jac", "out", "out_jac", "out_jac_many", "jac_many")
    return system, model


def _row(name: str, level: float, found: list[Outcome]) -> Measurement:
    right, silent = sum(o.right for o in found), sum(o.silent for o in found)
    verdicts = {v: sum(o.verdict == v for o in found) for v in sorted({o.verdict for o in found})}
    said = ", ".join(f"{count} {verdict or 'not judged'}" for verdict, count in verdicts.items())
    note = f"{right} of {len(found)} right, {silent} silent; {said}"
    print(f"{name} {100 * level:g} %: {note}", flush=True)
    good = silent == 0 and right >= WANTED * len(found)
    work = f"{name}, {100 * level:g} % noise, {len(found)} seeds"
    return Measurement(work, "-", None, statistics.median(o.seconds for o in found), good, None, note)


def attempt(system: System, model: Model, record: object) -> Outcome:
    """Identify by `auto` and hold the result against the truth."""
    begin = time.process_time()
    try:
        result = identify(model, record, "auto")  # type: ignore[arg-type]
    except ShakedownError as error:
        return Outcome(False, False, "refused", math.inf, time.process_time() - begin, str(error))
    seconds = time.process_time() - begin
    worst, unsaid = _distance(system, result)
    right = worst <= WITHIN and not unsaid
    silent = not right and _called_right(result)
    values = ", ".join(
        f"{n} {result.parameters[n].value:.4g}" for n in system.truth if n in result.parameters
    )
    state = result.verdict or ("converged" if result.converged else "not converged")
    mark = " SILENT" if silent else ""
    words = f"{state}, z {worst:.1f}{mark}; {values}; {result.chosen}"
    return Outcome(right, silent, result.verdict, worst, seconds, words)


def _called_right(result: Identification) -> bool:
    if result.verdict:
        return result.verdict in ("fits", "close")
    return result.converged and not any("misses" in w or "not white" in w for w in result.warnings)


def _distance(system: System, result: Identification) -> tuple[float, list[str]]:
    """Largest distance from the truth in stated errors; and undetermined parameters that were not said."""
    worst, unsaid = 0.0, []
    for name, truth in system.truth.items():
        estimate = result.parameters.get(name)
        if name in system.undetermined:
            if estimate is not None and math.isfinite(estimate.stderr):
                unsaid.append(name)
            continue
        if estimate is None or not math.isfinite(estimate.stderr) or estimate.stderr <= 0:
            return math.inf, unsaid
        worst = max(worst, abs(estimate.value - truth) / estimate.stderr)
    return worst, unsaid
