"""A project: one folder with all that belongs to a test.

    project.toml     title, specimen, operator, temperature, notes, rig, fields of one's own
    rigs/            profiles of the rigs as they were used
    recordings/      the library of the window
    models/          models that were fitted
    fits/            results, as `shakedown identify --json` writes them
    validations/     as `shakedown validate --json` writes them
    analyses/        what embed, orbits, frf and select tell, as they write it with --json
    campaigns/       a folder of results for each study
    reports/

Every file stays readable by itself, and `project.toml` may be edited by hand. Two programs may work in one
project: whoever changes something reads the file anew, changes that alone, and puts it in place in one move.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import DataError, parse_toml
from drivers.base.files import read_text, replaced
from drivers.base.system import safe_stem

if TYPE_CHECKING:
    from analysis import Identification

NAME = "project.toml"
FOLDERS = ("rigs", "recordings", "models", "fits", "validations", "analyses", "campaigns", "reports")
LEAST_TEMPERATURE = -273.15  # °C


@dataclass(frozen=True)
class Project:
    """What is known of a test. ``temperature`` in °C; ``own``: fields that a laboratory adds."""

    folder: Path
    title: str = ""
    specimen: str = ""
    operator: str = ""
    temperature: float | None = None
    notes: str = ""
    rig: str = ""  # name of the rig's profile
    created: str = ""
    own: Mapping[str, str] = field(default_factory=dict)

    @property
    def recordings(self) -> Path:
        return self.folder / "recordings"

    @property
    def rig_path(self) -> Path:
        """Its own profile of the rig; it may not be there."""
        return self.folder / "rigs" / f"{stem(self.rig)}.toml"

    @property
    def name(self) -> str:
        return self.title or self.folder.name

    def metadata(self) -> dict[str, Any]:
        """What a recording of the project says of the test."""
        known = {"project": self.name, "specimen": self.specimen, "temperature": self.temperature}
        return {**self.own, **{name: value for name, value in known.items() if value not in ("", None)}}

    def words(self) -> str:
        """The test in words, for the beginning of a report."""
        degrees = "" if self.temperature is None else f"{self.temperature:g} °C"
        known = {
            "Specimen": self.specimen,
            "Operator": self.operator,
            "Temperature": degrees,
            "Rig": self.rig,
        }
        facts = [f"{name}: {value}." for name, value in {**known, **self.own}.items() if value]
        return "\n".join(filter(None, (" ".join(facts), self.notes)))


def create(folder: Path | str, **values: Any) -> Project:
    """A new project in a folder, which is made if it is not there; what lies in it already stays."""
    folder = Path(folder).expanduser().absolute()
    if (folder / NAME).exists():
        raise DataError(f"{folder} is a project already.")
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    project = _checked(Project(folder, **{"title": folder.name, "created": now, **values}))
    try:
        for name in FOLDERS:
            (folder / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"The project cannot be made in {folder}: {error.strerror or error}.") from None
    _write(project)
    return project


def load(folder: Path | str) -> Project:
    """The project of a folder, or of the `project.toml` in it."""
    folder = Path(folder).expanduser().absolute()
    folder = folder.parent if folder.name == NAME else folder
    path = folder / NAME
    if not path.exists():
        raise DataError(f"{folder} is no project: there is no {NAME} in it.")
    try:
        raw = parse_toml(read_text(path, "a project"))
    except ValueError as error:
        raise DataError(f"{path} cannot be read: {error}.") from None
    return _checked(Project(folder, **_accepted(raw, path)))


def change(folder: Path, **values: Any) -> Project:
    """Change some entries of a project; what another program has changed meanwhile stays."""
    now = load(folder)
    project = _checked(Project(folder, **{**_table(now), "own": now.own, **values}))
    _write(project)
    return project


def find_folder() -> Path | None:
    """The folder of the project that we are in, if any."""
    try:
        folder = Path.cwd()
        return next((place for place in (folder, *folder.parents) if (place / NAME).is_file()), None)
    except OSError:  # the folder we are in is gone
        return None


def find() -> Project | None:
    """The project that we are in, if any."""
    folder = find_folder()
    return None if folder is None else load(folder)


# -- what is kept in it


def keep_fit(project: Project, result: Identification, recording: str) -> Path:
    """Keep a fit and its model's text; each fit has a file of its own."""
    path = _free(project.folder / "fits", stem(f"{recording}-{result.model}-{result.method}"), ".json")
    _put(path, result.to_json() + "\n")
    model = project.folder / "models" / f"{stem(result.model)}.toml"
    if result.model_text and _differs(model, result.model_text):
        _put(_free(model.parent, model.stem, ".toml"), result.model_text)
    return path


