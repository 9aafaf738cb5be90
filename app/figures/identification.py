"""The figure of an identification: how it converged, the parameters with error bars, and its curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis import ShakedownError
from app.descents import apart
from app.figures.saving import save
from app.figures.style import INK, MEASURED, MODEL, SOFT, new_figure, styled

if TYPE_CHECKING:
    from analysis import Curve, Estimate, Identification, Surface

MOST_COLUMNS = 3
WIDE = 0.2  # of the range of a surface: a band so wide says that little is known there
THRESHOLD = 3.84  # rise of chi-square at the ends of a 95 % interval


def save_figure(result: Identification, path: str) -> None:
    """Draw into a png, svg or pdf file."""
    if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ShakedownError(f"A figure is saved as png, svg or pdf, not as {Path(path).name}.")
    panels = 2 + len(result.curves) + len(result.surfaces)
    columns = min(panels, MOST_COLUMNS)
    rows = -(-panels // columns)
    figure = new_figure(4.6 * columns, 3.8 * rows)
    with styled():
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        _convergence(axes[0], result)
        _parameters(axes[1], result, {})
        for axis, (name, curve) in zip(axes[2:], result.curves.items(), strict=False):
            _curve(axis, name, curve, result)
        for axis, (name, surface) in zip(
            axes[2 + len(result.curves) :], result.surfaces.items(), strict=False
        ):
            _surface(figure, axis, name, surface)
        for axis in axes[panels:]:
            axis.set_axis_off()
        figure.suptitle(f"{result.model} by {result.method}")
        save(figure, path, dpi=160)


def draw_identification(figure: Any, result: Identification, truth: Mapping[str, float]) -> None:
    """Convergence and error bars side by side."""
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
    _convergence(left, result)
    _parameters(right, result, truth)


def draw_curves(figure: Any, result: Identification) -> None:
    """The identified functions with their bands."""
    axes = figure.subplots(1, len(result.curves) + len(result.surfaces), squeeze=False)[0]
    for axis, (name, curve) in zip(axes, result.curves.items(), strict=False):
        _curve(axis, name, curve, result)
    for axis, (name, surface) in zip(axes[len(result.curves) :], result.surfaces.items(), strict=True):
        _surface(figure, axis, name, surface)


def _convergence(axis: Any, result: Identification) -> None:
    if any("lambda" in row for row in result.history):
        _letting_go(axis, result.history)
        return
    for key, words in (
        ("step", "largest step [standard errors]"),
        ("cost", "cost"),
        ("residual", "residual"),
    ):
        values = [row.get(key, math.nan) for row in result.history]
        if any(math.isfinite(v) and v > 0 for v in values):
            sizes = [max(v, 1e-16) for v in values]
            steps, heights = apart(sizes) if key == "cost" else (range(1, len(sizes) + 1), sizes)
            axis.semilogy(steps, heights, "o-", ms=3.5)
            axis.set(xlabel="iteration", ylabel=words)
            axis.xaxis.get_major_locator().set_params(integer=True)
            break
    else:
        axis.text(
            0.5, 0.5, "solved in one step", ha="center", va="center", transform=axis.transAxes, color=SOFT
        )
        axis.set(xticks=[], yticks=[])
    axis.set_title("Convergence")


def _letting_go(axis: Any, history: Sequence[Mapping[str, float]]) -> None:
    """Cost over the runs, a line for each strength of the coupling: costs of different strengths do not
    compare."""
    for strength in dict.fromkeys(row["lambda"] for row in history):
        stage = [row for row in history if row["lambda"] == strength]
        cost = [max(row["cost"], 1e-16) for row in stage]
        axis.semilogy([row["evaluation"] for row in stage], cost, "o-", ms=3.5, label=f"λ = {strength:.3g}")
    axis.set(xlabel="run", ylabel="cost")
    axis.legend()
    axis.set_title("Convergence")


def _parameters(axis: Any, result: Identification, truth: Mapping[str, float]) -> None:
    """95 % intervals in per cent of the estimates, whose values stand beside them."""
    names = list(result.listed)
    if not names:  # all there is are functions
        axis.set_axis_off()
        return
    for i, name in enumerate(names):
        e = result.parameters[name]
        scale = abs(e.value) or 1.0
        below, above = (100 * (end - e.value) / scale for end in (e.lower, e.upper))
        reach = [[-below if math.isfinite(below) else 0.0], [above if math.isfinite(above) else 0.0]]
        axis.errorbar(0.0, i, xerr=reach, fmt="o", color=MEASURED, capsize=3, ms=4)
        if name in truth:
            axis.plot(100 * (truth[name] - e.value) / scale, i, "D", color=MODEL, ms=5, mfc="none", zorder=4)
        text = f"{e.value:.5g}".replace("-", "−") + f" {e.unit}"
        axis.annotate(text, (1.02, i), xycoords=("axes fraction", "data"), va="center", fontsize=8, color=INK)
    axis.axvline(0, color=SOFT, lw=0.5, zorder=0)
    axis.set(xlabel="95 % interval relative to the estimate [%]", yticks=range(len(names)))
    axis.set_yticklabels(names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.margins(x=0.15)
    axis.locator_params(axis="x", nbins=5)  # long numbers would run into each other
    if not any(math.isfinite(e.upper - e.lower) for e in result.parameters.values()):
        axis.set(xlabel="", xticks=[])
        axis.set_title("Estimates without error bars")
        return
    axis.set_title("Error bars" + (" (diamonds: the truth)" if truth else ""))


def _curve(axis: Any, title: str, curve: Curve, result: Identification) -> None:
    profiled = next((n for n in result.profiles if title == f"profile of {n}"), None)
    if profiled is not None:
        _profile(axis, curve, result.parameters[profiled])
    else:
        axis.fill_between(curve.x, curve.lower, curve.upper, alpha=0.25, lw=0, label="95 %")
        axis.plot(curve.x, curve.y)
    axis.set(xlabel=curve.x_label, ylabel=curve.y_label)
    axis.set_title(title)


def _surface(figure: Any, axis: Any, title: str, surface: Surface) -> None:
    """Lines of equal height; hatched where the band is wider than a fifth of the range of the function."""
    from matplotlib.ticker import MaxNLocator

    z = np.array(surface.z)
    band = np.array(surface.upper) - np.array(surface.lower)
    known = band <= WIDE * np.ptp(z)
    shown = z[known] if known.any() else z
    levels = MaxNLocator(12).tick_values(shown.min(), shown.max())
    drawn = axis.contourf(surface.x, surface.y, z.T, levels=levels, extend="both", cmap="viridis")
    if not known.all():
        axis.contourf(
            surface.x, surface.y, (~known).T.astype(float), levels=[0.5, 1.5], colors="none", hatches=["///"]
        )
    figure.colorbar(drawn, ax=axis)
    axis.set(xlabel=surface.x_label, ylabel=surface.y_label)
    axis.set_title(title + ("" if known.all() else " (hatched: hardly known)"))


def _profile(axis: Any, curve: Curve, estimate: Estimate) -> None:
    """Profile likelihood with its interval, and the parabola that the standard error stands for."""
    x = np.linspace(curve.x[0], curve.x[-1], 200)
    highest = max(max(curve.y), 1.3 * THRESHOLD)
    if math.isfinite(estimate.stderr) and estimate.stderr > 0:
        parabola = ((x - estimate.value) / estimate.stderr) ** 2
        axis.plot(
            x, np.where(parabola <= highest, parabola, np.nan), "--", color=SOFT, label="standard error"
        )
    axis.plot(curve.x, curve.y, "o-", ms=3, color=MEASURED, label="profile")
    axis.axhline(THRESHOLD, color=MODEL, lw=0.8)
    text = {"xycoords": ("axes fraction", "data"), "ha": "center", "va": "bottom", "color": MODEL}
    axis.annotate("95 %", (0.5, THRESHOLD), **text)
    for end in (estimate.lower, estimate.upper):
        if math.isfinite(end):
            axis.axvline(end, color=MODEL, lw=0.8, ls=":")
    axis.legend(loc="center")
