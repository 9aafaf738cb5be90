"""HDF5 files of other programs, and MATLAB v7.3 files, which are HDF5 inside: read piece by piece.

Every vector or matrix of real numbers is a set of signals; the rate comes from an attribute or a scalar named
like ``fs`` or ``dt``, or from a vector of times. Nothing in the file is executed; references are followed one
step deep (MATLAB's cell arrays) and links to other files are not followed at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from analysis import DataError
from drivers.formats.arrays import columns_of
from drivers.formats.columns import Found, declared_rate, recording_from
from drivers.formats.guard import check_first
from drivers.formats.options import Options
from drivers.recording.container import ContainerRecording, is_container, write_container
from drivers.recording.hdf5_access import check_nothing_outside, is_inside, open_hdf5, stored_problem
from drivers.recording.lazy import Recording

MOST_OBJECTS = 20_000
DEEPEST = 16
UNIT_NAMES = ("unit", "units", "Unit", "Units")
KEEPS_DRIVE = True  # and what a person marked


def open_file(path: Path, options: Options) -> Recording:
    """Any HDF5 file; one of our own is opened as such."""
    check_first(path, "hdf5")
    if is_container(path):
        return ContainerRecording(path)
    return recording_from(_found(path), options)


def touch(path: Path) -> None:
    """Open the file and touch each of its parts, as ``open_file`` and later reading will."""
    if is_container(path):
        with open_hdf5(path) as file:
            check_nothing_outside(file, path.name, MOST_OBJECTS)
        with ContainerRecording(path) as recording:
            _touch_ends(recording)
        return
    _found(path).touch()


def _touch_ends(recording: Recording) -> None:
    for name in recording.names:
        with suppress(DataError):  # damaged samples are named when they are read; the rest can be
            recording.values(name, 0, 1)
            recording.values(name, len(recording) - 1, len(recording))
        recording.envelope(name, 0, len(recording), 1)


def _found(path: Path) -> Found:
    """The signals of a file of another program."""
    file = open_hdf5(path)
    try:
        found = Found(path.name, close=file.close)
        scalars: dict[str, Any] = _plain_attributes(file)
        not_read: dict[str, str] = {}
        size = file.id.get_filesize()
        for name, dataset in _datasets(file, not_read):
            if problem := stored_problem(dataset, size):
                not_read[name] = problem
                continue
            attributes = _plain_attributes(dataset)
            if dataset.size == 1 and dataset.dtype.kind in "biuf":
                scalars[name.rsplit("/", 1)[-1]] = float(np.asarray(dataset[()]).ravel()[0])
                continue
            unit = next((str(attributes[u]) for u in UNIT_NAMES if u in attributes), "")
            found.columns += columns_of(_title(name), dataset, unit, declared_rate(attributes))
        found.rate = declared_rate(scalars)
        found.metadata = {k: v for k, v in scalars.items() if not k.startswith("MATLAB")}
        if not_read and not found.columns:
            name, problem = next(iter(not_read.items()))
            raise DataError(f"{path.name} holds no signal that can be read: '{name}' {problem}.")
        if not_read:
            found.metadata["not read"] = [f"{name} {problem}" for name, problem in not_read.items()][:100]
    except BaseException:
        file.close()
        raise
    return found


def _datasets(file: Any, not_read: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Datasets in the file's own tree, and those in MATLAB cells; never those of linked files."""
    import h5py

    budget = MOST_OBJECTS
    pending: list[tuple[str, Any, int]] = [("", file, 0)]
    while pending:
        name, item, depth = pending.pop(0)
        if isinstance(item, h5py.Group) and depth < DEEPEST:
            for key in item:
                if key.startswith("#"):
                    continue
                if not is_inside(item, key):
                    not_read[f"{name}/{key}" if name else key] = "is a link, which is not followed"
                    continue
                budget -= 1
                if budget < 0:
                    raise DataError(f"The file holds more than {MOST_OBJECTS} objects: no recording.")
                pending.append((f"{name}/{key}" if name else key, item[key], depth + 1))
        elif isinstance(item, h5py.Dataset):
            if h5py.check_ref_dtype(item.dtype) is h5py.Reference and 0 < item.size <= 1000:
                for i, reference in enumerate(np.asarray(item[()]).ravel()):
                    target = file[reference] if reference else None
                    if isinstance(target, h5py.Dataset):
                        pending.append((f"{name}{{{i + 1}}}", target, DEEPEST))
            elif item.shape is not None and _is_signal(item):
                yield name, item


def _is_signal(dataset: Any) -> bool:
    kind = dataset.attrs.get("MATLAB_class", b"double")
    return (
        dataset.dtype.kind in "biuf"
        and kind not in (b"char", b"cell", b"struct")
        and "MATLAB_empty" not in dataset.attrs
    )


def _plain_attributes(item: Any) -> dict[str, Any]:
    """Attributes that are text or a number."""
    result: dict[str, Any] = {}
    for key in list(item.attrs)[:200]:
        try:
            value = item.attrs[key]
        except (OSError, TypeError, ValueError):
            continue
        if isinstance(value, bytes):
            value = value.decode(errors="replace")
        if isinstance(value, np.ndarray) and value.size == 1:
            value = value.ravel()[0]
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, str | int | float | bool):
            result[str(key)] = value
    return result


def _title(name: str) -> str:
    return name.replace("/", ".")


def write_file(recording: Recording, path: Path) -> None:
    """HDF5 is written in our own layout, which is plain HDF5."""
    write_container(recording, path)
