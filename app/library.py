"""The library of recordings: a folder of files, each with its notes beside it.

Raw data are never changed: tags and notes live in ``<file>.notes.toml``, and whatever is cut, resampled or
calibrated becomes a recording of its own that names the one it came from.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import DataError, Excitation, Progress, Record, ShakedownError, parse_toml
from app import library_index
from drivers.base.files import read_text, replaced
from drivers.base.system import safe_stem
from drivers.formats.options import Options
from drivers.recording.guesses import Guesses

THUMBNAIL = 140  # bins
SUFFIX = ".h5"
NOTES = ".notes.toml"  # behind the name of a recording
PREVIEWED = 20_000  # samples at the beginning of a file that is looked into
HEAD_LINES, LONGEST_LINE = 12, 400  # shown of a text that cannot be read; in characters
READ_AT_ONCE = 20  # new recordings that are opened before the list is shown


@dataclass(frozen=True, eq=False)
class Entry:
    """One recording of the library, as its list shows it."""

    path: Path
    stamp: str  # of the file and its notes: tells whether they must be read again
    size: int = 0  # bytes
    changed: str = ""  # when, ISO 8601: known without opening the file
    pending: bool = False  # not opened yet: only name, size and time of change are known
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
    """The recordings of a folder, newest first, at once: names, sizes, times of change and what is known.

    What has changed or is new is ``pending``, and :func:`details` fills it in; a few are read right here.
    """
    progress.report(0.0, "Reading the library")
    kept = library_index.load(folder)
    entries = []
    for path, status, noted in _files(folder):
        entry = _bare(path, status, noted)
        stamp, fields = kept.get(path.name, ("", {}))
        if (old := known.get(path)) is not None and old.stamp == entry.stamp and not old.pending:
            entry = old
        elif stamp == entry.stamp:
            entry = _filled(entry, fields)
        entries.append(entry)
    pending = [e.path for e in entries if e.pending]
    if 0 < len(pending) <= READ_AT_ONCE:
        read = {e.path: e for e in details(folder, pending, progress)}
        entries = [read.get(e.path, e) for e in entries]
    return in_order(entries)


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Newest first, by the start of the recording where that is known."""
    return sorted(entries, key=lambda e: (e.start or e.changed, e.name), reverse=True)


def details(folder: Path, paths: Sequence[Path], progress: Progress) -> list[Entry]:
    """These recordings opened and looked at; what was found is kept for the next start."""
    entries = []
    for number, path in enumerate(paths):
        progress.report(number / max(len(paths), 1), "Reading the library")
        entries.append(look(path))
    library_index.store(folder, ((e.path.name, e.stamp, _fields(e)) for e in entries if e.stamp))
    return entries


def look(path: Path) -> Entry:
    """One recording at a glance; one that cannot be read is listed with the reason."""
    from drivers.formats import open_lazily

    try:
        entry = replace(_bare(path, path.stat(), _noted(path)), pending=False)
    except OSError as error:
        return Entry(path, "", problem=f"{path.name} cannot be read: {error.strerror}.")
    try:
        with open_lazily(path) as recording:
            about = recording.about
            low, high = recording.envelope(about.names[0], 0, len(recording), THUMBNAIL)
    except ShakedownError as error:
        return replace(entry, problem=str(error))
    given = read_notes(path)
    meta = dict(about.metadata)
    tags = given.get("tags", meta.get("tags", ()))
    return replace(
        entry,
        rate=about.rate,
        samples=about.samples,
        channels=about.names,
        start=about.start or "",
        rig=str(meta.get("rig", "")),
        notes=str(given.get("notes", meta.get("notes", ""))),
        tags=tuple(str(t) for t in tags) if isinstance(tags, list | tuple) else (),
        drive=_drive_words(about.excitation),
        gaps=max((len(g) for g in about.gaps.values()), default=0),
        low=low,
        high=high,
    )


