"""The specimen's deviations from an orbit, tick by tick.

    d(j+1) = A(j) d(j) + B1(j) c(j-m-1) + B2(j) c(j-m)

with d the deviations of the states (in units of their spread) and of the force s (over gain times amplitude),
c the commands (over the drive's amplitude), and the loop's delay m ticks and a fraction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.holding.plant import LoopPlant
from analysis.holding.tick import LAG, advance_tick, begin_tick

Array = NDArray[np.float64]

SHORT_LAG = 0.7  # integration steps: above it their error in the force is below 1 %


@dataclass(frozen=True, eq=False)
class Deviations:
    """A, B1, B2 at each node of an orbit, and the whole ticks m of the delay."""

    A: Array  # [J, n + 1, n + 1]
    B1: Array  # [J, n + 1]
    B2: Array  # [J, n + 1]
    ends: Array  # [n, J] where the model without corrections goes from each node in a tick, in its units
    whole: int
    tick: float  # rad of the drive from one node to the next

    @property
    def multipliers(self) -> NDArray[np.complex128]:
        """Floquet multipliers by falling size, of the states alone."""
        n = self.A.shape[1] - 1
        product = np.eye(n)
        for a in self.A:
            product = a[:n, :n] @ product
        found = np.linalg.eigvals(product)
        return found[np.argsort(-np.abs(found))].astype(np.complex128)


def timing_of(plant: LoopPlant, tick: float, delay: float | None = None) -> tuple[Array, int]:
    """Numbers of a tick of ``tick`` s for the compiled code, and the delay's whole ticks.

    A lag shorter than an integration step acts as a delay of the same length.
    """
    path = plant.path
    delay, lag = path.delay if delay is None else delay, path.lag
    if lag < SHORT_LAG * tick / plant.steps:
        delay, lag = delay + lag, 0.0
    whole, fraction = delay_in_ticks(delay, tick)
    return np.array([plant.omega, tick, fraction, path.gain, lag, plant.steps]), whole


def delay_in_ticks(delay: float, tick: float) -> tuple[int, float]:
    """Whole ticks and the fraction of one that is left."""
    ticks = max(0.0, delay / tick)
    whole = int(np.floor(ticks + 1e-9))
    return whole, max(0.0, ticks - whole)


def linearise(
    plant: LoopPlant, states: Array, delay: float | None = None, values: Array | None = None
) -> Deviations:
    """Deviations from the orbit ``states`` [n, J], its first column at phase 0 of the drive."""
    model, kernels = plant.model, plant.model.kernels()
    n, count = states.shape
    nodes = plant.nodes
    tick = 2 * np.pi / nodes / plant.omega
    timing, whole = timing_of(plant, tick, delay)
    p = np.ascontiguousarray(model.values() if values is None else values)
    y, own = np.zeros((n, n + 4)), np.zeros(n + 4)
    work = np.empty((3, n, n + 4))
    scratch = (
        np.empty(n),
        np.empty(1),
        np.empty(n),
        np.empty((n, n)),
        np.empty((n, len(p))),
        np.empty((n, 1)),
    )
    none = np.zeros((0, 2))
    A = np.zeros((count, n + 1, n + 1))
    B1, B2, ends = np.zeros((count, n + 1)), np.zeros((count, n + 1)), np.empty((n, count))
    decay = np.exp(-tick / timing[LAG]) if timing[LAG] > 0 else 0.0
    force_scale = plant.path.gain * plant.amplitude
    for j in range(count):
        y[:, -1], own[-1] = states[:, j], 0.0
        begin_tick(y, own)
        advance_tick(
            kernels.jac, kernels.jac_u, p, y, own, 2 * np.pi * (j % nodes) / nodes, 0.0, 0.0, timing,
            plant.force, none, n, work, *scratch,
        )  # fmt: skip
        ends[:, j] = y[:, -1]
        A[j, :n, :n] = y[:, :n] * plant.scale / plant.scale[:, None]
        A[j, :n, n] = y[:, n] * force_scale / plant.scale
        A[j, n, n] = decay
        B1[j, :n] = y[:, n + 1] * plant.amplitude / plant.scale
        B2[j, :n] = y[:, n + 2] * plant.amplitude / plant.scale
        B1[j, n], B2[j, n] = own[n + 1] / plant.path.gain, own[n + 2] / plant.path.gain
    return Deviations(A, B1, B2, ends, whole, plant.omega * tick)


def with_commands(dev: Deviations) -> tuple[Array, Array]:
    """F [J, D, D] and G [J, D] on z = (d, c(j-1), ..., c(j-m-1)), so that z(j+1) = F z(j) + G c(j)."""
    count, size = dev.B1.shape
    m = dev.whole
    total = size + m + 1
    F, G = np.zeros((count, total, total)), np.zeros((count, total))
    F[:, :size, :size] = dev.A
    F[:, :size, size + m] = dev.B1  # c(j-m-1)
    if m == 0:
        G[:, :size] = dev.B2
    else:
        F[:, :size, size + m - 1] = dev.B2  # c(j-m)
    for k in range(m):
        F[:, size + k + 1, size + k] = 1.0
    G[:, size] = 1.0
    return F, G
