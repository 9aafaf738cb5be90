"""The finished recording: plain HDF5 that any tool of the field opens.

    /about               JSON text: rate, channels, start, drive, spans, events, metadata; its CRC32 beside it
    /channels/NAME       stored numbers, chunked, with HDF5's own checksum on every chunk
                         attributes: name, unit, scale, offset (value = scale * number + offset), rate
    /entry/recording     the same channels and their times as NXdata (NeXus), for viewers that know no more
    /overview/NAME/256   lowest and highest value of every 256 samples [2, n]; also 4096 and 65536

The file is written whole under another name, forced to the disk and only then renamed: it is there whole or
not at all. HDF5's own tables are checksummed too (library format 1.10): damage is noticed, not followed.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis import SILENT, DataError, Progress, parse_json, read_as
from drivers.base import system
from drivers.recording.hdf5_access import member, open_hdf5, stored_problem
from drivers.recording.journal import ChannelSpec, sync_folder, to_json
from drivers.recording.lazy import BLOCK, Description, Recording, Verdict, bin_edges

if TYPE_CHECKING:
    import h5py

FORMAT = "shakedown recording"
VERSION = 1
SUFFIX = ".h5"
CHUNK = 1 << 16  # samples
LARGEST_ABOUT = 64 << 20  # bytes of the description
MOST_TIMES = 4_000_000  # samples whose times are written out for viewers; beyond, they draw over the number
LEVELS = (256, 4096, 65536)  # samples a cell of the overview; each divides the chunk


class ContainerRecording(Recording):
    """A finished recording, open for reading."""

    title = "Shakedown recording (HDF5)"

    def __init__(self, path: Path) -> None:
        self._file = open_hdf5(path)
        try:
            about, self._keys = _read_about(self._file, path)
            super().__init__(about)
            channels = member(self._file, "channels")
            self._data = [member(channels, key) for key in self._keys]
            size = self._file.id.get_filesize()
            for spec, data in zip(about.channels, self._data, strict=True):
                if data.shape != (about.samples,) or data.dtype != spec.numpy_type:
                    raise DataError(f"{path.name} is damaged: channel '{spec.name}' is not as described.")
                if problem := stored_problem(data, size):
                    raise DataError(f"{path.name} is damaged: channel '{spec.name}' {problem}.")
        except BaseException as error:
            self._file.close()
            if isinstance(error, KeyError | AttributeError | TypeError):
                raise DataError(f"{path.name} is damaged: its channels are not all there.") from None
            raise
        self.path = path

    def close(self) -> None:
        self._file.close()

    def raw(self, channel: int, start: int, stop: int) -> NDArray[Any]:
        try:
            return np.asarray(self._data[channel][start:stop])
        except OSError:
            name = self.names[channel]
            raise DataError(
                f"{self.path.name} is damaged: samples {start} to {stop} of '{name}' fail their checksum."
            ) from None

    def envelope(
        self, channel: str, start: int, stop: int, bins: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """From the stored overview where a bin holds many samples; a bin then
        reaches into its neighbours by at most one cell, half a bin or less, and no peak is missed."""
        start, stop, _ = slice(start, stop).indices(len(self))
        edges = bin_edges(start, stop, bins)
        fitting = [f for f in LEVELS if 2 * f * max(len(edges) - 1, 1) <= stop - start]
        if not fitting:
            return self._fine_envelope(channel, edges)
        factor = fitting[-1]
        key = self._keys[self.position(channel)]
        first, last = start // factor, -(-stop // factor)
        try:
            level = member(member(member(self._file, "overview"), key), str(factor))
            cells = np.asarray(level[:, first:last], dtype=np.float64)
            if level.is_virtual or level.external or cells.shape != (2, last - first):
                raise KeyError(factor)
        except (
            KeyError,
            OSError,
            TypeError,
            ValueError,
            AttributeError,
        ):  # a damaged overview: the samples tell the same, only slower
            return self._fine_envelope(channel, edges)
        cells = np.pad(cells, ((0, 0), (0, 1)), constant_values=np.nan)
        # Each bin takes every cell that it touches: pairs of first and one past last, every other result.
        pairs = np.stack([edges[:-1] // factor, -(-edges[1:] // factor)], axis=1).ravel() - first
        return np.fmin.reduceat(cells[0], pairs)[::2], np.fmax.reduceat(cells[1], pairs)[::2]

    def verify(self) -> Verdict:
        """Every chunk is read once; HDF5 compares each with its checksum."""
        bad = []
        for name, data in zip(self.names, self._data, strict=True):
            for start in range(0, len(self), CHUNK):
                try:
                    data[start : start + CHUNK]
                except OSError:
                    bad.append(f"{name} {start} to {min(start + CHUNK, len(self))}")
        if bad:
            return Verdict(False, f"damaged: samples of {', '.join(bad[:5])}{' and more' * (len(bad) > 5)}")
        return Verdict(True, "every checksum agrees")


def write_container(source: Recording, path: Path, progress: Progress = SILENT) -> None:
    """Write any recording as a finished one, a chunk at a time, and prove it by reading it back.

    ``path`` appears only when everything is on the disk; an existing file of that name is replaced.
    """
    import h5py

    partial = path.with_name(path.name + ".partial")
    try:
        _check_space(source.about, path.parent)
        with h5py.File(partial, "w", libver=("v110", "v110")) as file:
            sums = _write_everything(file, source, progress.part(0, 0.7))
        with partial.open("rb+") as file_on_disk:
            os.fsync(file_on_disk.fileno())
        _prove(partial, source.about, sums, progress.part(0.7, 1))
        system.replace(partial, path)
        sync_folder(path.parent)
    except (OSError, RuntimeError) as error:  # HDF5 reports a disk that fails on closing as RuntimeError
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path} could not be written: {reason}.") from None
    finally:
        partial.unlink(missing_ok=True)
    progress.report(1, "written")


def _check_space(about: Description, folder: Path) -> None:
    """HDF5 copes badly with a disk that fills up under it, so that is seen to before."""
    cells = sum(-(-about.samples // factor) for factor in LEVELS)
    stored = sum(c.numpy_type.itemsize * max(about.samples, 1) + 16 * cells for c in about.channels)
    stored += 8 * about.samples if about.samples <= MOST_TIMES else 0
    needed = stored + stored // 50 + (1 << 16) * (len(about.channels) + 4)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(errno.ENOSPC, f"No space left on device: {needed} bytes needed, {free} free")


def same_content(one: Recording, other: Recording) -> bool:
    """Whether two recordings say the same and store the same numbers, bit for bit."""
    if to_json(_about_dict(one.about)) != to_json(_about_dict(other.about)):
        return False
    for position in range(len(one.names)):
        for start in range(0, len(one), BLOCK):
            stop = min(start + BLOCK, len(one))
            if one.raw(position, start, stop).tobytes() != other.raw(position, start, stop).tobytes():
                return False
    return True


def is_container(path: Path) -> bool:
    """Whether the HDF5 file is a recording of ours."""
    with open_hdf5(path) as file:
        form = file.attrs.get("format")
        return isinstance(form, str) and form == FORMAT


def _write_everything(file: h5py.File, source: Recording, progress: Progress) -> list[int]:
    """Fill the file; the CRC32 of each channel's stored bytes."""
    about = source.about
    file.attrs["format"] = FORMAT
    file.attrs["version"] = VERSION
    file.attrs["rate"] = about.rate
    if about.start is not None:
        file.attrs["start"] = about.start
    keys = _keys(about.names)
    _write_about(file, about, keys)
    file.create_group("channels", track_order=True)
    file.create_group("overview", track_order=True)
    sums = []
    for position, (spec, key) in enumerate(zip(about.channels, keys, strict=True)):
        part = progress.part(position / len(keys), (position + 1) / len(keys))
        sums.append(_write_channel(file, source, position, spec, key, part))
    _write_nexus(file, about, keys)
    return sums


