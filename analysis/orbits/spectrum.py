"""Lyapunov exponents from local maps of the data (Sano and Sawada 1985; Eckmann et al. 1986)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.orbits.autonomous import mean_turn
from analysis.orbits.closure import span
from analysis.orbits.multipliers import STEPS, Cloud, LocalMaps, Sections
from analysis.signal.noise import noise_levels
from analysis.signal.phase_grid import phase_grid

Array = NDArray[np.float64]

_SUB_RECORDS = 8
_REFERENCES = 6000  # local maps that are fitted at most
_STEPS = 8  # local maps in a turn of an autonomous motion
_TRIED_STEPS = (8, 4, 2)  # local maps in a turn, or in a period of the drive, for the largest exponent
_BENT = 1.3  # of what maps leave unexplained, that a doubled step may add: noise stays, bending grows


@dataclass(frozen=True, eq=False)
class ExponentSpectrum:
    """Exponents, largest first, in nats per unit of time, with standard errors from sub-records.

    For an autonomous system the zero exponent of the flow is included by construction. ``curve`` [time,
    exponent] is the running mean over ``times``.
    """

    values: NDArray[np.float64]
    stderrs: NDArray[np.float64]
    times: NDArray[np.float64]
    curve: NDArray[np.float64]
    message: str = ""


def exponent_spectrum(
    points: NDArray[np.float64],
    dt: float,
    *,
    period: float | None = None,
    scale: NDArray[np.float64] | None = None,
    noise: NDArray[np.float64] | None = None,
) -> ExponentSpectrum:
    """Exponents of the motion of ``points`` [n, N] in state, delay or singular space.

    ``period`` (samples) of the drive of a forced system: neighbours are then taken at the same phase. Without
    it the maps go from section to section across the flow, and a zero exponent is added for the flow itself.
    """
    points = np.ascontiguousarray(np.atleast_2d(points), dtype=np.float64)
    scale = span(points) if scale is None else np.broadcast_to(scale, points.shape[:1]).astype(float)
    noise = noise_levels(points) if noise is None else np.broadcast_to(noise, points.shape[:1]).astype(float)
    local, step = (
        _autonomous(points, scale, noise) if period is None else _forced(points, period, scale, noise)
    )
    rates = _rates(local, step * dt)
    values = rates.mean(axis=0)
    blocks = np.array([part.mean(axis=0) for part in np.array_split(rates, _SUB_RECORDS)])
    errors = blocks.std(axis=0, ddof=1) / np.sqrt(_SUB_RECORDS)
    curve = np.cumsum(rates, axis=0) / np.arange(1, len(rates) + 1)[:, None]
    if period is None:
        values, errors = np.append(values, 0.0), np.append(errors, 0.0)
        curve = np.column_stack([curve, np.zeros(len(curve))])
    order = np.argsort(-values)
    message = ""
    if np.max(noise / scale) > 2e-3:
        message = "Noise above 0.2 % of the span biases the negative exponents; trust the positive one."
    times = np.arange(1, len(rates) + 1, dtype=np.float64) * step * dt
    return ExponentSpectrum(values[order], errors[order], times, curve[:, order], message)


@dataclass(frozen=True)
class Growth:
    """Largest exponent from local maps, in nats per unit of time."""

    value: float
    stderr: float  # from sub-records
    rest: float  # of the spread of neighbours' images, what the maps leave unexplained (rms)


def largest_by_maps(points: Array, dt: float, *, period: float | None, scale: Array, noise: Array) -> Growth:
    """Largest exponent of the motion of ``points`` [n, N] by local maps of the length that suits the data.

    The noise of the points from which a map is fitted weakens each of them, so few long maps lose less than
    many short ones; but long ones bend. A step is doubled while what the maps leave unexplained hardly grows:
    then it is noise.
    """
    best: tuple[float, Array] | None = None
    for steps in _TRIED_STEPS:
        local, step = (
            _autonomous(points, scale, noise, steps)
            if period is None
            else _forced(points, period, scale, noise, steps)
        )
        rest = float(np.sqrt(np.mean(local.rests**2)))
        if best is not None and rest > _BENT * best[0]:
            break
        best = rest, _rates(local, step * dt)[:, 0]
    assert best is not None
    rest, rates = best
    blocks = np.array([part.mean() for part in np.array_split(rates, _SUB_RECORDS)])
    return Growth(float(rates.mean()), float(blocks.std(ddof=1) / np.sqrt(_SUB_RECORDS)), rest)


def kaplan_yorke(exponents: NDArray[np.float64]) -> float:
    """Kaplan-Yorke dimension of a spectrum: how many exponents, the last one in part, sum to zero.

    Exponents that all sum to more than zero (a spectrum that is not complete) give not-a-number.
    """
    values = np.sort(np.asarray(exponents, dtype=np.float64))[::-1]
    sums = np.cumsum(values)
    if len(values) == 0 or values[0] < 0:
        return 0.0
    if sums[-1] > 0:
        return float("nan")
    last = int(np.flatnonzero(sums >= 0)[-1])
    if last + 1 == len(values):
        return float(len(values))
    return float(last + 1 + sums[last] / abs(values[last + 1]))


def _forced(
    points: Array, period: float, scale: Array, noise: Array, steps: int = STEPS
) -> tuple[LocalMaps, float]:
    """Local maps between sections of the drive's phase, and their length in samples."""
    grid = phase_grid(points, period)
    sections = Sections.of(grid, scale, noise, steps=steps)
    if sections is None:
        raise DataError("The record holds too few drive periods for local maps: about 50 are needed.")
    columns = np.arange(0, grid.points.shape[1] - sections.stride, sections.stride)[:_REFERENCES]
    centres = np.ascontiguousarray(sections.points[:, columns].T)
    return sections.fit(columns % grid.per_period, centres), sections.stride * period / grid.per_period


