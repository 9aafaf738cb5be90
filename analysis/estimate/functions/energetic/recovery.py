"""Unknown functions of an oscillator from whole records: weak start, output-error refinement, bands."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.progress import SILENT, Progress
from analysis.base.record import Record
from analysis.estimate.finish.evidence import NOISELESS
from analysis.estimate.functions.energetic.channels import (
    first_drift,
    measured_channels,
    motion_of,
    oscillator_states,
    sensor_drift,
    with_acceleration,
    zero_is_free,
)
from analysis.estimate.functions.energetic.marks import sharpened
from analysis.estimate.functions.energetic.refinement import OutputError, Run
from analysis.estimate.functions.energetic.splines import KnownValue
from analysis.estimate.functions.energetic.start import Motion, weak_start
from analysis.estimate.functions.energetic.unknowns import UnknownFunctions, layout
from analysis.estimate.functions.judgement import Left, own_noise
from analysis.estimate.functions.penalised import Fit, descend, fit_penalised, inverted, penalty_matrix
from analysis.experiment import Conditions, Experiment
from analysis.experiment import Run as ExperimentRun

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]
BEYOND = 0.05  # of the visited range on either side, where the band shows what was not visited
PERIODS = 4.0  # of the slowest motion in a segment
WON = 1e-3  # degrees of freedom beyond a polynomial below which a function is one
STEEP = 4.0  # harmonics of the motion that the integration steps must follow
STEP = 0.15  # radians of the highest of them to a step
COLOURINGS = 2  # fits with the noise of the inputs counted along the motion of the one before
_FIRST_LOOK = 12  # stages of it, while the penalties are let go
_SHORTEST_SEGMENT = 16  # samples: a motion that runs away even within them is none of the record


@dataclass(frozen=True)
class Recovery:
    """Found functions. The fit's unknowns begin with those of the functions."""

    unknowns: UnknownFunctions
    fit: Fit
    start: Fit
    noise: dict[str, float]  # of the measured channels
    samples: int
    segments: int
    evaluations: int
    left: tuple[Left, ...] = ()  # what is left of x and v; empty without the output error
    motions: tuple[Motion, ...] = ()
    window: int = 0  # half width of the weak form's test functions, samples
    from_middle: bool = False  # the displacement is counted from its mean: no sensor shows its zero
    about_time: tuple[str, ...] = ()  # what is to be said of the model's t


@dataclass(frozen=True, eq=False)
class Measured:
    """The records as the recovery takes them."""

    model: Model
    runs: Sequence[ExperimentRun]
    channels: Sequence[Array]  # [rows, N] displacement, velocity, acceleration; nan where not measured
    names: Sequence[str]  # of the rows
    motions: tuple[Motion, ...]
    own_noise: Array  # [rows] from their differences; nan: it does not show
    doubt: Array  # [rows] relative standard error of it
    period: float  # samples to a swing

    @property
    def placed(self) -> bool:
        """Whether a sensor tells where the displacement is zero."""
        return any(np.isfinite(rows[0]).any() for rows in self.channels)


@dataclass(frozen=True)
class Wanted:
    """What is to be recovered, and how."""

    unknown: str
    intervals: int = 0
    c_known: tuple[KnownValue, ...] = ()
    h_known: tuple[KnownValue, ...] = ()
    start_known: tuple[float, float] | None = None
    segment: int = 0
    refine: bool = True
    rough: int = 0  # 0: smooth but for kinks and steps, where the data ask for them


def recover(
    model: Model, records: Sequence[Record], wanted: Wanted, denoise: bool = True, progress: Progress = SILENT
) -> Recovery:
    """c(t), H(x), H(x, v) or c and H together, v' = (the model's) - c(t) v - H."""
    oscillator_states(model)
    model = with_acceleration(model, records)
    experiment = Experiment(model, records, Conditions(denoise=denoise))
    model = experiment.model
    channels, names = measured_channels(model, records)
    levels = [own_noise([rows[i] for rows in channels]) for i in range(len(names))]
    noise, doubt = (np.array(column) for column in zip(*levels, strict=True))
    motions = tuple(
        motion_of(
            model.kernels(), model.values(), run.times, rows, run.inputs, float(np.nan_to_num(noise[-1]))
        )
        for run, rows in zip(experiment.runs, channels, strict=True)
    )
    period = min(_period(m) for m in motions)
    data = Measured(model, experiment.runs, channels, names, motions, noise, doubt, period)
    unknowns = _grids(wanted, motions)
    found = _recovered(data, wanted, unknowns)
    return replace(found, about_time=tuple(experiment.about_time))


