"""All benchmarks, or those named: `python -m benchmarks [NAME ...]`.

A benchmark is a module in this folder with ``measure() -> list[Measurement]``, shown as one table and kept in
``results/NAME.json`` with a description of the machine, or one with ``main()`` that prints for itself. A peer
that is not installed is left out with a note. Exit code 1 if an answer disagrees or a wanted ratio is missed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from app.output import table
from benchmarks.machine import machine, version
from benchmarks.measure import Measurement

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
KEPT_RUNS = 20
HELPERS = ("__main__", "machine", "measure")
ON_REQUEST = ("coverage", "soak")  # hours, not minutes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n\n")[0])
    known = names()
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"which: {', '.join(known)} (all but {', '.join(ON_REQUEST)})",
    )
    parser.add_argument("--list", action="store_true", help="only show what there is")
    parser.add_argument("--no-store", action="store_true", help="do not keep the results")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in known]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}: there are {', '.join(known)}")
    if args.list:
        print("\n".join(known))
        return 0
    sys.argv = sys.argv[:1]  # a benchmark that reads arguments gets its defaults
    wanted = args.names or [name for name in known if name not in ON_REQUEST]
    failures = [name for name in wanted if not _run(name, store=not args.no_store)]
    if failures:
        print(f"\nMissed what is wanted: {', '.join(failures)}.")
    return 1 if failures else 0


def names() -> list[str]:
    """The benchmarks: modules and packages of this folder."""
    packages = [p.parent.name for p in FOLDER.glob("*/__init__.py")]
    return sorted([p.stem for p in FOLDER.glob("*.py") if p.stem not in HELPERS] + packages)


def _run(name: str, store: bool) -> bool:
    """One benchmark; False if an answer disagrees or a ratio is missed."""
    print(f"\n== {name} ==\n", flush=True)
    try:
        module = import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as missing:
        print(f"Left out: {missing.name} is not installed (make bench installs the peers).")
        return True
    print((module.__doc__ or "").split("\n\n")[0] + "\n", flush=True)
    if not hasattr(module, "measure"):
        module.main()
        return True
    rows: list[Measurement] = module.measure()
    before = _previous(name)
    print(table(["work", "peer", "peer s", "ours s", "ratio", "wanted", "agrees", "since last", "note"],
                [_cells(row, before.get((row.work, row.peer))) for row in rows]))  # fmt: skip
    if store:
        _store(name, rows)
    return all(row.good for row in rows)


def _cells(row: Measurement, before: float | None) -> list[object]:
    agrees = {True: "yes", False: "NO", None: "-"}[row.agrees]
    return [
        row.work,
        row.peer,
        "-" if row.peer_seconds is None else f"{row.peer_seconds:.3g}",
        f"{row.our_seconds:.3g}",
        "-" if row.ratio is None else f"{row.ratio:.3g}",
        "-" if row.wanted is None else f"{row.wanted:g}{'' if row.good else ' MISSED'}",
        agrees,
        "-" if before is None else f"{100 * (row.our_seconds / before - 1):+.0f} %",
        row.note,
    ]


def _previous(name: str) -> dict[tuple[str, str], float]:
    """Our times in the last stored run, by work and peer."""
    runs = _runs(name)
    return {(r["work"], r["peer"]): r["our_seconds"] for r in runs[-1]["rows"]} if runs else {}


def _runs(name: str) -> list[dict[str, Any]]:
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return []
    runs: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return runs


def _store(name: str, rows: list[Measurement]) -> None:
    RESULTS.mkdir(exist_ok=True)
    run = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "version": version(),
        "machine": machine(),
        "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
    }
    text = json.dumps([*_runs(name), run][-KEPT_RUNS:], indent=1)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
