"""The window's campaign: chosen recordings, the model in hand, one method; rows can be read as they come."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis import Model, Progress, ShakedownError, parse_json
from app.campaign.child import DONE
from app.campaign.engine import Pool
from app.campaign.jobs import Job
from app.campaign.recordings import INDEX, JOBS, Seen, check_names, check_units, look_at_all
from app.campaign.results import Results, write_results
from app.campaign.run import run
from app.campaign.store import Store, rows
from app.campaign.study import Plan, Recordings, Study, misfits
from drivers.base.files import read_text, replaced

LIMIT = 1800.0  # s that one fit may take


@dataclass(frozen=True)
class Fit:
    """One row as the window shows it."""

    key: str
    path: Path
    start: str
    metadata: Mapping[str, Any]
    verdict: str = ""  # empty: not done yet, or failed
    parameters: Mapping[str, Sequence[Any]] | None = None  # value, error, lower, upper, unit
    failure: str = ""

    @property
    def usable(self) -> bool:
        return self.parameters is not None and self.verdict not in ("misses", "cannot tell")


def identify_all(
    paths: Sequence[Path],
    text: str,
    method: str,
    mapping: Mapping[str, str],
    folder: Path,
    progress: Progress,
) -> Results:
    """Fit a model, given by its text, to every recording; results are kept in the folder, and what it holds
    already is not done again. Runs in a worker of the window."""
    model = Model.from_toml(text)
    channels = {name: channel for name, channel in mapping.items() if channel and channel != name}
    study = Study((model.name,), Recordings(tuple(map(str, paths))), model.name, (method,), channels=channels)
    names = [str(path) for path in paths]
    check_names(names)
    with Store(folder) as store:
        known = store.seen()
        seen, bad = look_at_all(names, known, None, progress)
        bad |= misfits(model.name, model.outputs, tuple(model.inputs), channels, seen)
        good = [s for s in seen if s.path not in bad]
        if not good:
            raise ShakedownError(f"None of the recordings fits the model: {next(iter(bad.values()))}")
        check_units(good, [channels.get(n, n) for n in (*model.outputs, *model.inputs)])
        store.keep_seen({**known, **{s.path: s for s in good}}.values())
        jobs = tuple(Job(s.path, s.sha256, text, model.name, method, {}, channels) for s in good)
        _write_jobs(folder, jobs, good, bad)
        plan = Plan(study, tuple(good), jobs, bad)
        tally = run(jobs, store, lambda: Pool(0, LIMIT), progress)
        return write_results(plan, folder, tally.failures)


def fits(folder: Path) -> list[Fit]:
    """The rows of the running or last campaign of a folder, done or not."""
    try:
        raw = parse_json(read_text(folder / JOBS, "a list of jobs"))
        found = {row["key"]: row for row in rows(folder) if row["key"] in raw["jobs"]}
        listed = [_fit(key, entry, found.get(key)) for key, entry in raw["jobs"].items()]
        left_out = [Fit("", Path(path), "", {}, failure=words) for path, words in raw["unsuitable"].items()]
        return listed + left_out
    except (ShakedownError, ValueError, KeyError, TypeError):
        return []


def size(folder: Path) -> int:
    """Grows with every finished job: tells whether there is something new."""
    return sum(p.stat().st_size for p in (folder / INDEX, folder / JOBS) if p.exists())


def _write_jobs(folder: Path, jobs: Sequence[Job], seen: Sequence[Seen], bad: Mapping[str, str]) -> None:
    entries = {
        job.key: {"path": s.path, "start": s.start, "metadata": dict(s.metadata)}
        for job, s in zip(jobs, seen, strict=True)
    }
    with replaced(folder / JOBS) as part:
        part.write_text(json.dumps({"jobs": entries, "unsuitable": dict(bad)}), encoding="utf-8")


def _fit(key: str, entry: Mapping[str, Any], row: Mapping[str, Any] | None) -> Fit:
    about = key, Path(entry["path"]), entry["start"], entry["metadata"]
    if row is None:
        return Fit(*about)
    if row["status"] != DONE:
        return Fit(*about, failure=row["sentence"])
    verdict = row["verdict"] if row["converged"] else "misses"
    return Fit(*about, verdict, row["parameters"])
