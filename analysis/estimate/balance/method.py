"""Harmonic balance on periodic orbits extracted from a chaotic record (Yuan 1995, chapters 2 to 4).

The record is searched for segments that nearly close; on each, the model's equations are balanced harmonic by
harmonic, which gives equations for the parameters. ``plain`` is the thesis: closed segments, multiples of the
drive frequency, ordinary least squares. The default tapers each segment (no closure error), adds the
sub-harmonics j/k, weights the rows by the covariance that sensor noise induces in them (generalised least
squares); maximum likelihood over the same segments finishes the work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.identification import Residual
from analysis.base.progress import Progress
from analysis.estimate.balance.orbits import choose_confirmed, extract, fits, given_orbits, orbit_rows
from analysis.estimate.balance.problem import Balance, Solution
from analysis.estimate.balance.rows import OrbitRows
from analysis.estimate.balance.setting import Setting, read_setting
from analysis.estimate.start import OwnEstimate, Start
from analysis.experiment import Experiment
from analysis.orbits.orbit import PeriodicOrbit

Array = NDArray[np.float64]

REFERENCE = (
    "C.-M. Yuan: A method of parametric identification of chaotic systems. Ph.D. thesis, Michigan State "
    "University, 1995."
)

CLOSED_ORBIT = "closed_orbit"  # in a record's metadata: start (sample) and periods (of the drive)
_LEFT_OVER = 30  # samples beside other segments: fewer tell of their own first state alone
_WIDENED = 2.0  # chi-square over its degrees of freedom beyond which a warning names the misfit


@dataclass(frozen=True)
class HarmonicBalance:
    """How to balance."""

    name: ClassVar[str] = "balance"

    plain: bool = False  # the thesis' method by itself
    harmonics: int | None = None  # of the drive, sub-harmonics in between; None: those above the noise
    longest: int = 10  # period of the longest orbit, in drive periods (or turns)
    most_orbits: int = 40
    recurrences: int = 1  # segments used of each orbit, the closest first; of a known one, successive periods
    orbits: tuple[int, ...] = ()  # only these periods (in drive periods); none: all found
    starts: tuple[int, ...] = ()  # first sample of a segment for each of ``orbits``, instead of searching
    unconfirmed: bool = True  # take close returns, too, that the motion of their neighbours does not confirm
    epsilon: float | None = None  # closure asked for, fraction of the span; None: 0.5 %, relaxed when needed
    frequency: float | None = None  # of the drive, per unit of time; None: as the record says
    phase: Literal["auto", "recorded", "orbit"] = (
        "auto"  # drive phase: as recorded, or unknown for each orbit
    )
    offset: bool = False  # estimate a constant offset of each sensor

    def start(self, experiment: Experiment, progress: Progress, alone: bool = False) -> Start:
        """Parameters from the periodic orbits in the records, which share them."""
        return _start(
            replace(self, offset=self.offset or bool(experiment.conditions.offsets)), experiment, progress
        )


@dataclass(frozen=True, eq=False)
class _Found:
    """The segments that are balanced."""

    settings: list[Setting]  # one for each run
    rows: list[OrbitRows]
    places: list[tuple[int, int, int]]  # run, first sample, the one after the last, of each segment
    repetitions: list[list[int]]  # segments that are measurements of the same orbit
    described: list[dict[str, Any]]
    messages: list[str]


@dataclass(frozen=True)
class _Stretch:
    """Samples first to stop of a run, out of one of the segments."""

    segment: int
    run: int
    first: int
    stop: int


def _start(options: HarmonicBalance, experiment: Experiment, progress: Progress) -> Start:
    unknown_phase = _phase_unknown(experiment, options)
    found = _segments(options, experiment, unknown_phase, progress.part(0.0, 0.7))
    if not found.rows:
        raise DataError(
            "No periodic orbit was found to balance: give a longer record, a larger closure (epsilon), or "
            "use another method (weak, path)."
        )
    own_phases = unknown_phase and found.settings[0].forced and not options.plain
    problem = Balance(experiment.given, found.rows, options, own_phases, found.repetitions)
    solution = problem.solve(progress.part(0.7, 1.0))
    return _as_start(problem, solution, options, experiment, found)


def _phase_unknown(experiment: Experiment, options: HarmonicBalance) -> bool:
    """Whether the drive's phase has to be found for each orbit."""
    if options.phase == "auto":
        return any(run.phase == "unknown" for run in experiment.runs)
    return options.phase == "orbit"


