"""`shakedown reproduce`: the tables of the published methods, the printed numbers beside ours."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from analysis import ShakedownError
from app.output import add_json_option, plain, table, write_json
from app.reproduce import MEASURED, TABLES, Table


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        nargs="?",
        help="a table, all tables of a document such as liu2018, all, or real (public measurements, "
        "not part of all); without it a list",
    )
    parser.add_argument("--out", metavar="FILE", help="the tables and their figures as .html or .pdf")
    parser.add_argument(
        "--cluster", metavar="WHERE", help="run on Dask: local, or a scheduler such as tcp://host:8786"
    )
    parser.add_argument(
        "--again", action="store_true", help="make tables again that an earlier start has made"
    )
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    if args.name is None:
        if not write_json(args.json, {"tables": list(TABLES)}):
            print("\n".join(TABLES))
        return 0
    made, failed = _made(_names(args.name), args.cluster, args.again)
    if not write_json(args.json, {"tables": [_payload(t) for t in made], "failed": failed}):
        for one in made:
            _print(one)
        _print_summary(made)
    if args.out:
        from app.report import write_document
        from app.reproduce.page import document

        for path in write_document(document(made), args.out):
            print(path, file=sys.stderr)
    return 1 if failed else 0


def _names(asked: str) -> list[str]:
    if asked == "all":
        return [name for name in TABLES if not name.startswith(MEASURED)]
    chosen = [name for name in TABLES if name == asked or name.startswith(asked + "-")]
    if not chosen:
        raise ShakedownError(f"No table '{asked}': choose all or one of {', '.join(TABLES)}.")
    return chosen


def _made(names: Sequence[str], cluster: str | None, again: bool) -> tuple[list[Table], dict[str, str]]:
    """The tables in the order of their names, and a sentence for each that could not be made. Those that this
    program made at an earlier start are kept in the state folder, and taken from there."""
    from app.reproduce.runner import Done, compute, line_shower
    from drivers.base.state import state_folder

    made: dict[str, Table] = {}
    failed: dict[str, str] = {}
    show = line_shower()

    def came(done: Done) -> None:
        name, result, seconds = done
        show("")
        if isinstance(result, str):
            failed[name] = result
            print(f"shakedown: {name}: {result}", file=sys.stderr)
            return
        made[name] = result
        said = f"{len(made) + len(failed)} of {len(names)}: {name} ({seconds:.0f} s of processor time)"
        print(said, file=sys.stderr, flush=True)

    state = None if again else state_folder()
    folder = None if state is None else state / "reproduced"
    before = compute(names, show, came, cluster, folder)
    show("")
    if before:
        print(
            f"{before} of them were made by an earlier start and kept in {folder}; --again makes them anew.",
            file=sys.stderr,
        )
    return [made[name] for name in names if name in made], failed


def _print(made: Table) -> None:
    from app.reproduce.page import shown

    print(f"\n{made.title}  [{made.name}]\n")
    print(table(*shown(made)))
    for note in made.notes:
        print(f"  * {note}")


def _print_summary(made: Sequence[Table]) -> None:
    from app.reproduce.page import counts
    from app.reproduce.rows import VERDICTS

    total = {p: sum(counts(t).get(p, 0) for t in made) for p in VERDICTS}
    said = ", ".join(f"{phrase} {count}" for phrase, count in total.items() if count)
    if said:
        print(f"\n{sum(total.values())} rows: {said}.")


def _payload(made: Table) -> dict[str, Any]:
    """Rows as objects with stable keys."""
    rows = [row._asdict() for row in made.rows]
    figures = [vars(figure) for figure in made.figures]
    payload: dict[str, Any] = plain({**vars(made), "rows": rows, "figures": figures})
    return payload
