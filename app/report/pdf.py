"""A report as PDF, set page by page with matplotlib: no other program or library is needed."""

from __future__ import annotations

import logging
import textwrap
from bisect import bisect_right
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

from app.figures.style import INK, SOFT, styled
from app.report.blocks import Block, Document, Formulae, Grid, Heading, Listing, Paragraph, Picture
from app.words import unbroken

WIDTH, HEIGHT = 8.27, 11.69  # A4, inches
LEFT, RIGHT, TOP, BOTTOM = 0.85, 0.85, 0.8, 0.85
TEXT = WIDTH - LEFT - RIGHT
POINT = 1 / 72
LEADING = 1.42
DOTS = 200  # an inch


def write_pdf(document: Document, path: Path) -> None:
    from matplotlib.backends.backend_pdf import PdfPages

    logging.getLogger("fontTools").setLevel(logging.ERROR)  # it worries about the dates of embedded fonts
    with styled(), PdfPages(path, metadata={"Title": document.title, "Creator": "Shakedown"}) as pages:
        setter = _Setter(pages, document.title)
        if document.logo:
            setter.logo(document.logo)
        setter.text(document.title, 20, weight="bold", below=0.06)
        if document.subtitle:
            setter.text(document.subtitle, 9.5, colour=SOFT, below=0.15)
        blocks = list(document.blocks)
        for block, following in zip(blocks, [*blocks[1:], None], strict=True):
            setter.set(block, following)
        setter.close()


