"""Harmonic balance on periodic orbits extracted from a chaotic record (Yuan 1995, chapters 2 to 4).

The record is searched for segments that nearly close; on each, the model's equations are balanced harmonic by
harmonic, which gives equations for the parameters. ``plain`` is the thesis: closed segments, multiples of the
drive frequency, ordinary least squares. The default tapers each segment (no closure error), adds the
sub-harmonics j/k, weights the rows by the covariance that sensor noise induces in them (generalised least
squares), and ends with the maximum-likelihood path over the same segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.balance_rows import OrbitRows, TestFunctions, smoothing_operators
from analysis.errors import DataError
from analysis.identifiability import covariance_of, undetermined_words
from analysis.identification import Identification, estimates
from analysis.measurement import derivative_pairs
from analysis.orbits import Orbits, PeriodicOrbit, forced_orbits
from analysis.progress import Progress
from analysis.record import Record

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]

REFERENCE = (
    "C.-M. Yuan: A method of parametric identification of chaotic systems. Ph.D. thesis, Michigan State "
    "University, 1995."
)
_REWEIGHTINGS = 4  # of the generalised least squares; the covariance hardly changes after two
_TAPER_LEAK = 2.5  # bins of j: sin^4 spreads the drive's line over the neighbours up to two
_DELAY_DIMENSION = 4  # thesis, section 4.4
_UNSEEN = 1e-9  # size of a column, of the largest, below which the rows do not see that unknown
_CLEAN = 1e-5  # noise over span below which samples are not smoothed


@dataclass(frozen=True)
class Options:
    """How to balance."""

    plain: bool = False  # the thesis' method by itself
    harmonics: int = 5  # of the drive (thesis: 3 to 5), sub-harmonics in between
    longest: int = 10  # period of the longest orbit, in drive periods (or turns)
    most_orbits: int = 40
    recurrences: int = 1  # segments used of each orbit, the closest first
    orbits: tuple[int, ...] = ()  # only these periods (in drive periods); none: all found
    starts: tuple[int, ...] = ()  # first sample of a segment for each of ``orbits``, instead of searching
    epsilon: float | None = None  # closure asked for, fraction of the span; None: 0.5 %, relaxed when needed
    frequency: float | None = None  # of the drive, per unit of time; None: as the record says
    phase: Literal["auto", "recorded", "orbit"] = (
        "auto"  # drive phase: as recorded, or unknown for each orbit
    )
    offset: bool = False  # estimate a constant offset of each sensor
    finish: bool = True  # end with maximum likelihood over the same segments


@dataclass(frozen=True, eq=False)
class Setting:
    """What is known of the record for balancing."""

    record: Record
    channels: list[str]  # measured states, in the model's order
    sources: dict[int, int]  # state -> measured channel it is taken from, as such or as its derivative
    pairs: dict[int, int]  # velocity state -> position state
    base: float  # drive period (mean turn of an autonomous system), in units of time
    t0: float  # the model's time at the first sample
    forced: bool
    noise: list[float]


@dataclass(eq=False)
class _Solution:
    values: Array
    offsets: Array
    shifts: Array
    covariance: Array  # of free parameters, then offsets, then shifts
    information: Array
    chi2: float
    dof: int
    iterations: int
    converged: bool
    history: list[dict[str, float]] = field(default_factory=list)


def identify(model: Model, records: Sequence[Record], options: Options, progress: Progress) -> Identification:
    """Parameters from the periodic orbits in the records, which share them."""
    unknown_phase = _phase_unknown(records, options)
    warnings: list[str] = []
    rows: list[OrbitRows] = []
    found: list[dict[str, Any]] = []
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
            for one in inside[: options.recurrences]:
                rows.append(orbit_rows(model, setting, one, options, unknown_phase))
                found.append(_described(one, setting))
    if not rows:
        raise DataError(
            "No periodic orbit was found to balance: give a longer record, a larger closure (epsilon), or "
            "use another method (weak, path)."
        )
    problem = _Balance(model, rows, options, unknown_phase and settings[0].forced and not options.plain)
    solution = problem.solve(progress.part(0.5, 0.7))
    result = _identification(problem, solution, options, warnings, found)
    if options.finish and not options.plain:
        result = _finish(problem, solution, result, settings, progress.part(0.7, 1.0))
    progress.report(1.0, "done")
    return result


def _phase_unknown(records: Sequence[Record], options: Options) -> bool:
    """Whether the drive's phase has to be found for each orbit."""
    if options.phase == "auto":
        return any(r.excitation is None or r.excitation.phase is None for r in records)
    return options.phase == "orbit"


