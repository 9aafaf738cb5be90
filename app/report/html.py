"""A report as one HTML file that needs nothing else: figures and formulae are pictures inside it."""

from __future__ import annotations

import base64
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from app.report.blocks import Block, Document, Formulae, Grid, Heading, Listing, Paragraph, Picture
from app.words import unbroken

# Pictures are PNG, sharp on fine screens: the window's own preview does not draw every SVG of matplotlib.
DOTS = 192

STYLE = """
:root { --ink:#1d2733; --soft:#5c6b7a; --line:#d9e0e7; --paper:#fff; --good:#0b6b50; --warn:#9a4a00; }
* { box-sizing:border-box }
body { margin:0; background:#eef1f4; color:var(--ink);
  font:16px/1.55 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif }
main { max-width:60rem; margin:2rem auto; padding:3rem 3.5rem; background:var(--paper); border-radius:10px;
  box-shadow:0 1px 8px rgba(20,40,60,.12) }
h1 { font-size:2rem; line-height:1.2; margin:0 0 .3rem } h2 { font-size:1.35rem; margin:2.4rem 0 .6rem;
  padding-top:.8rem; border-top:1px solid var(--line) } h3 { font-size:1.05rem; margin:1.6rem 0 .4rem }
.subtitle { color:var(--soft); margin:0 0 1.5rem } .small { color:var(--soft); font-size:.88rem }
.good { border-left:4px solid var(--good); padding:.4rem .9rem; background:#eef8f4 }
.warning { border-left:4px solid var(--warn); padding:.4rem .9rem; background:#fdf4ea }
.table { overflow-x:auto; margin:1rem 0 }
table { border-collapse:collapse; font-variant-numeric:tabular-nums; font-size:.94rem }
caption { text-align:left; color:var(--soft); padding-bottom:.3rem; font-size:.88rem }
th,td { padding:.32rem 1.1rem .32rem 0; text-align:left; border-bottom:1px solid var(--line);
  overflow-wrap:anywhere }
th { border-bottom:2px solid var(--ink); font-weight:600; white-space:nowrap } .n { text-align:right }
figure { margin:1.2rem 0 } figure img { max-width:100%; height:auto }
figcaption { color:var(--soft); font-size:.88rem }
.formula { margin:.8rem 0 } .formula p { margin:.35rem 0 } .formula img { max-width:100%; height:auto }
pre { background:#f4f6f8; padding:1rem; border-radius:6px; overflow-x:auto;
  font:13px/1.45 ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace }
@media print { body { background:#fff } main { box-shadow:none; margin:0; padding:0; max-width:none }
  figure,tr,.formula { break-inside:avoid } h2,h3 { break-after:avoid } }
@media (max-width:48rem) { main { margin:0; padding:1.2rem; border-radius:0 } }
"""


def write_html(document: Document, path: Path) -> None:
    body = "\n".join(_block(b) for b in document.blocks)
    subtitle = f'<p class="subtitle">{escape(document.subtitle)}</p>' if document.subtitle else ""
    path.write_text(
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(document.title)}</title>\n<style>{STYLE}</style></head>\n<body><main>\n"
        f"{_logo(document.logo)}<h1>{escape(document.title)}</h1>\n{subtitle}\n{body}\n</main></body></html>\n",
        encoding="utf-8",
    )


def _logo(data: bytes) -> str:
    """The picture at most 220 wide and 70 high, at the right above the title."""
    if not data:
        return ""
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))  # of the PNG's header
    shown = round(min(220.0, 70.0 * width / max(height, 1)))
    address = "data:image/png;base64," + base64.b64encode(data).decode("ascii")
    return f'<p align="right"><img width="{shown}" src="{address}" alt="logo"></p>\n'


def _block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Paragraph(text, kind):
            words = escape(unbroken(text)).replace("\n", "<br>")
            return f'<p class="{kind}">{words}</p>' if kind else f"<p>{words}</p>"
        case Formulae(lines):
            return '<div class="formula">' + "".join(_formula(line) for line in lines) + "</div>"
        case Grid():
            return _table(block)
        case Picture():
            return _figure(block)
        case Listing():
            pass
    return f"<pre>{escape(block.text)}</pre>"


def _table(grid: Grid) -> str:
    def cells(row: Any, tag: str) -> str:
        return "".join(
            f'<{tag} class="n">{escape(str(c))}</{tag}>'
            if i in grid.numeric
            else f"<{tag}>{escape(str(c))}</{tag}>"
            for i, c in enumerate(row)
        )

    caption = f"<caption>{escape(grid.caption)}</caption>" if grid.caption else ""
    rows = "\n".join(f"<tr>{cells(row, 'td')}</tr>" for row in grid.rows)
    head = f"<thead><tr>{cells(grid.columns, 'th')}</tr></thead>"
    return f'<div class="table"><table cellpadding="4">{caption}{head}\n<tbody>{rows}</tbody></table></div>'


def _figure(picture: Picture) -> str:
    from app.figures.style import new_figure, styled

    figure = new_figure(picture.width, picture.height)
    with styled():
        picture.draw(figure)
    image = (
        f'<img width="{round(96 * picture.width)}" src="{_png(figure)[0]}" alt="{escape(picture.caption)}">'
    )
    return f"<figure>{image}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def _formula(line: str) -> str:
    from app.figures.style import new_figure

    figure = new_figure(12, 0.4, layout=None)
    figure.text(0, 0, f"${line}$", fontsize=13, color="#1d2733")
    address, width = _png(figure, tight=True)
    return f'<p><img width="{width}" src="{address}" alt="{escape(line)}"></p>'


def _png(figure: Any, tight: bool = False) -> tuple[str, int]:
    """A figure as an address that holds it, and its width on a page of 96 dots an inch."""
    from app.figures.style import styled

    target = BytesIO()
    with styled():
        if tight:
            figure.savefig(target, format="png", dpi=DOTS, bbox_inches="tight", pad_inches=0.03)
        else:  # savefig would draw everything twice, first for the layout alone
            figure.set_dpi(DOTS)
            figure.canvas.print_png(target)
    data = target.getvalue()
    width = int.from_bytes(data[16:20], "big")  # of the header
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii"), round(width * 96 / DOTS)
