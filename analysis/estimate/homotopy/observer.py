"""Gains that make a model follow its measurement: an observer designed for the parameters' uncertainty.

The published choice (Manikantan et al. 2020) is one hand-picked gain on every state. Here the gain is the
steady Kalman gain of the model linearised along the record, the "process noise" being what wrong parameters
do to the right-hand side: feedback goes where the parameters enter and nowhere else. Its strength is raised
until the synchronisation test at lambda = 1 is passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.evaluation import Point
from analysis.estimate.homotopy.coupled import (
    Controller,
    CoupledStretch,
    kinematic_states,
    rough_states,
    run_coupled,
)
from analysis.estimate.homotopy.output_error import SearchCoordinates

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]

_SYNCHRONISED = 0.1  # rms of the error over rms of the signal that counts as following
_STRENGTHS = 10.0 ** np.arange(-6.0, 9.0)
_MOST_SUBSTEPS = 64  # a sample: faster observers follow the noise and nothing else


def uniform_controller(model: Model, gain: float, integral: float = 0.0, squared: bool = False) -> Controller:
    """The published controller: one gain on every state, the integral on those that are not kinematic."""
    n, q = len(model.states), len(model.outputs)
    integral_gain = np.full((n, q), integral)
    integral_gain[list(kinematic_states(model))] = 0.0
    return Controller(np.full((n, q), gain), integral_gain, squared)


@dataclass(frozen=True, eq=False)
class Linearised:
    """A model along its record: mean slopes, and what the parameters' ranges do to the rates."""

    slope: Array  # [n, n] mean Jacobian
    spread: Array  # [n, n] covariance of the rates' errors that wrong parameters make
    seen: Array  # [q, n] mean slope of the measured outputs, zero for those not measured
    sensor: Array  # [q, q] covariance of the sensors' noise
    size: Array  # [n] spread of the states: the unit in which the gain is designed, whatever theirs is
    reach: Array  # [q] spread of the outputs, likewise
    dt: float  # sample interval, likewise

    def gain(self, strength: float) -> tuple[Array, float] | None:
        """Steady Kalman gain [n, q] for uncertainty of this strength, and its fastest rate per unit of time.

        None where the equation has no solution.
        """
        from scipy.linalg import LinAlgError, solve_continuous_are

        slope = self.slope * self.dt * self.size / self.size[:, None]
        spread = self.spread * self.dt**2 / np.outer(self.size, self.size)
        seen = self.seen * self.size / self.reach[:, None]
        sensor = self.sensor / np.outer(self.reach, self.reach)
        process = strength * spread + (1e-12 * np.trace(spread) + 1e-300) * np.eye(len(slope))
        try:
            covariance = solve_continuous_are(slope.T, seen.T, process, sensor)
        except (LinAlgError, ValueError):
            return None
        gain = covariance @ seen.T @ np.linalg.inv(sensor)
        gain = gain * self.size[:, None] / (self.reach * self.dt)
        if not np.isfinite(gain).all():
            return None
        fastest = float(np.abs(np.linalg.eigvals(self.slope - gain @ self.seen)).max())
        return np.ascontiguousarray(gain), fastest


def linearised(
    model: Model, segment: CoupledStretch, values: Array, unknowns: SearchCoordinates, sigma: Array
) -> Linearised:
    """The model linearised along what the record tells of its states."""
    kernels = model.kernels()
    n, k, q = len(model.states), len(values), len(model.outputs)
    stride = max(1, len(segment) // 2000)
    states = np.ascontiguousarray(rough_states(model, segment)[:, ::stride])
    times = np.ascontiguousarray(segment.times[::stride])
    inputs = np.ascontiguousarray(segment.inputs.values(times))
    count = states.shape[1]
    rates, jx, jp = np.empty((n, count)), np.empty((n, n, count)), np.empty((n, k, count))
    kernels.jac_many(times, states, inputs, values, rates, jx, jp)
    y, yx, yp = np.empty((q, count)), np.empty((q, n, count)), np.empty((q, k, count))
    kernels.out_jac_many(times, states, inputs, values, y, yx, yp)
    now = values[unknowns.positions]
    width = np.where(np.isfinite(unknowns.upper - unknowns.lower), unknowns.upper - unknowns.lower, 0.0)
    room = np.where(unknowns.logarithmic, np.abs(now), np.maximum(np.abs(now), 0.1 * width))
    room = np.where(room > 0, room, _room_of_zero(rates, jp[:, unknowns.positions]))
    pushes = np.nan_to_num(jp[:, unknowns.positions] * room[None, :, None])
    spread = np.einsum("ipt,jpt->ij", pushes, pushes) / count
    measured = np.asarray(np.isfinite(segment.outputs).any(axis=1))
    seen = np.where(measured[:, None], np.nan_to_num(yx).mean(axis=2), 0.0)
    size, reach = np.std(states, axis=1), np.nanstd(np.where(measured[:, None], segment.outputs, 0.0), axis=1)
    return Linearised(
        np.nan_to_num(jx).mean(axis=2),
        spread,
        seen,
        np.diag(np.where(measured, sigma**2, 1.0)),
        np.where(size > 0, size, 1.0),
        np.where(reach > 0, reach, 1.0),
        segment.dt,
    )


def _room_of_zero(rates: Array, slopes: Array) -> Array:
    """How far a parameter whose guess is zero may be off: by as much as moves the rates by their spread."""
    size = np.std(np.nan_to_num(rates), axis=1)[:, None]
    slope = np.sqrt(np.mean(np.nan_to_num(slopes) ** 2, axis=2))
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where((slope > 0) & (size > 0), size / slope, np.inf)
    nearest = reach.min(axis=0, initial=np.inf)
    return np.where(np.isfinite(nearest), nearest, 1.0)


def synchronisation_error(
    model: Model, segments: Sequence[CoupledStretch], point: Point, controller: Controller, substeps: int
) -> float:
    """Largest rms of the error over rms of the signal at full coupling; infinite if the motion diverges."""
    worst = 0.0
    none = np.zeros(0, dtype=np.int64)
    for segment, initial in zip(segments, point.initials, strict=True):
        run = run_coupled(model, segment, point.values, initial, none, controller, 1.0, substeps, False)
        if run.diverged:
            return np.inf
        for measured, followed in zip(segment.outputs, run.outputs, strict=True):
            seen = np.isfinite(measured)
            if seen.any():
                spread = np.std(measured[seen]) or 1.0
                worst = max(worst, float(np.sqrt(np.mean((measured[seen] - followed[seen]) ** 2)) / spread))
    return worst


def choose_controller(
    model: Model, segments: Sequence[CoupledStretch], point: Point, unknowns: SearchCoordinates, sigma: Array
) -> tuple[Controller, float]:
    """The weakest observer that makes the model follow the record from the guess, and its error."""
    best: tuple[Controller, float] | None = None
    along = linearised(model, segments[0], point.values, unknowns, sigma)
    if not along.spread.any():  # the parameters do not move the states: there is nothing to hold back
        return Controller.none(model), 0.0
    for strength in _STRENGTHS:
        designed = along.gain(strength)
        if designed is None:
            continue
        gain, fastest = designed
        controller = Controller(gain, np.zeros_like(gain))
        substeps = 1 + int(fastest * segments[0].dt)  # Runge-Kutta is stable and fair below one radian a step
        if substeps > _MOST_SUBSTEPS:
            break
        error = synchronisation_error(model, segments, point, controller, substeps)
        if best is None or error < best[1]:
            best = controller, error
        if error < _SYNCHRONISED:
            break
    return best if best is not None else (uniform_controller(model, 10.0), np.inf)
