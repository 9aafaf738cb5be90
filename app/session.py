"""A session: a plain folder that lists what was recorded, what was found and what was thought of it.

    session.toml
        title = "Two-well beam, first day"
        notes = "Gauge renewed."
        created = "2025-03-01T10:00:00+01:00"
        [[recordings]]
        file = "run1.h5"                 # relative to the folder
        sha256 = "9f86..."               # of the file when it was added
        [[results]]
        file = "fit1.json"               # written by `shakedown identify --json`
        recordings = ["run1.h5"]         # what it was found from
        truth = { c = 0.035 }            # known values, of a virtual specimen

Every file stays readable by itself; the list may be edited by hand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import DataError, parse_toml
from drivers.base.files import open_regular, read_text, replaced

if TYPE_CHECKING:
    from analysis import Identification

NAME = "session.toml"


@dataclass(frozen=True)
class Recorded:
    """A recording of a session and the fingerprint that it had when it was added."""

    file: str
    sha256: str = ""


@dataclass(frozen=True)
class Found:
    """A result of a session and the recordings that it was found from."""

    file: str
    recordings: tuple[str, ...] = ()
    truth: Mapping[str, float] = field(default_factory=dict)


@dataclass
class Session:
    """The list of a session folder. Changes are kept by :meth:`save`."""

    folder: Path
    title: str = ""
    notes: str = ""
    created: str = ""
    recordings: list[Recorded] = field(default_factory=list)
    results: list[Found] = field(default_factory=list)

    @classmethod
    def create(cls, folder: Path | str, title: str, notes: str = "") -> Session:
        """A new session in a folder, which is made if it is not there."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        session = cls(folder, title, notes, datetime.now().astimezone().isoformat(timespec="seconds"))
        session.save()
        return session

    @classmethod
    def load(cls, folder: Path | str) -> Session:
        folder = Path(folder)
        path = folder / NAME if folder.is_dir() else folder
        if not path.exists():
            raise DataError(f"{folder} is no session: it holds no {NAME}.")
        try:
            raw = parse_toml(read_text(path, "the list of a session"))
            return cls(
                path.parent,
                str(raw.get("title", path.parent.name)),
                str(raw.get("notes", "")),
                str(raw.get("created", "")),
                [Recorded(str(r["file"]), str(r.get("sha256", ""))) for r in raw.get("recordings", [])],
                [_found(r) for r in raw.get("results", [])],
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise DataError(f"{path} is not the list of a session ({error}).") from None

    def save(self) -> None:
        """Write the list in one move, so that a crash leaves the old one whole."""
        import tomli_w

        table = {k: v for k, v in asdict(self).items() if k != "folder"}
        with replaced(self.folder / NAME) as part:
            part.write_text(tomli_w.dumps(table), encoding="utf-8")

    def add_recording(self, path: Path | str) -> None:
        """List a recording, with its fingerprint; one that is listed already is listed anew."""
        name = self._name(path)
        entry = Recorded(name, fingerprint(self.folder / name))
        self.recordings = [r for r in self.recordings if r.file != name] + [entry]

    def add_result(
        self,
        result: Identification,
        file: str,
        recordings: Sequence[str] = (),
        truth: Mapping[str, float] | None = None,
    ) -> None:
        """Write a result into the folder and list it."""
        with replaced(self.folder / file) as part:
            part.write_text(result.to_json() + "\n", encoding="utf-8")
        entry = Found(file, tuple(recordings), dict(truth or {}))
        self.results = [r for r in self.results if r.file != file] + [entry]

    def _name(self, path: Path | str) -> str:
        path = Path(path)
        try:
            return str(path.resolve().relative_to(self.folder.resolve()))
        except ValueError:
            return str(path.resolve())


def fingerprint(path: Path | str) -> str:
    """SHA-256 of a file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _found(raw: Mapping[str, Any]) -> Found:
    truth = {str(k): float(v) for k, v in raw.get("truth", {}).items()}
    return Found(str(raw["file"]), tuple(map(str, raw.get("recordings", ()))), truth)
