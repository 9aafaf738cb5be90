"""The content of a report: findings put into words, tables, formulae and figures."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis import Estimate, Identification, ShakedownError, __version__, interval_ends, percent, with_error
from app.dates import moment_text
from app.numbers import localised
from app.output import as_words
from app.report.blocks import Block, Document, Formulae, Grid, Heading, Listing, Paragraph, Picture
from app.report.findings import PARTS, Findings, Measured, OrbitsFound, Study
from app.session import fingerprint
from app.words import with_minus

if TYPE_CHECKING:
    from analysis import PeriodicOrbit, Record

LIBRARIES = ("numpy", "scipy", "numba", "matplotlib", "h5py")


def document(findings: Findings) -> Document:
    """The report of these findings."""
    from app.report.localised import localised_block

    now = datetime.now().astimezone()
    made = f"{moment_text(now.isoformat())} (UTC{now:%z})"
    findings, missing = _without(findings)
    parts: list[Block] = [*_summary(findings)]
    if missing:
        parts.append(Paragraph(f"Left out of this report: {', '.join(missing)}.", "small"))
    for study in findings.studies:
        parts += _study(study, several=len(findings.studies) > 1)
    if "recording" not in findings.left_out:
        for measured in findings.recordings:
            parts += _recording(measured)
    parts += _embedding(findings)
    for found in findings.orbits:
        parts += _orbits(found, several=len(findings.orbits) > 1)
    if "again" not in findings.left_out:
        parts += _provenance(findings)
    by = f"{findings.author}, " if findings.author else ""
    subtitle = f"{by}Shakedown {__version__}, written {made}"
    return Document(
        findings.title, subtitle, [localised_block(_with_minus(part)) for part in parts], findings.logo
    )


def _with_minus(block: Block) -> Block:
    """Numbers in words and tables with the true minus sign; what is typed again stays as it is."""
    if getattr(block, "verbatim", False):
        return block
    if isinstance(block, Paragraph):
        return replace(block, text=with_minus(block.text))
    if isinstance(block, Grid):
        return replace(block, rows=[[with_minus(str(cell)) for cell in row] for row in block.rows])
    return block


def _without(findings: Findings) -> tuple[Findings, list[str]]:
    """The findings without what is to be left out, and words for what was there of that."""
    studies, there = list(findings.studies), set()
    if "fits" in findings.left_out and studies:
        studies, there = [], {"fits"}
    if "earlier" in findings.left_out and len(studies) > 1:
        studies, there = studies[-1:], there | {"earlier"}
    if "checks" in findings.left_out and any(study.validation is not None for study in studies):
        studies, there = [replace(study, validation=None) for study in studies], there | {"checks"}
    there |= {"recording", "again"} & findings.left_out
    there |= {key for key in ("embedding", "orbits") if key in findings.left_out and getattr(findings, key)}
    kept = replace(
        findings,
        studies=studies,
        orbits=() if "orbits" in findings.left_out else findings.orbits,
        embedding=None if "embedding" in findings.left_out else findings.embedding,
    )
    return kept, [words for key, words in PARTS.items() if key in there]


def _summary(findings: Findings) -> Iterator[Block]:
    if findings.notes:
        yield Paragraph(findings.notes, verbatim=True)
    for study in findings.studies:
        result = study.result
        state = "converged" if result.converged else "did NOT converge"
        yield Paragraph(
            f"{len(result.parameters)} parameters of “{result.model}” were identified by the method "
            f"{result.method}, which {state} after {result.iterations} iterations.",
            "" if result.converged else "warning",
        )
        if result.verdict:
            yield Paragraph(f"Verdict: {result.headline}.", "good" if result.verdict == "fits" else "warning")
            for sentence in result.reasons:
                yield Paragraph(sentence)
        if study.validation is not None:
            yield Paragraph(study.validation.verdict, "good" if study.validation.passed else "warning")
        covered = _covered(study)
        if covered:
            yield Paragraph(covered)


def _covered(study: Study) -> str:
    known = [n for n in study.truth if n in study.result.parameters]
    if not known:
        return ""
    inside = [n for n in known if study.result.parameters[n].covers(study.truth[n])]
    return f"The true values are known here: {len(inside)} of {len(known)} lie inside their 95 % interval."


def _study(study: Study, several: bool) -> Iterator[Block]:
    result = study.result
    yield Heading(f"{result.model}: identification by {result.method}" if several else "Identification")
    yield from _mathematics(result)
    yield _parameter_table(study)
    for sentence in (*result.undetermined, *result.warnings):
        yield Paragraph(sentence, "warning")
    if result.chosen:
        yield Paragraph(f"Method chosen: {result.chosen}", "small")
    if result.residual.figures():
        figures = result.residual.figures().items()
        text = "; ".join(
            f"{name} {value:.4g}" if abs(value) < 1e4 else f"{name} {value:.0f}" for name, value in figures
        )
        yield Paragraph(f"Residual: {text}.", "small")
    yield Picture(
        lambda figure: _identification_figure(figure, study),
        "Left: the search. Right: 95 % intervals of the parameters, each relative to its estimate.",
        height=max(2.4, 0.33 * len(result.listed) + 0.9),
    )
    if result.curves:
        yield Picture(
            lambda figure: _curves_figure(figure, result), "Identified functions with 95 % bands.", height=2.8
        )
        yield from map(Paragraph, result.formulas)
    yield from _correlations(result)
    yield from _check(study)


def _mathematics(result: Identification) -> Iterator[Block]:
    from analysis import Model

    try:
        yield Formulae(Model.from_toml(result.model_text).latex_equations())
    except ShakedownError:
        return  # not every method has equations of motion: a beam has its own description below


def _parameter_table(study: Study) -> Grid:
    result, truth = study.result, study.truth
    columns = ["parameter", "value ± standard error", "95 % interval", "unit"]
    rows = []
    for name, e in result.listed.items():
        row = [name, with_error(e), _interval(e), e.unit or "–"]
        if truth:
            row += _against(e, truth.get(name))
        rows.append(row)
    if truth:
        columns += ["truth", "error", "error / std. error"]
    return Grid(columns, rows, numeric=(1, 2, *((4, 5, 6) if truth else ())))


def _interval(e: Estimate) -> str:
    return " … ".join(interval_ends(e)) if math.isfinite(e.lower) else "–"


def _against(e: Estimate, truth: float | None) -> list[str]:
    if truth is None:
        return ["–", "–", "–"]
    off = e.value - truth
    share = f"{100 * off / abs(truth):+.2g} %" if truth else f"{off:+.2g}"
    return [f"{truth:.5g}", share, f"{off / e.stderr:+.1f}" if e.stderr > 0 else "–"]


def _correlations(result: Identification) -> Iterator[Block]:
    """Pairs of parameters that the data can hardly tell apart."""
    if len(result.covariance) != len(result.parameters):
        return
    covariance = np.array(result.covariance)
    scale = np.sqrt(np.diag(covariance))
    if not np.all(np.isfinite(scale)) or np.any(scale == 0):
        return
    names, r = list(result.parameters), covariance / np.outer(scale, scale)
    strong = [(abs(r[i, j]), i, j) for i in range(len(names)) for j in range(i) if abs(r[i, j]) > 0.9]
    if strong:
        told = "; ".join(
            f"{names[j]} and {names[i]} ({r[i, j]:+.3f})" for _, i, j in sorted(strong, reverse=True)[:6]
        )
        yield Paragraph(f"Strongly correlated estimates: {told}.", "small")


def _check(study: Study) -> Iterator[Block]:
    """The validation: its verdict, each check in words with its table, then the figures, three to a row."""
    from app.figures.validation import PER_ROW, draw_panels

    if study.validation is None:
        return
    yield Heading("Validation", 3)
    yield Paragraph(study.validation.verdict, "good" if study.validation.passed else "warning")
    for check in study.validation.checks:
        tone = "warning" if check.status in ("doubtful", "failed") else ""
        yield Paragraph(f"{check.title} ({check.status}). {check.sentence}", tone)
        if check.rows:
            names = list(check.rows[0])
            cells = [[as_words(row[n]) for n in names] for row in check.rows]
            yield Grid([n.replace("_", " ") for n in names], cells, numeric=range(len(names)))
    panels = [(c.title, p) for c in study.validation.checks for p in c.panels[:PER_ROW]]
    for first in range(0, len(panels), PER_ROW):
        row = panels[first : first + PER_ROW]
        shown = ", ".join(dict.fromkeys(title for title, _ in row))
        caption = f"{shown}: measured in blue, the model in orange."
        yield Picture(partial(draw_panels, panels=[panel for _, panel in row]), caption, height=2.3)


def _recording(measured: Measured) -> Iterator[Block]:
    from app.figures.motion import draw_record

    record = measured.record
    yield Heading(f"Recording {_shown(measured.name)}")
    if measured.changed:
        yield Paragraph("This file has changed since the session listed it.", "warning")
    drive = record.excitation
    meta = dict(record.metadata)
    facts = [
        [
            "length",
            localised(f"{record.duration:.6g} s, {len(record)} samples at {record.rate:g} Hz"),
        ],
        ["started", f"{moment_text(record.start)} ({record.start})" if record.start else "unknown"],
        ["rig", str(meta.get("rig_title") or meta.get("rig_name") or meta.get("rig") or "–")],
    ]
    if drive is not None:
        size = "" if drive.amplitude is None else f" {drive.amplitude:g}"
        phase = "" if drive.phase is None else f", phase {drive.phase:.4f} rad at the first sample"
        off = "" if drive.until is None else f", switched off after {drive.until:.4g} s"
        facts.append(["drive", localised(f"{drive.waveform}{size} at {drive.frequency:g} Hz{phase}{off}")])
    if meta.get("notes"):
        facts.append(["notes", str(meta["notes"])])
    yield Grid(["", ""], facts, verbatim=True)
    yield Grid(
        ["channel", "unit", "mean", "rms", "lowest", "highest", "lost", "clipped"],
        [_channel_row(record, name) for name in record.names],
        numeric=range(2, 8),
    )
    if len(record) > 50:
        name = record.names[0]
        yield Picture(
            lambda figure: draw_record(figure, record, name),
            f"The channel {name} of this recording.",
            height=4.2,
        )


def _channel_row(record: Record, name: str) -> list[str]:
    channel = record.channels[name]
    good = channel.data[channel.valid()]
    lost, clipped = (sum(b - a for a, b in spans) for spans in (channel.gaps, channel.clipped))
    numbers = (good.mean(), good.std(), good.min(), good.max()) if len(good) else (math.nan,) * 4
    return [name, channel.unit or "–", *(f"{v:.4g}" for v in numbers), str(lost), str(clipped)]


def _embedding(findings: Findings) -> Iterator[Block]:
    embedding = findings.embedding
    if embedding is not None and findings.recordings:
        delay = 1e3 * embedding.delay * findings.recordings[0].record.dt
        yield Paragraph(
            f"The channel {embedding.channel} was unfolded in {embedding.dimension} dimensions with a delay "
            f"of {delay:.4g} ms ({embedding.delay} samples)."
        )


def _orbits(found: OrbitsFound, several: bool) -> Iterator[Block]:
    from app.figures.gallery import PER_ROW, draw_gallery

    yield Heading(f"Periodic orbits in {_shown(found.recording)}" if several else "Periodic orbits")
    yield Paragraph(
        f"{len(found.orbits)} distinct periodic orbits were found from close returns of the motion. "
        "They are the skeleton of the chaotic motion, and each is a short stretch of measured data."
    )
    for message in found.messages:
        yield Paragraph(message, "small")
    shown = _shortest(found.orbits, 2 * PER_ROW)
    if not shown:
        return
    rows = -(-len(shown) // PER_ROW)
    yield Picture(
        lambda figure: draw_gallery(figure, found.space.points, shown, found.space.labels),
        f"Axes: {found.space.labels[0]} and {found.space.labels[1]}.",
        height=1.75 * rows + 0.2,
    )
    yield Grid(
        ["period", "first sample", "closure", "seen", "multipliers"],
        [
            [
                str(o.multiple or f"{o.period:.2f}"),
                str(o.start),
                percent(o.closure),
                str(o.count),
                "; ".join(_complex(m) for m in o.multipliers) or "–",
            ]
            for o in shown
        ],
        numeric=(0, 1, 2, 3),
    )


def _shortest(orbits: Sequence[PeriodicOrbit], count: int) -> list[PeriodicOrbit]:
    """The closest orbit of each period first, then the others, up to a number."""
    by_period: dict[float, list[PeriodicOrbit]] = {}
    for orbit in orbits:
        by_period.setdefault(orbit.period, []).append(orbit)
    ranked = [(rank, o) for group in by_period.values() for rank, o in enumerate(group)]
    ranked.sort(key=lambda pair: (pair[0], pair[1].period))
    return sorted((o for _, o in ranked[:count]), key=lambda o: (o.period, o.closure))


def _complex(value: complex) -> str:
    return (
        f"{value.real:.3g}" if abs(value.imag) < 1e-9 * abs(value) else f"{value.real:.3g} {value.imag:+.3g}i"
    )


def _provenance(findings: Findings) -> Iterator[Block]:
    yield Heading("To run it again")
    libraries = ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)
    rows = [
        ["program", f"Shakedown {__version__}"],
        ["libraries", f"Python {platform.python_version()}, {libraries}"],
        ["machine", f"{platform.system()} {platform.machine()}"],
    ]
    if findings.created:
        rows.append(["session begun", moment_text(findings.created)])
    for measured in findings.recordings:
        rows.append([f"SHA-256 of {_shown(measured.name)}", _fingerprint(measured)])
        seed = measured.record.metadata.get("seed")
        if seed is not None:
            rows.append([f"seed of {_shown(measured.name)}", str(seed)])
    yield Grid(["", ""], rows, verbatim=True)
    for study in findings.studies:
        yield Heading(f"{study.result.model}, method {study.result.method}", 3)
        yield Paragraph("Options", "small")
        yield Listing(json.dumps(study.result.options, default=str))
        yield Paragraph("Model", "small")
        yield Listing(study.result.model_text or "(not kept)")
    references = _unique(r for study in findings.studies for r in study.result.references)
    if references:
        yield Heading("References", 3)
        for reference in references:
            yield Paragraph(reference, "small", verbatim=True)


def _shown(file: str) -> str:
    """A file without its folder, which is nobody's business in a report that is mailed."""
    return Path(file).name


def _fingerprint(measured: Measured) -> str:
    if measured.sha256 or measured.path is None:
        return measured.sha256 or "no file"
    try:
        return fingerprint(measured.path)
    except OSError:
        return "the file is gone"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "?"


def _unique(items: Iterator[str]) -> Sequence[str]:
    return list(dict.fromkeys(items))


def _identification_figure(figure: object, study: Study) -> None:
    from app.figures.identification import draw_identification

    draw_identification(figure, study.result, study.truth)


def _curves_figure(figure: object, result: Identification) -> None:
    from app.figures.identification import draw_curves

    draw_curves(figure, result)
