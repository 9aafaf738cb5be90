"""Gauss-Newton iteration of the maximum-likelihood path.

A descent of its own beside :mod:`analysis.estimate.descent`: the equations of motion are constraints, first
loosened and then exact, so what a step must lower is a penalty function and not the misfit alone, and the
weights of the misfit (the noise levels) change on the way. The bounded step of the unknowns is the common
one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analysis.base.progress import Progress
from analysis.estimate.descent import bounded_step
from analysis.estimate.identifiability import pseudo_inverse
from analysis.estimate.path.problem import PathProblem
from analysis.estimate.path.substeps import refine_substeps

Array = NDArray[np.float64]

# When it has converged
_CLOSE = 0.1  # longest last step of any unknown, in its standard errors
_CLOSE_AT_KINKS = 0.5  # the same limit for equations with kinks, after _SLOW_STEPS; the result says so
_STUCK_AT_KINKS = 1.0  # the same limit where no shorter step lowers the merit function; the result says so
_SLOW_STEPS = 5  # so many steps longer than half the one before: kinks keep it from converging
_ROUNDING = 1e-13  # of an unknown's magnitude: steps are not counted in standard errors smaller than this
_SETTLED = 1e-6  # mean error of the equations, in ranges, at which a path without parameters has converged
_SAME_NOISE = 0.02  # relative change of the noise levels that leaves the optimum where it is

# How the equations come to hold
_TIGHTER, _LITTLE_TIGHTER = 0.1, 0.5  # factor on the slack after a full step, and after a shorter one
_NO_SLACK = 0.01  # slack over the spread of the states given the data: below it the equations hold exactly
_HELD = 1e-12  # error of the equations, in ranges of the states, that is mere rounding
# Weight of the equations' errors in the merit function, in largest Lagrange multipliers: above 1 the penalty
# is exact, so that it leaves the optimum where it is
_PENALTY = 2.0

# Length of a step
_SHORTEST = 1e-4  # length of a step below which none is taken
_ROUNDED = 1e-9  # rounding of the merit function: relative, and absolute in units of chi-square
# A step must lower the worst of so many last values of the merit function: at kinks a single one may rise
_REMEMBERED = 3
_HALF = 0.5  # a step longer than half the one before, below half a standard error, oscillates: halve it
_LONG_ENOUGH = 0.4  # length of a step after which the noise levels are worth renewing
_OTHER_NOISE = 0.05  # relative change of the noise levels after which former merits do not compare

_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-3, 1e-9, 1e6  # of Levenberg and Marquardt, and its range


@dataclass(frozen=True)
class Outcome:
    """Where an iteration ended; ``information`` is that of the unknowns."""

    information: Array
    converged: bool
    message: str
    history: list[dict[str, float]]

    def followed_by(self, later: Outcome) -> Outcome:
        return Outcome(later.information, later.converged, later.message, [*self.history, *later.history])


def iterate(problem: PathProblem, max_iterations: int, progress: Progress) -> Outcome:
    """Gauss-Newton from the path and the parameters where the problem stands."""
    problem.soft, problem.accepted = True, None
    problem.linearise()
    iteration = _Iteration(problem, _first_slack(problem))
    if np.all(iteration.slack <= _HELD * problem.scale):  # such as a simulated path
        iteration.bind()
        problem.linearise()
    return iteration.run(max_iterations, progress)


@dataclass(frozen=True)
class _Proposal:
    """A step of the unknowns (the path's is in the workspaces), and what holds where it starts."""

    step: Array
    misfit: float
    miss: float
    size: float  # of the step, in standard errors


@dataclass(eq=False)
class _Iteration:
    problem: PathProblem
    slack: Array  # [n] standard deviation by which the equations may be missed
    information: Array = field(default_factory=lambda: np.zeros((0, 0)))
    penalty: float = 0.0
    damping: float = 0.0
    previous: float = np.inf  # size of the step before
    slow: int = 0  # steps without headway
    recent: list[float] = field(default_factory=list)  # merits
    history: list[dict[str, float]] = field(default_factory=list)

    def run(self, most: int, progress: Progress) -> Outcome:
        problem = self.problem
        converged, message = False, ""
        for iteration in range(1, most + 1):
            soft = problem.soft = bool(self.slack.any())
            proposal = self._propose()
            taken, residuals = self._take(proposal)
            self._record(proposal, taken)
            progress.report(
                iteration / (iteration + 8), "maximum likelihood", cost=proposal.misfit, step=proposal.size
            )
            if taken == 0.0:
                if not soft and self.slow and proposal.size < _STUCK_AT_KINKS:
                    converged, message = True, _kinks(proposal.size)
                    break
                if self.damping > _MOST_DAMPING:
                    if not soft:
                        message = "No step lowers the misfit."
                        break
                    self.damping = 0.0
                    self.bind()
                    problem.linearise()
                    continue
                self.damping = max(10 * self.damping, _FIRST_DAMPING)
                continue
            self.damping = self.damping / 10 if self.damping > _LEAST_DAMPING else 0.0
            if soft:
                self._tighten(taken)
            elif self._settled(proposal.size, taken, residuals):
                if not refine_substeps(problem):
                    converged, message = True, _kinks(proposal.size)
                    break
                self.previous = np.inf  # finer sub-steps move the optimum: a longer step is no sign of kinks
            problem.linearise()
        if converged and len(problem.unknowns):
            problem.linearise()  # at the point that is reported
            self.information, _ = problem.eliminate(self.slack)
        return Outcome(self.information, converged, message, self.history)

    def _propose(self) -> _Proposal:
        problem = self.problem
        self.information, gradient = problem.eliminate(self.slack, penalised=True)
        step = bounded_step(
            self.information, gradient, problem.current, problem.low, problem.high, self.damping
        )
        self.penalty = max(self.penalty, _PENALTY * problem.step_path(step))
        misfit = problem.cost([w.R for w in problem.work], problem.input_errors)
        misfit += problem.penalty_cost(problem.values)
        miss = problem.miss([w.C for w in problem.work])
        if len(problem.unknowns):
            size = _in_standard_errors(step, self.information, problem.sizes)
        else:  # a path alone has settled when the equations hold
            size = miss / (_SETTLED * sum(w.C.size for w in problem.work))
        return _Proposal(step, misfit, miss, size)

    def _take(self, proposal: _Proposal) -> tuple[float, list[Array]]:
        """Move by the longest of 1, 1/2, ... of the step that lowers the merit; its length (0: none did)
        and the residuals there.
        """
        problem, n = self.problem, self.problem.n
        merit = _Merit(self.slack, problem.scale, self.penalty)
        here = proposal.misfit + merit([w.C for w in problem.work])
        self.recent = [here] if problem.soft else [*self.recent[1 - _REMEMBERED :], here]
        bar = max(self.recent) * (1 + _ROUNDED) + _ROUNDED
        oscillates = not problem.soft and _HALF * self.previous < proposal.size < _HALF
        length = 0.5 if oscillates else 1.0
        while length > _SHORTEST:
            paths = [X + length * w.dX[:n] for X, w in zip(problem.paths, problem.work, strict=True)]
            errors = [e + length * w.dX[n:] for e, w in zip(problem.input_errors, problem.work, strict=True)]
            values = problem.unknowns.moved(problem.values, length * proposal.step)
            defects, residuals = problem.evaluate(paths, values, problem.flow_steps, errors=errors)
            cost = problem.cost(residuals, errors) + problem.penalty_cost(values)
            if cost + merit(defects) <= bar:
                problem.paths, problem.values, problem.input_errors = paths, values, errors
                problem.accepted = defects, residuals
                return length, residuals
            length *= 0.5
        return 0.0, [w.R for w in problem.work]

    def _tighten(self, taken: float) -> None:
        """Reduce the slack; once it no longer matters beside the noise the equations hold exactly."""
        problem = self.problem
        of_states = [np.sum(w.S[:, : problem.n] ** 2, axis=2) for w in problem.work]
        spread = np.sqrt(np.mean([np.mean(variance, axis=0) for variance in of_states], axis=0))
        self.slack = self.slack * (_TIGHTER if taken == 1.0 else _LITTLE_TIGHTER)
        if np.all(self.slack < _NO_SLACK * spread):
            self.bind()

    def bind(self) -> None:
        """From now on the equations hold exactly, with the flow's own sub-steps."""
        self.slack = np.zeros(self.problem.n)
        self.problem.soft, self.problem.accepted = False, None

    def _settled(self, size: float, taken: float, residuals: list[Array]) -> bool:
        """Whether this step and the change of the noise levels were small enough to end."""
        problem = self.problem
        change = problem.update_noise(residuals) if taken > _LONG_ENOUGH else 1.0
        self.recent = self.recent if change < _OTHER_NOISE else []
        if size > _HALF * self.previous:  # the rough derivatives may be what holds it up
            self.slow += 1
            problem.steps = min(2 * problem.steps, problem.fine)
        self.previous = size
        return size < (_CLOSE_AT_KINKS if self.slow >= _SLOW_STEPS else _CLOSE) and change < _SAME_NOISE

    def _record(self, proposal: _Proposal, taken: float) -> None:
        self.history.append(
            {
                "cost": proposal.misfit,
                "defect": proposal.miss,
                "step": proposal.size,
                "length": taken,
                "slack": float(self.slack[0]),
            }
        )


@dataclass(frozen=True)
class _Merit:
    """What a step must lower beside the misfit: squared defects over the slack; without slack, their sum."""

    slack: Array
    scale: Array
    penalty: float

    def __call__(self, defects: list[Array]) -> float:
        if self.slack.any():
            with np.errstate(over="ignore"):  # a step that runs away lowers nothing
                return 0.5 * float(sum(np.sum((C / self.slack) ** 2) for C in defects))
        return self.penalty * float(sum(np.sum(np.abs(C) / self.scale) for C in defects))


def _first_slack(problem: PathProblem) -> Array:
    """Standard deviation by which the equations may be missed at first: what the start misses them by.

    An equation that the start happens to follow exactly, such as that of a hidden constant, may be missed as
    much as the one that is missed least: none would leave nothing to divide by.
    """
    defects = np.vstack([w.C for w in problem.work])
    slack = np.sqrt(np.mean(defects**2, axis=0))
    missed = slack > 0.0
    if not missed.any():
        return slack
    return np.where(missed, slack, problem.scale * np.min(slack[missed] / problem.scale[missed]))


def _in_standard_errors(step: Array, information: Array, sizes: Array) -> float:
    """Largest step of an unknown in its standard errors, or in the rounding of its magnitude if larger."""
    errors = np.sqrt(np.maximum(np.diag(pseudo_inverse(information)), 0.0))
    unit = np.maximum(errors, _ROUNDING * sizes)
    counted = unit > 0  # one without error or magnitude has no effect on the data and does not move
    return float(np.max(np.abs(step[counted]) / unit[counted], initial=0.0))


def _kinks(size: float) -> str:
    if size < _CLOSE:
        return ""
    return (
        f"The search for the best parameters ends early, its last step {size:.2g} standard errors long: the "
        "equations have kinks, or the model does not follow the record."
    )
