"""The recordings of a study: found by names, folders and tags, looked at once, known by their stamp."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from analysis import DataError, Progress, ShakedownError
from app.session import fingerprint

# What a folder of results holds.
INDEX, RECORDINGS, FITS, LOCK = "index.jsonl", "recordings.json", "fits", ".lock"
TABLE, PARQUET, PAGE, SUMMARY, JOBS = (
    "table.csv",
    "table.parquet",
    "campaign.html",
    "summary.json",
    "jobs.json",
)
RESULTS = frozenset((INDEX, RECORDINGS, TABLE, PARQUET, PAGE, SUMMARY, JOBS, LOCK))
SHOWN = 3  # names in a sentence about many files
TEXT = 200  # characters of a metadata entry that are kept


class Seen(NamedTuple):
    """What is known of a recording without its samples. A tuple: there are thousands at every start."""

    path: str  # absolute
    stamp: str  # of the file: tells whether it must be read again
    sha256: str
    channels: tuple[str, ...]
    rate: float
    samples: int
    start: str = ""  # ISO 8601
    metadata: Mapping[str, Any] = {}  # numbers and texts of the recording
    units: tuple[str, ...] = ()  # of the channels

    @property
    def name(self) -> str:
        return _stem(self.path)

    @classmethod
    def from_list(cls, fields: list[Any]) -> Seen:
        """What a file of them holds."""
        path, stamp, sha256, channels, rate, samples, start, metadata, units = fields
        if not (isinstance(path, str) and isinstance(sha256, str) and isinstance(metadata, dict)):
            raise TypeError("not what is known of a recording")
        return cls(path, stamp, sha256, tuple(channels), rate, samples, start, metadata, tuple(units))


def find(
    places: Sequence[Path], files: Sequence[str], folder: str, tags: Sequence[str], library: Path
) -> list[str]:
    """The files that a study names, in order, each once; DataError for a name that matches nothing.

    ``places``: the folder of the study, then further ones in which names are sought that are not in it.

    Paths are texts here: thousands are joined, sorted and compared at every start.
    """
    found: dict[str, None] = {}
    for pattern in files:
        matches = next(filter(None, (_matching(place, pattern) for place in places)), [])
        if not matches:
            is_folder = bool(pattern) and any((place / pattern).is_dir() for place in places)
            hint = " It is a folder: `folder` names one." if is_folder else ""
            raise DataError(f"No recording matches `{pattern}` in {' or '.join(map(str, places))}.{hint}")
        found.update(dict.fromkeys(_no_results(matches)))
    if folder:
        from drivers.formats import FORMATS

        endings = {suffix for form in FORMATS for suffix in form.suffixes}
        inside = next((place / folder for place in places if (place / folder).is_dir()), places[0] / folder)
        if not inside.is_dir():
            raise DataError(f"The folder {inside} of the study is not there.")
        inside_it = sorted(inside.iterdir())
        matches = _no_results(str(p) for p in inside_it if p.suffix.lower() in endings and p.is_file())
        if not matches:
            raise DataError(f"The folder {inside} holds no recording.")
        found.update(dict.fromkeys(matches))
    if tags:
        matches = _tagged(library, tags)
        if not matches:
            raise DataError(f"No recording of the library {library} has the tags {', '.join(tags)}.")
        found.update(dict.fromkeys(matches))
    if not found:
        raise DataError("The study names no recordings: give `files`, a `folder` or `tags`.")
    paths = list(found)
    check_names(paths)
    return paths


def _no_results(paths: Iterable[str]) -> list[str]:
    """Without what campaigns have left there: a pattern such as ``**/*.csv`` finds their tables, too."""

    @cache
    def of_campaign(folder: str) -> bool:
        return Path(folder, FITS).is_dir() and Path(folder, INDEX).is_file()

    def is_result(path: str) -> bool:
        folder, name = os.path.split(path)
        if name in RESULTS:
            return of_campaign(folder)
        group = os.path.dirname(folder)  # noqa: PTH120 - as above
        return os.path.basename(group) == FITS and of_campaign(os.path.dirname(group))  # noqa: PTH119, PTH120

    return [path for path in paths if not is_result(path)]


def look(path: str, rate: float | None) -> Seen:
    """Open a recording and remember what the study needs of it."""
    from drivers.formats import open_lazily

    mark = _mark(path, rate)
    with open_lazily(path, rate) as recording:
        about = recording.about
    meta = {k: v for k, v in about.metadata.items() if isinstance(v, int | float | str)}
    meta = {k: v[:TEXT] if isinstance(v, str) else v for k, v in meta.items()}
    if about.excitation is not None:
        meta.setdefault("frequency", about.excitation.frequency)
        if about.excitation.amplitude is not None:
            meta.setdefault("amplitude", about.excitation.amplitude)
    return Seen(
        path, mark, fingerprint(path), about.names, about.rate, about.samples, about.start or "", meta,
        tuple(channel.unit for channel in about.channels),
    )  # fmt: skip


def look_at_all(
    paths: Iterable[str], known: Mapping[str, Seen], rate: float | None, progress: Progress
) -> tuple[list[Seen], dict[str, str]]:
    """Every recording, those that have not changed from memory; a sentence for each that cannot be read."""
    seen, bad = [], {}
    paths = list(paths)
    for number, path in enumerate(paths):
        old = known.get(path)
        if old is not None and old.stamp == _mark(path, rate):
            seen.append(old)
            continue
        if Path(path).is_dir():
            continue  # a glob matches folders too
        progress.report(number / len(paths), f"Looking at {Path(path).name}")
        try:
            seen.append(look(path, rate))
        except ShakedownError as error:
            bad[path] = str(error)
    first: dict[str, Seen] = {}
    for s in seen:
        other = first.setdefault(s.sha256, s)
        if other is not s:  # a copy would count as a specimen of its own
            bad[s.path] = f"it holds the same recording as {Path(other.path).name}."
    return [s for s in seen if s.path not in bad], bad


def check_units(seen: Iterable[Seen], wanted: Iterable[str]) -> None:
    """DataError where a channel is in one unit here and another there: parameters would not compare."""
    kinds: dict[tuple[tuple[str, ...], ...], Seen] = {}  # most recordings are alike
    for s in seen:
        kinds.setdefault((s.channels, s.units), s)
    for name in wanted:
        first: dict[str, Seen] = {}
        for s in kinds.values():
            unit = s.units[s.channels.index(name)] if name in s.channels else ""
            if unit:
                first.setdefault(_spelt(unit), s)
        if len(first) > 1:
            (one, here), (other, there) = list(first.items())[:2]
            raise DataError(
                f"Channel {name} is in {one} in {here.name} and in {other} in {there.name}: parameters of "
                f"the two could not be compared; convert one, or study them apart."
            )


def _spelt(unit: str) -> str:
    """A unit with one of the three spellings of micro."""
    micro = unit.replace("\u03bc", "\u00b5")
    return "\u00b5" + micro[1:] if micro[:2] in ("um", "us", "uV", "ug", "uN", "ue") else micro


def _mark(path: str, rate: float | None) -> str:
    """What is known of a recording holds as long as neither the file nor the rate it is read with changes."""
    return stamp(path) if rate is None else f"{stamp(path)} {rate:g}"


def stamp(path: str) -> str:
    """Size, time of change and number of the file; empty where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands at every start
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ino}"


def _stem(path: str) -> str:
    """The name of a file without its ending."""
    return os.path.splitext(os.path.basename(path))[0]  # noqa: PTH119, PTH122


def few(names: Iterable[str]) -> str:
    """Some names and how many more there are."""
    names = list(names)
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _matching(base: Path, pattern: str) -> list[str]:
    try:
        path = base / Path(pattern).expanduser()
    except RuntimeError:  # ~ of a user that there is not
        return []
    if path.is_file():
        return [str(path)]
    if not any(sign in pattern for sign in "*?["):
        return []
    start = path.parent
    while not start.is_dir():  # folders that are there by this name: brackets in it are no pattern
        start = start.parent
    found = glob.glob(str(path.relative_to(start)), root_dir=start, recursive=True)  # noqa: PTH207
    return [os.path.join(start, name) for name in sorted(found)]  # noqa: PTH118


def _tagged(library: Path, tags: Sequence[str]) -> list[str]:
    from app.library import details, scan

    entries = scan(library, {}, Progress())
    pending = [e.path for e in entries if e.pending]
    entries = [e for e in entries if not e.pending] + details(library, pending, Progress())
    return sorted(str(e.path) for e in entries if not e.problem and set(tags) <= set(e.tags))


def check_names(paths: Sequence[str]) -> None:
    """Rows of a table are known by the recording's name: two of one name could not be told apart."""
    first: dict[str, str] = {}
    for path in paths:
        name = _stem(path)
        other = first.setdefault(name, path)
        if other is not path:
            raise DataError(
                f"Two recordings are named {name} ({other} and {path}): a table could not tell them "
                f"apart; rename one or leave it out."
            )
