"""Periodic orbits of a model by Newton's method, stable or not, with their Floquet multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulate.simulation import (
    States,
    Values,
    initial_vector,
    parameter_vector,
    sensitivities,
    simulate,
)

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PeriodicOrbit:
    """A closed orbit through ``state`` at time ``start``; multipliers by falling size."""

    state: Array
    period: float
    multipliers: NDArray[np.complex128]
    start: float
    gap: float  # distance of the end from the start, relative to the orbit's size
    converged: bool

    @property
    def exponents(self) -> Array:
        """Growth rates of small deviations in nats per unit time."""
        return np.asarray(np.log(np.abs(self.multipliers)) / self.period)

    @property
    def stable(self) -> bool:
        return bool(np.all(np.abs(self.multipliers) < 1 + 1e-9))


def periodic_orbit(
    model: Model,
    guess: States,
    period: float,
    values: Values = None,
    start: float = 0.0,
    free_period: bool = False,
    segments: int = 1,
    tolerance: float = 1e-10,
    iterations: int = 40,
    rtol: float = 1e-11,
    along: Array | None = None,
) -> PeriodicOrbit:
    """The periodic orbit near ``guess`` by multiple shooting (``segments`` pieces; more for unstable orbits).

    Forced models: ``period`` is a multiple of the drive's. Autonomous ones: ``free_period`` finds it too.
    ``along`` [n, segments]: states at the start of each piece, such as measured ones; else the model is run.
    """
    shooting = _Shooting(model, parameter_vector(model, values), start, free_period, segments, rtol)
    x = initial_vector(model, guess)
    times = start + period * np.arange(segments) / segments
    if along is None:
        nodes = simulate(model, times, x, shooting.values, rtol=rtol).states.T.copy()
        nodes = np.where(np.isfinite(nodes), nodes, x)
    else:
        nodes = np.ascontiguousarray(along.T, dtype=np.float64)
    converged = False
    ends, jacobians, slopes = shooting.flow(nodes, period)
    for _ in range(iterations):
        if not (np.all(np.isfinite(ends)) and np.all(np.isfinite(jacobians))):
            break
        step, step_period = shooting.newton_step(nodes, ends, jacobians, slopes, period)
        size = np.linalg.norm(shooting.gaps(nodes, ends))
        for _ in range(8):  # halve a step that makes things worse
            trial, trial_period = nodes + step, period + step_period
            flow = shooting.flow(trial, trial_period) if trial_period > 0 else None
            if flow is not None and np.linalg.norm(shooting.gaps(trial, flow[0])) < size * (1 + 1e-9) + 1e-13:
                break
            step, step_period = step / 2, step_period / 2
        else:  # no step is better: either lost, or at the integrator's own error
            converged = bool(size < 100 * rtol * (1.0 + np.abs(nodes).max()))
            break
        nodes, period, (ends, jacobians, slopes) = trial, trial_period, flow
        scale = 1.0 + np.abs(nodes).max()
        if np.abs(step).max() < tolerance * scale and abs(step_period) < tolerance * period:
            converged = True
            break
    monodromy = np.eye(len(x))
    for jacobian in jacobians:
        monodromy = jacobian @ monodromy
    finite = np.all(np.isfinite(monodromy))
    multipliers = np.linalg.eigvals(monodromy) if finite else np.full(len(x), np.nan)
    multipliers = multipliers[np.argsort(-np.abs(multipliers))].astype(np.complex128)
    gap = float(np.linalg.norm(shooting.gaps(nodes, ends)) / (1.0 + np.abs(nodes).max()))
    return PeriodicOrbit(nodes[0], float(period), multipliers, start, gap, converged)


@dataclass(frozen=True)
class _Shooting:
    model: Model
    values: Array
    start: float
    free_period: bool
    segments: int
    rtol: float

    def flow(self, nodes: Array, period: float) -> tuple[Array, Array, Array]:
        """Ends, Jacobians and end slopes of all segments."""
        n, duration = nodes.shape[1], period / self.segments
        ends, jacobians = np.empty_like(nodes), np.empty((self.segments, n, n))
        slopes = np.zeros_like(nodes)
        for j, node in enumerate(nodes):
            t = self.start + j * duration
            states, s = sensitivities(
                self.model,
                [t, t + duration],
                node,
                self.values,
                Inputs.none(),
                wrt=[],
                wrt_initial=self.model.states,
                rtol=self.rtol,
            )
            ends[j], jacobians[j] = states[:, -1], s[:, :, -1]
            if self.free_period:
                self.model.kernels().rhs(t + duration, ends[j], np.empty(0), self.values, slopes[j])
        return ends, jacobians, slopes

    def gaps(self, nodes: Array, ends: Array) -> Array:
        return ends - np.roll(nodes, -1, axis=0)

    def newton_step(
        self, nodes: Array, ends: Array, jacobians: Array, slopes: Array, period: float
    ) -> tuple[Array, float]:
        """Correction of the nodes and of the period from the linearised closure."""
        count, n = nodes.shape
        size = count * n + (1 if self.free_period else 0)
        matrix, right = np.zeros((size, size)), np.zeros(size)
        for j in range(count):
            rows, following = slice(j * n, (j + 1) * n), (j + 1) % count
            matrix[rows, rows] += jacobians[j]
            matrix[rows, following * n : (following + 1) * n] -= np.eye(n)
        right[: count * n] = -self.gaps(nodes, ends).ravel()
        if self.free_period:
            direction = np.empty(n)
            self.model.kernels().rhs(self.start, nodes[0].copy(), np.empty(0), self.values, direction)
            matrix[: count * n, -1] = slopes.ravel() / count
            matrix[-1, :n] = direction  # the start may not slide along the orbit
        solution = np.linalg.lstsq(matrix, right, rcond=1e-14)[0]
        step_period = float(solution[-1]) if self.free_period else 0.0
        return solution[: count * n].reshape(count, n), step_period
