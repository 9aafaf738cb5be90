"""The report: one self-contained HTML file and a PDF with everything needed to repeat the work."""

from __future__ import annotations

import base64
import html
import json
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.identification import Identification, with_error
from analysis.progress import SILENT, Progress
from analysis.record import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKAGES = ("shakedown-lab", "numpy", "scipy", "numba", "h5py")
INK, MODEL, GREY = "#0072b2", "#d55e00", "#4b5563"
STYLE = """
body { font-family: sans-serif; color: #18212c; margin: 2em auto; max-width: 60em; line-height: 1.45; }
h1 { font-size: 1.7em; } h2 { font-size: 1.25em; margin-top: 1.6em; color: #0a6c96; }
table { border-collapse: collapse; margin: 0.6em 0; } td, th { padding: 0.25em 1em 0.25em 0; text-align: left;
border-bottom: 1px solid #d5dce4; } th { color: #586474; } img { max-width: 100%; }
.note { color: #9a6200; } .small { color: #586474; font-size: 0.9em; }
pre { background: #f3f5f8; padding: 0.8em; }
"""


@dataclass(frozen=True, eq=False)
class Material:
    """What the report is made of. Whatever is missing is left out."""

    title: str
    record: Record
    record_name: str
    author: str = ""
    notes: str = ""
    embedding: Any = None  # channel, delay (samples), dimension
    orbits: tuple[Any, list[Any]] | None = None  # space, orbits
    results: list[Identification] = field(default_factory=list)
    comparison: Any = None  # prediction, sections, exponents, verdict


@dataclass(frozen=True)
class Part:
    """One section: a heading, paragraphs or tables as HTML, and figures."""

    heading: str
    body: str
    figures: tuple[Callable[[], Figure], ...] = ()


def write_report(
    material: Material, folder: Path, name: str, progress: Progress = SILENT
) -> tuple[Path, Path]:
    """Write ``name.html`` and ``name.pdf`` into the folder; their paths."""
    from matplotlib.backends.backend_pdf import PdfPages

    folder.mkdir(parents=True, exist_ok=True)
    parts = [
        p
        for p in (_record(material), _motion(material), _model(material), _check(material), _again(material))
        if p
    ]
    page, pdf = folder / f"{name}.html", folder / f"{name}.pdf"
    chunks = [_head(material)]
    with PdfPages(pdf) as pages:
        pages.savefig(_cover(material))
        for number, part in enumerate(parts):
            progress.report(number / len(parts), part.heading)
            chunks.append(f"<h2>{html.escape(part.heading)}</h2>{part.body}")
            for make in part.figures:
                figure = make()
                pages.savefig(figure)
                chunks.append(_embedded(figure))
    chunks.append("</body></html>")
    page.write_text("\n".join(chunks), encoding="utf-8")
    return page, pdf


def _head(m: Material) -> str:
    by = f"{html.escape(m.author)}, " if m.author else ""
    today = datetime.now().astimezone().strftime("%d %B %Y, %H:%M")
    notes = f"<p>{html.escape(m.notes)}</p>" if m.notes else ""
    return (
        f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>{html.escape(m.title)}</title>'
        f"<style>{STYLE}</style></head><body>"
        f'<h1>{html.escape(m.title)}</h1><p class="small">{by}{today}</p>{notes}'
    )


# -- sections


def _record(m: Material) -> Part:
    r = m.record
    drive = r.excitation
    rows = [
        ("Recording", m.record_name),
        ("Started", r.start or "unknown"),
        ("Rig", str(r.metadata.get("rig", "unknown"))),
        ("Length", f"{r.duration:.4g} s, {len(r)} samples at {r.rate:g} Hz"),
        ("Channels", ", ".join(f"{n} [{c.unit or '–'}]" for n, c in r.channels.items())),
        ("Drive", "unknown" if drive is None else f"{drive.waveform}, {drive.frequency:g} Hz"),
        ("Lost samples", str(max((sum(b - a for a, b in c.gaps) for c in r.channels.values()), default=0))),
    ]  # fmt: skip
    return Part("The recording", _table(rows), (lambda: _signals(r),))


