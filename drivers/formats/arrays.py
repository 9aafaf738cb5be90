"""Arrays of HDF5 and MATLAB files as columns: which axis is time, and what each column is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from drivers.formats.columns import Column

MOST_CHANNELS = 4096  # a matrix with more in both directions is an image or a map, no set of signals


class ArrayLike(Protocol):
    """What numpy arrays and HDF5 datasets have in common."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __getitem__(self, key: Any) -> Any: ...


def columns_of(name: str, array: ArrayLike, unit: str = "", rate: float | None = None) -> Iterator[Column]:
    """The signals in a vector or matrix; the longer axis of a matrix is time."""
    shape = array.shape
    if array.dtype.kind not in "biuf":
        return
    if len(shape) == 1:
        yield Column(name, shape[0], array.dtype, lambda a, b: array[a:b], unit, rate)
        return
    if len(shape) != 2 or min(shape) == 0 or min(shape) > MOST_CHANNELS:
        return
    time_axis = 0 if shape[0] >= shape[1] else 1
    count = shape[1 - time_axis]
    for i in range(count):
        label = name if count == 1 else f"{name}_{i + 1}"
        yield Column(label, shape[time_axis], array.dtype, _along(array, time_axis, i), unit, rate)


def _along(array: ArrayLike, time_axis: int, position: int) -> Any:
    def read(start: int, stop: int) -> NDArray[Any]:
        key = (slice(start, stop), position) if time_axis == 0 else (position, slice(start, stop))
        return np.asarray(array[key])

    return read
