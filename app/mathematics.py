"""Formulae as pictures."""

from __future__ import annotations

from io import BytesIO


def picture_of(lines: list[str], colour: str, size: float) -> bytes:
    """Formulae one below the other, as a PNG with a transparent ground at twice ``size`` pixels a line."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 0.1), dpi=200)
    FigureCanvasAgg(figure)
    for row, line in enumerate(lines):
        figure.text(0, -row * size * 2.4 * 2 / 200 / 0.1, f"${line}$", color=colour, fontsize=size * 72 / 100)
    target = BytesIO()
    figure.savefig(target, format="png", transparent=True, bbox_inches="tight", pad_inches=0.02)
    return target.getvalue()
