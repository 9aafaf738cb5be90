"""The library of recordings: a folder of files, each with its notes beside it.

Raw data are never changed: tags and notes live in ``<file>.notes.toml``, and whatever is cut, resampled or
calibrated becomes a recording of its own that names the one it came from.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ShakedownError
from analysis.base.parsing import parse_toml
from analysis.base.progress import Progress
from analysis.base.record import Record

THUMBNAIL = 140  # bins
SUFFIX = ".h5"


@dataclass(frozen=True, eq=False)
class Entry:
    """One recording of the library, as its list shows it."""

    path: Path
    stamp: tuple[float, int]  # time of change and size: tells whether it must be read again
    rate: float = 0.0
    samples: int = 0
    channels: tuple[str, ...] = ()
    start: str = ""
    rig: str = ""
    notes: str = ""
    tags: tuple[str, ...] = ()
    drive: str = ""  # in words
    gaps: int = 0
    low: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # thumbnail of the first channel
    high: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    problem: str = ""  # why it cannot be opened

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def seconds(self) -> float:
        return self.samples / self.rate if self.rate else 0.0

    def matches(self, words: str) -> bool:
        """True if every word occurs in the name, the notes, the tags or the channels."""
        text = " ".join((self.name, self.notes, *self.tags, *self.channels, self.rig, self.drive)).lower()
        return all(word in text for word in words.lower().split())


def scan(folder: Path, known: Mapping[Path, Entry], progress: Progress) -> list[Entry]:
    """The recordings of a folder, newest first; entries that have not changed are taken from ``known``."""
    paths = [p for p in folder.glob(f"*{SUFFIX}") if p.is_file()]
    entries = []
    for number, path in enumerate(paths):
        progress.report(number / max(len(paths), 1), "Reading the library")
        stamp = _stamp(path)
        old = known.get(path)
        entries.append(old if old is not None and old.stamp == stamp else look(path))
    return sorted(entries, key=lambda e: (e.start, e.stamp), reverse=True)


def look(path: Path) -> Entry:
    """One recording at a glance; one that cannot be read is listed with the reason."""
    from drivers.formats import open_lazily

    stamp = _stamp(path)
    try:
        with open_lazily(path) as recording:
            about = recording.about
            low, high = recording.envelope(about.names[0], 0, len(recording), THUMBNAIL)
    except ShakedownError as error:
        return Entry(path, stamp, problem=str(error))
    given = read_notes(path)
    meta = dict(about.metadata)
    drive = about.excitation
    return Entry(
        path,
        stamp,
        about.rate,
        about.samples,
        about.names,
        about.start or "",
        str(meta.get("rig_title") or meta.get("rig", "")),
        str(given.get("notes", meta.get("notes", ""))),
        tuple(str(t) for t in given.get("tags", meta.get("tags", ()))),
        "" if drive is None else f"{drive.waveform} {drive.frequency:.4g} Hz",
        max((len(g) for g in about.gaps.values()), default=0),
        low,
        high,
    )


def _stamp(path: Path) -> tuple[float, int]:
    try:
        found, beside = path.stat(), _notes_path(path)
        return found.st_mtime + (beside.stat().st_mtime if beside.exists() else 0.0), found.st_size
    except OSError:
        return 0.0, 0


# -- notes


def _notes_path(path: Path) -> Path:
    return path.with_name(path.name + ".notes.toml")


def read_notes(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(_notes_path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}


def write_notes(path: Path, notes: str, tags: Sequence[str]) -> None:
    """Keep notes and tags beside the recording."""
    import tomli_w

    target = _notes_path(path)
    part = target.with_suffix(".part")
    part.write_bytes(tomli_w.dumps({"notes": notes, "tags": list(tags)}).encode())
    part.replace(target)


# -- new recordings


def free_path(folder: Path, name: str) -> Path:
    """A path in the folder that nothing occupies, for a name given by a person or by the clock."""
    clean = re.sub(r"[^\w.+-]+", "-", name.strip(), flags=re.UNICODE).strip("-.")
    stem = clean or datetime.now().strftime("%Y-%m-%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    path, number = folder / f"{stem}{SUFFIX}", 2
    while path.exists() or path.with_name(path.name + ".journal").exists():
        path, number = folder / f"{stem}-{number}{SUFFIX}", number + 1
    return path


def import_file(source: Path, folder: Path, rate: float | None, progress: Progress) -> Path:
    """Bring a file of any known format into the library as a recording of ours; the file itself stays."""
    from drivers.formats import open_lazily, write

    progress.report(0.0, f"Reading {source.name}")
    with open_lazily(source, rate) as recording:
        target = free_path(folder, source.stem)
        progress.report(0.3, f"Writing {target.name}")
        write(recording, target)
    return target


def save_record(record: Record, folder: Path, name: str, origin: str, how: str, progress: Progress) -> Path:
    """Keep a derived record as a recording of its own that says where it came from."""
    from dataclasses import replace

    from drivers.formats import write

    progress.report(0.1, f"Writing {name}")
    target = free_path(folder, name)
    meta = {**record.metadata, "derived_from": origin, "derived_how": how}
    write(replace(record, metadata=meta), target)
    return target


def cut(path: Path, start: int, stop: int, folder: Path, progress: Progress) -> Path:
    """Samples start to stop of a recording as a new one."""
    from drivers.formats import open_lazily

    if stop - start < 2:
        raise DataError("The piece to cut out is empty: drag over the part to keep.")
    progress.report(0.0, "Cutting")
    with open_lazily(path) as recording:
        piece = recording.slice(start, stop)
    how = f"samples {start} to {stop}"
    return save_record(piece, folder, f"{path.stem}-cut", path.name, how, progress)


def resampled(path: Path, rate: float, folder: Path, progress: Progress) -> Path:
    """A recording at another rate as a new one."""
    from analysis.base.derive import resample
    from drivers.formats import read

    progress.report(0.0, "Resampling")
    record = resample(read(path), rate)
    name, how = f"{path.stem}-{rate:g}Hz", f"resampled to {record.rate:g} Hz"
    return save_record(record, folder, name, path.name, how, progress)


def calibrated(
    path: Path, channel: str, factor: float, offset: float, unit: str, folder: Path, progress: Progress
) -> Path:
    """A recording with one channel calibrated anew as a new one."""
    from analysis.base.derive import calibrate
    from drivers.formats import read

    progress.report(0.0, "Calibrating")
    record = calibrate(read(path), channel, factor, offset, unit)
    how = f"{channel} = {factor:g} * old + {offset:g} [{unit}]"
    return save_record(record, folder, f"{path.stem}-calibrated", path.name, how, progress)


def export(path: Path, target: Path, progress: Progress) -> Path:
    """A copy in the format that the target's name asks for."""
    from drivers.formats import open_lazily, write

    progress.report(0.0, f"Writing {target.name}")
    with open_lazily(path) as recording:
        write(recording, target)
    return target