def _motion(m: Material) -> Part | None:
    if m.embedding is None and m.orbits is None:
        return None
    body, figures = "", []
    if m.embedding is not None:
        e, dt = m.embedding, m.record.dt
        body += (
            f"<p>The channel {html.escape(e.channel)} was unfolded with a delay of "
            f"{1e3 * e.delay * dt:.4g} ms ({e.delay} samples) in {e.dimension} dimensions.</p>"
        )
    if m.orbits is not None and m.orbits[1]:
        space, orbits = m.orbits
        rows = [("Period", "Closure", "Returns", "Largest multiplier")]
        for o in orbits[:40]:
            sizes = np.abs(o.multipliers)
            largest = f"{np.nanmax(sizes):.4g}" if len(sizes) and np.isfinite(sizes).any() else "–"
            period = (
                f"{o.multiple} drive periods" if o.multiple is not None else f"{o.period * m.record.dt:.4g} s"
            )
            rows.append((period, f"{100 * o.closure:.2g} %", str(o.count), largest))
        body += f"<p>{len(orbits)} periodic orbits were extracted from close returns.</p>"
        body += _table(rows, head=True)
        figures.append(lambda: _gallery(space, orbits))
    return Part("The motion", body, tuple(figures))


def _model(m: Material) -> Part | None:
    if not m.results:
        return None
    body = ""
    result = m.results[-1]
    if result.model_text:
        body += _mathematics(result.model_text)
    for number, r in enumerate(m.results, 1):
        head = f"{html.escape(r.model)}, method {html.escape(r.method)}"
        state = "converged" if r.converged else "did <b>not</b> converge"
        rows = [("Parameter", "Value", "95 % from", "to", "Unit")]
        rows += [
            (n, with_error(e), f"{e.lower:.6g}", f"{e.upper:.6g}", e.unit or "–")
            for n, e in r.parameters.items()
        ]
        body += f"<p>Fit {number}: {head}; {state} after {r.iterations} steps.</p>{_table(rows, head=True)}"
        for text in (*r.undetermined, *r.warnings):
            body += f'<p class="note">{html.escape(text)}</p>'
        if r.references:
            body += f'<p class="small">{"; ".join(html.escape(t) for t in r.references)}</p>'
    return Part("The model", body)


def _check(m: Material) -> Part | None:
    c = m.comparison
    if c is None:
        return None
    p = c.prediction
    rows = [(f"rms error of {n}", f"{100 * e:.3g} %") for n, e in zip(p.names, p.error, strict=True)]
    far = "beyond each stretch" if np.isinf(p.horizon) else f"{p.horizon:.3g} s"
    rows.append(("followed for", far))
    rows += [
        (f"exponent {i}", f"{v:.4g} ± {s:.1g} per s")
        for i, (v, s) in enumerate(zip(c.exponents, c.exponent_errors, strict=True), 1)
    ]
    body = f"<p><b>{html.escape(c.verdict)}</b></p>{_table(rows)}"
    return Part("Model beside measurement", body, (lambda: _response(p), lambda: _sections(c)))


def _again(m: Material) -> Part:
    """What is needed to do it again: files, versions, options, and the results as data."""
    rows = [(name, _version(name)) for name in PACKAGES]
    rows += [("Python", platform.python_version()), ("System", platform.platform())]
    body = _table(rows)
    for r in m.results:
        method, options = html.escape(r.method), html.escape(json.dumps(r.options))
        body += f"<p>Method {method} with options {options}</p><pre>{html.escape(r.model_text)}</pre>"
        packed = base64.b64encode(r.to_json().encode()).decode()
        link = f"data:application/json;base64,{packed}"
        body += f'<p><a download="result.json" href="{link}">This result as JSON</a></p>'
    return Part("To repeat it", body)


# -- pieces


def _table(rows: list[Any], head: bool = False) -> str:
    def line(row: Any, tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in row) + "</tr>"

    lines = [line(row, "th" if head and i == 0 else "td") for i, row in enumerate(rows)]
    return f"<table>{''.join(lines)}</table>"


def _mathematics(text: str) -> str:
    from analysis.errors import ModelError
    from analysis.model import Model
    from app.mathematics import picture_of

    try:
        picture = picture_of(Model.from_toml(text).latex_equations(), "#18212c", 16)
    except ModelError:
        return ""
    from struct import unpack

    width = unpack(">I", picture[16:20])[0] // 2  # drawn at twice its size, for sharp print
    return f'<p><img width="{width}" src="data:image/png;base64,{base64.b64encode(picture).decode()}"></p>'


