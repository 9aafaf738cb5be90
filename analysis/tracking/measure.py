"""A point of a branch from the samples of some periods: frequency, amplitude, force, phase, with errors.

The samples are cut into blocks; in each of them the harmonics are fitted by least squares at the one
frequency of all, which is where the phase of the response does not run away. The scatter of the blocks gives
the errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.tracking.linear_test import LinearPlant

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

BLOCKS = 8
HARMONICS = 7
DRIFTS = 4.0  # standard errors at which a trend over the blocks is believed
MOST_STEPS = 2 / np.sqrt(3)  # standard deviation of what lies anywhere within two losses of a held force


@dataclass(frozen=True)
class BranchValue:
    """A number with its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class PointOnBranch:
    """A periodic motion that was held: what was measured of it."""

    frequency: BranchValue  # Hz
    amplitude: BranchValue  # of the response's fundamental
    force: BranchValue  # of the force's
    phase: BranchValue  # rad, of the response behind the force, skew removed
    unexplained: float  # rms of the response that is no harmonic of the drive
    swings: float  # standard deviation of the amplitude over the blocks, relative
    force_distortion: float  # higher harmonics of the force over its fundamental, rms
    drifting: bool  # whether a trend is seen: then the errors hold it
    periods: float  # averaged


def measured(samples: Array, plant: LinearPlant, frequency: float, locked: bool) -> PointOnBranch:
    """From samples [response, force; N] near ``frequency`` (Hz); ``locked``: it follows the phase."""
    good = np.isfinite(samples).all(axis=0)
    times = np.flatnonzero(good) / plant.rate
    rows = samples[:, good]
    if len(times) < 4 * BLOCKS * HARMONICS or frequency * np.ptp(times) < 2 * BLOCKS:
        raise DataError("A point of a branch needs at least 16 periods.")
    count = int(min(HARMONICS, 0.4 * plant.rate / frequency))
    edges = np.linspace(times[0], times[-1] + 0.5 / plant.rate, BLOCKS + 1)
    block = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, BLOCKS - 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    omega = 2 * np.pi * frequency
    for _ in range(6):
        c, _ = _harmonics(rows, times, block, omega, count)
        phase = np.unwrap(np.angle(c[:, 0, 1]))
        slope = float(np.polyfit(middle - middle.mean(), phase, 1)[0])
        omega += slope
        if abs(slope) < 1e-9 * omega:
            break
    c, left = _harmonics(rows, times, block, omega, count)
    x, f = c[:, 0, 1], c[:, 1, 1]
    amplitude, drift_x = _averaged(np.abs(x))
    force, drift_f = _averaged(np.abs(f))
    force = _without_steps(force, omega / (2 * np.pi * plant.rate), plant.rate * (plant.delay - plant.skew))
    turned = x / f
    centre = np.angle(np.mean(turned / np.abs(turned)))
    phase_value, _ = _averaged(np.angle(turned * np.exp(-1j * centre)))
    behind = centre + phase_value.value + omega * plant.skew
    phase_error = float(np.hypot(phase_value.error, omega * plant.skew_error))
    # the response's phase over the blocks is that of the loop's clock: its scatter about the straight line
    wander = np.unwrap(np.angle(x))
    line = np.polyfit(middle - middle.mean(), wander, 1)
    rest = wander - np.polyval(line, middle - middle.mean())
    spread = float(np.std(rest, ddof=2) / np.sqrt(np.sum((middle - middle.mean()) ** 2)))
    # a phase that is off by e moves the frequency of the motion by d e
    slip = plant.decay * phase_error / (2 * np.pi) if locked else 0.0
    return PointOnBranch(
        BranchValue(omega / (2 * np.pi), float(np.hypot(spread / (2 * np.pi), slip))),
        amplitude, force, BranchValue(float(_wrapped(behind)), phase_error),
        float(np.sqrt(np.mean(left[0] ** 2))), float(np.std(np.abs(x), ddof=1) / np.mean(np.abs(x))),
        float(np.linalg.norm(c[:, 1, 2:].mean(axis=0)) / abs(f.mean())) if count > 1 else 0.0,
        drift_x or drift_f, omega / (2 * np.pi) * float(np.ptp(times)),
    )  # fmt: skip


def _harmonics(
    rows: Array, times: Array, block: NDArray[np.intp], omega: float, count: int
) -> tuple[Complex, Array]:
    """[blocks, rows, harmonics 0..count] complex amplitudes, and what they leave [rows, N]."""
    found = np.zeros((BLOCKS, len(rows), count + 1), dtype=np.complex128)
    left = np.empty_like(rows)
    orders = np.arange(1, count + 1)
    for b in range(BLOCKS):
        own = block == b
        angle = np.outer(omega * times[own], orders)
        basis = np.concatenate([np.ones((len(angle), 1)), np.cos(angle), -np.sin(angle)], axis=1)
        solved, *_ = np.linalg.lstsq(basis, rows[:, own].T, rcond=None)
        found[b, :, 0] = solved[0]
        found[b, :, 1:] = (solved[1 : count + 1] + 1j * solved[count + 1 :]).T
        left[:, own] = rows[:, own] - (basis @ solved).T
    return found, left


def _averaged(values: Array) -> tuple[BranchValue, bool]:
    """Mean over the blocks; where they drift the error holds half of the drift."""
    place = np.linspace(-1, 1, len(values))
    slope, mean = np.polyfit(place, values, 1)
    rest = values - mean - slope * place
    spread = float(np.std(rest, ddof=2))
    drifting = bool(
        abs(slope) > DRIFTS * spread / np.sqrt(np.sum(place**2)) and abs(slope) > 1e-3 * abs(mean)
    )
    error = float(np.std(values, ddof=1)) / np.sqrt(len(values))
    return BranchValue(float(mean), float(np.hypot(error, slope)) if drifting else error), drifting


def _without_steps(force: BranchValue, turn: float, delay: float) -> BranchValue:
    """The fundamental of a force that a converter holds for a sample, ``turn`` of a period long.

    Read on the flat parts of its steps it looks larger than it acts, by sin(pi turn)/(pi turn). Read while a
    lag takes it from one step to the next, a of the one before and 1 - a of the present, it looks smaller, by
    up to twice as much; its ``delay`` (samples) ends with that a. Behind a filter without steps it looks as
    it acts. Half of what the steps make is taken off, the most that they can make is in the error.
    """
    loss, a = 1.0 - float(np.sinc(turn)), delay % 1.0
    larger = loss * (1.0 - 12.0 * a * (1.0 - a))
    return BranchValue(
        force.value * (1.0 - 0.5 * larger), float(np.hypot(force.error, force.value * MOST_STEPS * loss))
    )


def _wrapped(angle: float) -> float:
    return float(np.angle(np.exp(1j * angle)))
