"""Periodic orbits of a model by Newton's method, stable or not, with their Floquet multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import (
    States,
    Values,
    initial_vector,
    parameter_vector,
    sensitivities,
    simulate,
)

Array = NDArray[np.float64]

CLOSED = 1e-6  # gap of an orbit, of its size, below which it may be called closed
LOOKED_AT = 32  # points of an orbit from which its size is taken
OFFSET = 1e-4  # of a state's largest value: part of its size, for an orbit around a point far from zero


@dataclass(frozen=True, eq=False)
class PeriodicOrbit:
    """A closed orbit through ``state`` at time ``start``; multipliers by falling size."""

    state: Array
    period: float
    multipliers: NDArray[np.complex128]
    start: float
    gap: float  # largest distance of an end from the next start, each state relative to the orbit's size
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
    shooting = Shooting(model, parameter_vector(model, values), start, free_period, segments, rtol)
    x = initial_vector(model, guess)
    times = start + period * np.arange(segments) / segments
    if along is None:
        nodes = simulate(model, times, x, shooting.values, rtol=rtol).states.T.copy()
        nodes = np.where(np.isfinite(nodes), nodes, x)
    else:
        nodes = np.ascontiguousarray(along.T, dtype=np.float64)
    converged = False
    flow = shooting.flow(nodes, period)
    for _ in range(iterations):
        if not (np.all(np.isfinite(flow.ends)) and np.all(np.isfinite(flow.jacobians))):
            break
        step, step_period = shooting.newton_step(nodes, flow, period)
        gap = shooting.gap(nodes, flow)
        for _ in range(8):  # halve a step that makes things worse
            trial, trial_period = nodes + step, period + step_period
            after = shooting.flow(trial, trial_period) if trial_period > 0 else None
            if after is not None and shooting.gap(trial, after) < gap * (1 + 1e-9) + 1e-13:
                break
            step, step_period = step / 2, step_period / 2
        else:  # no step is better: either lost, or at the integrator's own error
            converged = bool(gap < 1000 * rtol)
            break
        nodes, period, flow = trial, trial_period, after
        if np.max(np.abs(step) / flow.size) < tolerance and abs(step_period) < tolerance * period:
            converged = shooting.gap(nodes, flow) < CLOSED
            break
    gap = shooting.gap(nodes, flow)
    return PeriodicOrbit(nodes[0], float(period), flow.multipliers, start, gap, converged)


@dataclass(frozen=True)
class Flow:
    """All segments: ends [segments, n], Jacobians, slopes at the ends, and the orbit's size in each state."""

    ends: Array
    jacobians: Array
    slopes: Array
    size: Array
    by_parameters: Array  # [segments, n, len(wrt)]: derivatives of the ends by the parameters asked for
    path: Array  # [n, points]: states along the orbit, evenly spaced in each segment, ends left out

    @property
    def multipliers(self) -> NDArray[np.complex128]:
        """Floquet multipliers by falling size: eigenvalues of the product of all pieces' Jacobians."""
        monodromy = np.eye(self.ends.shape[1])
        for jacobian in self.jacobians:
            monodromy = jacobian @ monodromy
        if not np.all(np.isfinite(monodromy)):
            return np.full(len(monodromy), np.nan, dtype=np.complex128)
        found = np.linalg.eigvals(monodromy)
        return found[np.argsort(-np.abs(found))].astype(np.complex128)


@dataclass(frozen=True)
class Shooting:
    """Pieces of an orbit between nodes, and the equations that close it."""

    model: Model
    values: Array
    start: float
    free_period: bool
    segments: int
    rtol: float
    wrt: tuple[str, ...] = ()  # parameters by which the ends are differentiated, too

    def flow(self, nodes: Array, period: float) -> Flow:
        n, duration = nodes.shape[1], period / self.segments
        ends, jacobians = np.empty_like(nodes), np.empty((self.segments, n, n))
        slopes, by_parameters = np.zeros_like(nodes), np.empty((self.segments, n, len(self.wrt)))
        points = max(LOOKED_AT // self.segments, 2)
        path = np.empty((n, points * self.segments))
        lowest, highest = nodes.min(axis=0), nodes.max(axis=0)
        for j, node in enumerate(nodes):
            t = self.start + j * duration
            states, s = sensitivities(
                self.model,
                t + duration * np.arange(points + 1) / points,
                node,
                self.values,
                Inputs.none(),
                wrt=self.wrt,
                wrt_initial=self.model.states,
                rtol=self.rtol,
            )
            ends[j], path[:, j * points : (j + 1) * points] = states[:, -1], states[:, :-1]
            by_parameters[j], jacobians[j] = s[:, : len(self.wrt), -1], s[:, len(self.wrt) :, -1]
            lowest, highest = np.fmin(lowest, states.min(axis=1)), np.fmax(highest, states.max(axis=1))
            self.model.kernels().rhs(t + duration, ends[j], np.empty(0), self.values, slopes[j])
        largest = np.maximum(np.abs(lowest), np.abs(highest))
        size = highest - lowest + OFFSET * largest
        size = np.where(size > 0, size, 1.0)
        return Flow(ends, jacobians, slopes, size, by_parameters, path)

    def gap(self, nodes: Array, flow: Flow) -> float:
        """Largest distance of an end from where the next piece begins, each state relative to its size."""
        return float(np.max(np.abs(self.gaps(nodes, flow)) / flow.size))

    def gaps(self, nodes: Array, flow: Flow) -> Array:
        """[segments, n]: where each piece ends minus where the next one begins."""
        return flow.ends - np.roll(nodes, -1, axis=0)

    def newton_step(self, nodes: Array, flow: Flow, period: float) -> tuple[Array, float]:
        """Correction of the nodes and of the period from the linearised closure, in units of the sizes."""
        count, n = nodes.shape
        rows = count * n + (1 if self.free_period else 0)
        matrix, right = np.zeros((rows, rows)), np.zeros(rows)
        for j in range(count):
            here, following = slice(j * n, (j + 1) * n), (j + 1) % count
            matrix[here, here] += flow.jacobians[j] * flow.size / flow.size[:, None]
            matrix[here, following * n : (following + 1) * n] -= np.eye(n)
        right[: count * n] = -(self.gaps(nodes, flow) / flow.size).ravel()
        if self.free_period:
            direction = np.empty(n)
            self.model.kernels().rhs(self.start, nodes[0].copy(), np.empty(0), self.values, direction)
            matrix[: count * n, -1] = (flow.slopes / flow.size).ravel() * period / count
            along = direction * period / flow.size
            matrix[-1, :n] = along / max(float(np.linalg.norm(along)), 1e-300)  # no sliding along the orbit
        solution = np.linalg.lstsq(matrix, right, rcond=1e-14)[0]
        step_period = float(solution[-1]) * period if self.free_period else 0.0
        return solution[: count * n].reshape(count, n) * flow.size, step_period
