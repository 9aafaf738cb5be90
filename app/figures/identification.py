"""The figure of an identification: how it converged, the parameters with error bars, and its curves."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.errors import ShakedownError

if TYPE_CHECKING:
    from analysis.identification import Identification


def save_figure(result: Identification, path: str) -> None:
    """Draw into a png, svg or pdf file."""
    if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ShakedownError(f"A figure is saved as png, svg or pdf, not as {Path(path).name}.")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = 2 + len(result.curves)
    figure = Figure(figsize=(5.2 * panels, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    _convergence(axes[0], result)
    _parameters(axes[1], result)
    for axis, (name, curve) in zip(axes[2:], result.curves.items(), strict=True):
        axis.fill_between(curve.x, curve.lower, curve.upper, alpha=0.3, label="95 %")
        axis.plot(curve.x, curve.y, lw=1.2)
        axis.set(title=name, xlabel=curve.x_label, ylabel=curve.y_label)
    figure.suptitle(f"{result.model} by {result.method}")
    figure.savefig(path)


def _convergence(axis: Any, result: Identification) -> None:
    steps = [max(row.get("step", math.nan), 1e-16) for row in result.history]
    axis.semilogy(range(1, len(steps) + 1), steps, "o-")
    axis.set(title="convergence", xlabel="iteration", ylabel="largest step [standard errors]")


def _parameters(axis: Any, result: Identification) -> None:
    names = list(result.parameters)
    for i, name in enumerate(names):
        e = result.parameters[name]
        scale = abs(e.value) or 1.0
        axis.errorbar(0.0, i, xerr=100 * 1.96 * e.stderr / scale if math.isfinite(e.stderr) else 0, fmt="o")
        axis.annotate(f"{e.value:.5g} {e.unit}", (0.0, i), xytext=(4, 5), textcoords="offset points")
    axis.set(title="95 % intervals", xlabel="relative to the estimate [%]", yticks=range(len(names)))
    axis.set_yticklabels(names)
    axis.set_ylim(-0.7, len(names) - 0.3)
