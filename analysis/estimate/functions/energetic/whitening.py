"""Residuals of a motion whose force was measured with noise, made white by the innovations of a filter.

The noise of the force moves the simulated state like a random walk through the linearised motion,
d_(n+1) = A_n d_n + (0, dt w_n), and sensors see d with their own noise; an accelerometer sees w_n at once.
What the samples before do not predict of each (Kalman 1960) is white.
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
    """The filter of one segment; samples in units of the sensors' noise. The third state is w_n."""

    there: NDArray[np.bool_]  # [rows, N] where x, v and the acceleration were measured
    transitions: Array  # [N, 2, 3] from each sample to the next
    seen: Array  # [N, rows, 3] what each sensor sees of the state
    gains: Array  # [N, rows, 3] by sensor
    sizes: Array  # [N, rows] standard deviation of the innovations

    @classmethod
    def prepare(
        cls, turned: Array, pushes: Array, there: NDArray[np.bool_], noise: Array, dt: float = 1.0
    ) -> Whitening:
        """``turned`` [rows, N, 2]: derivative of x, v and the acceleration by the initial state; ``pushes``
        [N]: deviation of the velocity's change within a sample; ``noise`` [rows] of the sensors.
        """
        rows, count = turned.shape[:2]
        phi = turned[:2].transpose(1, 0, 2)
        transitions = np.tile(np.eye(2, 3), (count, 1, 1))
        transitions[:-1, :, :2] = phi[1:] @ np.linalg.inv(phi[:-1])
        transitions[:, 1, 2] = dt
        seen = np.zeros((count, rows, 3))
        seen[:, :2, :2] = np.eye(2)
        if rows > 2:
            seen[:, 2, :2] = np.linalg.solve(phi.transpose(0, 2, 1), turned[2][:, :, None])[:, :, 0]
            seen[:, 2, 2] = 1.0
        seen /= noise[:, None]
        gains, sizes = np.zeros((count, rows, 3)), np.ones((count, rows))
        _gains(transitions, seen, pushes / dt, there, gains, sizes)
        return cls(there, transitions, seen, gains, sizes)

    def applied(self, rows: Array) -> Array:
        """Innovations [rows, N, K] of rows that are in units of the noise."""
        out = np.ascontiguousarray(rows)
        if out is rows:
            out = rows.copy()
        _filtered(self.there, self.transitions, self.seen, self.gains, self.sizes, out)
        return out


@njit(**COMPILED)
def _gains(transitions, seen, pushes, there, gains, sizes):  # type: ignore[no-untyped-def]
    P = np.zeros((3, 3))
    for n in range(len(pushes)):
        P[2, 2] = pushes[n] ** 2
        for s in range(len(there)):
            if there[s, n]:
                own = seen[n, s]
                reach = P @ own
                F = own @ reach + 1.0
                sizes[n, s] = np.sqrt(F)
                gains[n, s] = reach / F
                for i in range(3):
                    for j in range(3):
                        P[i, j] -= reach[i] * reach[j] / F
        A = transitions[n]
        moved = A @ P @ A.T
        P[:] = 0.0
        P[:2, :2] = moved


@njit(**COMPILED)
def _filtered(there, transitions, seen, gains, sizes, rows):  # type: ignore[no-untyped-def]
    for c in range(rows.shape[2]):
        a = 0.0
        b = 0.0
        w = 0.0
        for n in range(rows.shape[1]):
            w = 0.0
            for s in range(rows.shape[0]):
                if there[s, n]:
                    h = seen[n, s]
                    error = rows[s, n, c] - (h[0] * a + h[1] * b + h[2] * w)
                    rows[s, n, c] = error / sizes[n, s]
                    a += gains[n, s, 0] * error
                    b += gains[n, s, 1] * error
                    w += gains[n, s, 2] * error
            A = transitions[n]
            a, b = (
                A[0, 0] * a + A[0, 1] * b + A[0, 2] * w,
                A[1, 0] * a + A[1, 1] * b + A[1, 2] * w,
            )
