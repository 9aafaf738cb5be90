"""A plan of the next record: the drive that shrinks the error bars of a fit most."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import (
    SILENT,
    Bound,
    Criterion,
    Identification,
    Knowledge,
    Model,
    Progress,
    best_alone,
    choose_segments,
    knowledge_of,
    seconds_needed,
    stderr_after,
)
from app.planning.bench import (
    Bench,
    assembled,
    bench_of,
    candidates,
    kept,
    played,
    segments_in,
    usual_drive,
    whole_drives,
)
from drivers.base.waveform import Segments
from drivers.rig.profile import RigError, RigProfile

Array = NDArray[np.float64]

SHORTLIST = 20  # candidates that are looked at in every draw


@dataclass(frozen=True, eq=False)
class Plan:
    """The drive, what it is predicted to tell, and what a multisine over the band would."""

    rig: str
    knowledge: Knowledge
    criterion: Criterion
    seconds: float
    drive: Segments
    predicted: Array  # [U] standard errors after the plan's record and the present ones together
    alone: Array  # [U] from the plan's record alone
    by_multisine: Array  # [U] from a low-crest multisine of the same length and limits, alone
    broken: float  # share of the draws in which a limit is broken
    bounds: tuple[Bound, ...]
    without: dict[str, Array] = field(default_factory=dict)  # by sensor: ``predicted`` if it is left out
    needed: float | None = None  # s of this drive for the target; None: no target was given
    target: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.knowledge.names


def make_plan(
    model: Model,
    fit: Identification,
    profile: RigProfile,
    seconds: float = 60.0,
    criterion: Criterion = "D",
    target: float | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Plan:
    """The drive of that length which shrinks the error bars of the fit most; an error where there is none."""
    segments_in(seconds)  # a length that makes no sense is said before the work
    knowledge, rng = knowledge_of(model, fit), np.random.default_rng(seed)
    bench, warnings = bench_of(knowledge, profile, rng)
    slots, each = segments_in(seconds, bench.prospect.memory())
    usual = usual_drive([bench], seconds)
    first = bench.with_few_draws()
    seen = candidates([bench], each, lambda drive: first.information(drive, each), progress)
    table = np.array([told for _, told in seen])
    short = {*best_alone(table, bench.prior, slots, criterion, SHORTLIST)}
    short |= {*choose_segments(table, bench.prior, slots, criterion)}
    listed = [(seen[c][0], bench.information(played(seen[c][0], each), each)) for c in sorted(short)]
    found = [(shape, told) for shape, told in listed if told is not None]
    if not found:
        raise RigError(f"No motion on '{profile.key}' can be followed in {len(bench.draws)} draws.")
    chosen = choose_segments(np.array([told for _, told in found]), bench.prior, slots, criterion)
    plain = None if usual is None else bench.information(usual, seconds)
    tried = [assembled([found[c][0] for c in chosen], each), *whole_drives(bench, seconds)]
    tried += [] if usual is None else [usual]
    drive = _best(tried, bench, seconds, criterion)
    drive, broken = kept([bench], drive, seconds, rng, progress)
    best = bench.information(drive, seconds)
    if best is None:
        raise RigError(f"The motion on '{profile.key}' cannot be followed under any drive that was tried.")
    nothing = np.zeros_like(bench.prior)
    progress.report(1.0, "planned")
    return Plan(
        profile.key,
        knowledge,
        criterion,
        seconds,
        drive,
        stderr_after(best, bench.prior),
        stderr_after(best, nothing),
        np.full(len(knowledge.names), np.nan) if plain is None else stderr_after(plain, nothing),
        broken,
        bench.prospect.bounds,
        _without_each_sensor(bench, drive, seconds),
        None if target is None else seconds_needed(knowledge.values, best, seconds, target, bench.prior),
        target,
        tuple(warnings),
    )


def _best(tried: list[Segments], bench: Bench, seconds: float, criterion: Criterion) -> Segments:
    """The drive of those that tells most when it is played as a whole."""
    told = [(drive, bench.information(drive, seconds)) for drive in tried]
    followed = [(drive, found) for drive, found in told if found is not None]
    if not followed:
        return tried[0]
    place = choose_segments(np.array([found for _, found in followed]), bench.prior, 1, criterion)[0]
    return followed[place][0]


def _without_each_sensor(bench: Bench, drive: Segments, seconds: float) -> dict[str, Array]:
    """Predicted standard errors if one of several sensors were left out, by its name."""
    sensors = [name for name in bench.prospect.knowledge.model.outputs if name in bench.prospect.noise]
    found = {}
    for name in sensors if len(sensors) > 1 else ():
        less = bench.information(drive, seconds, without=(name,))
        if less is not None:
            found[name] = stderr_after(less, bench.prior)
    return found


def plan_table(plan: Plan) -> dict[str, Any]:
    """The plan as its TOML file holds it: what `acquire --drive` plays, as long as the target needs."""
    longer = plan.needed is not None and 0 < plan.needed < np.inf
    seconds = float(np.ceil(plan.needed)) if plan.needed and longer else plan.seconds
    return drive_table(f"Plan for {plan.knowledge.model.name}", plan.rig, seconds, plan.drive)


def drive_table(name: str, rig: str, seconds: float, drive: Segments) -> dict[str, Any]:
    """A drive file (drivers/rig/drive_file.py) as a table."""
    return {"name": name, "rig": rig, "seconds": seconds, "drive": _without_none(drive.describe())}


def _without_none(table: Any) -> Any:
    """What TOML can hold: a number that is not given is left out."""
    if isinstance(table, dict):
        return {k: _without_none(v) for k, v in table.items() if v is not None}
    return [_without_none(v) for v in table] if isinstance(table, list) else table
