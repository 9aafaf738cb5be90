"""The table of a campaign: one row for each job, with parameters, errors, verdict, warnings and time."""

from __future__ import annotations

import csv
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.campaign.child import DONE
from app.campaign.jobs import Job
from app.campaign.recordings import PARQUET, TABLE, Seen
from app.campaign.store import rows
from drivers.base.files import replaced

OWN = (
    "recording", "specimen", "start", "model", "method", "part", "number", "status", "verdict", "converged",
    "predicted R2", "BIC", "warnings", "seconds", "failure", "key",
)  # fmt: skip
LOST_NOTE = "It was not done yet."

Row = dict[str, Any]


def table(
    folder: Path,
    jobs: Iterable[Job],
    seen: Iterable[Seen],
    specimen: str = "",
    collect: Sequence[str] = (),
    failures: Mapping[str, str] | None = None,
    order: str = "",
) -> list[Row]:
    """A row for each job, in the order of the study; those without a result have a sentence instead.

    ``collect``: metadata entries that become columns (none: every one that differs); ``order``: one that the
    trends run over, which does so too.
    """
    about = {s.path: s for s in seen}
    by_key: dict[str, Job] = {job.key: job for job in jobs}
    found: dict[str, Row] = {row["key"]: row for row in rows(folder) if row["key"] in by_key}
    names = {name for row in found.values() for name in row.get("parameters", {})}
    names |= {name for job in by_key.values() for name in job.varied}
    entries = {n: column(n, names) for n in _collected(about.values(), collect, specimen, order)}
    made = []
    for key, job in by_key.items():
        row = found.get(key)
        sentence = (failures or {}).get(key, LOST_NOTE) if row is None else row.get("sentence", "")
        made.append(_row(job, about[job.recording], row, sentence, specimen, entries))
    columns = dict.fromkeys(name for row in made for name in row)  # every row has every column
    return [{name: row.get(name) for name in columns} for row in made]


def column(entry: str, others: Container[str]) -> str:
    """The column of a metadata entry; one that is named like another column (a parameter, an entry of the
    grid) says whose it is."""
    taken = entry in OWN or entry in others
    return f"{entry} (recording)" if taken else entry


def write(table: Sequence[Row], folder: Path) -> list[Path]:
    """The table as CSV, and as Parquet where that is installed; what was written."""
    columns = list(table[0]) if table else []
    with replaced(folder / TABLE) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([_cell(row[name]) for name in columns] for row in table)
    written = [folder / TABLE]
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return written
    data = {name: _alike([row[name] for row in table]) for name in columns}
    with replaced(folder / PARQUET) as part:
        pyarrow.parquet.write_table(pyarrow.table(data), part)
    return [*written, folder / PARQUET]


def parameters(table: Sequence[Row]) -> list[str]:
    """The parameters of a table: columns that have an error beside them."""
    columns = list(table[0]) if table else []
    return [name for name in columns if f"{name} stderr" in columns]


def _row(
    job: Job, seen: Seen, row: Row | None, sentence: str, specimen: str, entries: Mapping[str, str]
) -> Row:
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
    made |= {name: _plain(seen.metadata.get(entry)) for entry, name in entries.items()}
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


def _collected(seen: Iterable[Seen], collect: Sequence[str], specimen: str, order: str) -> list[str]:
    """Metadata entries that become columns: those asked for, else every one that differs."""
    values: dict[str, set[Any]] = {}
    for s in seen:
        for name, value in s.metadata.items():
            values.setdefault(name, set()).add(value)
    chosen = collect or [n for n, v in values.items() if len(v) > 1 and _same_kind(v)]
    wanted = [*chosen, order] if order in values else chosen
    return [n for n in dict.fromkeys(wanted) if n != specimen]


def _same_kind(values: Iterable[Any]) -> bool:
    return len({isinstance(v, str) for v in values}) == 1


def _plain(value: Any) -> float | str | bool | None:
    if value is None or isinstance(value, str | bool):
        return value
    return float(value) if isinstance(value, int | float) else str(value)


def _alike(values: list[Any]) -> list[Any]:
    """A column of one kind: texts where some are."""
    kinds = {isinstance(v, str) for v in values if v is not None}
    return [None if v is None else str(v) for v in values] if len(kinds) > 1 else values


def _cell(value: Any) -> Any:
    """Texts that a spreadsheet would take for a formula are marked as texts."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t"):
        return "'" + value
    return value
