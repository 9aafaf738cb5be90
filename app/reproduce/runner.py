"""Tables computed several at a time by the engine of campaigns, with one line of progress for all.

Each is kept when it is done: whatever ends the program, the next start computes only what is missing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from analysis import SILENT, Progress, ShakedownError
from app.output import rewrite_line
from app.reproduce import Figure, Table, make_table
from app.reproduce.rows import Row

# Begun first, the slowest of all in front: the processes then end at about the same time.
SLOW = ("liu2018-noise", "manikantan2020-9", "liu2018-miura", "banks1983-noise", "manikantan2020-2")

WORKED = "app.reproduce.runner:worked"
Done = tuple[str, Table | str, float]  # name, table or a sentence why not, processor seconds


def compute(
    names: Sequence[str],
    show: Callable[[str], None],
    came: Callable[[Done], None],
    cluster: str | None = None,
    kept: Path | None = None,
) -> int:
    """Make tables; ``came`` gets each when it is done, ``show`` a line on what is going on. What the folder
    ``kept`` holds of the same program is not made again (one table alone always is): how many were there."""
    if len(names) == 1 and cluster is None:
        came(one(names[0], Progress(lambda step: show(f"{100 * step.fraction:3.0f} %  {step.message}"))))
        return 0
    from app.campaign.calls import Shelf, call_all

    waiting = in_order(names)
    shelf = None if kept is None else Shelf(kept, WORKED)
    _, failures = call_all(
        WORKED,
        [{"name": name} for name in waiting],
        Progress(lambda step: show(step.message)),
        lambda _, answer: came(_read(answer)),
        cluster,
        shelf=shelf,
    )
    for number, words in failures.items():
        came((waiting[number], words, 0.0))
    return 0 if shelf is None else shelf.found


def in_order(names: Sequence[str]) -> list[str]:
    """The slow ones first, the others as they are."""
    return [n for n in SLOW if n in names] + [n for n in names if n not in SLOW]


def one(name: str, progress: Progress) -> Done:
    """A table, or a sentence where it could not be made."""
    begun = time.process_time()
    try:
        result: Table | str = make_table(name, progress)
    except ShakedownError as error:
        result = str(error)
    except Exception as error:  # a fault of ours in one table must not cost the others
        result = f"{type(error).__name__}: {error}"
    return name, result, time.process_time() - begun


def worked(name: str) -> dict[str, Any]:
    """In a process of the engine: a table as plain data."""
    begun = time.process_time()
    made = make_table(name, SILENT)
    figures = [vars(figure) for figure in made.figures]
    table = {**vars(made), "rows": list(made.rows), "figures": figures}
    return {"name": name, "table": table, "seconds": time.process_time() - begun}


def _read(answer: dict[str, Any]) -> Done:
    """What :func:`worked` gave, as it was."""
    raw = answer["table"]
    rows = [Row(*row) for row in raw["rows"]]
    figures = [Figure(**figure) for figure in raw["figures"]]
    return answer["name"], Table(**{**raw, "rows": rows, "figures": figures}), answer["seconds"]


def line_shower() -> Callable[[str], None]:
    """One line that rewrites itself, on a terminal only."""
    if not sys.stderr.isatty():
        return lambda text: None

    def show(text: str) -> None:
        rewrite_line(sys.stderr, text[:160])

    return show
