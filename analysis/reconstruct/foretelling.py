"""Reconstructions of one channel ranked by how well they foretell the motion (cross-validation)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.reconstruct.delay import delay_by_mutual_information
from analysis.reconstruct.embedding import delay_coordinates
from analysis.reconstruct.prediction import prediction_error
from analysis.signal.timescale import theiler_window

Array = NDArray[np.float64]

DIMENSIONS = (4, 5, 6)
_PARTS = (1 / 3, 2 / 3, 1.0)  # of the delay that makes coordinates independent
_LONGEST = 20_000  # samples on which the reconstructions are compared


@dataclass(frozen=True)
class Reconstruction:
    """Delay coordinates, and the error with which they foretell the channel."""

    delay: int  # samples
    dimension: int
    error: float  # rms over the standard deviation of the channel


def foretelling_reconstructions(
    samples: Array, horizon: int, dimensions: tuple[int, ...] = DIMENSIONS
) -> list[Reconstruction]:
    """Delay embeddings of ``samples``, that which foretells the channel best ``horizon`` samples ahead first.

    Each point is foretold by the others alone: coordinates that say nothing new make the error larger.
    """
    x = np.asarray(samples, dtype=np.float64)
    independent = delay_by_mutual_information(x[:_LONGEST], 1.0).samples
    x, theiler = x[:_LONGEST], theiler_window(x)
    found = []
    for delay in sorted({max(round(part * independent), 1) for part in _PARTS}):
        for dimension in dimensions:
            reach = (dimension - 1) * delay
            try:
                points = delay_coordinates(x[: len(x) - horizon], dimension, delay)
                error = prediction_error(points, x[reach + horizon :], theiler)
            except DataError:
                continue
            found.append(Reconstruction(delay, dimension, error))
    if not found:
        raise DataError("The record is too short to compare reconstructions.")
    return sorted(found, key=lambda r: r.error)
