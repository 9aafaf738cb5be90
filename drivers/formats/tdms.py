"""NI TDMS: read piece by piece, scaled as LabVIEW would; written with waveform properties and units."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import DataError
from drivers.base.files import open_regular
from drivers.formats.columns import Column, Found, recording_from
from drivers.formats.drive import own_fields
from drivers.formats.guard import check_first
from drivers.formats.options import Options
from drivers.formats.timing import simplest
from drivers.recording.lazy import BLOCK, Recording

UNSET_YEAR = 1905  # LabVIEW's zero of time is 1904: a start in that year was never set
KEEPS_DRIVE = True  # and what a person marked


def open_file(path: Path, options: Options) -> Recording:
    check_first(path, "tdms")
    return recording_from(_found(path), options)


def touch(path: Path) -> None:
    """Open the file and read both ends of each channel, as ``open_file`` and later reading will."""
    _found(path).touch()


def _found(path: Path) -> Found:
    from nptdms import TdmsFile
    from nptdms.log import log_manager

    log_manager.set_level(logging.ERROR)  # what it warns of on the terminal, we say in the metadata
    handle = open_regular(path)
    try:
        file = TdmsFile.open(handle)
        channels = [c for group in file.groups() for c in group.channels()]
        found = Found(path.name, close=handle.close)
        size = path.stat().st_size
        for channel in channels:
            column = _column(channel)
            if column is None:
                continue
            if column.length > size:  # every sample takes a byte at least
                raise DataError(f"{path.name} claims {column.length} samples in {size} bytes: it is damaged.")
            found.columns.append(column)
        found.start = next((s for s in map(_start, channels) if s is not None), None)
        found.metadata = {k: _plain(v) for k, v in file.properties.items()}
        if file.file_status.incomplete_final_segment:
            found.metadata["warning"] = "the file ends inside its last segment: what is there was read"
    except BaseException:
        handle.close()
        raise
    return found


def write_file(recording: Recording, path: Path) -> None:
    from nptdms import ChannelObject, RootObject, TdmsWriter

    about = recording.about
    properties: dict[str, Any] = {"wf_increment": 1 / about.rate, "wf_start_offset": 0.0}
    if about.start is not None:
        properties["wf_start_time"] = np.datetime64(_utc(about.start), "us")
    root = {
        "name": path.stem,
        **{k: v for k, v in about.metadata.items() if isinstance(v, str | int | float)},
        **own_fields(about),
    }
    with TdmsWriter(path) as writer:
        for start in range(0, max(len(recording), 1), BLOCK):
            stop = min(start + BLOCK, len(recording))
            objects: list[Any] = [RootObject(root)] if start == 0 else []
            for spec in about.channels:
                described = {**properties, "unit_string": spec.unit, "wf_samples": len(recording)}
                data = recording.values(spec.name, start, stop)
                objects.append(ChannelObject("Recording", spec.name, data, described if start == 0 else {}))
            writer.write_segment(objects)


def _column(channel: Any) -> Column | None:
    kind = channel.dtype
    if kind is None or kind.kind not in "biufM":
        return None
    increment = channel.properties.get("wf_increment")
    rate = None
    if isinstance(increment, int | float) and np.isfinite(increment) and increment > 0:
        rate = simplest(1 / increment, 1e-12)
    unit = str(channel.properties.get("unit_string") or channel.properties.get("NI_UnitDescription") or "")

    def read(start: int, stop: int) -> NDArray[Any]:
        return np.asarray(channel.read_data(start, stop - start))

    if kind.kind == "M":
        return Column("time", len(channel), np.dtype("f8"), _as_seconds(read), "s", rate, relative=True)
    return Column(
        channel.name, len(channel), kind.newbyteorder("<"), read, unit, rate, group=channel.group_name
    )


def _as_seconds(read: Any) -> Any:
    """Timestamps as seconds from the first one."""

    def seconds(start: int, stop: int) -> NDArray[np.float64]:
        origin = read(0, 1)[0]
        return np.asarray((read(start, stop) - origin) / np.timedelta64(1, "ns") * 1e-9, dtype=np.float64)

    return seconds


def _start(channel: Any) -> str | None:
    moment = channel.properties.get("wf_start_time")
    if not isinstance(moment, np.datetime64) or np.isnat(moment):
        return None
    text = str(moment.astype("datetime64[us]"))
    return None if int(text[:4]) < UNSET_YEAR else text + "+00:00"  # TDMS times are universal time


def _utc(start: str) -> str:
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(start)
    moment = moment.astimezone(UTC) if moment.tzinfo else moment
    return moment.replace(tzinfo=None).isoformat()


def _plain(value: Any) -> Any:
    if isinstance(value, np.datetime64):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value
