"""One HTML page of a campaign that needs nothing else: trends, limits, distributions, models, failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from analysis import with_error
from app.campaign.summary import FitSummary, ParameterSummary, Summary, usable
from app.campaign.table import Row
from app.campaign.version import program_version
from app.report.blocks import Block, Document, Grid, Heading, Paragraph, Picture
from app.report.localised import localised_block, localised_but

MOST_NAMED = 12  # outliers and recordings that are named in one place
MOST_LISTED = 400  # rows of the table on the page; the whole of it is in the CSV
MOST_BINS = 40


def document(title: str, table: Sequence[Row], summary: Summary, unsuitable: dict[str, str]) -> Document:
    """The page of a campaign."""
    blocks: list[Block] = [*_head(table, summary, unsuitable)]
    if len({fit.label for fit in summary.fits}) > 1:
        blocks += _comparison(summary)
    for fit in summary.fits:
        blocks += _fit(fit)
    blocks += _failures(summary)
    blocks += _rows(table)
    names = [str(row["recording"]) for row in table] + [Path(path).stem for path in unsuitable]
    words = localised_but(names)
    told = [localised_block(block, words) for block in blocks]
    return Document(title or "Campaign", f"Shakedown {program_version()}", told)


def _head(table: Sequence[Row], summary: Summary, unsuitable: dict[str, str]) -> Iterator[Block]:
    recordings = len({row["recording"] for row in table})
    good = sum(usable(row) for row in table)
    yield Paragraph(
        f"{len(table)} fits of {recordings} recordings; {good} of them may be used.",
        "good" if good == len(table) else "warning",
    )
    if unsuitable:
        names = [Path(path).stem for path in unsuitable]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        words = f"Left out, for they do not fit the models: {', '.join(names[:MOST_NAMED])}{more}."
        yield Paragraph(words, "warning")
    for text in summary.sentences():
        yield Paragraph(text)
    if any(fit.parameters for fit in summary.fits):
        yield Paragraph(
            "A campaign in which nothing changes reports a change, and an outlier of a parameter, with a "
            "chance of 5 % at most. Where a series drifts, wanders or follows a number that the recordings "
            "carry, steps are found, too, and it is said beside them.",
            "small",
        )


def _comparison(summary: Summary) -> Iterator[Block]:
    yield Heading("Models compared")
    best = min((f.bic for f in summary.fits if f.bic is not None), default=None)
    rows = [
        [
            fit.label,
            f"{fit.usable} of {fit.fits}",
            "–" if fit.bic is None or best is None else f"{fit.bic - best:.4g}",
            "–" if fit.predicted is None else f"{fit.predicted:.4g}",
        ]
        for fit in summary.fits
    ]
    columns = ["model and method", "usable", "BIC above the best", "R² on data that were held out"]
    words = "BIC is summed over the recordings that all of them were fitted to; the lowest is best."
    yield Grid(columns, rows, words, numeric=(1, 2, 3))


def _fit(fit: FitSummary) -> Iterator[Block]:
    if not fit.parameters:
        return
    yield Heading(fit.label)
    yield _spreads(fit)
    for p in (p for p in fit.parameters if p.points):
        yield Picture(partial(_draw_trend, p=p), _caption(p), height=2.6)
    shown = [p for p in fit.parameters if len(p.points) >= 8]
    for first in range(0, len(shown), 3):
        some = shown[first : first + 3]
        names = ", ".join(p.name for p in some)
        yield Picture(partial(_draw_distributions, some=some), f"Distribution of {names}.", height=2.0)
    yield from _correlations(fit)
    yield from _bootstrap(fit)


def _spreads(fit: FitSummary) -> Grid:
    rows = []
    for p in fit.parameters:
        e = p.effects
        if e is None:
            rows.append([p.label, str(len(p.points)), "–", "–", "–", "–"])
            continue
        within = "–" if e.within is None else f"{e.within.value:.3g}"
        between = f"{e.between.value:.3g} ({e.between.lower:.2g} … {e.between.upper:.2g})"
        rows.append([p.label, str(e.specimens), with_error(e.mean), between, within, f"{e.error:.2g}"])
    columns = [
        "parameter",
        "specimens",
        "mean ± std. error",
        "spread between (95 %)",
        "within",
        "error of one",
    ]
    words = (
        "Standard deviations: between specimens, between recordings of one specimen beyond their errors, and "
        "the typical error of one estimate."
    )
    return Grid(columns, rows, words, numeric=(1, 2, 3, 4, 5))


def _caption(p: ParameterSummary) -> str:
    words = f"{p.name} over the recordings, with standard errors"
    if p.control is not None:
        words += "; between the dotted lines like specimens are expected"
    if p.changes:
        words += "; dashed: changes"
    return words + "."


def _draw_trend(figure: Any, p: ParameterSummary) -> None:
    axes = figure.add_subplot()
    x = np.arange(1, len(p.points) + 1)
    y = np.array([q.value for q in p.points])
    axes.errorbar(x, y, [q.error for q in p.points], fmt="o", ms=3, lw=0.8, color="#1f6fb4")
    if p.control is not None and p.effects is not None:
        place = {name: i for i, name in enumerate(p.specimens)}
        at = [place[q.specimen] for q in p.points]
        axes.plot(x, p.control.lower[at], ":", x, p.control.upper[at], ":", color="#5c6b7a", lw=1)
        axes.axhline(p.control.effects.mean.value, color="#5c6b7a", lw=0.8)
        for name in p.outliers[:MOST_NAMED]:
            own = [i for i, q in enumerate(p.points) if q.specimen == name]
            axes.plot(x[own], y[own], "o", ms=5, color="#c0392b")
            axes.annotate(name, (x[own[0]], y[own[0]]), fontsize=7, color="#c0392b")
    for change in p.changes:
        last = next(i for i, q in enumerate(p.points) if q is change.last)
        axes.axvline(x[last] + 0.5, ls="--", color="#d35400", lw=1)
    axes.set_xlabel("segment" if any(q.segment is not None for q in p.points) else "recording")
    axes.set_ylabel(p.label)


def _draw_distributions(figure: Any, some: Sequence[ParameterSummary]) -> None:
    for axes, p in zip(np.ravel(figure.subplots(1, len(some), squeeze=False)), some, strict=True):
        y = np.array([q.value for q in p.points])
        axes.hist(y, min(MOST_BINS, max(5, int(np.sqrt(len(y))))), color="#7fb0d9")
        axes.set_xlabel(p.label)
        axes.set_ylabel("fits")


def _correlations(fit: FitSummary) -> Iterator[Block]:
    """How parameters vary together from recording to recording."""
    by_name = {
        p.name: {(q.recording, q.segment): q.value for q in p.points} for p in fit.parameters if p.points
    }
    first = next(iter(by_name.values()), {})
    common = [key for key in first if all(key in values for values in by_name.values())]
    if len(by_name) < 2 or len(common) < 8:
        return
    data = np.array([[values[key] for key in common] for values in by_name.values()])
    varying = np.ptp(data, axis=1) > 0
    names = [n for n, good in zip(by_name, varying, strict=True) if good]
    if len(names) < 2:
        return
    r = np.corrcoef(data[varying])
    rows = [[name, *(f"{v:+.2f}" for v in line)] for name, line in zip(names, r, strict=True)]
    caption = f"Correlation of the estimates over {len(common)} recordings."
    yield Grid(["", *names], rows, caption, numeric=range(1, len(names) + 1))


def _bootstrap(fit: FitSummary) -> Iterator[Block]:
    rows = [
        [recording, name, with_error(e), f"{e.lower:.6g} … {e.upper:.6g}"]
        for recording, many in list(fit.draws.items())[:MOST_LISTED]
        for name, e in many.items()
    ]
    if rows:
        columns = ["recording", "parameter", "value ± scatter of the draws", "95 % interval"]
        yield Grid(columns, rows, "Bootstrap.", numeric=(2, 3))


def _failures(summary: Summary) -> Iterator[Block]:
    if not summary.causes:
        return
    yield Heading("Failures by cause")
    rows = []
    for words, names in sorted(summary.causes.items(), key=lambda item: -len(item[1])):
        own = list(dict.fromkeys(names))  # a recording may have many jobs
        more = f" and {len(own) - MOST_NAMED} more" if len(own) > MOST_NAMED else ""
        rows.append([str(len(names)), words, ", ".join(own[:MOST_NAMED]) + more])
    yield Grid(["jobs", "cause", "recordings"], rows, numeric=(0,))


def _rows(table: Sequence[Row]) -> Iterator[Block]:
    yield Heading("All fits")
    names = [p for p in (table[0] if table else ()) if f"{p} stderr" in table[0]]
    rows = [
        [
            row["recording"],
            row["model"],
            row["part"] if row["part"] == "whole" else f"{row['part']} {row['number'] + 1}",
            row.get("verdict") or ("–" if row["failure"] is None else "failed"),
            *(_value(row, name) for name in names),
        ]
        for row in table[:MOST_LISTED]
    ]
    more = (
        f"The first {MOST_LISTED} of {len(table)}; all are in table.csv." if len(table) > MOST_LISTED else ""
    )
    yield Grid(
        ["recording", "model", "part", "verdict", *names], rows, more, numeric=range(4, 4 + len(names))
    )


def _value(row: Row, name: str) -> str:
    from analysis import Estimate

    value, error = row.get(name), row.get(f"{name} stderr")
    if value is None:
        return "–"
    return with_error(Estimate.normal(value, error)) if error else f"{value:.6g}"
