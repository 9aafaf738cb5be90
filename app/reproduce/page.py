"""The reproduced tables as a document: a summary of the verdicts, then each table with notes and figures."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from analysis import __version__
from app.dates import moment_text
from app.figures.curves import draw_curves
from app.report.blocks import Block, Document, Grid, Heading, Paragraph, Picture
from app.report.localised import as_it_stands, localised_block
from app.reproduce import Table
from app.reproduce.rows import COLUMNS, VERDICTS

DOCUMENTS = {
    "yuan1995": "Yuan 1995: periodic orbits and harmonic balance",
    "liu2018": "Liu, Fang, Wang, Xu 2018: B-spline weak form",
    "manikantan2020": "Manikantan et al. 2020: homotopy with a controller",
    "liu2019": "Liu, Chen, Chang 2019: energetic boundary functions",
    "banks1983": "Banks, Crowley 1983: stiffness of a beam",
    "real": "Public measurements: fitted to the training data, foretold on the test data",
}


def document(tables: Sequence[Table]) -> Document:
    """A page of the report."""
    blocks: list[Block] = [
        Paragraph(
            "Every table holds the printed numbers and ours, computed when this page was written. 'plain' is "
            "the published method as we implement it, 'ours' what the program does by default."
        ),
        *_summary(tables),
    ]
    for key in dict.fromkeys(made.name.partition("-")[0] for made in tables):
        blocks.append(Heading(DOCUMENTS.get(key, key)))
        for made in tables:
            if made.name.partition("-")[0] == key:
                blocks += _table(made)
    written = moment_text(datetime.now().astimezone().isoformat(timespec="minutes"))
    told = [localised_block(block, as_it_stands) for block in blocks]
    return Document("Published beside ours", f"Shakedown {__version__}, written {written}", told)


def counts(made: Table) -> dict[str, int]:
    """Rows of a table by the phrase that their verdict begins with."""
    verdicts = [row.verdict for row in made.rows]
    found = {phrase: sum(v.startswith(phrase) for v in verdicts) for phrase in VERDICTS}
    return {phrase: count for phrase, count in found.items() if count}


def shown(made: Table) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows without the columns that are empty throughout."""
    filled = [i for i in range(len(COLUMNS)) if any(row[i] not in (None, "") for row in made.rows)]
    rows = [[row[i] for i in filled] for row in made.rows]
    return [COLUMNS[i] for i in filled], rows


def _summary(tables: Sequence[Table]) -> list[Block]:
    if not any(counts(made) for made in tables):
        return []
    phrases = [p for p in VERDICTS if any(p in counts(made) for made in tables)]
    rows = [[made.name, *(str(counts(made).get(p, "")) for p in phrases)] for made in tables]
    total = ["all", *(str(sum(counts(made).get(p, 0) for made in tables)) for p in phrases)]
    return [Grid(["table", *phrases], [*rows, total], numeric=range(1, len(phrases) + 1))]


def _table(made: Table) -> list[Block]:
    columns, rows = shown(made)
    numeric = [i for i in range(len(columns)) if all(isinstance(r[i], int | float | None) for r in rows)]
    blocks: list[Block] = [
        Heading(made.title, 3),
        Grid(columns, [[_cell(v) for v in row] for row in rows], numeric=numeric),
        *(Paragraph(note, "small") for note in made.notes),
    ]
    for start in range(0, len(made.figures), 2):
        pair = made.figures[start : start + 2]
        blocks.append(Picture(lambda figure, pair=pair: draw_curves(figure, pair), height=2.6))  # type: ignore[misc]
    return blocks


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
