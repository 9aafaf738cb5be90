"""Everything the desktop remembers, in one plain TOML file that a person may edit."""

from __future__ import annotations

import os
import tomllib
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from analysis import parse_toml
from drivers.base import system

RECENT = 12  # files remembered


def config_folder() -> Path:
    """Where the settings live (XDG on Linux, the usual places elsewhere)."""
    if root := os.environ.get("XDG_CONFIG_HOME"):
        return Path(root) / "shakedown"
    if os.name == "nt":
        return Path(os.environ.get("APPDATA", Path.home())) / "Shakedown"
    return Path.home() / ".config" / "shakedown"


def data_folder() -> Path:
    """Where recordings go unless the settings say otherwise."""
    if root := os.environ.get("XDG_DATA_HOME"):
        return Path(root) / "shakedown"
    return Path.home() / "Shakedown"


@dataclass
class Settings:
    """One attribute for each line of the settings file; unknown or wrong lines are ignored, never fatal."""

    theme: str = "system"  # system, light or dark
    scale: float = 0.0  # size of text and controls; 0: chosen from the screen
    rig: str = "two_well_beam_modern"  # last rig
    library: str = ""  # folder of recordings; empty: the usual place
    project: str = ""  # folder of the project in hand; its recordings are the library then
    recent_projects: list[str] = field(default_factory=list)  # folders, newest first
    operator: str = ""
    page: str = "acquire"  # page shown at the start
    window: list[int] = field(default_factory=list)  # x, y, width, height
    maximized: bool = False
    recent: list[str] = field(default_factory=list)  # files opened, newest first
    model: str = ""  # last model: a name of the library or a path
    recording: str = ""  # file that is being recorded now; still there at the start: the window was lost
    tour_done: bool = False
    start_shaking: bool = True  # virtual rigs start their drive when the window opens
    new_specimens: bool = True  # each start puts a specimen with other parameters on the virtual rigs
    scope_seconds: float = 4.0
    report_template: str = ""  # template that was chosen last
    report_logo: str = ""  # picture above the title of reports
    report_left_out: list[str] = field(default_factory=list)  # parts that reports go without
    layout: dict[str, list[int]] = field(default_factory=dict)  # sizes of the movable divisions by name
    views: dict[str, list[str]] = field(default_factory=dict)  # live views chosen, by rig and kind of drive
    plots: dict[str, str] = field(default_factory=dict)  # choices made in plots, by plot and name
    problem = ""  # sentence about a file that was not understood; of this run alone, never saved

    @property
    def library_folder(self) -> Path:
        if self.project:
            return Path(self.project) / "recordings"
        return Path(self.library) if self.library else data_folder() / "recordings"

    def remember(self, path: str | Path) -> None:
        """Put a file on top of the recent ones."""
        text = str(path)
        self.recent = [text, *(r for r in self.recent if r != text)][:RECENT]

    def remember_project(self, folder: str) -> None:
        """Put a project on top of the recent ones."""
        self.recent_projects = [folder, *(p for p in self.recent_projects if p != folder)][:RECENT]

    def forget_project(self, folder: str) -> None:
        """A project that is not there any more."""
        self.recent_projects = [p for p in self.recent_projects if p != folder]

    def save(self) -> None:
        """Write the file in one move, so that a crash leaves the old one whole."""
        import tomli_w

        folder = config_folder()
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / "settings.toml"
        part = target.with_suffix(".part")
        part.write_bytes(tomli_w.dumps(asdict(self)).encode())
        system.replace(part, target)

    @classmethod
    def load(cls) -> Settings:
        path = config_folder() / "settings.toml"
        try:
            raw = parse_toml(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return cls()
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            return cls._in_place_of(path, error)
        return cls(**_accepted(raw))

    @classmethod
    def _in_place_of(cls, path: Path, error: Exception) -> Settings:
        """The defaults, which say why; the file stays beside the one that will be saved."""
        reason = error.strerror if isinstance(error, OSError) else error
        plain = cls()
        plain.problem = f"The settings could not be read ({reason}); the defaults are in use."
        aside = path.with_name("settings.unread.toml")
        with suppress(OSError):
            aside.write_bytes(path.read_bytes())
            plain.problem += f" The file is kept as {aside}."
        return plain


def _accepted(raw: dict[str, Any]) -> dict[str, Any]:
    """The entries that have the type their setting wants."""
    plain = Settings()
    accepted = {}
    for entry in fields(Settings):
        default, given = getattr(plain, entry.name), raw.get(entry.name)
        if isinstance(default, float) and isinstance(given, int) and not isinstance(given, bool):
            given = float(given)
        if type(given) is type(default):
            accepted[entry.name] = given
    return accepted
