"""All benchmarks, or those named: `python -m benchmarks [NAME ...]`.

A benchmark is a module in this folder with ``measure() -> list[Measurement]`` (``measure(quick)`` where a
short way makes sense), or one with ``main()`` that prints for itself. Each runs in a process of its own, so
that one that fails or runs out of memory leaves a line and not the end of everything. All rows make one table
at the end and are kept in ``results/NAME.json`` with a description of the machine; the next run shows what
became slower. Exit code 1 if a benchmark fails, an answer disagrees or a wanted ratio is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from app.output import table
from benchmarks.measure import Measurement
from benchmarks.store import SLOWER, last_times, store

FOLDER = Path(__file__).parent
HELPERS = ("__main__", "machine", "measure", "store", "worker")
ON_REQUEST = (
    "campaign",
    "chaos",
    "coverage",
    "discovery",
    "growth",
    "hold",
    "homotopy_accuracy",
    "plan",
    "real",
    "shooters",
    "soak",
    "strangers",
    "unknown_functions",
)  # Monte Carlo and endurance
ON_A_DISPLAY = ("desktop",)
DISPLAY = ("xvfb-run", "-a", "-s", "-screen 0 1920x1080x24")  # where there is none
LIMIT = 1800.0  # seconds for one benchmark
COLUMNS = ("work", "peer", "peer s", "ours s", "ratio", "wanted", "agrees", "since last", "note")

Rows = dict[str, list[Measurement]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n\n")[0])
    known = names()
    on_request = ", ".join(ON_REQUEST)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which: {', '.join(known)} (all but {on_request})"
    )
    parser.add_argument("--list", action="store_true", help="only show what there is")
    parser.add_argument("--quick", action="store_true", help="smaller work; the results are not kept")
    parser.add_argument("--no-store", action="store_true", help="do not keep the results")
    parser.add_argument("--seeds", type=int, help="draws of the noise, for benchmarks that count them")
    parser.add_argument("--system", help="only these systems, separated by commas (strangers)")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in known]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}: there are {', '.join(known)}")
    if args.list:
        print("\n".join(known))
        return 0
    wanted = args.names or [name for name in known if name not in ON_REQUEST]
    given = {"seeds": args.seeds, "system": args.system}
    options = {name: value for name, value in given.items() if value is not None}
    return run(wanted, args.quick, not (args.no_store or args.quick or options), options)


def names() -> list[str]:
    """The benchmarks: modules and packages of this folder."""
    packages = [p.parent.name for p in FOLDER.glob("*/__init__.py")]
    return sorted([p.stem for p in FOLDER.glob("*.py") if p.stem not in HELPERS] + packages)


def run(wanted: Sequence[str], quick: bool, keep: bool, options: Mapping[str, object] | None = None) -> int:
    """Run, show one table, keep the rows; the exit code."""
    rows: Rows = {}
    failed: list[str] = []
    before = {name: last_times(name) for name in wanted}
    for name in wanted:
        begun = time.monotonic()
        print(f"{name} ...", flush=True)
        found = measured(name, quick, options=options)
        if isinstance(found, str):
            failed.append(name)
            print(f"{name}: could not: {found}", flush=True)
            continue
        print(f"{name}: {len(found)} rows, {time.monotonic() - begun:.0f} s", flush=True)
        if found:
            rows[name] = found
            if keep:
                store(name, found)
    show(rows, before)
    missed = [f"{name} ({row.work})" for name, many in rows.items() for row in many if not row.good]
    if missed:
        print(f"\nMissed what is wanted: {', '.join(missed)}.")
    if failed:
        print(f"\nCould not be run: {', '.join(failed)}.")
    return 1 if missed or failed else 0


def measured(
    name: str, quick: bool, limit: float = LIMIT, options: Mapping[str, object] | None = None
) -> list[Measurement] | str:
    """The rows of one benchmark, from a process of its own; a sentence if there are none to be had."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "rows.json"
        command = [
            sys.executable,
            "-m",
            "benchmarks.worker",
            name,
            str(answer),
            *(["quick"] if quick else []),
            *([f"options={json.dumps(dict(options))}"] if options else []),
        ]
        if name in ON_A_DISPLAY and not os.environ.get("DISPLAY") and shutil.which(DISPLAY[0]):
            command = [*DISPLAY, *command]
        try:
            # One BLAS thread, as the program itself has it: our matrices are small.
            environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
            done = subprocess.run(command, cwd=FOLDER.parent, env=environment, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return f"it was not done after {limit:.0f} s."
        if not answer.exists():
            return f"its process ended with code {done.returncode}."
        told = json.loads(answer.read_text(encoding="utf-8"))
    if told["problem"]:
        return str(told["problem"])
    rows = [Measurement(**row) for row in told["rows"]]
    return [replace(row, wanted=None) for row in rows] if quick else rows  # marks are set for the whole work


def show(rows: Rows, before: Mapping[str, Mapping[tuple[str, str], float]]) -> None:
    """One table of everything, and what became slower."""
    cells, slower = [], []
    for name, many in rows.items():
        for row in many:
            last = before.get(name, {}).get((row.work, row.peer))
            cells.append([name, *_cells(row, last)])
            if last and row.our_seconds > SLOWER * last:
                slower.append(f"{row.work} ({row.our_seconds / last:.1f} times)")
    if cells:
        print("\n" + table(("benchmark", *COLUMNS), cells))
    if slower:
        print(f"\nSlower than last time: {', '.join(slower)}. A busy machine does that too: run it again.")


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


if __name__ == "__main__":
    sys.exit(main())
