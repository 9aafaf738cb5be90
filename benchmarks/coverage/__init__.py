"""Do the 95 % intervals cover the truth in 95 % of runs? Monte Carlo over noise, any method, any system.

`python -m benchmarks.coverage [CASE ...] [--runs 200] [--first 0] [--keep] [--cluster WHERE]`

The draws are done by the engine of campaigns, on all processors or on a Dask cluster. A case is added to
the file of its topic; `--keep` merges the result into ``results/coverage.json``, from which
`python -m docs.coverage` makes the page. A long case can be run in pieces: `--runs 100 --keep`, then
`--runs 100 --first 100 --keep`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from app.campaign.calls import draws
from app.output import table, terminal_progress
from benchmarks.coverage import functions, homotopy, orbits, weak_path
from benchmarks.coverage.core import Case, Coverage, Draw, coverage, drawn, keep, tallied

__all__ = ["CASES", "coverage", "studied"]

CASES: dict[str, Callable[[], Case]] = {
    **weak_path.CASES,
    **homotopy.CASES,
    **orbits.CASES,
    **functions.CASES,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"which: {', '.join(CASES)} (all)")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="first seed, to go on later")
    parser.add_argument("--keep", action="store_true", help="merge into the kept results")
    parser.add_argument("--cluster", metavar="WHERE", help="run on Dask: local, or tcp://host:8786")
    args = parser.parse_args()
    unknown = [name for name in args.cases if name not in CASES]
    if unknown:
        parser.error(f"no case {', '.join(unknown)}: there are {', '.join(CASES)}")
    for name in args.cases or CASES:
        found = studied(name, args.runs, args.first, args.cluster)
        show(name, found)
        if args.keep:
            keep(name, found)


def studied(name: str, runs: int, first: int = 0, cluster: str | None = None) -> Coverage:
    """Run a case with the seeds first .. first + runs - 1, on many processors."""
    seeds = [{"case": name, "seed": seed} for seed in range(first, first + runs)]
    found = draws("benchmarks.coverage:answer", seeds, terminal_progress(), cluster)
    return tallied(CASES[name](), [Draw.from_dict(raw) for raw in found], first)


def answer(case: str, seed: int) -> dict[str, Any]:
    """In a process of the engine: one draw as plain data."""
    return asdict(drawn(_case(case), seed))


@lru_cache(maxsize=1)
def _case(name: str) -> Case:
    return CASES[name]()


def show(name: str, found: Coverage) -> None:
    """The table of one case."""
    rows = [(p, 100 * share, found.ratio[p]) for p, share in found.covered.items()]
    print(f"\n{name} by {found.method}: {found.about}")
    print(f"{found.runs} runs, {found.failed} failed, {found.cpu_seconds:.3g} CPU s a run")
    print(table(("parameter", "covered %", "scatter/error"), rows), flush=True)
