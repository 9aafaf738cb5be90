"""Templates of reports: which parts, what title, whose logo, which standing words; one TOML file each.

title = "{recording}: acceptance test"      # {recording}, {project} and {date} are filled in
author = "Laboratory 3"
logo = "logo.png"                           # beside the template, or a whole path
notes = "Tested by our procedure 12."       # at the beginning
without = ["embedding", "earlier"]          # parts that are left out
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from analysis import DataError, parse_toml
from app.project import stem
from app.report.findings import PARTS
from app.settings import config_folder
from drivers.base.files import read_text, replaced


@dataclass(frozen=True)
class Template:
    """What reports have in common."""

    title: str = ""
    author: str = ""
    logo: str = ""
    notes: str = ""
    without: tuple[str, ...] = ()

    def title_for(self, recording: str, project: str = "") -> str:
        """The title of the report of a recording; what is not known is left out."""
        filled = self.title
        for name, text in (
            ("recording", recording),
            ("project", project),
            ("date", date.today().isoformat()),
        ):
            filled = filled.replace(f"{{{name}}}", text)
        return filled.strip()


def folder() -> Path:
    """Where templates lie that are called by name."""
    return config_folder() / "reports"


def names() -> list[str]:
    """The templates of this machine."""
    return sorted(path.stem for path in folder().glob("*.toml")) if folder().is_dir() else []


def load(name: str) -> Template:
    """A template by its name, or by the path of its file."""
    own = folder() / f"{name}.toml"
    path = own if name in names() else Path(name)
    if not path.is_file():
        known = f": there are {', '.join(names())}" if names() else ""
        raise DataError(f"There is no template '{name}'{known}.")
    try:
        raw = parse_toml(read_text(path, "a template of reports"))
    except ValueError as error:
        raise DataError(f"{path} cannot be read: {error}.") from None
    return _checked(raw, path)


def save(name: str, template: Template) -> str:
    """Keep a template under a name, which replaces one of that name; the name of its file."""
    import tomli_w

    key = stem(name)
    table = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(template).items() if v}
    try:
        folder().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder()} cannot be written: {error.strerror or error}.") from None
    with replaced(folder() / f"{key}.toml") as part:
        part.write_text(tomli_w.dumps(table), encoding="utf-8")
    return key


def _checked(raw: Mapping[str, Any], path: Path) -> Template:
    for name, value in raw.items():
        if name not in asdict(Template()):
            raise DataError(f"{path.name}: '{name}' is not known of a template.")
        if name != "without" and not isinstance(value, str):
            raise DataError(f"{path.name}: {name} is a text, not {value!r}.")
    without = raw.get("without", [])
    if not isinstance(without, list) or (wrong := [part for part in without if part not in list(PARTS)]):
        named = repr(without) if not isinstance(without, list) else repr(wrong[0])
        raise DataError(f"{path.name}: without names parts of a report ({', '.join(PARTS)}), not {named}.")
    logo = str(raw.get("logo", ""))
    beside = str(path.parent / logo) if logo and not Path(logo).is_absolute() else logo
    return Template(**{**raw, "without": tuple(without), "logo": beside})
