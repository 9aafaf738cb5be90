"""Uncoupled output error as an engine of the finish: one motion a piece, its initial state projected out.

For inputs that are exact and motions that one trajectory can follow this is the maximum likelihood, at a
fraction of the cost of the path and without its trouble with kinks and stiff equations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import Progress
from analysis.estimate.evaluation import Point
from analysis.estimate.finish.fitted import Fitted, Piece
from analysis.estimate.identifiability import pseudo_inverse
from analysis.estimate.shooting.build import LEAST_NOISE, Place, problem_of, start_point, stretches_of
from analysis.estimate.shooting.descent import Descent, minimise
from analysis.estimate.shooting.problem import FINE, Problem
from analysis.estimate.start import Start
from analysis.signal.inputs import Inputs
from analysis.signal.noise import robust_deviation

if TYPE_CHECKING:
    from analysis.experiment import Experiment
    from analysis.experiment.noise_sharing import NoiseSharing

Array = NDArray[np.float64]

_TOLERANCE = 1e-4  # promised decrease, in units of the cost of one sample: a hundredth of a standard error
_REWEIGHTINGS = 4  # rounds of fit and noise from the residuals
_SAME_NOISE = 0.02  # relative change of the noise at which they end
_LOOKED_AT = 50  # samples at which the fastest rate of a stiff model is looked at
_STABLE, _MOST_STABLE = 1.0, 4096  # rate times sub-step that Runge-Kutta 4 follows well; most sub-steps
_LEAST_STABLE = 4  # sub-steps: the fastest rate may be that of a contact between the samples looked at
_SHORTEST = 8  # samples of a piece, at least
_SLIGHT = 0.01  # of an input's standard deviation, by which it is changed: the motion stays close
_OUTLIER = 6.0  # robust deviations beyond which a residual says nothing about the noise


def fit_shooting(
    experiment: Experiment, start: Start, progress: Progress, cuts: int = 1, max_iterations: int = 60
) -> Fitted:
    """Output error from a start, the noise of each output from its residuals where it is not given."""
    places = _cut(stretches_of(experiment), cuts)
    given = list(start.states) or [None] * len(experiment.runs)
    known = experiment.start_states(start.values) if any(p is None for p in given) else ()
    paths = [path if path is not None else known[i] for i, path in enumerate(given)]
    problem = problem_of(experiment, places=places)
    whole = start_point(experiment, start.values, paths, start.sensors)
    initials = tuple(np.array(paths[i][:, first], dtype=np.float64) for i, first, _ in places)
    point = whole if cuts == 1 else Point(whole.values, initials)
    found, history, iterations = _fit(experiment, problem, point, max_iterations, progress)
    return _fitted(experiment, start, problem, places, found, history, iterations)


def _fit(
    experiment: Experiment, problem: Problem, point: Point, iterations: int, progress: Progress
) -> tuple[Descent, list[dict[str, float]], int]:
    """Fit and noise in turn until the noise stays; then sub-steps fine enough that they do not matter."""
    history: list[dict[str, float]] = []
    total = 0
    levels = _Levels(~np.isfinite(experiment.sigma), experiment.noise_sharing)
    tolerance = _TOLERANCE / max(problem.samples, 1)

    def watch() -> None:
        progress.report(len(history) / (len(history) + 8), "output error")

    for _ in range(_REWEIGHTINGS):
        problem.settle_substeps(point, FINE)
        here = problem.evaluate(point)
        if not np.isfinite(here.cost):
            raise ShakedownError("The model's motion is lost: it leaves all bounds from this start.")
        found = minimise(problem, here, tolerance, iterations, watch=watch)
        total += found.iterations
        history += [{"cost": float(cost)} for cost in found.history]
        point = found.evaluation.point
        change = levels.follow(problem, found)
        if change < _SAME_NOISE:
            break
    found = minimise(problem, problem.evaluate(point), tolerance, iterations, watch=watch)
    return found, history, total + found.iterations


@dataclass
class _Levels:
    """Noise of the outputs that follows the residuals."""

    estimated: NDArray[np.bool_]  # [records, q]
    sharing: NoiseSharing

    def follow(self, problem: Problem, found: Descent) -> float:
        """Noise of each output from its residuals, outliers not counting; the largest relative change."""
        squares, counts, spread = (np.zeros(problem.sigma.shape) for _ in range(3))
        residuals = problem.residuals(found.evaluation)
        records = [s.record for s in problem.stretches]
        for record in sorted(set(records)):
            own = [r for r, place in zip(residuals, records, strict=True) if place == record]
            left = np.concatenate(own, axis=1)
            for output in np.flatnonzero(self.estimated[record]):
                usual = _usual(left[output])
                squares[record, output], counts[record, output] = float(usual @ usual), len(usual)
        together = np.concatenate([s.outputs for s in problem.stretches], axis=1)
        for i, row in enumerate(together):
            spread[:, i] = float(np.nanstd(row)) if np.isfinite(row).any() else 0.0
        freedom = counts * max(_dof(problem), 1) / problem.samples
        self.sharing = self.sharing.decided(squares, freedom)
        level = np.sqrt(self.sharing.variances(squares, freedom))
        level = np.maximum(level, np.maximum(LEAST_NOISE * spread, 1e-300))
        new = np.where(counts > 1, level, problem.sigma)
        change = float(np.max(np.abs(new / problem.sigma - 1.0)))
        problem.sigma = new
        return change


def _usual(row: Array) -> Array:
    """Residuals without missing samples and without those far outside the rest."""
    left = row[np.isfinite(row)]
    wide = robust_deviation(left) if len(left) > 1 else 0.0
    return np.asarray(left[np.abs(left) <= _OUTLIER * wide] if wide > 0 else left)


def _dof(problem: Problem) -> int:
    known = sum(int(np.sum(s.lower == s.upper)) for s in problem.stretches)
    return problem.samples - len(problem.unknowns) - problem.states * len(problem.stretches) + known


def _fitted(
    experiment: Experiment,
    start: Start,
    problem: Problem,
    places: list[Place],
    found: Descent,
    history: list[dict[str, float]],
    iterations: int,
) -> Fitted:
    position = {item: i for i, item in enumerate(problem.unknowns.items)}
    order = [position[(u.index, u.record)] for u in experiment.unknowns]
    pieces = [
        _piece(experiment, problem, place, found, i, order) for i, place in enumerate(places)
    ]  # fmt: skip
    size = len(order)
    information = np.zeros((size, size))
    for piece in pieces:
        flat = piece.jacobian.reshape(piece.residuals.size, size)
        information += flat.T @ flat
    here = found.evaluation
    return Fitted(
        experiment,
        start,
        "shooting",
        experiment.unknowns,
        problem.unknowns.current(here.point.values)[order],
        here.point.values,
        information,
        _covariance_from_inputs(experiment, problem, found, pieces, information),
        problem.sigma,
        2.0 * here.cost,
        _dof(problem),
        found.converged,
        iterations,
        problem.evaluations,
        history,
        "",
        tuple(pieces),
        int(problem.substeps or _stable_substeps(problem, found)),
        segments=len(places),
    )


def _covariance_from_inputs(
    experiment: Experiment, problem: Problem, found: Descent, pieces: list[Piece], information: Array
) -> Array:
    """Covariance of the unknowns that comes from what is unknown of the inputs, to first order."""
    here = found.evaluation
    inverse = pseudo_inverse(information)
    total = np.zeros_like(information)
    for record, run in enumerate(experiment.runs):
        for variant in run.variants:
            given = run.inputs
            change = _SLIGHT * (variant.coefficients - given.coefficients)
            inputs = Inputs(given.t0, given.dt, given.coefficients + change, given.breaks)
            changed = [replace(s, inputs=inputs) if s.record == record else s for s in problem.stretches]
            moved = problem.on(changed).evaluate(here.point, derivatives=False)
            if not np.isfinite(moved.cost):  # a motion that so little makes escape was not followed either
                continue
            gradient = np.zeros(len(information))
            for piece, a, b in zip(pieces, moved.motions, here.motions, strict=True):
                effect = np.nan_to_num((a.outputs - b.outputs) / problem.sigma[piece.record][:, None])
                gradient += np.tensordot(effect, piece.jacobian, axes=2)
            shift = inverse @ gradient / _SLIGHT
            total += np.outer(shift, shift)
    return total


def _stable_substeps(problem: Problem, found: Descent) -> int:
    """Sub-steps with which an explicit scheme follows a stiff motion, for what is linearised along it."""
    stretch, motion = problem.stretches[0], found.evaluation.motions[0]
    some = np.linspace(0, len(stretch) - 1, _LOOKED_AT).astype(int)
    n, k = problem.states, problem.parameters
    dx, jx, jp = np.empty((n, len(some))), np.empty((n, n, len(some))), np.empty((n, k, len(some)))
    times, states = np.ascontiguousarray(stretch.times[some]), np.ascontiguousarray(motion.states[:, some])
    values = np.ascontiguousarray(found.evaluation.point.values[stretch.record, :k])
    problem.kernels.jac_many(times, states, stretch.inputs.values(times), values, dx, jx, jp)
    fastest = float(np.max(np.abs(np.linalg.eigvals(jx.transpose(2, 0, 1)))))
    dt = float(stretch.times[1] - stretch.times[0])
    return int(np.clip(np.ceil(fastest * dt / _STABLE), _LEAST_STABLE, _MOST_STABLE))


def _piece(
    experiment: Experiment, problem: Problem, place: Place, found: Descent, i: int, order: list[int]
) -> Piece:
    """One stretch with the Jacobian from which its initial state is projected out."""
    number, first, stop = place
    stretch, motion = problem.stretches[i], found.evaluation.motions[i]
    shared, n, q = len(problem.free), problem.states, problem.outputs
    seen = np.isfinite(stretch.outputs)
    weighted = np.where(seen[:, None, :], motion.slopes / problem.sigma[number][:, None, None], 0.0)
    flat = weighted.transpose(0, 2, 1).reshape(-1, shared + n)
    own, initial = flat[:, :shared], flat[:, shared:].copy()
    known = stretch.lower == stretch.upper if len(stretch.lower) else np.zeros(n, dtype=bool)
    initial[:, known] = 0.0
    inner = initial.T @ initial
    follow = -pseudo_inverse(inner) @ initial.T @ own  # how the best initial state follows the unknowns
    projected = own + initial @ follow
    inner[known, known] = np.finfo(np.float64).max ** 0.5  # no error where nothing is unknown
    columns = problem.unknowns.columns(stretch.record)
    jacobian = np.zeros((q * len(stretch), len(problem.unknowns)))
    slope = np.zeros((n, len(problem.unknowns)))
    for column, target in enumerate(columns):
        if target >= 0:
            jacobian[:, target] = projected[:, column]
            slope[:, target] = follow[:, column]
    return Piece(
        experiment.runs[number],
        number,
        first,
        stop,
        stretch.times,
        motion.states,
        stretch.outputs - motion.outputs,
        jacobian[:, order].reshape(q, len(stretch), len(order)),
        slope[:, order],
        inner,
    )


def _cut(places: list[Place], cuts: int) -> list[Place]:
    pieces = []
    for run, first, stop in places:
        count = max(min(cuts, (stop - first) // _SHORTEST), 1)
        edges = np.linspace(first, stop, count + 1).round().astype(int)
        pieces += [(run, int(a), int(b)) for a, b in pairwise(edges)]
    return pieces
