"""HDF5 files opened without trusting them: nothing outside of the file is read, nothing is believed unseen.

HDF5 can point to other files in four ways (external links, user-defined links, external storage, virtual
datasets) and can declare more samples than it stores (they then read as zeros). None of these is followed.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import DataError
from drivers.base.files import check_regular

if TYPE_CHECKING:
    import h5py


def open_hdf5(path: Path) -> h5py.File:
    """An HDF5 file for reading; DataError if it is none or is damaged."""
    import h5py

    check_regular(path)
    try:
        return h5py.File(path, "r")
    except (OSError, RuntimeError, ValueError):
        raise DataError(f"{path.name} is not an HDF5 file, or it is damaged or cut short.") from None


def is_inside(group: Any, key: str) -> bool:
    """Whether the group's member of that name is kept in this file, under this very name."""
    import h5py

    if not isinstance(key, str) or "/" in key or key in (".", ".."):
        return False
    try:
        return isinstance(group.get(key, getlink=True), h5py.HardLink)
    except (TypeError, KeyError):  # TypeError: a link of a kind that HDF5 does not know itself
        return False


def member(group: Any, key: str) -> Any:
    """The group's member of that name; KeyError if it is not there or is kept elsewhere."""
    if not is_inside(group, key):
        raise KeyError(key)
    return group[key]


def stored_problem(dataset: Any, file_size: int) -> str | None:
    """Why the numbers of a dataset cannot be read from this file; None if every one of them is there."""
    if dataset.external or dataset.is_virtual:
        return "is kept in another file, which is not followed"
    shape, identifier = dataset.shape, dataset.id
    if shape is None or 0 in shape:
        return None
    if dataset.chunks is not None:
        wanted = prod(-(-n // c) for n, c in zip(shape, dataset.chunks, strict=True))
        there = identifier.get_num_chunks()
        if there < wanted:
            return f"declares {prod(shape)} numbers, but stores only {there} of {wanted} parts"
        ends = [0]
        identifier.chunk_iter(lambda chunk: ends.append(chunk.byte_offset + chunk.size))
        return "reaches beyond the end of the file" if max(ends) > file_size else None
    size, offset = identifier.get_storage_size(), identifier.get_offset()
    if size < prod(shape) * dataset.dtype.itemsize:
        return f"declares {prod(shape)} numbers, but does not store them"
    return "reaches beyond the end of the file" if (offset or 0) + size > file_size else None


def check_nothing_outside(file: Any, source: str, most: int) -> None:
    """DataError if anything of a recording of ours is kept in another file, or is not stored."""
    import h5py

    size = file.id.get_filesize()
    pending: list[Any] = [file]
    for _ in range(most):
        if not pending:
            return
        item = pending.pop()
        list(item.attrs.items())
        if isinstance(item, h5py.Group):
            for key in item:
                if not is_inside(item, key):
                    raise DataError(f"{source} links to something outside of it, which is not followed.")
                pending.append(item[key])
        elif isinstance(item, h5py.Dataset) and (problem := stored_problem(item, size)):
            raise DataError(f"{source} is damaged: '{item.name}' {problem}.")
    raise DataError(f"{source} holds more than {most} objects: no recording.")