def read_setting(model: Model, record: Record, options: Options) -> Setting:
    """Channels, derivatives and the drive, as the record and the options tell."""
    pairs = derivative_pairs(model)
    channels = [s for s in model.states if s in record and s in model.outputs]
    if not channels:
        raise DataError(
            f"Balance needs a record of states ({', '.join(model.states)}); this one has "
            f"{', '.join(record.names)}. Map a channel to a state."
        )
    sources: dict[int, int] = {}
    for i, state in enumerate(model.states):
        if state in channels:
            sources[i] = channels.index(state)
        elif i in pairs and model.states[pairs[i]] in channels:
            sources[i] = channels.index(model.states[pairs[i]])
        else:
            raise DataError(
                f"State '{state}' is neither measured nor the derivative of one that is: use homotopy."
            )
    missing = [name for name in model.inputs if name not in record]
    if missing:
        raise DataError(f"The model's input '{missing[0]}' is not in the record.")
    from analysis.noise import noise_levels

    noise = [float(s) for s in noise_levels(np.array([record[c] for c in channels]))]
    drive = record.excitation
    frequency = options.frequency if options.frequency is not None else (drive.frequency if drive else None)
    if frequency is None:
        return Setting(record, channels, sources, pairs, _turn(record, channels), 0.0, False, noise)
    phase = drive.phase if drive is not None and drive.phase is not None else 0.0
    return Setting(
        record, channels, sources, pairs, 1 / frequency, phase / (2 * np.pi * frequency), True, noise
    )


def _turn(record: Record, channels: list[str]) -> float:
    from analysis.autonomous import mean_turn

    return float(mean_turn(np.array([record[c] for c in channels]))) * record.dt


def extract(setting: Setting, options: Options, progress: Progress) -> Orbits:
    """Periodic orbits in the measured states, or in delay space when there is one channel only."""
    record = setting.record
    points = np.array([record[c] for c in setting.channels])
    valid = np.all([record.channels[c].valid() for c in setting.channels], axis=0)
    period = setting.base / record.dt
    if len(points) == 1:
        from analysis.embedding import delay_coordinates

        delay = max(1, round(period / 16))
        points = delay_coordinates(points[0], _DELAY_DIMENSION, delay)
        valid = valid[: points.shape[1]]
    if not setting.forced:
        from analysis.autonomous import autonomous_orbits

        longest = int(options.longest * period)
        return autonomous_orbits(
            points, longest=longest, epsilon=options.epsilon, valid=valid, maps=False, progress=progress
        )
    multiples = options.orbits or range(1, options.longest + 1)
    return forced_orbits(
        points,
        period,
        multiples=multiples,
        epsilon=options.epsilon,
        valid=valid,
        maps=False,
        progress=progress,
    )


def given_orbits(setting: Setting, options: Options) -> list[PeriodicOrbit]:
    """Segments that are known to close, such as the periods of a steady response."""
    if not setting.forced or len(options.starts) != len(options.orbits):
        raise DataError("Give a drive frequency and, for each start, the period of its orbit (orbits).")
    base = setting.base / setting.record.dt
    return [
        PeriodicOrbit(start, k * base, k, np.nan, np.nan, np.array([start]))
        for start, k in zip(options.starts, options.orbits, strict=True)
    ]


