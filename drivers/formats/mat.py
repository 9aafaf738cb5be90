"""MATLAB .mat: version 5 (and 4) through SciPy, version 7.3 as the HDF5 it is.

Vectors, columns of matrices, fields of structs and elements of cells become channels; scalars become
metadata, and one named like ``fs`` or ``dt`` gives the rate unless a vector of times does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.errors import DataError
from drivers.formats import hdf5
from drivers.formats.arrays import columns_of
from drivers.formats.columns import Found, declared_rate, recording_from
from drivers.formats.options import Options
from drivers.recording.lazy import Recording

LARGEST = 4 << 30  # bytes in memory; version 7.3 files are read piece by piece and have no such limit
LARGEST_VARIABLE = (1 << 31) - 1  # bytes, of the version 5 format itself
DEEPEST = 8
RESERVED = {"rate", "names", "units", "start"}


def open_file(path: Path, options: Options) -> Recording:
    with path.open("rb") as file:
        head = file.read(520)
    if head.startswith(b"MATLAB 7.3") or head[512:].startswith(b"\x89HDF"):
        return hdf5.open_file(path, options)
    found = Found(path.name)
    scalars: dict[str, Any] = {}
    content = _load(path)
    units = _texts("units", content.pop("units", None))
    names = _texts("names", content.pop("names", None))
    for name, value in content.items():
        for label, array in _arrays(name, value, 0):
            if array.size == 1 and array.dtype.kind in "biuf" and label not in names:
                scalars[label] = array.ravel()[0].item()
            elif array.dtype.kind == "U" and array.size == 1:
                scalars[label] = str(array.ravel()[0])
            elif array.size != 1 or label in names:
                found.columns += columns_of(label, array.astype(_native(array)))
    found.columns = [
        replace(c, unit=units.get(c.name, ""), name=names.get(c.name, c.name)) for c in found.columns
    ]
    found.rate = declared_rate(scalars)
    start = scalars.pop("start", None)
    found.start = start if isinstance(start, str) else None
    found.metadata = scalars
    return recording_from(found, options)


def write_file(recording: Recording, path: Path) -> None:
    """Version 5: one column vector a channel, ``rate`` in Hz, and structs ``units`` and ``names``."""
    from scipy.io import savemat

    if len(recording) * 8 > LARGEST_VARIABLE:
        raise DataError(
            "A .mat file holds at most 2 GB a channel: write .h5, which MATLAB reads with h5read."
        )
    content: dict[str, Any] = {"rate": recording.rate}
    if recording.about.start is not None:
        content["start"] = recording.about.start
    units: dict[str, str] = {}
    names: dict[str, str] = {}
    for spec in recording.about.channels:
        name = _identifier(spec.name, {*content, *RESERVED})
        content[name] = recording.values(spec.name, 0, len(recording)).reshape(-1, 1)
        units[name], names[name] = spec.unit, spec.name
    content |= {"units": units, "names": names}
    savemat(path, content, do_compression=False, long_field_names=True)


def _load(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat, whosmat

    sizes = {
        "double": 8,
        "single": 4,
        "int64": 8,
        "uint64": 8,
        "int32": 4,
        "uint32": 4,
        "int16": 2,
        "uint16": 2,
    }
    total = 0
    wanted = []
    for name, shape, kind in whosmat(path):
        size = sizes.get(kind, 1)
        for length in shape:
            size *= int(length)
        if size < 0 or size > LARGEST:
            raise DataError(f"{path.name} claims {size / 1e9:.3g} GB for '{name}': too large, or damaged.")
        total += size
        if kind in sizes or kind in ("int8", "uint8", "logical", "char", "cell", "struct"):
            wanted.append(name)  # objects and functions are never loaded
    if total > LARGEST:
        raise DataError(
            f"{path.name} holds {total / 1e9:.3g} GB: save it as version 7.3, read piece by piece."
        )
    content: dict[str, Any] = loadmat(path, variable_names=wanted, mat_dtype=False, squeeze_me=False)
    return {name: value for name, value in content.items() if not name.startswith("__")}


def _arrays(name: str, value: Any, depth: int) -> Iterator[tuple[str, NDArray[Any]]]:
    """Numeric and text arrays in a variable, with names such as run.x or Y{2}."""
    if not isinstance(value, np.ndarray) or depth > DEEPEST:
        return
    if value.dtype.names is not None:  # struct
        elements = value.ravel()[:100]
        for i, element in enumerate(elements):
            prefix = name if value.size == 1 else f"{name}({i + 1})"
            for field in value.dtype.names:
                yield from _arrays(f"{prefix}.{field}", element[field], depth + 1)
    elif value.dtype.kind == "O":  # cell
        for i, element in enumerate(value.ravel(order="F")[:1000]):
            yield from _arrays(f"{name}{{{i + 1}}}", element, depth + 1)
    else:
        yield name, value


def _texts(name: str, value: Any) -> dict[str, str]:
    """A struct of texts, by field."""
    return {
        label.removeprefix(f"{name}."): str(array.ravel()[0])
        for label, array in _arrays(name, value, 0)
        if array.dtype.kind == "U" and array.size == 1
    }


def _native(array: NDArray[Any]) -> np.dtype[Any]:
    return array.dtype.newbyteorder("=")


def _identifier(name: str, taken: set[str]) -> str:
    """A name that MATLAB accepts for a variable, close to the channel's."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)[:60]
    if not re.match(r"[A-Za-z]", plain):
        plain = "c" + plain
    label, number = plain, 2
    while label in taken:
        label = f"{plain}_{number}"
        number += 1
    return label