def _noiseless(channels: Sequence[Left]) -> bool:
    return all(left.rms < NOISELESS * left.spread for left in channels)


def _recovered(data: Measured, wanted: Wanted, unknowns: UnknownFunctions) -> Recovery:
    """The functions on these grids."""
    motions = data.motions
    theta, directions = _freedom(unknowns, np.zeros(unknowns.size), False)
    window = _window(motions[0], data.period)
    start = weak_start(unknowns, motions, theta, directions, window)
    samples = int(sum(np.isfinite(c).sum() for c in data.channels))
    if not wanted.refine:
        return Recovery(unknowns, start, start, {}, samples, 0, 0)
    data, start = _first_look(data, wanted, unknowns, start)
    task, full = _shootable(data, wanted, unknowns, start)
    full, free = _freedom(unknowns, full, wanted.start_known is not None)
    weights = start.weights
    coloured = any(np.any(run.input_noise > 0) for run in data.runs)
    for _ in range(COLOURINGS if coloured else 1):
        if coloured:
            task.set_noise(task.misfit(full, False).squares, 0.0)
            task.noise = np.where(np.isfinite(data.own_noise), data.own_noise, task.noise)
            task.colour(full)
        refined = fit_penalised(task, full, unknowns.smooths(), weights, free, factor=30.0)
        full, weights = refined.theta, refined.weights
    refined = _settled(task, refined, unknowns, wanted.start_known is not None)
    count = sum(len(r.starts) for r in task.runs)
    left = _left(data, task, refined.theta)
    if not (wanted.rough or wanted.c_known or wanted.h_known or unknowns.v or _noiseless(left)):
        refined = sharpened(unknowns, refined, task)
        left = _left(data, task, refined.theta)
    noise = {one.name: float(task.noise[data.names.index(one.name)]) for one in left}
    return Recovery(
        unknowns,
        refined,
        start,
        noise,
        samples,
        count,
        task.evaluations,
        left,
        motions,
        window,
        task.middle > 0,
    )


def _first_look(
    data: Measured, wanted: Wanted, unknowns: UnknownFunctions, start: Fit
) -> tuple[Measured, Fit]:
    """The motion and the functions after a first look over segments of one swing.

    The first functions are poor where the motion goes between wells, or was integrated and lacks what was
    slow in it: over a few swings the motion that follows from them is another one.
    """
    short = replace(wanted, segment=max(int(np.ceil(data.period)), _SHORTEST_SEGMENT))
    task, full = _shootable(data, short, unknowns, start)
    full, free = _freedom(unknowns, full, wanted.start_known is not None)
    first = fit_penalised(
        task, full, unknowns.smooths(), start.weights, free, stages=_FIRST_LOOK, factor=30.0
    )
    position, motions = unknowns.size, []
    for motion, run in zip(data.motions, task.runs, strict=True):
        _, X, _ = task.shoot(run, first.theta, position, False)
        states = X - run.drift @ first.theta[position + 2 * len(run.starts) : position + run.unknowns]
        motions.append(replace(motion, smooth_x=states[0], smooth_v=states[1]))
        position += run.unknowns
    seen = replace(data, motions=tuple(motions))
    return seen, replace(start, theta=first.theta[: unknowns.size], weights=first.weights)


