"""The folder of a campaign: every finished job at once, under its key; whatever ends the program, no more
than the jobs under way is lost.

    fits/ab/abcd….json    a result as `shakedown identify --json` writes it; there whole or not at all
    index.jsonl           one line for each finished job: what its row of the table needs
    recordings.json       what is known of the recordings, by path, so that they are not read again
    table.csv, table.parquet, campaign.html

The index is only a shortcut: a line that was cut off is dropped, and what is missing is read from fits.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from analysis import DataError, ShakedownError
from app.campaign.child import DONE, Outcome
from app.campaign.jobs import Job
from app.campaign.recordings import FITS, INDEX, LOCK, RECORDINGS, RESULTS, Seen
from drivers.base import system
from drivers.base.files import read_text, replaced

TOGETHER = 1000  # lines of the index that are read at once


class Store:
    """The results folder, open for one program at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{folder} is a file: a campaign needs a folder for its results.")
        if not ((folder / FITS).is_dir() or (folder / INDEX).is_file()):
            _check_free(folder)
        self._made = [path for path in (folder, *folder.parents) if not path.exists()]  # innermost first
        try:
            (folder / FITS).mkdir(parents=True, exist_ok=True)
            self._lock = (folder / LOCK).open("ab")
        except OSError as error:
            raise DataError(f"{folder} cannot be written: {error.strerror}.") from None
        if not system.lock(self._lock.fileno()):
            self._lock.close()
            raise DataError(
                f"Another campaign is writing to {folder}: wait for it, or choose another folder."
            )
        self.done = self._restore()
        self._index: BinaryIO = (folder / INDEX).open("ab")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):  # of a full disk: what could be written is there
            self._index.close()
        if not self.done and not (self.folder / RECORDINGS).exists():
            self._leave_nothing()
        self._lock.close()

    def _leave_nothing(self) -> None:
        """Remove an empty store, with the folders that were made for it: the study was refused."""
        with contextlib.suppress(OSError):
            (self.folder / INDEX).unlink(missing_ok=True)
            (self.folder / FITS).rmdir()
            (self.folder / LOCK).unlink(missing_ok=True)
            for path in self._made:
                path.rmdir()

    def keep(self, outcome: Outcome) -> None:
        """Put a finished job on the disk: its result first, its line in the index after that."""
        row = row_of(outcome)
        if outcome.status == DONE:
            target = self.fit_path(outcome.key)
            target.parent.mkdir(exist_ok=True)
            with replaced(target) as part:
                part.write_text(outcome.result + "\n", encoding="utf-8")
        try:
            self._index.write(json.dumps(row).encode() + b"\n")
            self._index.flush()
        except OSError as error:
            raise DataError(f"{self.folder / INDEX} cannot be written: {error.strerror}.") from None
        self.done.add(outcome.key)

    def forget_failures(self) -> None:
        """Jobs that failed are to be done again."""
        self._index.close()
        kept = [row for row in rows(self.folder) if row["status"] == DONE]
        with replaced(self.folder / INDEX) as part, part.open("wb") as file:
            file.writelines(json.dumps(row).encode() + b"\n" for row in kept)
        self.done = {row["key"] for row in kept}
        self._index = (self.folder / INDEX).open("ab")

    def fit_path(self, key: str) -> Path:
        return fit_path(self.folder, key)

    def seen(self) -> dict[str, Seen]:
        """What is known of recordings; nothing where that cannot be read."""
        try:
            raw = json.loads(read_text(self.folder / RECORDINGS, "a list of recordings"))
            return {path: Seen.from_list(entry) for path, entry in raw.items()}
        except (ShakedownError, ValueError, AttributeError, TypeError, RecursionError):
            return {}

    def keep_seen(self, seen: Iterable[Seen]) -> None:
        table = {s.path: s for s in seen}
        with replaced(self.folder / RECORDINGS) as part:
            part.write_text(json.dumps(table), encoding="utf-8")

    def _restore(self) -> set[str]:
        """The keys of all finished jobs; the index is mended where a crash has left it behind."""
        path = self.folder / INDEX
        known = {row["key"]: row["status"] for row in rows(self.folder)}
        there = set(_stored(self.folder))
        gone = {key for key, status in known.items() if status == DONE and key not in there}
        new = [row for key in there - set(known) if (row := self._reread(key)) is not None]
        if new or gone or _torn(path):
            kept = (row for row in rows(self.folder) if row["key"] not in gone)
            with replaced(path) as part, part.open("wb") as file:
                file.writelines(json.dumps(row).encode() + b"\n" for row in (*kept, *new))
        return (set(known) - gone) | {row["key"] for row in new}

    def _reread(self, key: str) -> dict[str, Any] | None:
        """The row of a stored result; one that is damaged is removed, to be done again."""
        from analysis import Identification

        path = self.fit_path(key)
        try:
            text = read_text(path, "a result")
            Identification.from_json(text)
            return row_of(Outcome(key, DONE, text))
        except DataError:
            with contextlib.suppress(OSError):
                path.unlink()
            return None


