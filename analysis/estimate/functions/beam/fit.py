"""Fit of a beam: a start in the right valley, then the penalty let go
(:mod:`analysis.estimate.functions.penalised`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.progress import SILENT, Progress
from analysis.estimate.functions.beam import local_loss
from analysis.estimate.functions.beam.frequency_responses import compare_response
from analysis.estimate.functions.beam.mode_shapes import compare_shapes
from analysis.estimate.functions.beam.observation import Observation
from analysis.estimate.functions.beam.system import BeamSystem, State
from analysis.estimate.functions.beam.unknowns import UnknownProperties
from analysis.estimate.functions.penalised import (
    Fit,
    Misfit,
    Smooth,
    descend,
    fit_penalised,
    heavy,
    penalty_matrix,
)

Array = NDArray[np.float64]
SHARES = (0.25, 0.5, 1.0)  # parts of the records on the way to a start
LARGEST = 1.5  # step of a logarithm: at most a factor of 4.5
LEAST = 200  # samples of a part
ENOUGH_FOR_OWN_NOISE = 50  # samples from which on a sensor gets its own noise level


@dataclass
class Problem:
    """A beam's records and other knowledge, ready to be compared with the unknowns."""

    system: BeamSystem
    observations: Sequence[Observation]
    noise: list[Array] = field(default_factory=list)  # standard deviation by record and sensor

    @property
    def unknowns(self) -> UnknownProperties:
        return self.system.unknowns

    @property
    def samples(self) -> int:
        return sum(int(o.valid.sum()) for o in self.observations)

    @property
    def stated(self) -> int:
        """Numbers with a stated error: frequencies, values of mode shapes and frequency responses, mass, what
        is known beforehand."""
        beam = self.system.beam
        shapes = 0 if beam.shapes is None else beam.shapes.values.size - len(beam.shapes.values)
        priors = sum(1 for b in self.unknowns.blocks if b.prior)
        responses = sum(2 * len(r.frequencies) for r in beam.responses)
        return len(beam.frequencies) + shapes + responses + (beam.total_mass is not None) + priors

    def misfit(self, theta: Array, derivatives: bool = True) -> Misfit:
        size = len(theta)
        if not self._admissible(theta):
            return Misfit(np.inf, np.zeros(size), np.zeros((size, size)), [])
        state = self.system.state(theta, derivatives)
        gradient, hessian, cost = np.zeros(size), np.zeros((size, size)), 0.0
        squares = []
        for observation, noise in zip(self.observations, self.noise, strict=True):
            residual, jacobian = self._compare(observation, noise, state, theta)
            cost += 0.5 * float(residual @ residual)
            count = observation.valid.shape
            squares.append(np.sum(residual.reshape(count) ** 2, axis=1) * noise**2)
            if derivatives:
                gradient += jacobian @ residual
                hessian += jacobian @ jacobian.T
        for residual, row in self._knowledge(state, theta):
            cost += 0.5 * float(residual @ residual)
            if derivatives:
                gradient += row.T @ residual
                hessian += row.T @ row
        return Misfit(cost, gradient, hessian, squares)

    def _admissible(self, theta: Array) -> bool:
        """Stiffness and mass are positive everywhere; logarithms see to that by themselves."""
        x = self.system.space.points
        return all(
            local_loss.admissible(theta[block.where])
            if block.local
            else block.log or float(self.unknowns.property_at(block.key, theta, x).min()) > 0.0
            for block in self.unknowns.blocks
        )

    def _compare(
        self, observation: Observation, noise: Array, state: State, theta: Array
    ) -> tuple[Array, Array]:
        """Weighted residual and Jacobian of a record, motions at the start and offsets projected out."""
        value, slope = observation.predict(self.system, state, theta)
        weight = observation.valid / noise[:, None]
        residual = ((value - observation.data) * weight).ravel()
        if observation.start_modes or observation.offsets.any():
            free, constants = observation.nuisance(self.system, state, theta)
            columns = np.concatenate([free.real, -free.imag, constants]) * weight
            columns = columns.reshape(len(columns), -1).T
            scale = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
            q, r = np.linalg.qr(columns / scale)
            inner = np.linalg.lstsq(r, -(q.T @ residual), rcond=1e-10)[0] / scale
            residual = residual + columns @ inner
            if len(slope):
                m = observation.start_modes
                amplitudes = inner[:m] + 1j * inner[m : 2 * m]
                slope = slope + observation.nuisance_slope(self.system, state, theta, amplitudes)
                flat = (slope * weight).reshape(len(slope), weight.size)
                return residual, flat - (flat @ q) @ q.T
        return residual, (slope * weight).reshape(len(slope), weight.size)

    def _knowledge(self, state: State, theta: Array) -> list[tuple[Array, Array]]:
        """Measured natural frequencies, mode shapes and frequency responses, the weighed mass, and what is
        known of length and density, as weighted residuals."""
        beam, out = self.system.beam, []
        if beam.frequencies:
            found, jacobian = self.system.frequencies(state)
            count = max(beam.frequency_modes, default=len(beam.frequencies))
            if count > len(found):
                raise DataError(f"Mode {count} needs more elements than {beam.elements}.")
            chosen = np.array(beam.frequency_modes or range(1, count + 1)) - 1
            measured = np.array(beam.frequencies)
            weight = 1.0 / (beam.frequency_error * measured)
            out.append(((found[chosen] - measured) * weight, jacobian[chosen] * weight[:, None]))
            if beam.shapes is not None:
                out += compare_shapes(self.system, state, theta, beam.shapes, chosen)
        out += [compare_response(self.system, state, theta, r) for r in beam.responses]
        if beam.total_mass is not None:
            out.append(self._weighed(theta, beam.total_mass, beam.total_mass_error))
        for block in self.unknowns.blocks:
            if block.prior:
                row = np.zeros((1, len(theta)))
                row[0, block.where] = 1.0 / block.prior
                out.append((theta[block.where] / block.prior, row))
        return out

    def residuals(self, theta: Array) -> list[Array]:
        """Measured minus predicted [S, T] of each record, motions at the start and offsets at their best."""
        state = self.system.state(theta, derivatives=False)
        out = []
        for observation, noise in zip(self.observations, self.noise, strict=True):
            left = self._compare(observation, noise, state, theta)[0].reshape(observation.valid.shape)
            out.append(np.where(observation.valid, -left * noise[:, None], np.nan))
        return out

    def _weighed(self, theta: Array, total: float, error: float) -> tuple[Array, Array]:
        space, unknowns = self.system.space, self.unknowns
        density = unknowns.property_at("mass", theta, space.points) * self.system.stretch(theta)
        row = np.zeros((1, len(theta)))
        for block in unknowns.blocks:
            if block.key == "mass":
                slope = unknowns.slopes(block, theta, space.points, density)
                row[0, block.where] = space.weights @ slope / (total * error)
            elif block.key == "length":
                row[0, block.where] = space.weights @ density / (total * error)
        return np.array([(space.weights @ density / total - 1.0) / error]), row

    def set_noise(self, squares: Sequence[Array], spent: float) -> float:
        """Noise levels from the residuals, one for each sensor if it has samples enough."""
        total = max(self.samples, 1)
        left = max(1.0 - spent / total, 1.0 / total)
        pooled = np.sqrt(sum(float(s.sum()) for s in squares) / (total * left)) if self.observations else 0.0
        floor = 1e-9 * max((float(np.abs(o.data).max()) for o in self.observations), default=1.0)
        levels = []
        for observation, square in zip(self.observations, squares, strict=True):
            count = observation.valid.sum(axis=1)
            own = np.sqrt(square / np.maximum(count * left, 1.0))
            levels.append(np.maximum(np.where(count >= ENOUGH_FOR_OWN_NOISE, own, pooled), floor))
        pairs = zip(levels, self.noise, strict=True)
        change = max((float(np.max(np.abs(np.log(new / old)))) for new, old in pairs), default=0.0)
        self.noise = levels
        return change


