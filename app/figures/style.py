"""How figures look: calm, light, and told apart by people who do not see all colours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

INK = "#1d2733"
SOFT = "#5c6b7a"
MEASURED = "#0072b2"  # colours of Okabe and Ito
MODEL = "#d55e00"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5c6b7a")

_SETTINGS: Any = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "lines.linewidth": 1.1,
    "mathtext.fontset": "cm",
    "svg.fonttype": "path",
    "svg.hashsalt": "shakedown",
    "pdf.fonttype": 42,
    "axes.formatter.useoffset": False,
}


@contextmanager
def styled() -> Iterator[None]:
    """Our settings of matplotlib, for as long as it takes to draw."""
    import matplotlib
    from cycler import cycler

    with matplotlib.rc_context(_SETTINGS):
        matplotlib.rcParams["axes.prop_cycle"] = cycler(color=COLOURS)
        yield


def new_figure(width: float, height: float, layout: Any = "constrained") -> Any:
    """An empty figure in inches that no window owns."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(width, height), layout=layout)
        FigureCanvasAgg(figure)
    return figure


def label(name: str, unit: str) -> str:
    """Axis label with its unit."""
    return f"{name} [{unit}]" if unit else name