def _check_free(folder: Path) -> None:
    """Refuse a folder with somebody's own file where the results would go."""
    for name in sorted(RESULTS - {LOCK}):
        if (folder / name).exists():
            raise DataError(
                f"{folder / name} is not of a campaign and would be overwritten: choose another folder for "
                f"the results (--out)."
            )


def fit_path(folder: Path, key: str) -> Path:
    """Where the result of a job is."""
    return folder / FITS / key[:2] / f"{key}.json"


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of the index; a line that was cut off is left out."""
    try:
        with (folder / INDEX).open("rb") as file:
            while lines := list(islice(file, TOGETHER)):
                yield from (row for row in _parsed(lines) if _is_row(row))
    except FileNotFoundError:
        return


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("key"), str) and isinstance(row.get("status"), str)


def _parsed(lines: list[bytes]) -> Iterable[Any]:
    """What the lines hold; all at once, which is several times faster, unless one of them is damaged."""
    if not lines[-1].endswith(b"\n"):
        lines = lines[:-1]
    try:
        found = json.loads(b"[" + b",".join(lines) + b"]")
        if len(found) == len(lines):
            return found
    except (ValueError, RecursionError):
        pass
    return _each_parsed(lines)


def _each_parsed(lines: Iterable[bytes]) -> Iterator[Any]:
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError):
            yield json.loads(line)


def units(folder: Path, jobs: Iterable[Job]) -> dict[tuple[str, str], str]:
    """The unit of every parameter that has one, by model and name; the folder may hold other studies, too."""
    models = {job.key: job.model_name for job in jobs}
    found: dict[tuple[str, str], str] = {}
    for row in rows(folder):
        if (model := models.get(row["key"])) is not None:
            found |= {(model, n): e[-1] for n, e in row.get("parameters", {}).items() if e[-1]}
    return found


def row_of(outcome: Outcome) -> dict[str, Any]:
    """What the table needs of a job."""
    row: dict[str, Any] = {"key": outcome.key, "status": outcome.status, "seconds": outcome.seconds}
    if outcome.status != DONE:
        return row | {"sentence": outcome.sentence}
    found: Mapping[str, Any] = json.loads(outcome.result)
    residual = found["residual"]
    shares = found["extra"].get("left out R2") or residual["held_out_r2"]
    scores = [v for v in shares.values() if isinstance(v, float)]
    return row | {
        "converged": found["converged"],
        "verdict": found["verdict"],
        "parameters": {
            n: [e["value"], e["stderr"], e["lower"], e["upper"], e["unit"]]
            for n, e in found["parameters"].items()
        },
        "warnings": [*found["undetermined"], *found["warnings"]],
        "predicted": min(scores) if scores else None,
        "rms": residual["rms"],
        "dof": residual["dof"],
    }


def _stored(folder: Path) -> Iterator[str]:
    with os.scandir(folder / FITS) as groups:
        for group in groups:
            with os.scandir(group.path) as files:
                yield from (f.name[:-5] for f in files if f.name.endswith(".json") and f.name[0] != ".")


def _torn(path: Path) -> bool:
    """Whether the last line of the index was cut off."""
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:
        return False