class _Setter:
    """Places one block below the other and turns the page when it is full."""

    def __init__(self, pages: Any, title: str) -> None:
        self._pages, self._title, self._number = pages, title, 0
        self._page: Any = None
        self._turn()

    # -- pages

    def _turn(self) -> None:
        from matplotlib.figure import Figure

        self._finish()
        self._page = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        self._number += 1
        self._y = HEIGHT - TOP  # inches from below

    def _finish(self) -> None:
        from matplotlib.backends.backend_pdf import FigureCanvasPdf

        if self._page is None:
            return
        foot = {"fontsize": 7.5, "color": SOFT}
        self._page.text(LEFT / WIDTH, 0.45 / HEIGHT, self._title, **foot)
        self._page.text(1 - RIGHT / WIDTH, 0.45 / HEIGHT, str(self._number), ha="right", **foot)
        self._page.set_dpi(DOTS)  # of what is a picture of dots on it
        FigureCanvasPdf(self._page).print_pdf(self._pages)  # savefig would draw it twice, once for the layout

    def close(self) -> None:
        self._finish()

    def room(self, height: float) -> None:
        """Turn the page unless that much is left of it."""
        if self._y - height < BOTTOM and self._y < HEIGHT - TOP - 0.01:
            self._turn()

    # -- blocks

    def set(self, block: Block, following: Block | None) -> None:
        match block:
            case Heading(text, level):
                self._heading(text, level, following)
            case Paragraph(text, kind):
                self._paragraph(unbroken(text), kind)
            case Formulae(lines):
                self._formulae(lines)
            case Grid():
                self._grid(block)
            case Picture():
                self._picture(block)
            case Listing(text):
                self._listing(text)

    def logo(self, data: bytes) -> None:
        """A picture at the right of the page's head, at most 2 inches wide and 0.65 high."""
        from matplotlib.image import BboxImage, imread
        from matplotlib.transforms import Bbox, TransformedBbox

        pixels = imread(BytesIO(data))
        rows, columns = pixels.shape[:2]
        height = min(0.65, 2.0 * rows / columns)
        width = height * columns / rows
        left, below = (WIDTH - RIGHT - width) / WIDTH, (self._y - height) / HEIGHT
        place = Bbox.from_bounds(left, below, width / WIDTH, height / HEIGHT)
        picture = BboxImage(TransformedBbox(place, self._page.transFigure))  # axes would need a layout
        picture.set_data(pixels)
        self._page.add_artist(picture)
        self._y -= height + 0.1

    def text(
        self,
        text: str,
        size: float,
        colour: str = INK,
        weight: str = "normal",
        below: float = 0.1,
        indent: float = 0.0,
        family: str = "DejaVu Sans",
    ) -> None:
        """Text broken into lines, from page to page."""
        step = size * LEADING * POINT
        for line in _wrapped(text, size, weight, TEXT - indent, family):
            self.room(step)
            self._line(line, LEFT + indent, size, color=colour, fontweight=weight, family=family)
            self._y -= step
        self._y -= below

    def _line(self, text: str, x: float, size: float, **how: Any) -> None:
        baseline = self._y - 1.05 * size * POINT
        self._page.text(x / WIDTH, baseline / HEIGHT, text, fontsize=size, parse_math=False, **how)

    def _heading(self, text: str, level: int, following: Block | None) -> None:
        size = 14 if level <= 2 else 11
        needed = following.height + 0.9 if isinstance(following, Picture) else 1.3
        self.room(needed)
        if self._y < HEIGHT - TOP - 0.01:
            self._y -= 0.22 if level <= 2 else 0.1
        self.text(text, size, weight="bold", below=0.07)

    def _paragraph(self, text: str, kind: str) -> None:
        colour = {"small": SOFT, "good": "#0b6b50", "warning": "#9a4a00"}.get(kind, INK)
        size = 8.5 if kind == "small" else 9.5
        if kind in ("good", "warning"):
            lines = len(_wrapped(text, size, "normal", TEXT - 0.15, "DejaVu Sans"))
            height = lines * size * LEADING * POINT
            self.room(height)
            self._rule(LEFT + 0.03, self._y - height, LEFT + 0.03, self._y, colour, 2.5)
            self.text(text, size, colour, indent=0.15)
        else:
            self.text(text, size, colour)

    def _formulae(self, lines: Any) -> None:
        for line in lines:
            width, height = _formula_size(line)
            size = min(12.0, 12.0 * (TEXT - 0.2) / width)
            height = max(height * size / 12 + 0.1, 0.3)
            self.room(height)
            middle = (self._y - height / 2) / HEIGHT
            self._page.text((LEFT + 0.2) / WIDTH, middle, f"${line}$", fontsize=size, color=INK, va="center")
            self._y -= height
        self._y -= 0.1

    def _grid(self, grid: Grid) -> None:
        size = 8.5
        widths = _column_widths(grid, size)
        while sum(widths) > TEXT and size > 6.5:
            size -= 0.5
            widths = _column_widths(grid, size)
        if sum(widths) > TEXT:
            widths = _squeezed(widths, TEXT)
        step = size * 1.3 * POINT
        if grid.caption:
            self.room(0.9)
            self.text(grid.caption, 8.5, SOFT, below=0.02)
        self.room(0.7)
        self._row(grid.columns, widths, grid, size, step, bold=True)
        self._rule(LEFT, self._y, LEFT + sum(widths), self._y, INK, 1.0)
        for row in grid.rows:
            cells = [
                _wrapped(str(c), size, "normal", w - 0.12, "DejaVu Sans")
                for c, w in zip(row, widths, strict=True)
            ]
            height = max(len(c) for c in cells) * step + 0.08
            if self._y - height < BOTTOM:
                self._turn()
                self._row(grid.columns, widths, grid, size, step, bold=True)
                self._rule(LEFT, self._y, LEFT + sum(widths), self._y, INK, 1.0)
            self._cells(cells, widths, grid, size, step)
            self._y -= height
            self._rule(LEFT, self._y, LEFT + sum(widths), self._y, "#d9e0e7", 0.6)
        self._y -= 0.16

    def _row(self, row: Any, widths: Any, grid: Grid, size: float, step: float, bold: bool) -> None:
        self._cells([[str(c)] for c in row], widths, grid, size, step, "bold" if bold else "normal")
        self._y -= step + 0.06

    def _cells(
        self, cells: Any, widths: Any, grid: Grid, size: float, step: float, weight: str = "normal"
    ) -> None:
        x = LEFT
        top = self._y
        for i, (lines, width) in enumerate(zip(cells, widths, strict=True)):
            for k, line in enumerate(lines):
                self._y = top - 0.03 - k * step
                right = i in grid.numeric
                at = x + width - 0.12 if right else x
                self._line(line, at, size, color=INK, fontweight=weight, ha="right" if right else "left")
            x += width
        self._y = top

    def _picture(self, picture: Picture) -> None:
        width = min(picture.width, TEXT)
        height = picture.height * width / picture.width
        caption = len(_wrapped(picture.caption, 8.5, "normal", TEXT, "DejaVu Sans")) * 0.17 + 0.1
        self.room(height + caption)
        above, below = HEIGHT - self._y, self._y - height
        cells = self._page.add_gridspec(
            3, 3, hspace=0, wspace=0,
            height_ratios=[max(above, 1e-3), height, max(below, 1e-3)],
            width_ratios=[LEFT, width, WIDTH - LEFT - width],
        )  # fmt: skip
        part = self._page.add_subfigure(cells[1, 1])
        part.patch.set_alpha(0)
        picture.draw(part)
        self._y -= height + 0.04
        if picture.caption:
            self.text(picture.caption, 8.5, SOFT, below=0.16)

    def _listing(self, text: str) -> None:
        size = 7.5
        step = size * 1.35 * POINT
        for raw in text.rstrip().splitlines():
            for line in textwrap.wrap(raw, 104, subsequent_indent="    ", drop_whitespace=False) or [""]:
                self.room(step)
                self._line(line, LEFT + 0.1, size, color=INK, family="DejaVu Sans Mono")
                self._y -= step
        self._y -= 0.12

    def _rule(self, x0: float, y0: float, x1: float, y1: float, colour: str, width: float) -> None:
        from matplotlib.lines import Line2D

        xs, ys = [x0 / WIDTH, x1 / WIDTH], [y0 / HEIGHT, y1 / HEIGHT]
        self._page.add_artist(Line2D(xs, ys, color=colour, lw=width, transform=self._page.transFigure))


