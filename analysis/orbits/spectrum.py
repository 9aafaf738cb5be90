"""Lyapunov exponents from local maps of the data (Sano and Sawada 1985; Eckmann et al. 1986)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.orbits.autonomous import mean_turn
from analysis.orbits.forced import span
from analysis.orbits.multipliers import Cloud, Sections
from analysis.signal.noise import noise_levels
from analysis.signal.phase_grid import phase_grid

_SUB_RECORDS = 8
_REFERENCES = 6000  # local maps that are fitted at most


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
    if period is not None:
        frames, maps, step = _forced(points, period, scale, noise)
    else:
        frames, maps, step = _autonomous(points, scale, noise)
    logs = _growth(frames, maps)
    settled = logs[len(logs) // 20 :]
    rates = settled / (step * dt)
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
    points: NDArray[np.float64], period: float, scale: NDArray[np.float64], noise: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    grid = phase_grid(points, period)
    sections = Sections.of(grid, scale, noise)
    if sections is None:
        raise DataError("The record holds too few drive periods for local maps: about 50 are needed.")
    columns = np.arange(0, grid.points.shape[1] - sections.stride, sections.stride)[:_REFERENCES]
    centres = np.ascontiguousarray(sections.points[:, columns].T)
    local = sections.fit(columns % grid.per_period, centres)
    return local.frames, local.maps, sections.stride * period / grid.per_period


def _autonomous(
    points: NDArray[np.float64], scale: NDArray[np.float64], noise: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    scaled = points / scale[:, None]
    turn = mean_turn(points)
    step = max(int(turn / 8), 1)
    places = np.arange(2, scaled.shape[1] - step - 4, step)[: _REFERENCES + 1]
    if len(places) < 100:
        raise DataError("The record holds too few turns of the motion for local maps.")
    ahead = scaled[:, places + 1] - scaled[:, places - 1]
    flows = (ahead / np.maximum(np.linalg.norm(ahead, axis=0), 1e-300)).T.copy()
    following = np.minimum(np.arange(len(places)) + 1, len(places) - 1)
    steps = np.full(len(places), float(step))
    cloud = Cloud.of(scaled, steps, flows, following, int(turn / 4), float(np.max(noise / scale)))
    keys = np.arange(len(places))
    local = cloud.fit(keys, np.ascontiguousarray(scaled[:, places].T))
    return local.frames[:-1], local.maps[:-1], float(step)


def _growth(frames: NDArray[np.float64], maps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithmic growth [steps, rank] of an orthonormal basis carried along the maps."""
    rank = frames.shape[2]
    basis = np.eye(rank)
    logs = np.empty((len(frames) - 1, rank))
    for j in range(len(frames) - 1):
        basis, triangle = np.linalg.qr(frames[j + 1].T @ maps[j] @ basis)
        logs[j] = np.log(np.maximum(np.abs(np.diag(triangle)), 1e-300))
    return logs
