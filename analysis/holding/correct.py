"""The orbit beside a forced motion: Newton's step of the target to where no correction is needed.

Under the mean correction c the specimen runs on X; without one it would run on X + delta with

    delta(j+1) = A(j) delta(j) - B1(j) c(j-m-1) - B2(j) c(j-m),          periodic,

one linear system around the orbit. The loop stays closed meanwhile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.holding.linearise import Deviations

Array = NDArray[np.float64]


def unforced(dev: Deviations, command: Array) -> Array:
    """delta [n, J] in units of the spread, for the mean command [J] over the drive's amplitude."""
    from scipy.sparse import bsr_matrix
    from scipy.sparse.linalg import spsolve

    count, size = dev.B1.shape
    m = dev.whole
    push = dev.B1 * np.roll(command, m + 1)[:, None] + dev.B2 * np.roll(command, m)[:, None]
    blocks = np.empty((2 * count, size, size))
    blocks[0::2] = -dev.A
    blocks[1::2] = np.eye(size)
    columns = np.empty(2 * count, dtype=np.int64)
    columns[0::2] = np.arange(count)
    columns[1::2] = (np.arange(count) + 1) % count
    pointers = 2 * np.arange(count + 1)
    matrix = bsr_matrix((blocks, columns, pointers), shape=(count * size, count * size)).tocsc()
    delta = spsolve(matrix, -push.ravel()).reshape(count, size)
    return np.asarray(delta[:, :-1].T)
