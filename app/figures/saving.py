"""New figures and the files they go to; matplotlib is imported only when one is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.overwriting import check_figure_name
from drivers.base.files import replaced

__all__ = ["check_figure_name", "new_figure", "save"]


def new_figure(rows: int, columns: int) -> tuple[Any, Any]:
    """A figure and its axes [rows, columns], without any window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * columns, 3.6 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def save(figure: Any, path: Path | str, **settings: Any) -> None:
    """Write a figure in the format of the name's ending, whole or not at all."""
    with replaced(path) as partial:
        figure.savefig(partial, **settings)