def _left(data: Measured, task: OutputError, theta: Array) -> tuple[Left, ...]:
    """What is left of each channel."""
    position = task.unknowns.size
    residuals, errors = [], []
    known = np.where(np.isfinite(data.own_noise), data.own_noise, task.noise)
    for number, run in enumerate(task.runs):
        _, X, _ = task.shoot(run, theta, position, False)
        missing = ~np.isfinite(run.data)
        residuals.append(np.where(missing, np.nan, run.data - X))
        scaled = task.weighted(number, X) * (task.noise / known)[:, None]
        errors.append(np.where(missing, np.nan, -scaled))
        position += run.unknowns
    return tuple(
        Left(
            data.names[i],
            [rows[i] for rows in data.channels],
            [row[i] for row in residuals],
            [row[i] for row in errors],
            float(data.own_noise[i]),
            float(data.doubt[i]),
        )
        for i in range(len(data.names))
        if any(np.isfinite(rows[i]).any() for rows in data.channels)
    )


def _shootable(
    data: Measured, wanted: Wanted, unknowns: UnknownFunctions, start: Fit
) -> tuple[OutputError, Array]:
    """The comparison and its unknowns at the start, over segments that the first estimate does not leave."""
    length = wanted.segment or int(np.ceil(PERIODS * data.period))
    while True:
        task, full = _output_error(data, wanted, unknowns, start, length)
        if np.isfinite(task.misfit(full, False).cost):
            return task, full
        if length <= _SHORTEST_SEGMENT:
            raise DataError(
                "The motion of the first estimate runs away even over a few samples: check the model and "
                "units."
            )
        length //= 2  # the weak form was poor: shorter segments forgive more


def _settled(task: OutputError, fit: Fit, unknowns: UnknownFunctions, fixed_start: bool) -> Fit:
    """Where the penalty has won outright, the function becomes exactly a polynomial, without rounding."""
    spent = np.diag(fit.covariance @ fit.hessian)
    won = set()
    for i, (part, (rows, values), size) in enumerate(
        zip(unknowns.smooths(), unknowns.known(), unknowns.polynomial(), strict=True)
    ):
        inner = rows[:, :size]
        free = size - (int(np.linalg.matrix_rank(inner)) if len(rows) else 0)
        particular = np.linalg.lstsq(inner, values, rcond=None)[0]
        miss = np.max(np.abs(inner @ particular - values), initial=0.0)
        beyond = float(np.sum(spent[part.where])) - free
        if size and beyond < WON and miss <= 1e-9 * np.max(np.abs(values), initial=0.0):
            won.add(i)
    if not won:
        return fit
    theta, directions = _freedom(unknowns, fit.theta, fixed_start, won)
    rest = [i for i in range(len(unknowns.smooths())) if i not in won]
    smooths = unknowns.smooths()
    weights = np.array([fit.weights[i] for i in rest])
    penalty = penalty_matrix([smooths[i] for i in rest], weights, len(theta))
    found = descend(task, theta, task.misfit(theta), penalty, directions)
    current = found.evaluation.misfit
    return replace(
        fit,
        theta=found.evaluation.theta,
        covariance=inverted(current.hessian + penalty, directions),
        hessian=current.hessian,
        misfit=current,
        iterations=fit.iterations + found.iterations,
        converged=fit.converged and found.converged,
    )


def _freedom(
    unknowns: UnknownFunctions, theta: Array, fixed_start: bool, simple: Collection[int] = ()
) -> tuple[Array, Array]:
    """Unknowns that satisfy what is known, next to the given ones, and the directions that keep it so.

    ``simple``: functions that are to be polynomials. Unknowns beyond the coefficients are initial values.
    """
    from scipy.linalg import block_diag, null_space

    theta = theta.copy()
    blocks, position = [], 0
    for i, (rows, values) in enumerate(unknowns.known()):
        size = rows.shape[1]
        where = slice(position, position + size)
        span = np.eye(size)[:, : unknowns.polynomial()[i]] if i in simple else np.eye(size)
        inner = rows @ span
        free = null_space(inner, rcond=1e-12) if len(rows) else np.eye(span.shape[1])
        particular = span @ np.linalg.lstsq(inner, values, rcond=1e-12)[0] if len(rows) else np.zeros(size)
        if len(rows) and np.max(np.abs(rows @ particular - values)) > 1e-6 * np.max(
            np.abs(values), initial=1e-300
        ):
            raise DataError("The known values contradict one another.")
        own = span @ free
        near = np.linalg.lstsq(own, theta[where] - particular, rcond=None)[0]
        theta[where] = particular + own @ near
        blocks.append(own)
        position += size
    extra = np.eye(len(theta) - position)
    blocks.append(extra[:, 2:] if fixed_start else extra)
    return theta, np.asarray(block_diag(*blocks))


