"""What a command prints: tables, progress on a terminal, and JSON with stable keys."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.base.progress import Progress, Step


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", metavar="FILE", help="write the result as JSON; - for standard output alone"
    )


def write_json(target: str | None, payload: Any) -> bool:
    """Write the payload where --json asks; True if standard output now belongs to it."""
    if target is None:
        return False
    text = payload if isinstance(payload, str) else json.dumps(payload, indent=1, allow_nan=False)
    if target == "-":
        sys.stdout.write(text + "\n")
        return True
    Path(target).write_text(text + "\n", encoding="utf-8")
    return False


def plain(value: Any) -> Any:
    """Arrays, tuples and numbers of NumPy as JSON values; what is not a finite number becomes null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def as_words(value: Any) -> str:
    """A cell of a table for people: yes or no, numbers short, a dash for what is not known."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(as_words(v) for v in value) or "–"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns aligned for a terminal: numbers to the right, words to the left, a dash where there is none."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(c), *(len(r[i]) for r in cells)) if cells else len(c) for i, c in enumerate(columns)]
    numeric = [
        bool(rows) and all(isinstance(r[i], int | float | None) for r in rows) for i in range(len(columns))
    ]

    def line(values: Sequence[str]) -> str:
        parts = [v.rjust(w) if n else v.ljust(w) for v, w, n in zip(values, widths, numeric, strict=True)]
        return "  ".join(parts).rstrip()

    return "\n".join([line(list(columns)), line(["-" * w for w in widths]), *map(line, cells)])


def terminal_progress() -> Progress:
    """Progress as one line that rewrites itself, on a terminal only; standard output stays clean."""
    if not sys.stderr.isatty():
        return Progress()

    def show(step: Step) -> None:
        values = "  ".join(f"{k} {v:.4g}" for k, v in list(step.values.items())[:4])
        sys.stderr.write(f"\r\x1b[K{100 * step.fraction:3.0f} %  {step.message}  {values}"[:160])
        if step.fraction >= 1:
            sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()

    return Progress(on_step=show)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
