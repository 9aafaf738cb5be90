"""What to expect of a hold before anything moves: the corrections that noise will call for, and the wait."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.holding.holder import BOUND, NEAR, SHARE, base_forces
from analysis.holding.linearise import linearise
from analysis.holding.plant import LoopPlant
from analysis.holding.regulator import WEIGHT, Regulator, regulate
from analysis.holding.target import Target

Array = NDArray[np.float64]

MOST_CONTROL = 0.05  # rms correction over the drive's amplitude above which no hold is accepted
LONGEST_DELAY = 2.0  # periods of the drive: beyond it nobody has looked
SWEEPS = 8


def expected_control(plant: LoopPlant, target: Target, delay: float | None = None) -> float:
    """Rms correction over the amplitude that sensors' noise and the model's gaps will call for.

    Inf where no correction holds the orbit. From the covariances of estimate and deviation around the orbit.
    """
    try:
        dev = linearise(plant, target.states, delay)
        regulator = regulate(dev)
    except DataError:
        return np.inf
    return float(np.sqrt(np.mean(_variances(plant, target, dev.A, regulator))))


def _variances(plant: LoopPlant, target: Target, A: Array, regulator: Regulator) -> Array:
    n, count = target.states.shape
    rows = outputs_and_slopes(plant, target.states, target.multiple)[1]
    noise = np.diag(plant.noise**2)
    process = np.diag(plant.process_noise[:n] / plant.scale**2)
    total = regulator.gains.shape[1]
    sigma, spread = np.eye(n) * 1e-2, np.zeros((total, total))
    found, before = np.empty(count), np.inf
    for _ in range(SWEEPS):
        for j in range(count):
            c = rows[j]
            gain = sigma @ c.T @ np.linalg.inv(c @ sigma @ c.T + noise)
            after = sigma - gain @ c @ sigma
            spread[:n, :n] += sigma - after
            found[j] = regulator.gains[j] @ spread @ regulator.gains[j]
            spread = regulator.closed[j] @ spread @ regulator.closed[j].T
            sigma = A[j, :n, :n] @ (0.5 * (after + after.T)) @ A[j, :n, :n].T + process
        if abs(found.mean() - before) < 1e-3 * found.mean():
            break
        before = found.mean()
    return found


def outputs_and_slopes(plant: LoopPlant, states: Array, multiple: int) -> tuple[Array, Array]:
    """[channels, J] what each channel shows along an orbit, and [J, channels, n] what it shows of a
    deviation in units of the states' spread."""
    n, count = states.shape
    q, k = len(plant.model.outputs), len(plant.model.parameters)
    theta = 2 * np.pi * multiple * np.arange(count) / count
    force = np.ascontiguousarray(base_forces(plant, theta)[None, :])
    out, by_state, by_parameter = np.empty((q, count)), np.empty((q, n, count)), np.empty((q, k, count))
    plant.model.kernels().out_jac_many(
        np.zeros(count), np.ascontiguousarray(states), force, plant.model.values(), out, by_state,
        by_parameter,
    )  # fmt: skip
    return out[plant.rows], np.asarray(np.moveaxis(by_state, 2, 0)[:, plant.rows, :] * plant.scale)


def longest_delay(plant: LoopPlant, target: Target) -> float:
    """s: the longest delay of the loop with which this orbit can be held noninvasively; 0 if with none."""
    low, high = 0.0, LONGEST_DELAY / plant.frequency
    if expected_control(plant, target, high) <= MOST_CONTROL:
        return high
    if expected_control(plant, target, 0.0) > MOST_CONTROL:
        return 0.0
    for _ in range(7):
        middle = 0.5 * (low + high)
        if expected_control(plant, target, middle) <= MOST_CONTROL:
            low = middle
        else:
            high = middle
    return low


def expected_wait(
    plant: LoopPlant, target: Target, regulator: Regulator, states: Array, phase: Array
) -> float:
    """Periods of the drive until the free motion is caught, on average: from a record's states [n, N] and
    phases. Inf if it never comes near enough in the record."""
    count, nodes = target.states.shape[1], plant.nodes
    costs = regulator.costs[:, : len(states), : len(states)]
    limit = SHARE * WEIGHT * BOUND**2
    place = np.rint((phase % (2 * np.pi * target.multiple)) / (2 * np.pi) * nodes).astype(np.int64)
    caught = np.zeros(len(phase), dtype=bool)
    for shift in range(target.multiple):
        at = (place + shift * nodes) % count
        d = (states - target.states[:, at]) / plant.scale[:, None]
        near = np.flatnonzero(np.sqrt((d**2).sum(axis=0)) < NEAR)
        cost = np.einsum("ij,jik,kj->j", d[:, near], costs[at[near]], d[:, near])
        caught[near[cost < limit]] = True
    moments = np.flatnonzero(caught)
    if not len(moments):
        return np.inf
    gaps = np.diff(np.concatenate([[0], moments, [len(phase)]])).astype(np.float64)
    turns = (phase[-1] - phase[0]) / (2 * np.pi)
    return float((gaps**2).sum() / (2 * len(phase)) / len(phase) * turns)