def choose(orbits: Orbits, options: Options) -> list[PeriodicOrbit]:
    """The closest orbits, of every period if possible."""
    ranked = sorted(orbits.orbits, key=lambda o: o.closure)
    seen: dict[int | None, int] = {}
    order = []
    for orbit in ranked:  # first the best of each period, then the second best, ...
        place = seen.get(orbit.multiple, 0)
        seen[orbit.multiple] = place + 1
        order.append((place if orbit.multiple is not None else 0, orbit.closure, orbit))
    return [orbit for _, _, orbit in sorted(order, key=lambda item: item[:2])][: options.most_orbits]


def _extent(setting: Setting, orbit: PeriodicOrbit, options: Options) -> tuple[int, int]:
    """Samples of the segment, and of the padding on both sides."""
    if options.plain:
        return round(orbit.period), 0
    return int(np.floor(orbit.period)) + 1, max(4, round(setting.base / setting.record.dt))


def fits(setting: Setting, orbit: PeriodicOrbit, options: Options) -> bool:
    """The segment and its padding lie inside the record."""
    count, pad = _extent(setting, orbit, options)
    return orbit.start >= pad and orbit.start + count + pad <= len(setting.record)


def orbit_rows(
    model: Model, setting: Setting, orbit: PeriodicOrbit, options: Options, unknown_phase: bool
) -> OrbitRows:
    """An orbit segment with its test functions and operators.

    The plain method leaves the drive's own harmonic out when its phase is unknown (thesis, section 4.6).
    """
    record, dt = setting.record, setting.record.dt
    period = orbit.period * dt
    cycles = period / setting.base
    count, pad = _extent(setting, orbit, options)
    if options.plain and setting.forced:
        orders = np.rint(cycles * np.arange(options.harmonics + 1))
        if unknown_phase:
            orders = np.delete(orders, 1)
    else:
        orders = np.arange(int(np.ceil(options.harmonics * cycles)) + 1, dtype=np.float64)
    first, last = orbit.start - pad, orbit.start + count + pad
    times = np.asarray(dt * np.arange(count), dtype=np.float64)
    make = TestFunctions.plain if options.plain else TestFunctions.tapered
    if options.plain:
        smooth, slope = np.eye(count), _periodic_slope(count, dt)
    else:
        spans = [float(np.ptp(record[c])) for c in setting.channels]
        noisy = any(s > _CLEAN * w for s, w in zip(setting.noise, spans, strict=True))
        smooth, slope = smoothing_operators(count, pad, dt, setting.base, noisy)
    sources = [
        (setting.sources[i], smooth if model.states[i] in setting.channels else slope)
        for i in range(len(model.states))
    ]
    middle = slice(orbit.start, orbit.start + count)
    positions = {setting.pairs[v] for v in setting.pairs}
    return OrbitRows(
        setting.t0 + dt * orbit.start + times,
        np.array([record[u][middle] for u in model.inputs]).reshape(len(model.inputs), count),
        make(times, period, orders, setting.base),
        sources,
        [record[c][first:last] for c in setting.channels],
        setting.noise,
        {v: x for v, x in setting.pairs.items() if model.states[x] in setting.channels},
        [i for i in range(len(model.states)) if i not in positions],
        [model.states.index(c) for c in setting.channels],
        pad,
    )


def _periodic_slope(count: int, dt: float) -> Array:
    """Spectral derivative of one period of samples."""
    spectra = np.fft.rfft(np.eye(count), axis=0) * (2j * np.pi * np.fft.rfftfreq(count, dt))[:, None]
    if count % 2 == 0:
        spectra[-1] = 0.0
    return np.asarray(np.fft.irfft(spectra, count, axis=0))


