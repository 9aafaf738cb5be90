"""Arrays of one segment that the sweeps overwrite in each iteration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass
class Workspace:
    """Names as in solver.py, for N samples, n states, q outputs, p unknowns of which a are of the model.

    The sweeps carry n states and, once the inputs are unknown, the m errors of the inputs behind them.
    """

    V: Array  # [N-1, n, n + a] derivatives of the flow over an interval
    C: Array  # [N-1, n] defects: flow minus next state
    R: Array  # [N, q] residuals over the noise; nan: missing
    G: Array  # [N, q, n] derivatives of the outputs in the states, over the noise
    D: Array  # [N, q, p] and in the unknowns
    S: Array  # from here on what the forward sweep keeps for the backward one
    M: Array
    K: Array
    s: Array
    E: Array
    dX: Array  # [n + m, N] step of the path
    L: Array  # [N, n + m] multipliers of the equations
    carried: Array  # V and G as the sweeps see them
    seen: Array

    @classmethod
    def allocate(cls, n: int, m: int, q: int, N: int, a: int, p: int) -> Workspace:
        V, G, size = np.empty((N - 1, n, n + a)), np.empty((N, q, n)), n + m
        return cls(
            V, np.empty((N - 1, n)), np.empty((N, q)), G, np.empty((N, q, p)), np.empty((N, size, size)),
            np.empty((N, size, p + 1)), np.empty((N, q, size)), np.empty((N, q)), np.empty((N, q, p + 1)),
            np.empty((size, N)), np.empty((N, size)),
            np.zeros((N - 1, size, size + a)) if m else V, np.zeros((N, q, size)) if m else G,
        )  # fmt: skip
