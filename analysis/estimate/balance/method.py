"""Harmonic balance on periodic orbits extracted from a chaotic record (Yuan 1995, chapters 2 to 4).

The record is searched for segments that nearly close; on each, the model's equations are balanced harmonic by
harmonic, which gives equations for the parameters. ``plain`` is the thesis: closed segments, multiples of the
drive frequency, ordinary least squares. The default tapers each segment (no closure error), adds the
sub-harmonics j/k, weights the rows by the covariance that sensor noise induces in them (generalised least
squares), and ends with the maximum-likelihood path over the same segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analysis.base.errors import DataError
from analysis.base.identification import Identification, estimates
from analysis.base.progress import Progress
from analysis.base.record import Record
from analysis.estimate.balance.finish import finish
from analysis.estimate.balance.orbits import choose, extract, fits, given_orbits, orbit_rows
from analysis.estimate.balance.problem import Balance, Solution
from analysis.estimate.balance.rows import OrbitRows
from analysis.estimate.balance.setting import Setting, read_setting
from analysis.estimate.identifiability import undetermined_words
from analysis.orbits.forced import PeriodicOrbit

if TYPE_CHECKING:
    from analysis.model import Model

REFERENCE = (
    "C.-M. Yuan: A method of parametric identification of chaotic systems. Ph.D. thesis, Michigan State "
    "University, 1995."
)


@dataclass(frozen=True)
class Options:
    """How to balance."""

    plain: bool = False  # the thesis' method by itself
    harmonics: int | None = None  # of the drive, sub-harmonics in between; None: those above the noise
    longest: int = 10  # period of the longest orbit, in drive periods (or turns)
    most_orbits: int = 40
    recurrences: int = 1  # segments used of each orbit, the closest first; of a known one, successive periods
    orbits: tuple[int, ...] = ()  # only these periods (in drive periods); none: all found
    starts: tuple[int, ...] = ()  # first sample of a segment for each of ``orbits``, instead of searching
    epsilon: float | None = None  # closure asked for, fraction of the span; None: 0.5 %, relaxed when needed
    frequency: float | None = None  # of the drive, per unit of time; None: as the record says
    phase: Literal["auto", "recorded", "orbit"] = (
        "auto"  # drive phase: as recorded, or unknown for each orbit
    )
    offset: bool = False  # estimate a constant offset of each sensor
    finish: bool = True  # end with maximum likelihood over the same segments


def identify(model: Model, records: Sequence[Record], options: Options, progress: Progress) -> Identification:
    """Parameters from the periodic orbits in the records, which share them."""
    unknown_phase = _phase_unknown(records, options)
    warnings: list[str] = []
    rows: list[OrbitRows] = []
    found: list[dict[str, Any]] = []
    repetitions: list[list[int]] = []
    settings = []
    for number, record in enumerate(records):
        setting = read_setting(model, record, options)
        part = progress.part(0.5 * number / len(records), 0.5 * (number + 1) / len(records))
        if options.starts:
            chosen = given_orbits(setting, options)
        else:
            orbits = extract(setting, options, part)
            warnings += orbits.messages
            chosen = choose(orbits, options)
        settings.append(setting)
        for orbit in chosen:
            inside = [
                o for o in (replace(orbit, start=int(s)) for s in orbit.starts) if fits(setting, o, options)
            ]
            used = inside[: options.recurrences]
            if options.starts:
                repetitions.append(list(range(len(rows), len(rows) + len(used))))
            for one in used:
                rows.append(orbit_rows(model, setting, one, options, unknown_phase))
                found.append(_described(one, setting))
    if not rows:
        raise DataError(
            "No periodic orbit was found to balance: give a longer record, a larger closure (epsilon), or "
            "use another method (weak, path)."
        )
    unknown_shifts = unknown_phase and settings[0].forced and not options.plain
    problem = Balance(model, rows, options, unknown_shifts, repetitions)
    solution = problem.solve(progress.part(0.5, 0.7))
    result = _identification(problem, solution, options, warnings, found)
    if options.finish and not options.plain:
        result = finish(problem, solution, result, settings, progress.part(0.7, 1.0))
    progress.report(1.0, "done")
    return result


def _phase_unknown(records: Sequence[Record], options: Options) -> bool:
    """Whether the drive's phase has to be found for each orbit."""
    if options.phase == "auto":
        return any(r.excitation is None or r.excitation.phase is None for r in records)
    return options.phase == "orbit"


def _described(orbit: PeriodicOrbit, setting: Setting) -> dict[str, Any]:
    return {
        "start": orbit.start,
        "period": orbit.period * setting.record.dt,
        "multiple": orbit.multiple,
        "closure": orbit.closure,
        "count": orbit.count,
    }


def _identification(
    problem: Balance, solution: Solution, options: Options, warnings: list[str], found: list[dict[str, Any]]
) -> Identification:
    model, k, c = problem.model, len(problem.free), len(problem.channels)
    names = [*model.free, *(f"offset {model.states[i]}" for i in range(c))]
    point = np.concatenate([solution.values[problem.free], solution.offsets[problem.channels]])
    covariance = solution.covariance[: k + c, : k + c]
    units = {name: model.parameters[name].unit for name in model.free}
    ratio = solution.chi2 / solution.dof
    if not options.plain and ratio > 2:
        warnings.append(
            f"The rows miss by {np.sqrt(ratio):.1f} times what the noise explains: the model lacks "
            "something, or the noise is not white. The error bars were widened accordingly."
        )
    if problem.phases:
        angles = 2 * np.pi * solution.shifts / problem.drive_period()
        for entry, angle in zip(found, angles, strict=True):
            entry["phase"] = float(angle % (2 * np.pi))
    return Identification(
        method="balance",
        model=model.name,
        converged=solution.converged,
        parameters=estimates(names, point, covariance, units),
        iterations=solution.iterations,
        evaluations=solution.iterations,
        residual={"chi2": solution.chi2, "dof": float(solution.dof), "chi2 per dof": ratio},
        undetermined=undetermined_words(solution.information[:k, :k], point[:k], model.free),
        warnings=warnings,
        covariance=covariance.tolist(),
        history=solution.history,
        extra={"orbits": found},
        options=asdict(options),
        model_text=model.text,
        references=[REFERENCE],
    )
