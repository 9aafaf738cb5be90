"""How much longer: the length of a record after which every parameter is known as well as wanted."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError

Array = NDArray[np.float64]
_LONGEST = 1e7  # times the length that was predicted
_STEPS = 200


def seconds_needed(
    values: Array, information: Array, seconds: float, target: float, prior: Array | None = None
) -> float:
    """Seconds until each standard error is at most ``target`` times its value's size; inf: never.

    ``information`` [D, U, U] (or [U, U]) is that of ``seconds`` of the drive, and grows with time; where the
    drive does not tell the same all along, [parts, D, U, U] that of its equal parts, after which it begins
    anew. ``prior`` is what is known before. Of several draws, the median.
    """
    if not (0 < target < 1 and seconds > 0):
        raise DataError("A target is a share of the value between 0 and 1, such as 1 %.")
    size = information.shape[-1]
    parts = information if information.ndim == 4 else information.reshape(1, -1, size, size)
    start = np.zeros((size, size)) if prior is None else prior
    course = np.concatenate([np.zeros_like(parts[:1]), np.cumsum(parts, axis=0)])
    draws = range(course.shape[1])
    return float(np.median([_needed(np.abs(values), course[:, d], start, target) for d in draws])) * seconds


def _needed(size: Array, course: Array, prior: Array, target: float) -> float:
    """Times the drive, whose information after its parts is course[parts + 1, U, U]."""
    parts = len(course) - 1

    def told(times: float) -> Array:
        whole, rest = divmod(times, 1.0)
        place = min(int(rest * parts), parts - 1)
        beyond = (rest * parts - place) * (course[place + 1] - course[place])
        return np.asarray(prior + whole * course[-1] + course[place] + beyond)

    def known(times: float) -> bool:
        return bool(np.all(_stderr(told(times)) <= target * size))

    if known(0.0):
        return 0.0
    if not known(_LONGEST):
        return math.inf
    low, high = -20.0, math.log(_LONGEST)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if known(math.exp(middle)) else (middle, high)
        if high - low < 1e-6:
            break
    return math.exp(high)


def _stderr(information: Array) -> Array:
    diagonal = np.diag(information)
    if not (np.isfinite(information).all() and (diagonal > 0).all()):
        return np.full(len(information), np.inf)
    scale = 1.0 / np.sqrt(diagonal)
    level, axes = np.linalg.eigh(information * np.outer(scale, scale))
    if level[0] <= 1e-13 * level[-1]:
        return np.full(len(information), np.inf)
    return np.asarray(np.sqrt(((axes / np.sqrt(level)) ** 2).sum(axis=1)) * scale)
