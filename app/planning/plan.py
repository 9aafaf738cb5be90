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
    larger_bars,
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
AS_USUAL = (
    "Every other drive that was tried would leave some parameter less well known than a low-crest multisine "
    "over the band does: that multisine is the plan."
)


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
    plain = usual_of(bench, seconds, rng, progress)
    tried = [*_segments(bench, seconds, criterion, plain, progress), *whole_drives(bench, seconds)]
    drive, broken, best = best_drive(tried, bench, seconds, criterion, plain, rng, progress)
    if plain is not None and drive is plain.drive:
        warnings.append(AS_USUAL)
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
        np.full(len(knowledge.names), np.nan) if plain is None else stderr_after(plain.told, nothing),
        broken,
        bench.prospect.bounds,
        _without_each_sensor(bench, drive, seconds),
        None if target is None else needed_for(target, bench, drive, seconds),
        target,
        tuple(warnings),
    )


def needed_for(target: float, bench: Bench, drive: Segments, seconds: float) -> float:
    """Seconds of the drive, which begins anew after ``seconds``, until all is known as well as that."""
    values = bench.prospect.knowledge.values
    return seconds_needed(values, bench.course(drive, seconds), seconds, target, bench.prior)


@dataclass(frozen=True, eq=False)
class Usual:
    """The drive that a plan must beat: a low-crest multisine over the band, as large as the limits allow."""

    drive: Segments
    broken: float  # share of the draws in which a limit is broken
    told: Array  # [D, U, U]


def usual_of(bench: Bench, seconds: float, rng: np.random.Generator, progress: Progress) -> Usual | None:
    """None where the rig can play none within its limits, or its motion cannot be followed."""
    drive = usual_drive([bench], seconds)
    if drive is None:
        return None
    try:
        drive, broken = kept([bench], drive, seconds, rng, progress)
    except RigError:
        return None
    told = bench.information(drive, seconds)
    return None if told is None else Usual(drive, broken, told)


def _segments(
    bench: Bench, seconds: float, criterion: Criterion, plain: Usual | None, progress: Progress
) -> list[Segments]:
    """The best drives made of segments: of all, and of those that leave nothing less known than ``plain``."""
    slots, each = segments_in(seconds, bench.prospect.memory())
    first = bench.with_few_draws()
    seen = candidates([bench], each, lambda drive: first.information(drive, each), progress)
    table = np.array([told for _, told in seen])
    aims = [None] if plain is None else [None, plain.told]
    short = {*best_alone(table, bench.prior, slots, criterion, SHORTLIST)}
    for aim in aims:
        few = None if aim is None else aim[: table.shape[1]]
        short |= {*choose_segments(table, bench.prior, slots, criterion, few)}
    listed = [(seen[c][0], bench.information(played(seen[c][0], each), each)) for c in sorted(short)]
    found = [(shape, told) for shape, told in listed if told is not None]
    if not found:
        raise RigError(f"No motion on '{bench.profile.key}' can be followed in {len(bench.draws)} draws.")
    table = np.array([told for _, told in found])
    chosen = [choose_segments(table, bench.prior, slots, criterion, aim) for aim in aims]
    return [assembled([found[c][0] for c in one], each) for one in chosen]


def best_drive(
    tried: list[Segments],
    bench: Bench,
    seconds: float,
    criterion: Criterion,
    plain: Usual | None,
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[Segments, float, Array]:
    """The drive that tells most when it is played as a whole within its limits, the share of the draws in
    which it breaks one, and what it tells; ``plain`` where each drive leaves some unknown less known."""
    aim = None if plain is None else plain.told
    told = [(drive, bench.information(drive, seconds)) for drive in tried]
    worth = [(drive, found) for drive, found in told if _no_worse(found, aim, bench)]
    while worth:
        table = np.array([found for _, found in worth])
        drive, _ = worth.pop(choose_segments(table, bench.prior, 1, criterion, aim)[0])
        drive, broken = kept([bench], drive, seconds, rng, progress)
        best = bench.information(drive, seconds)
        if best is not None and _no_worse(best, aim, bench):  # it may have been made smaller
            return drive, broken, best
    if plain is None:
        raise RigError(
            f"The motion on '{bench.profile.key}' cannot be followed under any drive that was tried."
        )
    return plain.drive, plain.broken, plain.told


def _no_worse(told: Array | None, usual: Array | None, bench: Bench) -> bool:
    """Whether a drive can be followed and leaves no unknown less known than the usual one."""
    if told is None:
        return False
    return usual is None or bool(np.all(larger_bars(told, usual, bench.prior) <= 0))


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
