"""Residuals of a motion whose force was measured with noise, made white by the innovations of a filter.

The noise of the force moves the simulated state like a random walk through the linearised motion,
d_(n+1) = A_n d_n + (0, w_n), and sensors see d with their own noise. What the samples before do not predict
of each (Kalman 1960) is white.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.estimate.functions.energetic.splines import COMPILED

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Whitening:
    """The filter of one segment; states and samples in units of the sensors' noise."""

    there: NDArray[np.bool_]  # [2, N] where x and v were measured
    transitions: Array  # [N, 2, 2] from each sample to the next
    gains: Array  # [N, 2, 2] by sensor
    sizes: Array  # [N, 2] standard deviation of the innovations

    @classmethod
    def prepare(cls, turned: Array, pushes: Array, there: NDArray[np.bool_], noise: Array) -> Whitening:
        """``turned`` [2, N, 2]: the states' derivative by the initial ones; ``pushes`` [N]: deviation of the
        velocity's change within a sample; ``noise`` [2] of the sensors.
        """
        phi = turned.transpose(1, 0, 2) / noise[:, None] * noise
        transitions = np.tile(np.eye(2), (len(phi), 1, 1))
        transitions[:-1] = phi[1:] @ np.linalg.inv(phi[:-1])
        gains, sizes = np.zeros((len(phi), 2, 2)), np.ones((len(phi), 2))
        _gains(transitions, pushes / noise[1], there, gains, sizes)
        return cls(there, transitions, gains, sizes)

    def applied(self, rows: Array) -> Array:
        """Innovations [2, N, K] of rows that are in units of the noise."""
        out = np.ascontiguousarray(rows)
        if out is rows:
            out = rows.copy()
        _filtered(self.there, self.transitions, self.gains, self.sizes, out)
        return out


@njit(**COMPILED)
def _gains(transitions, pushes, there, gains, sizes):  # type: ignore[no-untyped-def]
    P = np.zeros((2, 2))
    for n in range(len(pushes)):
        for s in range(2):
            if there[s, n]:
                F = P[s, s] + 1.0
                sizes[n, s] = np.sqrt(F)
                k0, k1 = P[0, s] / F, P[1, s] / F
                gains[n, s, 0], gains[n, s, 1] = k0, k1
                r0, r1 = P[s, 0], P[s, 1]
                P[0, 0] -= k0 * r0
                P[0, 1] -= k0 * r1
                P[1, 0] -= k1 * r0
                P[1, 1] -= k1 * r1
        A = transitions[n]
        P = A @ P @ A.T
        P[1, 1] += pushes[n] ** 2


@njit(**COMPILED)
def _filtered(there, transitions, gains, sizes, rows):  # type: ignore[no-untyped-def]
    for c in range(rows.shape[2]):
        a = 0.0
        b = 0.0
        for n in range(rows.shape[1]):
            for s in range(2):
                if there[s, n]:
                    error = rows[s, n, c] - (a if s == 0 else b)
                    rows[s, n, c] = error / sizes[n, s]
                    a += gains[n, s, 0] * error
                    b += gains[n, s, 1] * error
            A = transitions[n]
            a, b = A[0, 0] * a + A[0, 1] * b, A[1, 0] * a + A[1, 1] * b