def _write_nexus(file: h5py.File, about: Description, keys: list[str]) -> None:
    """The channels once more, as links, in the form that viewers of NeXus files draw by themselves."""
    if not keys:
        return
    entry = file.create_group("entry")
    entry.attrs.update({"NX_class": "NXentry", "default": "recording"})
    file.attrs.update({"NX_class": "NXroot", "default": "entry"})
    data = entry.create_group("recording", track_order=True)
    names = _nexus_names(keys)
    data.attrs.update({"NX_class": "NXdata", "signal": names[0]})
    if len(names) > 1:
        data.attrs["auxiliary_signals"] = names[1:]
    for spec, key, name in zip(about.channels, keys, names, strict=True):
        channel = file["channels"][key]
        channel.attrs.update({"units": spec.unit, "long_name": _label(spec)})
        data[name] = channel
        if (spec.scale, spec.offset) != (1.0, 0.0):  # counts of a converter: how they become values
            data[f"{name}_scaling_factor"] = spec.scale
            data[f"{name}_offset"] = spec.offset
    if 0 < about.samples <= MOST_TIMES:
        times = np.arange(about.samples) / about.rate
        axis = data.create_dataset("time", data=times, shuffle=True, compression="gzip", compression_opts=1)
        axis.attrs.update({"units": "s", "long_name": "time [s]"})
        if about.start is not None:
            axis.attrs["start"] = about.start
        data.attrs["axes"] = ["time"]
        data.attrs["time_indices"] = 0


def _nexus_names(keys: list[str]) -> list[str]:
    """Names as NeXus allows them: letters, digits, _ and . alone; each once."""
    names: list[str] = []
    for key in keys:
        name = re.sub(r"[^A-Za-z0-9_.]", "_", key).strip(".") or "_"
        while name == "time" or name in names:  # the axis has that name
            name += "_"
        names.append(name)
    return names


def _label(spec: ChannelSpec) -> str:
    return f"{spec.name} [{spec.unit}]" if spec.unit else spec.name


