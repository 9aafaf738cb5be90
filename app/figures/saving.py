"""New figures and the files they go to; matplotlib is imported only when one is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analysis.base.errors import ShakedownError


def check_figure_name(path: str | None) -> None:
    """Refuse a format that cannot be drawn before the work is done, not after."""
    if path is not None and Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ShakedownError(f"A figure is saved as png, svg or pdf, not as {Path(path).name}.")


def new_figure(rows: int, columns: int) -> tuple[Any, Any]:
    """A figure and its axes [rows, columns], without any window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * columns, 3.6 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)
