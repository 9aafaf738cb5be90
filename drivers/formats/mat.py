"""MATLAB .mat: version 5 (and 6, 7) by our own reader, version 7.3 as the HDF5 it is.

Vectors, columns of matrices, fields of structs and elements of cells become channels; scalars become
metadata, and one named like ``fs`` or ``dt`` gives the rate unless a vector of times does.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis import DataError
from drivers.base.files import open_regular
from drivers.formats import hdf5
from drivers.formats.arrays import columns_of
from drivers.formats.columns import Found, declared_rate, recording_from
from drivers.formats.drive import own_fields
from drivers.formats.mat5 import read_variables
from drivers.formats.options import Options
from drivers.recording.lazy import Recording

LARGEST_VARIABLE = (1 << 31) - 1  # bytes, of the version 5 format itself
RESERVED = {"rate", "names", "units", "start"}
KEEPS_DRIVE = True  # and what a person marked


def open_file(path: Path, options: Options) -> Recording:
    with open_regular(path) as file:
        head = file.read(520)
    if head.startswith(b"MATLAB 7.3") or head[512:].startswith(b"\x89HDF"):
        return hdf5.open_file(path, options)
    variables = read_variables(path)
    texts = {name: value for name, value in variables if isinstance(value, str)}
    names = {k.removeprefix("names."): v for k, v in texts.items() if k.startswith("names.")}
    found = Found(path.name, start=texts.pop("start", None))
    scalars: dict[str, Any] = {k: v for k, v in texts.items() if not k.startswith(("names.", "units."))}
    for name, array in variables:
        if isinstance(array, str):
            continue
        if array.size == 1 and name not in names:
            scalars[name] = array.ravel()[0].item()
        else:
            found.columns += columns_of(name, array)
    found.columns = [
        replace(c, unit=texts.get(f"units.{c.name}", ""), name=names.get(c.name, c.name))
        for c in found.columns
    ]
    found.rate = declared_rate(scalars)
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
    content |= own_fields(recording.about)
    units: dict[str, str] = {}
    names: dict[str, str] = {}
    for spec in recording.about.channels:
        name = _identifier(spec.name, {*content, *RESERVED})
        content[name] = recording.values(spec.name, 0, len(recording)).reshape(-1, 1)
        units[name], names[name] = spec.unit, spec.name
    content |= {"units": units, "names": names}
    savemat(path, content, do_compression=False, long_field_names=True)


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
