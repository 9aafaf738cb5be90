"""Do the 95 % intervals cover the truth in 95 % of runs? Monte Carlo over noise, any method, any system.

`python -m benchmarks.coverage [CASE ...] [--runs 200] [--first 0] [--keep]`

A case is added to the file of its topic; `--keep` merges the result into ``results/coverage.json``, from
which `python -m docs.coverage` makes the page. A long case can be run in pieces: `--runs 100 --keep`, then
`--runs 100 --first 100 --keep`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from app.output import table
from benchmarks.coverage import functions, homotopy, orbits, weak_path
from benchmarks.coverage.core import Case, Coverage, coverage, keep

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
    args = parser.parse_args()
    unknown = [name for name in args.cases if name not in CASES]
    if unknown:
        parser.error(f"no case {', '.join(unknown)}: there are {', '.join(CASES)}")
    for name in args.cases or CASES:
        found = coverage(CASES[name](), args.runs, args.first, _watch)
        show(name, found)
        if args.keep:
            keep(name, found)


def show(name: str, found: Coverage) -> None:
    """The table of one case."""
    rows = [(p, 100 * share, found.ratio[p]) for p, share in found.covered.items()]
    print(f"\n{name} by {found.method}: {found.about}")
    print(f"{found.runs} runs, {found.failed} failed, {found.cpu_seconds:.3g} CPU s a run")
    print(table(("parameter", "covered %", "scatter/error"), rows), flush=True)


def _watch(seed: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{seed} ")
        sys.stderr.flush()