def _embedded(figure: Figure) -> str:
    target = BytesIO()
    figure.savefig(target, format="png", dpi=130)
    return (
        f'<p><img width="760" src="data:image/png;base64,{base64.b64encode(target.getvalue()).decode()}"></p>'
    )


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError

    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


# -- figures


def _figure(width: float = 8.3, height: float = 4.6) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _cover(m: Material) -> Figure:
    figure = _figure(8.3, 11.0)
    figure.text(0.1, 0.9, m.title, fontsize=20, weight="bold")
    figure.text(0.1, 0.87, f"{m.author}   {datetime.now():%d %B %Y}", fontsize=10, color=GREY)
    lines = [f"Recording: {m.record_name}, {m.record.duration:.4g} s at {m.record.rate:g} Hz"]
    for r in m.results[-1:]:
        lines += ["", f"{r.model}, method {r.method}" + ("" if r.converged else " (did not converge)")]
        lines += [f"    {n} = {with_error(e)} {e.unit}" for n, e in r.parameters.items()]
    if m.comparison is not None:
        lines += ["", m.comparison.verdict]
    figure.text(0.1, 0.82, "\n".join(lines), fontsize=11, va="top", linespacing=1.6, wrap=True)
    return figure


def _signals(r: Record) -> Figure:
    names = list(r.names)[:4]
    figure = _figure(8.3, 1.3 * len(names) + 1)
    rows = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    count = min(len(r), max(int(3 * r.rate), 2000))
    for axis, name in zip(rows, names, strict=True):
        axis.plot(r.times[:count], r[name][:count], lw=0.8, color=INK)
        axis.set_ylabel(f"{name} [{r.channels[name].unit or '–'}]")
    rows[-1].set_xlabel("time [s]")
    figure.suptitle("Beginning of the recording", fontsize=10)
    return figure


def _gallery(space: Any, orbits: list[Any]) -> Figure:
    shown = orbits[:15]
    rows = -(-len(shown) // 5)
    figure = _figure(8.3, 1.8 * rows + 0.4)
    axes = figure.subplots(rows, 5, squeeze=False).ravel()
    for axis in axes:
        axis.axis("off")
    for axis, o in zip(axes, shown, strict=False):
        piece = space.points[:, o.segment]
        axis.plot(piece[0], piece[1], lw=0.9, color=INK)
        axis.set_title(f"period {o.multiple}" if o.multiple is not None else "", fontsize=8)
    figure.suptitle(f"Orbits: {space.labels[1]} over {space.labels[0]}", fontsize=10)
    return figure


def _response(p: Any) -> Figure:
    figure = _figure(8.3, 1.6 * len(p.names) + 1)
    rows = figure.subplots(len(p.names), 1, sharex=True, squeeze=False)[:, 0]
    count = min(len(p.times), 4 * len(p.since))
    broken = p.restarted.copy()
    broken[:, p.starts] = np.nan
    for i, axis in enumerate(rows):
        axis.plot(p.times[:count], p.measured[i, :count], lw=1.6, color=GREY, label="measured")
        axis.plot(p.times[:count], broken[i, :count], lw=0.8, color=MODEL, label="model")
        axis.set_ylabel(p.names[i])
    rows[0].legend(fontsize=8, loc="upper right")
    rows[-1].set_xlabel("time [s]")
    figure.suptitle("Response, restarted from the measurement", fontsize=10)
    return figure


def _sections(c: Any) -> Figure:
    p = c.prediction
    figure = _figure()
    left, right = figure.subplots(1, 2)
    for i, name in enumerate(p.names):
        left.plot(p.since, 100 * p.growth[i], lw=1, label=name)
    left.set(xlabel="time since restart [s]", ylabel="error [% of spread]")
    left.legend(fontsize=8)
    second = 1 if len(p.names) > 1 else 0
    for points, colour, words in ((c.measured_section, GREY, "measured"), (c.model_section, MODEL, "model")):
        right.plot(points[0], points[second], ".", ms=3, color=colour, label=words)
    right.set(xlabel=p.names[0], ylabel=p.names[second], title="once a period of the drive")
    right.legend(fontsize=8)
    return figure