@lru_cache(maxsize=4096)
def _width(text: str, size: float, weight: str, family: str) -> float:
    """Width of a text in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=family, size=size, weight=weight)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) * POINT


@lru_cache(maxsize=256)
def _formula_size(line: str) -> tuple[float, float]:
    """Width and height of a formula at 12 points, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, height, _ = text_to_path.get_text_width_height_descent(
        f"${line}$", FontProperties(size=12), ismath=True
    )
    return float(width) * POINT, float(height) * POINT


def _wrapped(text: str, size: float, weight: str, width: float, family: str) -> list[str]:
    lines = []
    for part in text.split("\n"):
        line = ""
        for word in filter(None, part.split(" ")):  # not at a space that keeps a number and its unit together
            longer = f"{line} {word}" if line else word
            if _width(longer, size, weight, family) <= width:
                line = longer
                continue
            if line:
                lines.append(line)
            *full, line = _cut(word, size, weight, width, family)
            lines += full
        lines.append(line)
    return lines


def _cut(word: str, size: float, weight: str, width: float, family: str) -> list[str]:
    """A word that is wider than the page (a hash, a path) in pieces that are not."""
    pieces = []
    while len(word) > 1:
        # As many letters as would fit if all were narrow: no longer text is ever measured.
        most = min(len(word), max(1, int(width / _width("i", size, weight, family))))
        if most == len(word) and _width(word, size, weight, family) <= width:
            break
        fits = bisect_right(range(1, most + 1), width, key=lambda n: _width(word[:n], size, weight, family))
        pieces.append(word[: max(1, fits)])
        word = word[max(1, fits) :]
    return [*pieces, word]


def _column_widths(grid: Grid, size: float) -> list[float]:
    return [
        max(
            _width(str(name), size, "bold", "DejaVu Sans"),
            *(_width(str(row[i]), size, "normal", "DejaVu Sans") for row in grid.rows),
            0.2,
        )
        + 0.2
        for i, name in enumerate(grid.columns)
    ]


def _squeezed(widths: list[float], total: float) -> list[float]:
    """Widths that fit: the widest columns give, the narrow ones stay."""
    limit = max(widths)
    while sum(min(w, limit) for w in widths) > total:
        limit *= 0.97
    return [min(w, limit) for w in widths]