def _drive_words(drive: Excitation | None) -> str:
    if drive is None:
        return ""
    off = "" if drive.until is None else f", off after {drive.until:.3g} s"
    return f"{drive.waveform} {drive.frequency:.4g} Hz{off}"


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result, int]]:
    """Regular files that end like recordings, with the time of their notes; what is gone is left out."""
    try:
        with os.scandir(folder) as found:
            items = {item.name: item for item in found}
    except FileNotFoundError:
        return
    for name, item in items.items():
        with contextlib.suppress(OSError):
            if name.endswith(SUFFIX) and stat.S_ISREG((status := item.stat()).st_mode):
                beside = items.get(name + NOTES)
                yield folder / name, status, 0 if beside is None else beside.stat().st_mtime_ns


def _bare(path: Path, status: os.stat_result, noted: int) -> Entry:
    """What is known of a file without opening it; ``noted``: when its notes were changed, in ns."""
    stamp = f"{status.st_mtime_ns} {status.st_size} {status.st_ino} {noted}"
    changed = datetime.fromtimestamp(status.st_mtime).astimezone().isoformat(timespec="seconds")
    return Entry(path, stamp, status.st_size, changed, pending=True)


def _noted(path: Path) -> int:
    """When the notes beside a recording were changed, in ns; 0 without any."""
    try:
        return _notes_path(path).stat().st_mtime_ns
    except OSError:
        return 0


def _fields(entry: Entry) -> dict[str, Any]:
    """What is kept of an entry: all but where it is and what its file's stamp says."""
    left_out = ("path", "stamp", "size", "changed", "pending")
    return {f.name: getattr(entry, f.name) for f in fields(Entry) if f.name not in left_out}


def _filled(entry: Entry, kept: Mapping[str, Any]) -> Entry:
    """The entry with what was kept of it; as it is if that is not what this version keeps."""
    try:
        words = {name: tuple(kept[name]) for name in ("channels", "tags")}
        return replace(entry, **{**kept, **words}, pending=False)
    except (TypeError, KeyError):
        return entry


# -- notes


def _notes_path(path: Path) -> Path:
    return path.with_name(path.name + NOTES)


def read_notes(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(read_text(_notes_path(path), "notes"))
    except (DataError, tomllib.TOMLDecodeError):
        return {}


def write_notes(path: Path, notes: str, tags: Sequence[str]) -> None:
    """Keep notes and tags beside the recording."""
    import tomli_w

    with replaced(_notes_path(path)) as part:
        part.write_bytes(tomli_w.dumps({"notes": notes, "tags": list(tags)}).encode())


def companions(path: Path) -> list[Path]:
    """A recording and what lies beside it for it alone: its notes, the result of the loop that made it."""
    found = [p for p in path.parent.iterdir() if p.name.startswith(path.name) and p.is_file()]
    result = path.with_suffix(".json")
    try:
        made = json.loads(read_text(result, "a result")).get("files", ())
        if made and Path(str(made[0])).name == path.name:
            found.append(result)
    except (DataError, ValueError, AttributeError, TypeError):  # none, or of something else
        pass
    return found


# -- new recordings


def free_path(folder: Path, name: str) -> Path:
    """A path in the folder that nothing occupies, for a name given by a person or by the clock."""
    clean = re.sub(r"[^\w.+-]+", "-", name.strip(), flags=re.UNICODE).strip("-.")
    stem = safe_stem(clean) or datetime.now().strftime("%Y-%m-%d-%H%M%S")
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


@dataclass(frozen=True)
class Import:
    """How files of other programs are brought in."""

    options: Options
    names: Mapping[str, str] = field(default_factory=dict)  # new ones by old ones; empty: left out
    units: Mapping[str, str] = field(default_factory=dict)
    join: bool = False  # the files are blocks of one measurement


@dataclass(frozen=True, eq=False)
class Preview:
    """The beginning of a file as it would be imported; or why it cannot be."""

    problem: str = ""
    guesses: Guesses = field(default_factory=Guesses)
    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    rate: float = 0.0
    samples: int = 0
    first: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))  # [channels, samples]
    lines: tuple[tuple[int, str], ...] = ()  # of a text that cannot be read: some of it, by line
    remarks: tuple[str, ...] = ()  # what is doubtful about its times