class _Balance:
    """The least-squares problem: free parameters, then sensor offsets, then a drive shift per orbit."""

    def __init__(self, model: Model, rows: list[OrbitRows], options: Options, unknown_phase: bool) -> None:
        self.model, self.rows, self.options = model, rows, options
        self.free = [model.index(name) for name in model.free]
        self.channels = list(range(len(rows[0].data))) if options.offset else []
        self.phases = unknown_phase
        self.lower = np.array([model.parameters[n].lower for n in model.free], dtype=np.float64)
        self.upper = np.array([model.parameters[n].upper for n in model.free], dtype=np.float64)

    def solve(self, progress: Progress) -> _Solution:
        """Iterated least squares; the weights follow from the second iteration on unless plain."""
        values, offsets = self.model.values(), np.zeros(len(self.rows[0].data))
        shifts = np.zeros(len(self.rows))
        if self.phases:
            values, shifts = self._find_phases(values, offsets)
        weights: list[Array] | None = None
        history: list[dict[str, float]] = []
        rounds = 1 if self.options.plain else 1 + _REWEIGHTINGS
        iterations, converged = 0, True
        for turn in range(rounds):
            for _ in range(30):
                iterations += 1
                step, cost, _ = self._step(values, offsets, shifts, weights)
                values, offsets, shifts, moved = self._moved(values, offsets, shifts, step, weights, cost)
                named = {n: float(values[self.model.index(n)]) for n in self.model.free}
                history.append({"iteration": float(iterations), "cost": cost, **named})
                progress.report(turn / rounds, "balance", cost=cost, **named)
                converged = moved < 1e-9
                if converged:
                    break
            if not self.options.plain:
                weights = self._weights(values, offsets, shifts)
        return self._solution(values, offsets, shifts, weights, iterations, converged, history)

    def _pieces(self, values: Array, offsets: Array, shifts: Array) -> list[tuple[Array, Array]]:
        """Per orbit: residual, and Jacobian over all unknowns."""
        pieces = []
        for number, (row, shift) in enumerate(zip(self.rows, shifts, strict=True)):
            residual = row.residual(self.model, values, offsets, shift)
            by_p, by_offset, by_shift = row.jacobian(
                self.model, values, offsets, shift, self.free, self.channels
            )
            blocks = [by_p, by_offset]
            if self.phases:
                own = np.zeros((len(residual), len(self.rows)))
                own[:, number] = by_shift
                blocks.append(own)
            pieces.append((residual, np.concatenate(blocks, axis=1)))
        return pieces

    def _weights(self, values: Array, offsets: Array, shifts: Array) -> list[Array]:
        """Per orbit: the inverse Cholesky factor of the rows' covariance, which whitens them."""
        factors = []
        for row, shift in zip(self.rows, shifts, strict=True):
            covariance = row.covariance(self.model, values, offsets, shift)
            floor = 1e-12 * np.trace(covariance) / len(covariance) + 1e-300
            lower = np.linalg.cholesky(covariance + floor * np.eye(len(covariance)))
            factors.append(np.linalg.inv(lower))
        return factors

    def _step(
        self, values: Array, offsets: Array, shifts: Array, weights: list[Array] | None
    ) -> tuple[Array, float, Array]:
        """Gauss-Newton step over all unknowns, with columns scaled."""
        pieces = self._pieces(values, offsets, shifts)
        if weights is None:
            residual = np.concatenate([r for r, _ in pieces])
            jacobian = np.concatenate([j for _, j in pieces])
        else:
            residual = np.concatenate([w @ r for w, (r, _) in zip(weights, pieces, strict=True)])
            jacobian = np.concatenate([w @ j for w, (_, j) in zip(weights, pieces, strict=True)])
        scale = np.linalg.norm(jacobian, axis=0)
        seen = scale > _UNSEEN * scale.max(initial=0.0)
        step = np.zeros(len(scale))
        step[seen] = -np.linalg.lstsq(jacobian[:, seen] / scale[seen], residual, rcond=1e-12)[0] / scale[seen]
        jacobian[:, ~seen] = 0.0
        return step, float(residual @ residual), jacobian.T @ jacobian

    def _cost(self, values: Array, offsets: Array, shifts: Array, weights: list[Array] | None) -> float:
        total = 0.0
        for number, row in enumerate(self.rows):
            residual = row.residual(self.model, values, offsets, shifts[number])
            if weights is not None:
                residual = weights[number] @ residual
            total += float(residual @ residual)
        return total if np.isfinite(total) else np.inf

    def _moved(
        self,
        values: Array,
        offsets: Array,
        shifts: Array,
        step: Array,
        weights: list[Array] | None,
        cost: float,
    ) -> tuple[Array, Array, Array, float]:
        """The point after the step, halved until the cost does not rise; and how far it moved, relative."""
        for halving in range(20):
            part = step * 0.5**halving
            p, o, s = self._apply(values, offsets, shifts, part)
            if self._cost(p, o, s, weights) <= cost * (1 + 1e-12):
                size = np.abs(p[self.free]) + np.abs(values[self.free]) + 1e-300
                moved = float(np.max(np.abs(p - values)[self.free] / size)) if len(self.free) else 0.0
                return p, o, s, moved
        return values, offsets, shifts, 0.0

    def _apply(self, values: Array, offsets: Array, shifts: Array, step: Array) -> tuple[Array, Array, Array]:
        k, c = len(self.free), len(self.channels)
        p, o, s = values.copy(), offsets.copy(), shifts.copy()
        p[self.free] = np.clip(p[self.free] + step[:k], self.lower, self.upper)
        o[self.channels] += step[k : k + c]
        if self.phases:
            s += step[k + c :]
        return p, o, s

    def _find_phases(self, values: Array, offsets: Array) -> tuple[Array, Array]:
        """A start when the drive's phase is unknown.

        Rows away from the drive's line do not see it: they give the other parameters. Then each orbit's shift
        is the one, of a grid over the drive period, that balances the rows at the line best.
        """
        quiet = [np.tile(self._away(row), len(row.equations)) for row in self.rows]
        zero = np.zeros(len(self.rows))
        for _ in range(8):
            residual, jacobian = [], []
            for row, keep in zip(self.rows, quiet, strict=True):
                by_p = row.jacobian(self.model, values, offsets, 0.0, self.free, [])[0]
                residual.append(row.residual(self.model, values, offsets, 0.0)[keep])
                jacobian.append(by_p[keep])
            matrix = np.concatenate(jacobian)
            seen = np.linalg.norm(matrix, axis=0) > 1e-9 * np.linalg.norm(matrix)
            step = np.zeros(len(self.free))
            if seen.any():
                step[seen] = -np.linalg.lstsq(matrix[:, seen], np.concatenate(residual), rcond=1e-10)[0]
            values, _, _ = self._apply(values, offsets, zero, self._padded(step))
        period = self._drive_period()
        return values, np.array([self._best_shift(row, values, offsets, period) for row in self.rows])

    def _padded(self, step: Array) -> Array:
        return np.concatenate([step, np.zeros(len(self.channels) + len(self.rows))])

    def _away(self, row: OrbitRows) -> NDArray[np.bool_]:
        """Rows that the taper keeps clear of the drive's line."""
        spacing = row.tests.harmonic[row.tests.harmonic > 0].min()
        return np.asarray(np.abs(row.tests.harmonic - 1.0) > _TAPER_LEAK * spacing)

    def _drive_period(self) -> float:
        row = self.rows[0]
        cycles = 1.0 / row.tests.harmonic[row.tests.harmonic > 0].min()
        length = row.times[-1] - row.times[0] + (row.times[1] - row.times[0])
        return float(length / max(round(cycles), 1))

    def _best_shift(self, row: OrbitRows, values: Array, offsets: Array, period: float) -> float:
        grid = np.arange(48) / 48 * period
        costs = [float(np.sum(row.residual(self.model, values, offsets, s) ** 2)) for s in grid]
        return float(grid[int(np.argmin(costs))])

    def _solution(
        self, values: Array, offsets: Array, shifts: Array, weights: list[Array] | None,
        iterations: int, converged: bool, history: list[dict[str, float]],
    ) -> _Solution:  # fmt: skip
        _, cost, information = self._step(values, offsets, shifts, weights)
        count = sum(len(row.equations) * len(row.tests.value) for row in self.rows)
        unknowns = information.shape[0]
        dof = max(count - unknowns, 1)
        variance = cost / dof if weights is None else max(cost / dof, 1.0)
        return _Solution(
            values, offsets, shifts, covariance_of(information) * variance, information / variance, cost, dof,
            iterations, converged, history,
        )  # fmt: skip


