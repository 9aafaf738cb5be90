"""Output error: parameters and initial values whose simulated outputs are nearest to the measured ones.

The common descent on the weighted residuals of several segments that share the parameters, with forward
sensitivities, bounds, and logarithmic scale for parameters whose bounds span decades. A trajectory that
diverges costs infinity, so the damping grows and the search goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.estimate import evaluation
from analysis.estimate.descent import bordered_step, minimise, promised_decrease
from analysis.estimate.evaluation import Point
from analysis.estimate.homotopy.coupled import (
    CLASSICAL,
    Controller,
    CoupledRun,
    CoupledStretch,
    Scheme,
    run_coupled,
)

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]
Evaluation = evaluation.Evaluation[CoupledRun]

_LOG_SPAN = 1e3  # bounds further apart than this factor want a logarithmic scale
_LARGEST_LOG_STEP = np.log(1e3)  # three decades in one step: beyond it the linearisation means nothing
_REPEATABLE = 1e-11  # change of the outputs over their size that a trajectory in double precision resolves
_FIRST_DAMPING = 1e-4  # a coupled motion follows the record: its linearisation is trusted from the start


@dataclass(frozen=True, eq=False)
class SearchCoordinates:
    """The parameters as a search moves them: place in the model's vector, bounds, which are on log scale.

    All records share them; :class:`analysis.estimate.unknowns.Unknowns` tells whose an unknown is, in its
    own unit.
    """

    positions: NDArray[np.int64]
    lower: Array
    upper: Array
    logarithmic: NDArray[np.bool_]

    @classmethod
    def of(cls, model: Model) -> SearchCoordinates:
        parameters = [model.parameters[name] for name in model.free]
        lower = np.array([p.lower for p in parameters], dtype=np.float64)
        upper = np.array([p.upper for p in parameters], dtype=np.float64)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            decades = (
                (lower > 0) & np.isfinite(upper) & (upper / np.where(lower > 0, lower, 1.0) >= _LOG_SPAN)
            )
        positions = np.array([model.index(name) for name in model.free], dtype=np.int64)
        return cls(positions, lower, upper, decades)

    def to_search(self, values: Array) -> Array:
        """Search coordinates of parameter values."""
        inside = np.where(self.logarithmic, np.maximum(values, 1e-300), 1.0)
        return np.where(self.logarithmic, np.log(inside), values)

    def to_values(self, search: Array) -> Array:
        exponent = np.where(self.logarithmic, search, 0.0)
        values = np.where(self.logarithmic, np.exp(exponent), search)
        return np.clip(values, self.lower, self.upper)

    def slope(self, values: Array) -> Array:
        """d value / d search coordinate."""
        return np.where(self.logarithmic, values, 1.0)

    @property
    def search_bounds(self) -> tuple[Array, Array]:
        return self.to_search(self.lower), self.to_search(self.upper)


@dataclass(frozen=True, eq=False)
class Fit:
    """The end of a search, with an entry of ``history`` per accepted step."""

    evaluation: Evaluation
    converged: bool
    iterations: int
    history: list[dict[str, float]]

    @property
    def point(self) -> Point:
        return self.evaluation.point

    @property
    def cost(self) -> float:
        return self.evaluation.cost


@dataclass(eq=False)
class OutputError:
    """The fitting problem: a model, its segments, and the standard deviation of each output's noise."""

    model: Model
    segments: Sequence[CoupledStretch]
    unknowns: SearchCoordinates
    sigma: Array  # [records, q]
    substeps: int = 1
    scheme: Scheme = CLASSICAL
    evaluations: int = 0
    on_iteration: Callable[[Evaluation, float], None] | None = (
        None  # after each accepted step, with its strength
    )

    @property
    def samples(self) -> int:
        return int(sum(np.isfinite(s.outputs).sum() for s in self.segments))

    @property
    def power(self) -> float:
        """Sum of squares of the measured outputs in units of their noise."""
        return float(sum(np.nansum((s.outputs / self.sigma[s.record][:, None]) ** 2) for s in self.segments))

    def evaluate(
        self, point: Point, controller: Controller, strength: float, sensitivities: bool = True
    ) -> Evaluation:
        """Simulate every segment; one evaluation, however many segments, if with sensitivities."""
        self.evaluations += sensitivities
        positions = self.unknowns.positions if sensitivities else self.unknowns.positions[:0]
        k = len(positions)
        result = Evaluation.begun(point, k)
        scale = self.unknowns.slope(point.values[self.unknowns.positions])[:k]
        for segment, initial in zip(self.segments, point.initials, strict=True):
            run = run_coupled(
                self.model, segment, point.values, initial, positions, controller, strength,
                self.substeps, sensitivities, self.scheme,
            )  # fmt: skip
            if run.diverged:
                return Evaluation(point, np.inf)
            self._add(result, segment, run, scale)
        return result.or_lost()

    def _add(self, result: Evaluation, segment: CoupledStretch, run: CoupledRun, scale: Array) -> None:
        k = len(scale)
        seen = np.isfinite(segment.outputs)
        sigma = self.sigma[segment.record]
        residual = np.where(seen, (segment.outputs - run.outputs) / sigma[:, None], 0.0)
        slopes = np.where(seen[:, None, :], run.slopes / sigma[:, None, None], 0.0)
        slopes[:, :k] *= scale[None, :, None]
        flat = slopes.transpose(1, 0, 2).reshape(slopes.shape[1], residual.size)
        with np.errstate(over="ignore", invalid="ignore"):  # sensitivities of a motion that is all but lost
            gram = flat @ flat.T
            gradient = flat @ residual.ravel()
        result.cost += 0.5 * float(residual.ravel() @ residual.ravel())
        if not (np.isfinite(gram).all() and np.isfinite(gradient).all()):
            result.cost = np.inf  # no step can be told from here
        result.gradient += gradient[:k]
        result.hessian += gram[:k, :k]
        result.local.append((gradient[k:], gram[k:, k:], gram[:k, k:]))
        result.motions.append(run)

    def minimise(
        self,
        here: Evaluation,
        controller: Controller,
        strength: float,
        tolerance: float = 1e-10,
        most_iterations: int = 50,
        good_enough: float = 0.0,
    ) -> Fit:
        """Levenberg-Marquardt from an evaluated point.

        Ends when a step would lower the cost by less than ``tolerance`` of it, or move the outputs by less
        than rounding does, or when the cost is at most ``good_enough``.
        """
        history = [self._entry(here, strength)]

        def taken(now: Evaluation) -> None:
            history.append(self._entry(now, strength))
            if self.on_iteration is not None:
                self.on_iteration(now, strength)

        found = minimise(
            _Steps(self, controller, strength),
            here,
            tolerance,
            most_iterations,
            first_damping=_FIRST_DAMPING,
            unresolved=0.5 * _REPEATABLE**2 * self.power,
            enough=good_enough,
            taken=taken,
        )
        return Fit(found.evaluation, found.converged, found.iterations, history)

    def reach(self, point: Point) -> tuple[Array, Array]:
        """How far each parameter may move in one step, in search coordinates."""
        limit = np.where(self.unknowns.logarithmic, _LARGEST_LOG_STEP, np.inf)
        now = self.unknowns.to_search(point.values[self.unknowns.positions])
        low, high = self.unknowns.search_bounds
        return np.maximum(low - now, -limit), np.minimum(high - now, limit)

    def moved(self, point: Point, step: Array, locals_: list[Array]) -> Point:
        values = point.values.copy()
        positions = self.unknowns.positions
        values[positions] = self.unknowns.to_values(self.unknowns.to_search(values[positions]) + step)
        initials = []
        for segment, initial, move in zip(self.segments, point.initials, locals_, strict=True):
            moved = initial.copy()
            moved[segment.free_initial] += move
            initials.append(np.clip(moved, segment.lower, segment.upper) if len(segment.lower) else moved)
        return replace(point, values=values, initials=tuple(initials))

    def _entry(self, evaluation: Evaluation, strength: float) -> dict[str, float]:
        names = list(self.model.parameters)
        named = {names[i]: float(evaluation.point.values[i]) for i in self.unknowns.positions}
        return {
            "evaluation": float(self.evaluations),
            "lambda": strength,
            "cost": float(evaluation.cost),
            **named,
        }


@dataclass(frozen=True, eq=False)
class _Steps:
    """The problem at one strength of the coupling, as the descent takes it."""

    problem: OutputError
    controller: Controller
    strength: float

    def proposed(self, here: Evaluation, damping: float) -> tuple[tuple[Array, list[Array]], float]:
        step, own = bordered_step(here, *self.problem.reach(here.point), damping)
        return (step, own), promised_decrease(here, step, own)

    def after(self, here: Evaluation, step: tuple[Array, list[Array]]) -> Evaluation:
        return self.problem.evaluate(self.problem.moved(here.point, *step), self.controller, self.strength)


def information(evaluation: Evaluation, unknowns: SearchCoordinates) -> Array:
    """Fisher information of the parameters in their own units, the initial values eliminated."""
    matrix = evaluation.hessian.copy()
    for _, h, cross in evaluation.local:
        if len(h):
            size = np.sqrt(np.maximum(np.diag(h), 1e-300))  # initial values have units of their own
            inner = np.linalg.pinv(h / np.outer(size, size), rcond=1e-14, hermitian=True)
            matrix -= (cross / size) @ inner @ (cross / size).T
    slope = unknowns.slope(evaluation.point.values[unknowns.positions])
    return matrix / np.outer(slope, slope)