def _segments(
    options: HarmonicBalance, experiment: Experiment, unknown_phase: bool, progress: Progress
) -> _Found:
    model, runs = experiment.given, experiment.runs
    found = _Found([], [], [], [], [], [])
    for number, run in enumerate(runs):
        setting = read_setting(model, run, options)
        found.settings.append(setting)
        part = progress.part(number / len(runs), (number + 1) / len(runs))
        known = options if options.starts else _with_closed(options, run.record.metadata)
        if known.starts:
            chosen = given_orbits(setting, known)
        else:
            orbits = extract(setting, options, part)
            found.messages.extend(orbits.messages)
            chosen, words = choose_confirmed(setting, orbits, options)
            found.messages.extend(words)
        for orbit in chosen:
            inside = [
                o for o in (replace(orbit, start=int(s)) for s in orbit.starts) if fits(setting, o, options)
            ]
            used = inside[: options.recurrences]
            if known.starts:
                found.repetitions.append(list(range(len(found.rows), len(found.rows) + len(used))))
            for one in used:
                row = orbit_rows(model, setting, one, options, unknown_phase)
                found.rows.append(row)
                found.places.append((number, one.start, one.start + len(row.times)))
                found.described.append(_described(one, setting))
    return found


def _with_closed(options: HarmonicBalance, metadata: Mapping[str, Any]) -> HarmonicBalance:
    """With the segment of a record that is known to close, such as the average of an orbit that was held."""
    told = metadata.get(CLOSED_ORBIT)
    if told is None:
        return options
    return replace(options, starts=(int(told["start"]),), orbits=(int(told["periods"]),))


def _described(orbit: PeriodicOrbit, setting: Setting) -> dict[str, Any]:
    return {
        "start": orbit.start,
        "period": orbit.period * setting.record.dt,
        "multiple": orbit.multiple,
        "closure": orbit.closure,
        "count": orbit.count,
    }


def _as_start(
    problem: Balance, solution: Solution, options: HarmonicBalance, experiment: Experiment, found: _Found
) -> Start:
    model = problem.model
    c, k = len(problem.channels), len(problem.free)
    channels = found.settings[0].channels
    names = [*model.free, *(f"offset {channels[i]}" for i in range(c))]
    estimate = np.concatenate([solution.point.values[problem.free], solution.point.offsets[problem.channels]])
    ratio, warnings = solution.chi2 / solution.dof, list(found.messages)
    if not options.plain and ratio > _WIDENED:
        warnings.append(
            f"The rows miss by {np.sqrt(ratio):.1f} times what the noise explains: the model lacks "
            "something, or the noise is not white. The error bars were widened accordingly."
        )
    warnings += [_also(problem, rival) for rival in solution.rivals[:1]]
    if problem.phases:
        angles = 2 * np.pi * solution.point.shifts / problem.drive_period()
        for entry, angle in zip(found.described, angles, strict=True):
            entry["phase"] = float(angle % (2 * np.pi))
    own = OwnEstimate(
        names,
        estimate,
        _information(solution, k + c) / counted(found.places),
        residual=Residual(solution.chi2, float(solution.dof)),
        units={name: model.unit(name) for name in model.free},
    )
    stretches = disjoint(found.places)
    pieces = _pieces(experiment, found, stretches, problem.phases, options.offset, channels)
    return Start(
        "balance",
        _values(pieces, stretches, solution),
        _paths(found, stretches, solution),
        _sensors(pieces, channels, solution),
        converged=solution.converged,
        iterations=solution.iterations,
        evaluations=solution.iterations,
        history=solution.history,
        warnings=warnings,
        own=own,
        experiment=pieces,
        finishable=not options.plain,
        findings={"orbits": found.described},
        references=[REFERENCE],
    )


