"""The periodic linear-quadratic regulator on an orbit: the gains, and the cost of bringing a deviation back.

It minimises the sum over ticks of h (|d|^2 + weight c^2), h the tick in radians of the drive. The Riccati
recursion backwards over the orbit, again and again, converges to the periodic solution that stabilises
(Bittanti, Colaneri, De Nicolao 1991).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.holding.linearise import Deviations, with_commands

Array = NDArray[np.float64]

WEIGHT = 0.3  # of the correction, over the drive's amplitude, against deviations over the states' spread
SWEEPS = 60


@dataclass(frozen=True, eq=False)
class Regulator:
    """Gains and costs at the nodes of an orbit, for z = (d, past commands)."""

    gains: Array  # [J, D]: c = -gains z
    costs: Array  # [J, D, D]: cost-to-go z' costs z
    closed: Array  # [J, D, D]: z(j+1) = closed z(j)

    @property
    def largest_multiplier(self) -> float:
        """Of the closed loop over the orbit: below 1, deviations die out."""
        product = np.eye(self.closed.shape[1])
        for a in self.closed:
            product = a @ product
        return float(np.abs(np.linalg.eigvals(product)).max())


def regulate(dev: Deviations, weight: float = WEIGHT) -> Regulator:
    """Gains and costs for the deviations from an orbit; DataError if nothing stabilises it."""
    F, G = with_commands(dev)
    count, total = G.shape
    size = dev.B1.shape[1]
    state_cost = np.zeros((total, total))
    state_cost[: size - 1, : size - 1] = dev.tick * np.eye(size - 1)
    P = np.eye(total) * dev.tick
    gains, costs = np.empty((count, total)), np.empty((count, total, total))
    for _ in range(SWEEPS):
        before = costs[0].copy()
        for j in range(count - 1, -1, -1):
            pg = P @ G[j]
            gain = (pg @ F[j]) / (dev.tick * weight + G[j] @ pg)
            P = state_cost + F[j].T @ P @ F[j] - np.outer(F[j].T @ pg, gain)
            P = 0.5 * (P + P.T)
            gains[j], costs[j] = gain, P
        if not np.isfinite(P).all():
            raise DataError("No correction of the drive reaches this orbit: its Riccati equation diverges.")
        if np.abs(P - before).max() < 1e-7 * np.abs(P).max():
            break
    closed = F - G[:, :, None] * gains[:, None, :]
    found = Regulator(gains, costs, closed)
    if not found.largest_multiplier < 1:
        raise DataError("No correction of the drive stabilises this orbit.")
    return found
