"""What a campaign leaves behind for people: the table, the summary and the page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import ShakedownError, parse_json
from app.campaign.recordings import INDEX, PAGE, SUMMARY
from app.campaign.store import units
from app.campaign.study import Plan, varied_columns
from drivers.base.files import read_text, replaced

if TYPE_CHECKING:
    from app.campaign.table import Row


@dataclass(frozen=True)
class Results:
    """Files that were written and what they say first."""

    files: list[Path]
    sentences: list[str]
    causes: dict[str, list[str]]  # recordings by the sentence why they have no result
    summary: dict[str, Any]

    @property
    def failed(self) -> int:
        return sum(len(names) for names in self.causes.values())


def write_results(plan: Plan, folder: Path, failures: Mapping[str, str]) -> Results:
    """Table, summary and page of a campaign; left as they are if nothing has happened since."""
    stamp = _stamp(plan, folder, failures)
    if (kept := _kept(folder, stamp)) is not None:
        return kept
    from app.campaign.page import document
    from app.campaign.summary import summarise
    from app.campaign.table import table, write
    from app.report.html import write_html

    study = plan.study
    told = study.recordings
    rows = table(folder, plan.jobs, plan.seen, told.specimen, study.collect, failures, told.order)
    files = write(rows, folder)
    varied = varied_columns(study.vary)
    summary = summarise(rows, _order(told.order, rows, varied), varied, units(folder, plan.jobs))
    page = document(study.title, rows, summary, dict(plan.unsuitable))
    with replaced(folder / PAGE) as part:
        write_html(page, part)
    made = Results([*files, folder / PAGE], summary.sentences(), dict(summary.causes), summary.to_dict())
    _keep(folder, stamp, made)
    return made


def _order(asked: str, rows: Sequence[Row], varied: Sequence[str]) -> str:
    """The column that the trends run over."""
    from app.campaign.table import column, parameters

    return asked if asked in ("start", "name") else column(asked, {*parameters(rows), *varied})


def _stamp(plan: Plan, folder: Path, failures: Mapping[str, str]) -> str:
    """What the results are made of: the recordings with their names and entries, what was left out, the jobs,
    how far the index goes, and what failed."""
    told = plan.study, plan.seen, sorted(plan.unsuitable.items()), sorted(failures.items())
    found = hashlib.sha256(repr(told).encode())
    for job in plan.jobs:
        found.update(job.key.encode())
    index = folder / INDEX
    return f"{found.hexdigest()} {index.stat().st_size if index.exists() else 0}"


def _kept(folder: Path, stamp: str) -> Results | None:
    try:
        raw = parse_json(read_text(folder / SUMMARY, "a summary"))
        files = [folder / name for name in raw["files"]]
        if raw["stamp"] != stamp or not all(path.is_file() for path in files):
            return None
        return Results(files, raw["sentences"], raw["causes"], raw["summary"])
    except (ShakedownError, ValueError, KeyError, TypeError):
        return None


def _keep(folder: Path, stamp: str, made: Results) -> None:
    from app.output import plain

    content = {
        "stamp": stamp,
        "files": [path.name for path in made.files],
        "sentences": made.sentences,
        "causes": made.causes,
        "summary": made.summary,
    }
    with replaced(folder / SUMMARY) as part:
        part.write_text(json.dumps(plain(content), indent=1), encoding="utf-8")
