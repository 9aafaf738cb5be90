"""File formats: one module each, all behind four functions.

    read(path) -> Record                the whole file in memory
    open_lazily(path) -> Recording      piece by piece, for files of any size
    write(record, path)                 the format follows from the name's ending
    open_dataset(path)                  the whole file as an xarray Dataset, where that is installed

A format is a module with ``open_file(path, options) -> Recording`` and, where it can be written,
``write_file(recording, path)``. To add one: a new module here and one row in FORMATS; or, in a package of
your own, the entry point ``shakedown.formats`` that names a :class:`Format` with its module as ``home``.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from analysis import DataError, PluginError, Record, ShakedownError, load_plugin, plugged
from drivers.base.files import open_regular, replaced
from drivers.formats.options import Options
from drivers.recording.journal import MAGIC
from drivers.recording.journal import SUFFIX as JOURNAL_SUFFIX
from drivers.recording.lazy import MemoryRecording, Recording

if TYPE_CHECKING:
    import xarray

LARGEST = 1e50  # of a value to calculate with: its cube, squared in a sum of squares, is still a number
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


@dataclass(frozen=True)
class Format:
    """One row of the table: what the format is called, how its files are told from others, what it can do."""

    name: str
    title: str
    suffixes: tuple[str, ...]
    recognises: Callable[[bytes], bool]  # from the first 4096 bytes
    writable: bool = True
    home: str = ""  # the module of a format of another package

    @property
    def module(self) -> ModuleType:
        """Imported only when used: heavy libraries load with the first file of their kind."""
        return import_module(self.home or f"drivers.formats.{self.name}")


def _is_universal(head: bytes) -> bool:
    lines = head.split(b"\n", 2)
    return len(lines) > 1 and lines[0].rstrip() == b"    -1" and lines[1][:6].strip().isdigit()


# Looked through from the top: what is certain from its first bytes stands first, plain text last.
FORMATS: tuple[Format, ...] = (
    Format("native", "Shakedown recording", (".h5", JOURNAL_SUFFIX), lambda head: head.startswith(MAGIC)),
    Format("mat", "MATLAB", (".mat",), lambda head: head.startswith(b"MATLAB ")),
    Format("hdf5", "HDF5", (".hdf5", ".hdf", ".he5"), lambda head: head.startswith(HDF5_MAGIC)),
    Format("tdms", "NI TDMS", (".tdms",), lambda head: head.startswith(b"TDSm")),
    Format("wav", "WAV", (".wav",), lambda head: head[:4] in (b"RIFF", b"RF64") and head[8:12] == b"WAVE"),
    Format("lvm", "LabVIEW measurement", (".lvm",), lambda head: head.startswith(b"LabVIEW Measurement")),
    Format("uff58", "Universal File Format", (".uff", ".ufb", ".ufa", ".unv", ".uf", ".58"), _is_universal),
    Format("csv", "a table of text", (".csv", ".tsv", ".txt", ".dat"), lambda head: False),
)


_log = logging.getLogger(__name__)


@cache
def formats() -> tuple[Format, ...]:
    """Every format: ours, then those of other packages, and plain text, which is anything else, last."""
    added = []
    for entry in plugged("formats", [f.name for f in FORMATS]).values():
        with contextlib.suppress(PluginError):  # it is in the log
            form = load_plugin(entry)
            if isinstance(form, Format):
                added.append(form)
            else:
                _log.warning("the format %s is not used: it is no drivers.formats.Format", entry.name)
    return (*FORMATS[:-1], *added, FORMATS[-1])


def read(path: Path | str, rate: float | None = None, resample: float | None = None) -> Record:
    """The whole file as a record. ``rate`` (Hz) for files that do not say; see :func:`open_lazily`."""
    with open_lazily(path, rate, resample) as recording:
        try:
            record = recording.read()
        except MemoryError:
            raise DataError(f"{Path(path).name} does not fit in memory: cut a part out of it.") from None
    _check_magnitudes(record, Path(path).name)
    return record


def _check_magnitudes(record: Record, name: str) -> None:
    """Refuse values whose powers no number can hold: calculations with them would end anywhere."""
    for channel in record.names:
        values = record[channel]
        finite = np.isfinite(values)
        peak = max(np.max(values, where=finite, initial=0.0), -np.min(values, where=finite, initial=0.0))
        if peak > LARGEST:
            raise DataError(
                f"{name}: channel '{channel}' holds values up to {peak:.2g}, too large to calculate with: "
                "correct the file, or convert it without that channel."
            )


def open_dataset(path: Path | str, rate: float | None = None) -> xarray.Dataset:
    """The whole file as an xarray Dataset over ``time`` in s; units, calibration and drive as attributes."""
    from drivers.formats.dataset import dataset

    with open_lazily(path, rate) as recording:
        return dataset(recording)


def open_lazily(
    path: Path | str,
    rate: float | None = None,
    resample: float | None = None,
    options: Options | None = None,
) -> Recording:
    """The file as a recording to be read piece by piece; DataError in one sentence if it cannot be.

    ``rate``: sample rate in Hz of a file that does not tell it. ``resample``: the uniform rate in Hz onto
    which a file with non-uniform times is interpolated; without it such a file is refused. ``options``: all
    that can be said of a file, in place of both.
    """
    path = Path(path)
    form = format_of(path)
    try:
        recording: Recording = form.module.open_file(path, options or Options(rate, resample))
    except (ShakedownError, KeyboardInterrupt):
        raise
    except MemoryError:
        raise DataError(f"{path.name} does not fit in memory.") from None
    except OSError as error:
        raise DataError(f"{path.name} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # a damaged file may fail anywhere in a reader; the user gets one sentence
        raise DataError(
            f"{path.name} cannot be read as {form.title}: it is damaged or cut short ({_short(error)})."
        ) from error
    if not recording.names:
        recording.close()
        raise DataError(f"{path.name} has no channel that could be read.")
    return recording


def write(record: Record | Recording, path: Path | str) -> None:
    """Write a record or a lazily read recording in the format that the name's ending asks for."""
    path = Path(path)
    form = format_for_writing(path)
    source = MemoryRecording(record) if isinstance(record, Record) else record
    with replaced(path) as partial:
        form.module.write_file(source, partial)


