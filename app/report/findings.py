"""What a report tells of: recordings, orbits, identifications and their checks, gathered in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from analysis import SILENT, DataError, Identification, Progress, ShakedownError
from app import project as projects
from app.orbit_search import Embedding, Space, find_orbits
from app.project import Project
from app.session import NAME as SESSION
from app.session import Found, Recorded, Session, fingerprint

if TYPE_CHECKING:
    from analysis import PeriodicOrbit, Record, Validation

LONGEST_ORBIT = 8  # periods of the drive
PARTS = {  # what may be left out of a report, and what it is called then
    "recording": "the recording",
    "embedding": "how it was unfolded",
    "orbits": "the periodic orbits",
    "fits": "the fits",
    "earlier": "earlier fits",
    "checks": "the checks of the model",
    "again": "what it takes to run it again",
}


@dataclass(frozen=True, eq=False)
class Measured:
    """A recording, and its fingerprint (taken from the file when it is not given)."""

    name: str
    record: Record
    sha256: str = ""
    path: Path | None = None
    changed: bool = False  # since the session listed it


@dataclass(frozen=True, eq=False)
class OrbitsFound:
    """Periodic orbits of a recording and the space that they were found in."""

    recording: str
    space: Space
    orbits: Sequence[PeriodicOrbit]
    messages: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Study:
    """An identification, its check against the record, and known values where there are any."""

    result: Identification
    validation: Validation | None = None
    record: Record | None = None
    truth: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything that a report is written from."""

    title: str
    notes: str = ""
    author: str = ""
    created: str = ""
    recordings: Sequence[Measured] = ()
    embedding: Embedding | None = None  # of the first recording
    orbits: Sequence[OrbitsFound] = ()
    studies: Sequence[Study] = ()
    logo: bytes = b""  # PNG
    left_out: frozenset[str] = frozenset()  # keys of PARTS


def gather(session: Session, progress: Progress = SILENT) -> Findings:
    """Read what a session lists, and work out orbits and checks from it."""
    recordings = [_measured(session.folder, r) for r in session.recordings]
    by_name = {m.name: m.record for m in recordings}
    orbits, studies = [], []
    work = len(recordings) + len(session.results)
    for number, measured in enumerate(recordings):
        found = orbits_of(measured, progress.part(number / work, (number + 1) / work))
        orbits += [found] if found is not None else []
    for number, entry in enumerate(session.results, len(recordings)):
        result = _result(session.folder / entry.file)
        record = next((by_name[n] for n in entry.recordings if n in by_name), None)
        part = progress.part(number / work, (number + 1) / work)
        studies.append(Study(result, check(result, record, part), record, entry.truth))
    return Findings(
        session.title,
        session.notes,
        created=session.created,
        recordings=recordings,
        orbits=orbits,
        studies=studies,
    )


def session_of(path: Path, recordings: Sequence[Path] = ()) -> Session:
    """A session folder as it is, or one made up from a single result and its recordings."""
    if (path / projects.NAME).is_file() and not (path / SESSION).is_file():
        return session_of_project(projects.load(path))
    if path.is_dir() or path.suffix == ".toml":
        return Session.load(path)
    result = _result(path)
    known = [(Path(r["file"]), r.get("sha256", "")) for r in result.recordings]
    files = [(path, "") for path in recordings] or known
    there = [(_where(file, path), sha256) for file, sha256 in files]
    session = Session(path.parent, f"{result.model}: identification by {result.method}")
    session.recordings = [Recorded(str(f.resolve()), sha) for f, sha in there if f.exists() or recordings]
    session.results = [Found(path.name, tuple(r.file for r in session.recordings))]
    return session


def _where(recording: Path, result: Path) -> Path:
    """A recording that a result names: as named, beside the result, or in its project (it may have moved)."""
    places = [recording, result.parent / recording]
    folder = result.resolve().parent.parent
    if (folder / projects.NAME).is_file():
        places.append(folder / "recordings" / recording.name)
    return next((place for place in places if place.exists()), recording)


def session_of_project(project: Project) -> Session:
    """The fits of a project and what they were found from; without any fit its newest recording."""
    session = Session(project.folder, project.name, project.words(), project.created)
    there = {path.name: path for path in projects.recordings(project)}
    used: list[Path] = []
    for path in projects.fits(project):
        names = [Path(str(r.get("file", ""))).name for r in _result(path).recordings]
        mine = [there[name] for name in names if name in there]
        used += [recording for recording in mine if recording not in used]
        session.results.append(Found(f"fits/{path.name}", tuple(f"recordings/{p.name}" for p in mine)))
    if not there:
        raise DataError(f"There is nothing to report: {project.folder} holds no recording.")
    newest = [path for path in there.values() if path.suffix == ".h5"] or list(there.values())
    for path in used or newest[-1:]:
        session.recordings.append(Recorded(f"recordings/{path.name}"))
    return session


def orbits_of(measured: Measured, progress: Progress = SILENT) -> OrbitsFound | None:
    """Periodic orbits of a driven recording, its first channel unfolded by delays; None without a drive."""
    record = measured.record
    drive = record.excitation
    if drive is None or not drive.frequency > 0 or not record.names:
        return None
    period = record.rate / drive.frequency
    if len(record) < 20 * period:
        return None
    try:
        space, found = find_orbits(
            record,
            (record.names[0],),
            None,
            None,
            drive.frequency,
            LONGEST_ORBIT,
            None,
            progress,
        )
    except DataError:
        return None
    within = f"Asked for: a closure within {100 * found.epsilon:g} % of the span."
    return OrbitsFound(measured.name, space, found.orbits, (within, *found.messages))


def check(result: Identification, record: Record | None, progress: Progress = SILENT) -> Validation | None:
    """The model beside the record; None where the two cannot be compared."""
    from analysis import Model, validate

    if record is None or not result.model_text:
        return None
    try:
        model, stated = Model.from_toml(result.model_text), result.stated_miss
        return validate(model, record, result.values(), progress, stated=stated)
    except ShakedownError:
        return None


def _measured(folder: Path, entry: Recorded) -> Measured:
    from drivers.formats import read

    path = folder / entry.file
    now = fingerprint(path)
    changed = bool(entry.sha256) and now != entry.sha256
    return Measured(entry.file, read(path), now, path, changed)


def _result(path: Path) -> Identification:
    from drivers.base.files import read_text

    return Identification.from_json(read_text(path, "a result of an identification"))
