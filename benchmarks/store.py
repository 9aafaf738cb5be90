"""Results kept from run to run, with what the times depend on."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.machine import machine, version
from benchmarks.measure import Measurement

RESULTS = Path(__file__).parent / "results"
KEPT_RUNS = 20
SLOWER = 1.3  # times the last run's time: worth a look


def runs(name: str) -> list[dict[str, Any]]:
    """The kept runs of a benchmark, oldest first."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return []
    kept: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return kept


def last_times(name: str) -> dict[tuple[str, str], float]:
    """Our times in the last kept run on a processor of this kind, by work and peer."""
    here = machine()["cpu"]
    same = [run for run in runs(name) if run["machine"]["cpu"] == here]
    return {(row["work"], row["peer"]): row["our_seconds"] for row in same[-1]["rows"]} if same else {}


def store(name: str, rows: Sequence[Measurement]) -> None:
    """Add a run to the kept ones."""
    RESULTS.mkdir(exist_ok=True)
    run = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "version": version(),
        "machine": machine(),
        "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
    }
    text = json.dumps([*runs(name), run][-KEPT_RUNS:], indent=1)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