def problem(system: BeamSystem, observations: Sequence[Observation]) -> Problem:
    return Problem(system, observations, _levels(observations))


def _levels(observations: Sequence[Observation]) -> list[Array]:
    return [np.sqrt(np.maximum(np.mean(o.data**2, axis=1), 1e-300)) for o in observations]


def fit(task: Problem, stages: int = 60, progress: Progress = SILENT) -> Fit:
    """Fit from the description's guess."""
    theta = _first_guess(task, progress.part(0.0, 0.2))
    return fit_from(task, theta, stages, progress.part(0.2, 1.0))


def fit_from(
    task: Problem,
    theta: Array,
    stages: int = 60,
    progress: Progress = SILENT,
    weights: Array | None = None,
) -> Fit:
    """Fit from a start in the right valley; ``weights`` of the penalties to begin with (None: heavy)."""
    current = task.misfit(theta)
    task.set_noise(current.squares, 0.0)
    smooths = smooths_of(task.unknowns)
    if weights is None:
        weights = heavy(smooths, task.misfit(theta).hessian)
    result = fit_penalised(task, theta, smooths, weights, stages=stages, largest=LARGEST, progress=progress)
    widened = _scatter(task, result.misfit, result.freedom) * result.covariance
    return replace(result, covariance=widened)