def _write_channel(
    file: h5py.File, source: Recording, position: int, spec: ChannelSpec, key: str, progress: Progress
) -> int:
    samples = len(source)
    data = _create(file["channels"], key, (samples,), CHUNK, spec.numpy_type)
    data.attrs["name"] = spec.name
    data.attrs["unit"] = spec.unit
    data.attrs["scale"] = spec.scale
    data.attrs["offset"] = spec.offset
    data.attrs["rate"] = source.rate
    levels = [
        _create(
            file["overview"].require_group(key), str(f), (2, -(-samples // f)), CHUNK // 8, np.dtype("<f8")
        )
        for f in LEVELS
    ]
    gaps = source.about.gaps.get(spec.name, ())
    crc = 0
    step = 16 * CHUNK
    for start in range(0, samples, step):
        progress.report(start / samples, f"writing {spec.name}")
        raw = np.ascontiguousarray(source.raw(position, start, min(start + step, samples)))
        data[start : start + len(raw)] = raw
        crc = zlib.crc32(raw.data.cast("B"), crc)
        values = spec.physical(raw)
        for first, stop in gaps:
            values[max(0, first - start) : max(0, stop - start)] = np.nan
        for factor, level in zip(LEVELS, levels, strict=True):
            values = _write_cells(level, values, start // factor, factor, levels[0] is level)
    return crc


def _write_cells(
    level: h5py.Dataset, values: NDArray[np.float64], first: int, factor: int, finest: bool
) -> NDArray[np.float64]:
    """Store the extremes of each cell; what the next coarser level is made of is handed on."""
    width = factor if finest else factor // LEVELS[LEVELS.index(factor) - 1]
    rows = values if values.ndim == 2 else np.stack([values, values])
    starts = np.arange(0, rows.shape[1], width)
    cells = np.stack([np.fmin.reduceat(rows[0], starts), np.fmax.reduceat(rows[1], starts)])
    level[:, first : first + cells.shape[1]] = cells
    return cells


def _create(
    group: h5py.Group, key: str, shape: tuple[int, ...], chunk: int, dtype: np.dtype[Any]
) -> h5py.Dataset:
    if 0 in shape:
        return group.create_dataset(key, shape=shape, dtype=dtype)
    chunks = (*shape[:-1], max(1, min(chunk, shape[-1])))
    return group.create_dataset(key, shape=shape, dtype=dtype, chunks=chunks, fletcher32=True)


def _prove(path: Path, about: Description, sums: list[int], progress: Progress) -> None:
    """Read the file back and compare with what was to be written."""
    with ContainerRecording(path) as back:
        if to_json(_about_dict(back.about)) != to_json(_about_dict(about)):
            raise DataError(f"{path.name} does not read back as it was written.")
        for position, expected in enumerate(sums):
            crc = 0
            for start in range(0, len(back), 16 * CHUNK):
                progress.report((position + start / len(back)) / len(sums), "checking what was written")
                stop = min(start + 16 * CHUNK, len(back))
                raw = np.ascontiguousarray(back.raw(position, start, stop))
                crc = zlib.crc32(raw.data.cast("B"), crc)
            if crc != expected:
                raise DataError(f"{path.name} does not read back as it was written.")


def _about_dict(about: Description) -> dict[str, Any]:
    content = asdict(about)
    content["channels"] = [vars(c) for c in about.channels]
    return content


def _write_about(file: h5py.File, about: Description, keys: list[str]) -> None:
    import h5py

    text = to_json({**_about_dict(about), "keys": keys}).encode()
    data = file.create_dataset("about", data=np.bytes_(text), dtype=h5py.string_dtype("utf-8", len(text)))
    data.attrs["crc32"] = zlib.crc32(text)


def _read_about(file: h5py.File, path: Path) -> tuple[Description, list[str]]:
    try:
        if file.attrs["version"] > VERSION:
            raise DataError(f"{path.name} was made by a newer Shakedown: update to read it.")
        about = member(file, "about")
        if stored_problem(about, file.id.get_filesize()) or about.dtype.itemsize > LARGEST_ABOUT:
            raise ValueError
        text = bytes(about[()])
        if zlib.crc32(text) != about.attrs["crc32"]:
            raise ValueError
        content = parse_json(text.decode())
        keys = read_as(list[str], content.pop("keys"), "keys")
        return description_from(content), keys
    except (KeyError, ValueError, TypeError, OSError, AttributeError):
        raise DataError(f"{path.name} is damaged: its description cannot be read.") from None


def description_from(content: dict[str, Any]) -> Description:
    """A description from its JSON form; ValueError for a field of another type, or a span outside."""
    about = read_as(Description, content)
    for spans in (*about.gaps.values(), *about.clipped.values()):
        if any(len(span) != 2 or not 0 <= span[0] <= span[1] <= about.samples for span in spans):
            raise ValueError("a span reaches outside of the recording")
    if about.samples < 0:
        raise ValueError("a negative number of samples")
    return about


def _keys(names: tuple[str, ...]) -> list[str]:
    """A dataset name for each channel: the channel's own where HDF5 allows it."""

    def candidates(name: str) -> Iterator[str]:
        plain = name.replace("/", "∕").replace("\x00", "").strip(".") or "channel"
        yield plain
        number = 2
        while True:
            yield f"{plain} {number}"
            number += 1

    keys: list[str] = []
    for name in names:
        keys.append(next(k for k in candidates(name) if k not in keys))
    return keys