def _also(problem: Balance, rival: Solution) -> str:
    values = ", ".join(
        f"{name} = {value:.4g}"
        for name, value in zip(problem.model.free, rival.point.values[problem.free], strict=True)
    )
    return (
        f"Other values balance the orbits as well: {values}. The record does not know the phase of its "
        "drive, and these orbits do not tell it: record it, bound the parameters, or give more orbits."
    )


def _information(solution: Solution, size: int) -> Array:
    """Inverse of the covariance of the parameters and offsets, the drive's shifts eliminated."""
    information = solution.information
    if len(information) == size:
        return information
    inner = information[size:, size:]
    cross = information[:size, size:]
    return np.asarray(information[:size, :size] - cross @ np.linalg.pinv(inner, hermitian=True) @ cross.T)


def disjoint(places: Sequence[tuple[int, int, int]]) -> list[_Stretch]:
    """The segments (run, first sample, the one after the last) without the samples of those before them.

    A likelihood must see each sample once: segments that overlap would count its noise as often as it is
    in one of them, so that the errors come out too small and the residuals look correlated.
    """
    kept: list[_Stretch] = []
    for number, (run, first, stop) in enumerate(places):
        at, least = first, min(_LEFT_OVER, (stop - first) // 2)
        taken = sorted((s.first, s.stop) for s in kept if s.run == run and s.stop > first and s.first < stop)
        for begin, end in (*taken, (stop, stop)):
            if begin - at >= max(least, 1):
                kept.append(_Stretch(number, run, at, begin))
            at = max(at, end)
    return kept


def counted(places: Sequence[tuple[int, int, int]]) -> float:
    """By how much the variance of the balance is larger than that of segments which share no sample.

    A sample that is in w segments adds w times to the information and w^2 times to the variance of the
    scores: sum w^2 over sum w.
    """
    once, twice = 0.0, 0.0
    for run in {run for run, _, _ in places}:
        steps = np.zeros(max(stop for number, _, stop in places if number == run) + 1)
        for number, first, stop in places:
            if number == run:
                steps[first] += 1
                steps[stop] -= 1
        times = np.cumsum(steps)
        once, twice = once + float(times.sum()), twice + float(times @ times)
    return twice / once


def _pieces(
    experiment: Experiment,
    found: _Found,
    stretches: list[_Stretch],
    own_phases: bool,
    offset: bool,
    channels: list[str],
) -> Experiment:
    """The experiment on the balanced segments alone, by the clock that the balance went by."""
    conditions = experiment.conditions
    if offset and not conditions.offsets:
        conditions = replace(conditions, offsets=tuple(channels))
    records = [setting.record for setting in found.settings]
    same = all(a is b for a, b in zip(records, experiment.records, strict=True))
    if not same or conditions is not experiment.conditions:
        experiment = Experiment(experiment.given, records, replace(conditions, part=()))
    return experiment.parts([(s.run, s.first, s.stop) for s in stretches], own_phases)


def _values(pieces: Experiment, stretches: list[_Stretch], solution: Solution) -> Array:
    """Parameters [stretches, k], with the drive's time of each segment behind them where it is unknown."""
    rows = np.tile(solution.point.values, (len(pieces.runs), 1))
    if len(pieces.model.parameters) == rows.shape[1]:
        return rows
    return np.column_stack([rows, [solution.point.shifts[s.segment] for s in stretches]])


def _paths(found: _Found, stretches: list[_Stretch], solution: Solution) -> list[Array | None]:
    states = [row.states(solution.point.offsets) for row in found.rows]
    begins = [first for _, first, _ in found.places]
    return [states[s.segment][:, s.first - begins[s.segment] : s.stop - begins[s.segment]] for s in stretches]


def _sensors(pieces: Experiment, channels: list[str], solution: Solution) -> Array:
    outputs = pieces.model.outputs
    sensors = np.zeros(3 * len(outputs))
    for channel, offset in zip(channels, solution.point.offsets, strict=True):
        sensors[outputs.index(channel)] = offset
    return sensors
