"""Noise of a record that may be sampled coarsely, as a map or once in each period of the drive is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.reconstruct.embedding import delay_coordinates
from analysis.reconstruct.prediction import prediction_error
from analysis.signal.noise import NoiseLevel, noise_level
from analysis.signal.timescale import mean_period

Array = NDArray[np.float64]

FINELY = 8  # samples a turn from which on a record shows a flow
_LENGTH = 8192  # samples from which the next one is foretold
_DIMENSIONS = (2, 3, 4)
_THEILER = 3  # samples: of a map hardly any neighbour is one in time only


def coarse(samples: Array) -> bool:
    """Whether the record has so few samples a turn that it shows a map."""
    return mean_period(samples) < FINELY


def noise_beside_motion(samples: Array) -> NoiseLevel:
    """Noise of a record; of a coarse one at most the error with which neighbours foretell the next sample.

    High differences take a coarse motion for noise. But white noise cannot be foretold.
    """
    x = np.asarray(samples, dtype=np.float64)
    found = noise_level(x)
    if not coarse(x):
        return found
    some, errors = x[:_LENGTH], []
    for dimension in _DIMENSIONS:
        points = delay_coordinates(some[:-1], dimension, 1)
        try:
            errors.append(prediction_error(points, some[dimension:], _THEILER) * float(np.std(some)))
        except DataError:
            continue
    least = min(errors, default=np.inf)
    if least > found.value:
        return found
    words = (
        "The record has few samples a turn, so that its noise cannot be told from the motion; neighbours "
        f"foretell the next sample to within {least:.3g}, so it is not above that."
    )
    return replace(found, value=least, stderr=least, settled=False, message=words)