def keep_validation(project: Project, answer: Mapping[str, Any], recording: str, model: str) -> Path:
    """Keep what `validate --json` says."""
    path = _free(project.folder / "validations", stem(f"{recording}-{model}"), ".json")
    _put(path, json.dumps(answer, indent=2) + "\n")
    return path


def keep_analysis(project: Project, answer: Mapping[str, Any], of: Sequence[str]) -> Path:
    """Keep what a command says with --json; ``of``: recording, command, channels. The same is kept once."""
    name, text = stem("-".join(of)), json.dumps(answer, indent=1) + "\n"
    path = _free(project.folder / "analyses", name, ".json", text)
    _put(path, text)
    return path


def keep_rig(project: Project, name: str, text: str) -> None:
    """Keep the profile of the rig that is used; an earlier one that differs stays beside it."""
    path = project.folder / "rigs" / f"{stem(name)}.toml"
    if path.is_file() and _differs(path, text):
        _put(_free(path.parent, f"{path.stem}-earlier", ".toml"), read_text(path, "a rig profile"))
    if not path.is_file() or _differs(path, text):
        _put(path, text)
    if project.rig != name:
        change(project.folder, rig=name)


def fits(project: Project) -> list[Path]:
    """Results, oldest first."""
    return _files(project, "fits", ".json")


def recordings(project: Project) -> list[Path]:
    """Recordings in any format, oldest first."""
    from drivers.formats import FORMATS

    endings = [suffix for form in FORMATS for suffix in form.suffixes if suffix != ".journal"]
    return _files(project, "recordings", *endings)


def analyses(project: Project) -> list[Path]:
    """What was told of recordings, oldest first."""
    return _files(project, "analyses", ".json")


def _files(project: Project, folder: str, *endings: str) -> list[Path]:
    try:
        there = (project.folder / folder).glob("*")
        found = [p for p in there if p.suffix.lower() in endings and p.is_file()]
        return sorted(found, key=lambda p: (p.stat().st_mtime_ns, p.name))
    except OSError as error:
        raise DataError(f"{project.folder} cannot be read: {error.strerror or error}.") from None


def stem(text: str) -> str:
    """A file name without ending for words of a person."""
    return safe_stem(re.sub(r"[^\w.+-]+", "-", text, flags=re.UNICODE).strip("-.")[:80]) or "unnamed"


def _free(folder: Path, name: str, ending: str, text: str | None = None) -> Path:
    """A path that is not taken, or one that holds that text already."""
    path, number = folder / f"{name}{ending}", 2
    while os.path.lexists(path) and (text is None or _differs(path, text)):
        path, number = folder / f"{name}-{number}{ending}", number + 1
    return path


def _differs(path: Path, text: str) -> bool:
    try:
        return read_text(path, "a text") != text
    except DataError:
        return True


def _put(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}.") from None
    with replaced(path) as part:
        part.write_text(text, encoding="utf-8")


# -- the file


def _table(project: Project) -> dict[str, Any]:
    left_out = ("folder", "own")
    table = {f.name: getattr(project, f.name) for f in fields(Project) if f.name not in left_out}
    return {name: value for name, value in table.items() if value is not None}


def _write(project: Project) -> None:
    import tomli_w

    table = {**_table(project), "fields": dict(project.own)}
    with replaced(project.folder / NAME) as part:
        part.write_text(tomli_w.dumps(table), encoding="utf-8")


def _accepted(raw: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The entries of the file; a wrong one is said, because the next change would lose it."""
    own = raw.get("fields", {})
    values: dict[str, Any] = {
        "own": {str(k): str(v) for k, v in own.items()} if isinstance(own, dict) else own
    }
    known = asdict(Project(path.parent))
    for name, value in raw.items():
        if name == "fields":
            continue
        if name not in known or name in ("folder", "own"):
            raise DataError(f"{path} has an entry '{name}' that a project does not know: put it in [fields].")
        values[name] = float(value) if name == "temperature" and type(value) is int else value
    return values


def _checked(project: Project) -> Project:
    """DataError in one sentence for values that make no sense."""
    for name in ("title", "specimen", "operator", "notes", "rig", "created"):
        if not isinstance(value := getattr(project, name), str) or "\0" in value:
            raise DataError(f"The {name} of a project is a text, not {value!r}.")
    degrees = project.temperature
    if degrees is not None and not (
        isinstance(degrees, float) and math.isfinite(degrees) and degrees >= LEAST_TEMPERATURE
    ):
        raise DataError(f"The temperature of a project is a number of °C, not {degrees!r}.")
    if not isinstance(project.own, Mapping) or not all(str(name).strip() for name in project.own):
        raise DataError("The fields of a project are names with texts.")
    return project
