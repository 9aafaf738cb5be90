"""`shakedown reproduce`: the tables of the published methods, the printed numbers beside ours."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from analysis.errors import ShakedownError
from app.output import add_json_option, table, write_json
from app.reproduce import TABLES, Table, make_table

PROCESSES = 2


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", help="a table, all tables of a document such as liu2018, or all; without it a list"
    )
    parser.add_argument("--out", metavar="FILE", help="the tables and their figures as .html or .pdf")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    if args.name is None:
        if not write_json(args.json, {"tables": list(TABLES)}):
            print("\n".join(TABLES))
        return 0
    names = _names(args.name)
    made, failed = [], {}
    for name, result, seconds in _compute(names):
        if isinstance(result, str):
            failed[name] = result
            print(f"shakedown: {name}: {result}", file=sys.stderr)
            continue
        made.append(result)
        print(f"{len(made) + len(failed)} of {len(names)}: {name} ({seconds:.0f} s)", file=sys.stderr)
    made.sort(key=lambda t: names.index(t.name) if t.name in names else len(names))
    payload = {"tables": [_payload(t) for t in made], "failed": failed}
    if not write_json(args.json, payload):
        for made_table in made:
            _print(made_table)
    if args.out:
        from app.report import write_document

        for path in write_document(document(made), args.out):
            print(path, file=sys.stderr)
    return 1 if failed else 0


def _names(asked: str) -> list[str]:
    if asked == "all":
        return list(TABLES)
    chosen = [name for name in TABLES if name == asked or name.startswith(asked + "-")]
    if not chosen:
        raise ShakedownError(f"No table '{asked}': choose all or one of {', '.join(TABLES)}.")
    return chosen


def _compute(names: Sequence[str]) -> Iterator[tuple[str, Table | str, float]]:
    """Tables as they are finished, several at a time; a sentence where one could not be made."""
    if len(names) == 1:
        yield _one(names[0])
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    workers = min(PROCESSES, os.cpu_count() or 1, len(names))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(_one, name) for name in names]):
            yield done.result()


def _one(name: str) -> tuple[str, Table | str, float]:
    from app.output import terminal_progress

    begun = time.monotonic()
    try:
        result: Table | str = make_table(name, terminal_progress())
    except ShakedownError as error:
        result = str(error)
    return name, result, time.monotonic() - begun


def _print(made: Table) -> None:
    print(f"\n{made.title}  [{made.name}]\n")
    print(table(made.columns, [[_shown(v) for v in row] for row in made.rows]))
    for note in made.notes:
        print(f"  * {note}")


def _shown(value: Any) -> Any:
    return "–" if value is None else value


def _payload(made: Table) -> dict[str, Any]:
    from analysis.identification import _without_nan

    payload: dict[str, Any] = _without_nan(asdict(made))
    return payload


def document(tables: Sequence[Table]) -> Any:
    """The tables with their notes and figures as a report."""
    from datetime import datetime
    from importlib.metadata import version

    from app.figures.curves import draw_curves
    from app.report.blocks import Block, Document, Grid, Heading, Paragraph, Picture

    blocks: list[Block] = [
        Paragraph("Every table holds the printed numbers and ours, computed when this page was written.")
    ]
    for made in tables:
        blocks.append(Heading(made.title))
        rows = [[_cell(v) for v in row] for row in made.rows]
        numeric = [
            i
            for i in range(len(made.columns))
            if all(isinstance(r[i], int | float | None) for r in made.rows)
        ]
        blocks.append(Grid(made.columns, rows, numeric=numeric))
        blocks += [Paragraph(note, "small") for note in made.notes]
        for start in range(0, len(made.figures), 2):
            pair = made.figures[start : start + 2]
            blocks.append(Picture(lambda figure, pair=pair: draw_curves(figure, pair), height=2.6))  # type: ignore[misc]
    written = datetime.now().astimezone().isoformat(timespec="minutes")
    return Document(
        "Published beside ours", f"Shakedown {version('shakedown-lab')}, written {written}", blocks
    )


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