def smooths_of(unknowns: UnknownProperties) -> list[Smooth]:
    return [Smooth(b.where, (b.penalty,)) for b in unknowns.blocks if b.penalty is not None]


def _scatter(task: Problem, current: Misfit, freedom: float) -> float:
    """Without records the error of a frequency is given: a larger scatter than that widens the intervals."""
    left = task.stated - freedom
    if task.observations or left <= 0:
        return 1.0
    return max(1.0, 2.0 * current.cost / left)


def _first_guess(task: Problem, progress: Progress) -> Array:
    """A start in the right valley, from the guess and growing parts of the records.

    Resonances are sharp, so a descent from afar gets lost; a short record blurs them. On its first quarter
    the common factors of stiffness and tip mass are scanned, then all unknowns follow, straight in x, while
    the records grow to their full length.
    """
    theta = _weighed_start(task)
    return descend_growing(task, theta, scan=True, progress=progress)


def descend_growing(task: Problem, theta: Array, scan: bool = False, progress: Progress = SILENT) -> Array:
    """Descent on growing parts of the records under a heavy penalty; ``scan``: common factors first."""
    for i, share in enumerate(SHARES):
        progress.report(i / len(SHARES), "looking for a start")
        short = [o.first(max(int(share * len(o.times)), min(len(o.times), LEAST))) for o in task.observations]
        part = Problem(task.system, short, _levels(short))
        if i == 0 and scan:
            theta = _scan(part, theta)
        current = part.misfit(theta)
        part.set_noise(current.squares, 0.0)
        current = part.misfit(theta)
        smooths = smooths_of(part.unknowns)
        penalty = penalty_matrix(smooths, heavy(smooths, current.hessian), len(theta))
        theta = descend(part, theta, current, penalty, limit=20, largest=LARGEST).evaluation.theta
    return theta


def _weighed_start(task: Problem) -> Array:
    """The guess with its density scaled to the weighed mass."""
    theta, total = task.unknowns.start.copy(), task.system.beam.total_mass
    for block in task.unknowns.blocks:
        if block.key == "mass" and total is not None:
            space = task.system.space
            guess = float(space.weights @ task.unknowns.property_at("mass", theta, space.points))
            theta[block.where] += np.log(total / guess)
    return theta


def _scan(task: Problem, start: Array) -> Array:
    """The best common factors of stiffness and tip mass."""
    blocks = {b.key: b.where for b in task.unknowns.blocks}
    # The sharp resonances of a response want finer steps than the first quarter of a record.
    steps = 301 if task.system.beam.responses else 61
    factors = np.linspace(-1.5, 1.5, steps) if "stiffness" in blocks else np.zeros(1)
    tips = np.log([0.1, 0.3, 1.0, 3.0, 10.0]) if "tip_mass" in blocks else np.zeros(1)
    best, lowest = start, np.inf
    for tip in tips:
        for factor in factors:
            trial = start.copy()
            if "stiffness" in blocks:
                trial[blocks["stiffness"]] += factor
            if "tip_mass" in blocks:
                trial[blocks["tip_mass"]] += tip
            cost = task.misfit(trial, derivatives=False).cost
            if cost < lowest:
                best, lowest = trial, cost
    return best
