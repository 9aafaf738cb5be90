"""The figure of an identification: how it converged, the parameters with error bars, and its curves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.errors import ShakedownError
from app.figures.style import INK, MEASURED, MODEL, SOFT, new_figure, styled

if TYPE_CHECKING:
    from analysis.identification import Curve, Identification


def save_figure(result: Identification, path: str) -> None:
    """Draw into a png, svg or pdf file."""
    if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ShakedownError(f"A figure is saved as png, svg or pdf, not as {Path(path).name}.")
    panels = 2 + len(result.curves)
    figure = new_figure(4.6 * panels, 3.8)
    with styled():
        axes = figure.subplots(1, panels, squeeze=False)[0]
        _convergence(axes[0], result)
        _parameters(axes[1], result, {})
        for axis, (name, curve) in zip(axes[2:], result.curves.items(), strict=True):
            _curve(axis, name, curve)
        figure.suptitle(f"{result.model} by {result.method}")
        figure.savefig(path, dpi=160)


def draw_identification(figure: Any, result: Identification, truth: Mapping[str, float]) -> None:
    """Convergence and error bars side by side."""
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
    _convergence(left, result)
    _parameters(right, result, truth)


def draw_curves(figure: Any, result: Identification) -> None:
    """The identified functions with their bands."""
    axes = figure.subplots(1, len(result.curves), squeeze=False)[0]
    for axis, (name, curve) in zip(axes, result.curves.items(), strict=True):
        _curve(axis, name, curve)


def _convergence(axis: Any, result: Identification) -> None:
    for key, words in (
        ("step", "largest step [standard errors]"),
        ("cost", "cost"),
        ("residual", "residual"),
    ):
        values = [row.get(key, math.nan) for row in result.history]
        if any(math.isfinite(v) and v > 0 for v in values):
            axis.semilogy(range(1, len(values) + 1), [max(v, 1e-16) for v in values], "o-", ms=3.5)
            axis.set(xlabel="iteration", ylabel=words)
            break
    else:
        axis.text(
            0.5, 0.5, "solved in one step", ha="center", va="center", transform=axis.transAxes, color=SOFT
        )
        axis.set(xticks=[], yticks=[])
    axis.set_title("Convergence")


def _parameters(axis: Any, result: Identification, truth: Mapping[str, float]) -> None:
    """Intervals in units of the standard error are alike for all; the numbers stand beside them."""
    names = list(result.parameters)
    for i, name in enumerate(names):
        e = result.parameters[name]
        scale = abs(e.value) or 1.0
        half = 100 * 1.96 * e.stderr / scale if math.isfinite(e.stderr) else 0.0
        axis.errorbar(0.0, i, xerr=half, fmt="o", color=MEASURED, capsize=3, ms=4)
        if name in truth:
            axis.plot(100 * (truth[name] - e.value) / scale, i, "D", color=MODEL, ms=5, mfc="none", zorder=4)
        text = f"{e.value:.5g} {e.unit}"
        axis.annotate(text, (1.02, i), xycoords=("axes fraction", "data"), va="center", fontsize=8, color=INK)
    axis.axvline(0, color=SOFT, lw=0.5, zorder=0)
    axis.set(xlabel="95 % interval relative to the estimate [%]", yticks=range(len(names)))
    axis.set_yticklabels(names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.margins(x=0.15)
    axis.set_title("Error bars" + (" (diamonds: the truth)" if truth else ""))


def _curve(axis: Any, name: str, curve: Curve) -> None:
    axis.fill_between(curve.x, curve.lower, curve.upper, alpha=0.25, lw=0, label="95 %")
    axis.plot(curve.x, curve.y)
    axis.set(xlabel=curve.x_label, ylabel=curve.y_label)
    axis.set_title(name)
