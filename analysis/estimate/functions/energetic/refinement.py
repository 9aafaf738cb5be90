"""Output error: the simulated motion is compared with the measured one, segment by segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.functions.energetic.shooting import shooter
from analysis.estimate.functions.energetic.unknowns import Unknowns
from analysis.estimate.functions.penalised import Misfit
from analysis.signal.inputs import Inputs

Array = NDArray[np.float64]
NOTHING = np.zeros(3)


@dataclass(frozen=True)
class Run:
    """One record for the comparison: channels x and v [2, N] (nan where not measured) and its segments."""

    times: Array
    data: Array
    inputs: Inputs
    starts: NDArray[np.int64]  # first sample of each segment
    steps: int  # integration steps to a sample


@dataclass
class OutputError:
    """Unknowns: those of the functions, then two initial values for every segment of every run."""

    jac: Any
    p: Array
    unknowns: Unknowns
    runs: Sequence[Run]
    noise: Array = field(default_factory=lambda: np.ones(2))
    evaluations: int = 0

    def __post_init__(self) -> None:
        self._turn = self.unknowns.turn()

    @property
    def size(self) -> int:
        return self.unknowns.size + 2 * sum(len(r.starts) for r in self.runs)

    def misfit(self, theta: Array, derivatives: bool = True) -> Misfit:
        self.evaluations += 1
        size, count = len(theta), self.unknowns.size
        gradient, hessian, cost = np.zeros(size), np.zeros((size, size)), 0.0
        squares = np.zeros(2)
        position = count
        for run in self.runs:
            segments = len(run.starts)
            fine, X, S = self.shoot(run, theta, position, derivatives)
            if not fine:
                return Misfit(np.inf, gradient, hessian, [squares])
            residual = np.where(np.isfinite(run.data), X - run.data, 0.0)
            squares += np.sum(residual**2, axis=1)
            weighted = residual / self.noise[:, None]
            cost += 0.5 * float(np.sum(weighted**2))
            if derivatives:
                S *= (np.isfinite(run.data) / self.noise[:, None])[:, :, None]
                self._accumulate(run, S, weighted, position, gradient, hessian)
            position += 2 * segments
        return Misfit(cost, gradient, hessian, [squares])

    def shoot(self, run: Run, theta: Array, position: int, full: bool) -> tuple[bool, Array, Array]:
        """The motion X[2, N] of a run whose initial values begin at ``position``, and its sensitivities."""
        unknowns = self.unknowns
        c, h = unknowns.coefficients(theta)
        count, segments = len(run.times), len(run.starts)
        initial = np.ascontiguousarray(theta[position : position + 2 * segments].reshape(segments, 2).T)
        X = np.empty((2, count))
        S = np.empty((2, count, unknowns.size + 2)) if full else np.empty((2, 1, 2))
        grids = [g.row() if g else NOTHING for g in (unknowns.c, unknowns.x, unknowns.v)]
        fine = shooter()(
            self.jac, self.p, run.times, run.inputs.t0, run.inputs.dt, run.inputs.coefficients, run.starts,
            initial, grids[0], c, grids[1], grids[2], h, run.steps, full, X, S,
        )  # fmt: skip
        return bool(fine) and bool(np.all(np.isfinite(X))), X, S

    def _accumulate(
        self, run: Run, S: Array, weighted: Array, position: int, gradient: Array, hessian: Array
    ) -> None:
        count = self.unknowns.size
        edges = [*run.starts.tolist(), len(run.times)]
        for k in range(len(run.starts)):
            part = slice(edges[k], edges[k + 1])
            rows = S[:, part].reshape(-1, count + 2)
            residual = weighted[:, part].ravel()
            own = slice(position + 2 * k, position + 2 * k + 2)
            initial, functions = rows[:, :2], rows[:, 2:] @ self._turn
            gradient[:count] += residual @ functions
            gradient[own] += residual @ initial
            hessian[:count, :count] += functions.T @ functions
            cross = functions.T @ initial
            hessian[:count, own] += cross
            hessian[own, :count] += cross.T
            hessian[own, own] += initial.T @ initial

    def set_noise(self, squares: Sequence[Array], spent: float) -> float:
        counts = sum(np.isfinite(r.data).sum(axis=1) for r in self.runs)
        left = np.maximum(counts - spent * counts / max(float(np.sum(counts)), 1.0), 1.0)
        scale = max(float(np.nanmax(np.abs(r.data))) for r in self.runs)
        new = np.where(counts > 0, np.sqrt(squares[0] / left), 1.0)
        new = np.maximum(new, 1e-12 * scale)
        change = float(np.max(np.abs(np.log(new / self.noise))))
        self.noise = new
        return change
