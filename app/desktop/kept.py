"""The work in hand, kept from one start of the window to the next.

    work/work.json        the record's file, the model's text and where it came from, the fits
    work/findings.pickle  orbits and checks: arrays, for this version of the program alone
    work/NUMBER/          the same for a project. Not in its folder: what came by mail is never unpickled

Written when the window closes, and a moment after anything of it changed: who loses the window loses seconds.
A file that cannot be read, or that belongs to somebody else, is passed over: the work then begins anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import ShakedownError
from app import project as projects
from app.project import Project
from app.settings import config_folder
from drivers.base import system

if TYPE_CHECKING:
    from analysis import Identification

FINDINGS = ("mapping", "embedding", "orbits", "orbits_found", "validation", "held")
MOST_FITS = 20  # of a project that are brought back
MOST = 60_000_000  # bytes of findings; larger ones are found again in less time than they are read


@dataclass
class Kept:
    """What a window leaves behind for the next one."""

    record: str = ""  # file of the record in hand
    model: str = ""  # text
    model_source: str = ""  # name in the library, or a file
    results: list[Identification] = field(default_factory=list)
    results_of: str = ""  # file of the record that the newest result was found from
    findings: dict[str, Any] = field(default_factory=dict)
    project: str = ""  # folder of the project that the work belongs to

    def save(self, findings: bool = True) -> None:
        """Write in one move; ``findings``: the arrays too."""
        folder = _folder(self.project)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = {
            "record": self.record,
            "model": self.model,
            "model_source": self.model_source,
            "results": [json.loads(result.to_json()) for result in self.results],
            "results_of": self.results_of,
        }
        _write(folder / "work.json", json.dumps(text).encode())
        if findings:
            found = {n: self.findings[n] for n in FINDINGS if n in self.findings}
            data = pickle.dumps((self.record, self._newest(), found))
            _write(folder / "findings.pickle", data if len(data) <= MOST else pickle.dumps(("", "", {})))

    def _newest(self) -> str:
        """What tells the newest fit from others."""
        if not self.results:
            return ""
        return json.dumps([self.results[-1].model_text, self.results[-1].values()], sort_keys=True)

    @classmethod
    def load(cls, project: str = "") -> Kept:
        """What was left behind in a project, or without one; empty where nothing can be read."""
        from analysis import Identification

        kept = cls(project=project)
        try:
            raw = json.loads((_folder(project) / "work.json").read_text(encoding="utf-8"))
            for name in ("record", "model", "model_source", "results_of"):
                value = raw.get(name)
                setattr(kept, name, value if isinstance(value, str) else "")
            kept.results = [Identification.from_json(json.dumps(one)) for one in raw.get("results", [])]
        except (OSError, ValueError, AttributeError, TypeError, ShakedownError, RecursionError):
            return kept
        # Whatever class has changed since then: the findings are left out, and found again when asked for.
        with contextlib.suppress(Exception):
            path = _folder(project) / "findings.pickle"
            if _is_ours(path):
                record, newest, found = pickle.loads(path.read_bytes())
                if record == kept.record:  # the texts may be newer: findings of another record are not theirs
                    kept.findings = {name: found[name] for name in FINDINGS if name in found}
                    if newest != kept._newest():
                        kept.findings.pop("validation", None)
        return kept


def from_project(project: Project, kept: Kept) -> Kept:
    """What there is of a project that was never open here, such as one from an archive: its newest fits."""
    from analysis import Identification
    from drivers.base.files import read_text

    results = []
    with contextlib.suppress(ShakedownError, OSError):
        for path in projects.fits(project)[-MOST_FITS:]:
            with contextlib.suppress(ShakedownError, ValueError):  # the others are of use all the same
                results.append(Identification.from_json(read_text(path, "a result")))
    if not results:
        return kept
    names = [Path(str(r.get("file", ""))).name for r in results[-1].recordings]
    there = [str(project.recordings / name) for name in names if (project.recordings / name).is_file()]
    record = next(iter(there), "")
    model = kept.model or ("" if kept.model_source else results[-1].model_text)
    channels = results[-1].channels
    findings = {"mapping": channels} if channels and kept.record in ("", record) else {}
    return replace(
        kept,
        results=results,
        record=kept.record or record,
        results_of=record,
        model=model,
        findings={**kept.findings, **findings},
    )


def _folder(project: str) -> Path:
    folder = config_folder() / "work"
    return folder / hashlib.sha256(project.encode()).hexdigest()[:16] if project else folder


def _write(path: Path, data: bytes) -> None:
    part = path.with_suffix(".part")
    part.write_bytes(data)
    part.chmod(0o600)
    system.replace(part, path)


def _is_ours(path: Path) -> bool:
    """Whether nobody else can have written the file: unpickling runs what it says."""
    about = path.lstat()
    own = not hasattr(os, "getuid") or about.st_uid == os.getuid()
    return stat.S_ISREG(about.st_mode) and own and not about.st_mode & 0o022
