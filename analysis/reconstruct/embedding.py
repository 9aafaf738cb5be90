"""Phase space from one channel: delay coordinates and singular coordinates (Yuan 1995, eq. 4.1 and 4.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError


def delay_coordinates(samples: NDArray[np.float64], dimension: int, delay: int) -> NDArray[np.float64]:
    """Points y_j = (x_j, x_(j+delay), ...) as columns, [dimension, N - (dimension - 1) delay] (eq. 4.1)."""
    x = np.asarray(samples, dtype=np.float64)
    length = len(x) - (dimension - 1) * delay
    if dimension < 1 or delay < 1:
        raise DataError(f"Dimension and delay must be positive, not {dimension} and {delay}.")
    if length < 2 * dimension:
        raise DataError(
            f"{len(x)} samples are too few for {dimension} coordinates that are {delay} samples apart."
        )
    return np.stack([x[k * delay : k * delay + length] for k in range(dimension)])


@dataclass(frozen=True, eq=False)
class SingularSpace:
    """Coordinates along the principal directions of a sliding window of the signal (Broomhead and King 1986).

    ``coordinates`` [rank, M] column j belongs to samples j to j + window - 1; ``vectors`` [window, rank];
    ``values`` all singular values, as standard deviations in the channel's unit.
    """

    coordinates: NDArray[np.float64]
    vectors: NDArray[np.float64]
    values: NDArray[np.float64]


def singular_coordinates(samples: NDArray[np.float64], window: int, rank: int) -> SingularSpace:
    """Project every window of ``window`` samples onto its ``rank`` strongest directions.

    The directions are eigenvectors of the window's covariance C = Y Y' / M (the thesis prints Y' Y for
    vectors in columns). Noise of deviation s adds s to every singular value in quadrature and stays s in
    every coordinate.
    """
    x = np.asarray(samples, dtype=np.float64)
    if not 1 <= rank <= window:
        raise DataError(f"The number of singular coordinates must lie between 1 and the window, not {rank}.")
    vectors, values = window_spectrum(x, window)
    kept = vectors[:, :rank]
    centred = x - x.mean()
    coordinates = np.stack([np.convolve(centred, kept[::-1, r], mode="valid") for r in range(rank)])
    return SingularSpace(coordinates, kept, values)


def window_spectrum(
    samples: NDArray[np.float64], window: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Directions [window, window] and singular values, strongest first, without forming the windows."""
    x = np.asarray(samples, dtype=np.float64)
    length = len(x) - window + 1
    if length < 2 * window:
        raise DataError(f"{len(x)} samples are too few for a window of {window}.")
    covariance = _window_covariance(x - x.mean(), window)
    values, vectors = np.linalg.eigh(covariance)
    vectors = vectors[:, ::-1] * np.where(vectors[:, ::-1].sum(axis=0) < 0, -1.0, 1.0)
    return vectors, np.sqrt(np.maximum(values[::-1], 0.0))


def _window_covariance(x: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Mean of y y' over all windows: one diagonal after the other, each entry updated from its neighbour."""
    length = len(x) - window + 1
    covariance = np.empty((window, window))
    for lag in range(window):
        total = float(x[:length] @ x[lag : lag + length])
        products = x[: window - lag - 1] * x[lag : window - 1]
        late = x[length : length + window - lag - 1] * x[length + lag : length + window - 1]
        diagonal = total + np.concatenate(([0.0], np.cumsum(late - products)))
        index = np.arange(window - lag)
        covariance[index, index + lag] = covariance[index + lag, index] = diagonal / length
    return covariance