def _described(orbit: PeriodicOrbit, setting: Setting) -> dict[str, Any]:
    return {
        "start": orbit.start,
        "period": orbit.period * setting.record.dt,
        "multiple": orbit.multiple,
        "closure": orbit.closure,
        "count": orbit.count,
    }


def _identification(
    problem: _Balance, solution: _Solution, options: Options, warnings: list[str], found: list[dict[str, Any]]
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
        angles = 2 * np.pi * solution.shifts / problem._drive_period()
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


def _finish(
    problem: _Balance, solution: _Solution, start: Identification, settings: list[Setting], progress: Progress
) -> Identification:
    """Maximum likelihood over the orbit segments; the balance itself if that does not settle."""
    from analysis.path_estimate import estimate_path

    model, k, q = problem.model, len(solution.values), len(problem.model.outputs)
    segments = [_segment(problem, solution, number) for number in range(len(problem.rows))]
    measured = [model.outputs.index(c) for c in settings[0].channels]
    free = [*problem.free, *(k + i for i in measured if problem.channels)]
    delays = [k + q + i for i in measured] if problem.phases else []
    lower, upper = np.full(k, -np.inf), np.full(k, np.inf)
    lower[problem.free], upper[problem.free] = problem.lower, problem.upper
    sensors = np.zeros(2 * q)
    sensors[measured] = solution.offsets
    values = np.tile(solution.values, (len(segments), 1)) if delays else solution.values
    found = estimate_path(
        model.kernels(), segments, values, [*free, *delays], local=delays, lower=lower, upper=upper,
        sensors=sensors, progress=progress,
    )  # fmt: skip
    ratio = found.chi2 / max(found.dof, 1)
    if not found.converged:
        note = "The maximum-likelihood stage did not settle; these are the balance's own numbers."
        return replace(start, warnings=[*start.warnings, note])
    shared = [i for i, (index, _) in enumerate(found.unknowns) if index in free]
    indices = [found.unknowns[i][0] for i in shared]
    parameter = dict(zip(problem.free, model.free, strict=True))
    names = [parameter[i] if i < k else f"offset {model.outputs[i - k]}" for i in indices]
    covariance = found.covariance[np.ix_(shared, shared)]
    units = {name: model.parameters[name].unit for name in model.free}
    return replace(
        start,
        parameters=estimates(names, found.estimate[shared], covariance, units),
        covariance=covariance.tolist(),
        iterations=start.iterations + found.iterations,
        evaluations=start.evaluations + found.evaluations,
        residual={"chi2": found.chi2, "dof": float(found.dof), "chi2 per dof": ratio},
        extra={**start.extra, "balance": start.values()},
    )


def _segment(problem: _Balance, solution: _Solution, number: int) -> Any:
    """An orbit segment for the finisher: its samples, the smoothed states as a start."""
    from analysis.inputs import Inputs
    from analysis.path_estimate import Segment

    row, model = problem.rows[number], problem.model
    times = row.times + solution.shifts[number]
    outputs = np.full((len(model.outputs), len(times)), np.nan)
    for channel, state in enumerate(row.measured):
        samples = row.data[channel][row.first : row.first + len(times)]
        outputs[model.outputs.index(model.states[state])] = samples
    step = float(times[1] - times[0])
    inputs = Inputs.from_samples(float(times[0]), step, row.inputs) if len(row.inputs) else None
    return Segment(times, outputs, row.states(solution.offsets), inputs, record=number)