def _grids(wanted: Wanted, motions: Sequence[Motion]) -> UnknownFunctions:
    def span(rows: list[Array]) -> tuple[float, float]:
        low, high = min(float(r.min()) for r in rows), max(float(r.max()) for r in rows)
        if high <= low:
            raise DataError("The record does not move: nothing can be learnt from it.")
        return low - BEYOND * (high - low), high + BEYOND * (high - low)

    last = max(float(m.times[-1]) for m in motions)
    first = min(float(m.times[0]) for m in motions)
    x, v = span([m.smooth_x for m in motions]), span([m.smooth_v for m in motions])
    samples = sum(len(m.times) for m in motions)
    grids = layout(wanted.unknown, (first, last), x, v, samples, wanted.intervals, wanted.rough or 3)
    step = float(motions[0].times[1] - motions[0].times[0])
    force = max(float(np.std(np.gradient(m.smooth_v, step))) + float(np.std(m.known)) for m in motions)
    speed = max(float(np.std(m.smooth_v)) for m in motions)
    return replace(
        grids, c_known=wanted.c_known, h_known=wanted.h_known, c_scale=force / speed, h_scale=force
    )


def _period(motion: Motion) -> float:
    """Samples to a swing of the displacement: the record's length if it does not swing.

    A swing counts when it crosses a band about the middle, so that noise does not make swings.
    """
    low, high = np.quantile(motion.smooth_x, [0.05, 0.95])
    middle, band = 0.5 * (low + high), 0.1 * (high - low)
    side = np.where(motion.smooth_x > middle + band, 1, np.where(motion.smooth_x < middle - band, -1, 0))
    side = side[side != 0]
    swings = 0.5 * float(np.sum(np.diff(side) != 0))
    return len(motion.times) / max(swings, 1.0)


def _window(motion: Motion, period: float) -> int:
    return int(np.clip(period / 8.0, 8, max(8, len(motion.times) // 12)))


def _output_error(
    data: Measured, wanted: Wanted, unknowns: UnknownFunctions, start: Fit, length: int
) -> tuple[OutputError, Array]:
    """The comparison and its unknowns at the start."""
    runs, initial = [], []
    for motion, rows, run in zip(data.motions, data.channels, data.runs, strict=True):
        count = len(motion.times)
        pieces = max(1, round(count / max(length, 8)))
        starts = np.linspace(0, count, pieces + 1).astype(np.int64)[:-1]
        fastest = STEEP * 2.0 * np.pi / data.period  # radians to a sample
        steps = max(2, int(np.ceil(fastest / STEP)))
        drift = sensor_drift(motion.times, rows)
        limit = _limit(motion)
        runs.append(Run(motion.times, rows, run.inputs, starts, steps, limit, run.input_noise, drift))
        initial.append(np.column_stack([motion.smooth_x[starts], motion.smooth_v[starts]]).ravel())
        initial.append(first_drift(drift, rows, motion))
    values = np.concatenate(initial)
    if wanted.start_known is not None:
        values[:2] = wanted.start_known
    model = data.model
    placed = data.placed or any(not known.derivative for known in wanted.h_known)
    anywhere = not placed and zero_is_free(model, unknowns)
    middle = max(float(np.std(m.smooth_x)) for m in data.motions) if anywhere else 0.0
    task = OutputError(
        model.kernels().jac, model.values(), unknowns, runs, np.ones(len(data.names)), middle=middle
    )
    return task, np.concatenate([start.theta, values])


def _limit(motion: Motion) -> Array:
    """Displacement and velocity at which a motion has run away."""
    x, v = (float(np.max(np.abs(row))) for row in (motion.smooth_x, motion.smooth_v))
    swing, dt = float(motion.times[-1] - motion.times[0]), float(motion.times[1] - motion.times[0])
    x = max(x, v * swing)
    return 1e6 * np.array([x, max(v, x / dt)])
