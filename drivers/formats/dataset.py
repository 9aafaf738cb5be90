"""A recording as an xarray Dataset: one variable for each channel over the time in seconds.

Attributes are plain numbers and texts, so that the Dataset can be written as NetCDF: of a channel its unit,
calibration (value = scale * stored number + offset) and the sample ranges that were lost or clipped; of the
whole its rate, start, drive and metadata.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis import MissingExtra, missing_extra
from drivers.recording.lazy import Recording

if TYPE_CHECKING:
    import xarray


def dataset(recording: Recording) -> xarray.Dataset:
    """The recording in memory as a Dataset."""
    try:
        import xarray
    except ImportError:
        raise MissingExtra(missing_extra("tables")) from None
    about = recording.about
    variables = {}
    for spec in about.channels:
        values = recording.values(spec.name, 0, about.samples)
        attributes: dict[str, Any] = {"units": spec.unit, "scale": spec.scale, "offset": spec.offset}
        for what, spans in (("gaps", about.gaps), ("clipped", about.clipped)):
            if found := spans.get(spec.name):
                attributes[what] = np.ravel(found).tolist()  # first and one past last, in pairs
        name = spec.name
        while name == "time" or name in variables:  # the coordinate has that name
            name += "_"
        variables[name] = ("time", values, attributes)
    times = ("time", np.arange(about.samples) / about.rate, {"units": "s"})
    return xarray.Dataset(variables, {"time": times}, _attributes(recording))


def _attributes(recording: Recording) -> dict[str, Any]:
    about = recording.about
    found: dict[str, Any] = {"rate": about.rate}
    if about.start is not None:
        found["start"] = about.start
    if about.drive_time is not None:
        found["drive_time"] = about.drive_time
    if about.excitation is not None:
        drive = {f"drive_{name}": value for name, value in vars(about.excitation).items()}
        found |= {name: value for name, value in drive.items() if value is not None}
    for name, value in about.metadata.items():
        found.setdefault(name, value if type(value) in (int, float, str) else json.dumps(value))
    return found