def _autonomous(points: Array, scale: Array, noise: Array, steps: int = _STEPS) -> tuple[LocalMaps, float]:
    """Local maps between sections across the flow, and their length in samples."""
    scaled = points / scale[:, None]
    turn = mean_turn(points)
    step = max(int(turn / steps), 1)
    places = np.arange(2, scaled.shape[1] - step - 4, step)[: _REFERENCES + 1]
    if len(places) < 100:
        raise DataError("The record holds too few turns of the motion for local maps.")
    ahead = scaled[:, places + 1] - scaled[:, places - 1]
    flows = (ahead / np.maximum(np.linalg.norm(ahead, axis=0), 1e-300)).T.copy()
    following = np.minimum(np.arange(len(places)) + 1, len(places) - 1)
    lengths = np.full(len(places), float(step))
    cloud = Cloud.of(scaled, lengths, flows, following, int(turn / 4), float(np.max(noise / scale)))
    local = cloud.fit(np.arange(len(places)), np.ascontiguousarray(scaled[:, places].T))
    return replace(local, frames=local.frames[:-1], maps=local.maps[:-1], rests=local.rests[:-1]), float(step)


def _rates(local: LocalMaps, step: float) -> Array:
    """Growth per unit of time [steps, rank], without the first twentieth."""
    logs = _growth(local.frames, local.maps)
    return logs[len(logs) // 20 :] / step


def _growth(frames: NDArray[np.float64], maps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithmic growth [steps, rank] of an orthonormal basis carried along the maps."""
    rank = frames.shape[2]
    basis = np.eye(rank)
    logs = np.empty((len(frames) - 1, rank))
    for j in range(len(frames) - 1):
        basis, triangle = np.linalg.qr(frames[j + 1].T @ maps[j] @ basis)
        logs[j] = np.log(np.maximum(np.abs(np.diag(triangle)), 1e-300))
    return logs
