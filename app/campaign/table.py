"""The table of a campaign: one row for each job, with parameters, errors, verdict, warnings and time."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.campaign.child import DONE
from app.campaign.jobs import Job
from app.campaign.recordings import Seen
from app.campaign.store import rows
from drivers.base.files import replaced

CSV, PARQUET = "table.csv", "table.parquet"
LOST_NOTE = "It was not done yet."

Row = dict[str, Any]


def table(
    folder: Path,
    jobs: Iterable[Job],
    seen: Iterable[Seen],
    specimen: str = "",
    collect: Sequence[str] = (),
    failures: Mapping[str, str] | None = None,
) -> list[Row]:
    """A row for each job, in the order of the study; those without a result have a sentence instead."""
    about = {s.path: s for s in seen}
    by_key: dict[str, Job] = {job.key: job for job in jobs}
    found: dict[str, Row] = {row["key"]: row for row in rows(folder) if row["key"] in by_key}
    entries = _collected(about.values(), collect, specimen)
    made = []
    for key, job in by_key.items():
        row = found.get(key)
        sentence = (failures or {}).get(key, LOST_NOTE) if row is None else row.get("sentence", "")
        made.append(_row(job, about[job.recording], row, sentence, specimen, entries))
    names = dict.fromkeys(name for row in made for name in row)  # every row has every column
    return [{name: row.get(name) for name in names} for row in made]


def write(table: Sequence[Row], folder: Path) -> list[Path]:
    """The table as CSV, and as Parquet where that is installed; what was written."""
    columns = list(table[0]) if table else []
    with replaced(folder / CSV) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([_cell(row[name]) for name in columns] for row in table)
    written = [folder / CSV]
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return written
    data = {name: [row[name] for row in table] for name in columns}
    with replaced(folder / PARQUET) as part:
        pyarrow.parquet.write_table(pyarrow.table(data), part)
    return [*written, folder / PARQUET]


def parameters(table: Sequence[Row]) -> list[str]:
    """The parameters of a table: columns that have an error beside them."""
    columns = list(table[0]) if table else []
    return [name for name in columns if f"{name} stderr" in columns]


def _row(job: Job, seen: Seen, row: Row | None, sentence: str, specimen: str, entries: Sequence[str]) -> Row:
    made: Row = {
        "recording": seen.name,
        "specimen": str(seen.metadata.get(specimen, seen.name)) if specimen else seen.name,
        "start": seen.start or None,
        "model": job.model_name,
        "method": job.method,
        "part": job.kind,
        "number": job.number,
        "status": DONE if row is not None and row["status"] == DONE else "failed",
    }
    made |= {name: _plain(seen.metadata.get(name)) for name in entries}
    made |= {name: _plain(value) for name, value in job.varied.items()}
    if row is not None and row["status"] == DONE:
        made |= {"verdict": row["verdict"], "converged": row["converged"]}
        for name, (value, stderr, lower, upper, _) in row["parameters"].items():
            made |= {name: value, f"{name} stderr": stderr, f"{name} lower": lower, f"{name} upper": upper}
        made |= {"predicted R2": row["predicted"], "BIC": _bic(row), "warnings": " ".join(row["warnings"])}
    made |= {"seconds": None if row is None else row["seconds"], "failure": sentence or None, "key": job.key}
    return made


def _bic(row: Row) -> float | None:
    """Schwarz's criterion of the residuals, noise unknown: sum over outputs of N ln(rms²) + k ln N."""
    rms, k, dof = row["rms"], len(row["parameters"]), row["dof"]
    if not rms or dof is None or not all(v is not None and v > 0 for v in rms.values()):
        return None
    total = dof + k  # samples of all outputs
    return float(total / len(rms) * sum(2 * math.log(v) for v in rms.values()) + k * math.log(total))


def _collected(seen: Iterable[Seen], collect: Sequence[str], specimen: str) -> list[str]:
    """Metadata entries that become columns: those asked for, else every one that differs."""
    if collect:
        return [name for name in collect if name != specimen]
    values: dict[str, set[Any]] = {}
    for s in seen:
        for name, value in s.metadata.items():
            values.setdefault(name, set()).add(value)
    taken = ("recording", "specimen", "start", "model", "method", "part", "number", "status", specimen)
    return [n for n, v in values.items() if n not in taken and len(v) > 1 and _same_kind(v)]


def _same_kind(values: Iterable[Any]) -> bool:
    return len({isinstance(v, str) for v in values}) == 1


def _plain(value: Any) -> float | str | None:
    if value is None or isinstance(value, str):
        return value
    return float(value)


def _cell(value: Any) -> Any:
    """Texts that a spreadsheet would take for a formula are marked as texts."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t"):
        return "'" + value
    return value