def preview(source: Path, options: Options, progress: Progress) -> Preview:
    """Look into a file; a mistake is part of the answer, because choices are still being made."""
    from drivers.formats import open_lazily

    progress.report(0.0, f"Reading {source.name}")
    try:
        with open_lazily(source, options=options) as recording:
            about = recording.about
            end = min(len(recording), PREVIEWED)
            first = np.stack([recording.values(name, 0, end) for name in recording.names])
            return Preview(
                "", recording.guesses or Guesses(), tuple(recording.names),
                tuple(spec.unit for spec in about.channels), recording.rate, len(recording), first,
                remarks=tuple(str(about.metadata[k]) for k in ("rates", "holes") if k in about.metadata),
            )  # fmt: skip
    except ShakedownError as error:
        return Preview(str(error), _columns_of(source, options), lines=_lines_of(source, str(error)))


def _columns_of(source: Path, options: Options) -> Guesses:
    """The columns of a file whose times cannot be read, so that another one can be chosen; empty if none."""
    from drivers.formats import open_lazily

    try:
        with open_lazily(source, options=replace(options, time="", rate=1.0, resample=None)) as recording:
            return recording.guesses or Guesses()
    except ShakedownError:
        return Guesses()


def _lines_of(source: Path, problem: str) -> tuple[tuple[int, str], ...]:
    """The beginning of a text and the lines around the one that a sentence names; none of other files."""
    from drivers.base.files import open_regular

    named = re.search(r", line (\d+)", problem)
    middle = int(named[1]) if named else 0
    found = []
    try:
        with open_regular(source) as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), 1):
                if b"\x00" in line or number > max(HEAD_LINES, middle + 1):
                    break
                if number <= HEAD_LINES or abs(number - middle) <= 1:
                    found.append((number, _decoded(line)))
    except ShakedownError:
        return ()
    return tuple(found)


def _decoded(line: bytes) -> str:
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = line.decode("cp1252", errors="replace")
    return text.rstrip("\r\n")


def import_as(sources: Sequence[Path], folder: Path, how: Import, progress: Progress) -> list[Path]:
    """Bring files into the library as chosen in the preview; the files themselves stay."""
    from drivers.formats import open_lazily, write
    from drivers.formats.relabelling import joined, relabelled

    made, records = [], []
    for number, source in enumerate(sources):
        progress.report(number / len(sources), f"Reading {source.name}")
        with open_lazily(source, options=how.options) as recording:
            record = recording.read()
        records.append(relabelled(record, how.names, how.units))
    if how.join and len(records) > 1:
        records = [joined(records)]
    for source, record in zip(sources, records, strict=False):
        target = free_path(folder, source.stem)
        write(record, target)
        made.append(target)
    return made


def save_record(record: Record, folder: Path, name: str, origin: str, how: str, progress: Progress) -> Path:
    """Keep a derived record as a recording of its own that says where it came from."""
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
    from analysis import resample
    from drivers.formats import read

    progress.report(0.0, "Resampling")
    record = resample(read(path), rate)
    name, how = f"{path.stem}-{rate:g}Hz", f"resampled to {record.rate:g} Hz"
    return save_record(record, folder, name, path.name, how, progress)


def calibrated(
    path: Path, channel: str, factor: float, offset: float, unit: str, folder: Path, progress: Progress
) -> Path:
    """A recording with one channel calibrated anew as a new one."""
    from analysis import calibrate
    from drivers.formats import read

    progress.report(0.0, "Calibrating")
    record = calibrate(read(path), channel, factor, offset, unit)
    how = f"{channel} = {factor:g} * old + {offset:g} [{unit}]"
    return save_record(record, folder, f"{path.stem}-calibrated", path.name, how, progress)


def export(path: Path, target: Path, progress: Progress) -> str:
    """A copy in the format that the target's name asks for; what that format cannot keep, in a sentence."""
    from drivers.formats import not_kept, open_lazily, write

    progress.report(0.0, f"Writing {target.name}")
    with open_lazily(path) as recording:
        write(recording, target)
        return not_kept(recording, target)