def not_kept(record: Record | Recording, path: Path | str) -> str:
    """One sentence on what the format of a name cannot keep of a recording; empty: it keeps all."""
    form = format_for_writing(Path(path))
    if getattr(form.module, "KEEPS_DRIVE", False):
        return ""
    about = MemoryRecording(record).about if isinstance(record, Record) else record.about
    lost = [
        f"{n} marker{'s' * (n > 1)}" if (n := len(about.markers)) else "",
        "the drive and its phase" if about.excitation is not None else "",
    ]
    words = " and ".join(part for part in lost if part)
    return f"{form.title} cannot keep {words}: .h5, .mat and .tdms do." if words else ""


def format_of(path: Path) -> Format:
    """The format of an existing file, by its content and then by its name."""
    with open_regular(path) as file:
        head = file.read(4096)
    if not head:
        raise DataError(f"{path.name} is empty.")
    for form in formats():
        if form.recognises(head):
            return form
    suffix = path.suffix.lower()
    for form in formats():
        if suffix in form.suffixes:
            return form
    raise DataError(f"{path.name} is in no format that can be read: {_known()}.")


def format_for_writing(path: Path) -> Format:
    """The format that a new file's name asks for."""
    suffix = path.suffix.lower()
    for form in formats():
        if suffix in form.suffixes and form.writable:
            return form
    raise DataError(f"'{path.name}' names no format that can be written: end it in one of {_known(True)}.")


def _known(writable: bool = False) -> str:
    return ", ".join(dict.fromkeys(s for f in formats() if f.writable or not writable for s in f.suffixes))


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 120 else text[:117] + "..."
