"""The panels of a validation: the same plots for the command, the report and the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from app.figures.saving import save
from app.figures.style import MEASURED, MODEL, SOFT, new_figure, styled

if TYPE_CHECKING:
    from analysis import Check, Panel, Trace, Validation

COLOURS = {"measured": MEASURED, "model": MODEL, "limit": SOFT}
PER_ROW = 3
NOTE = 40  # letters in a line below an axis
MANY = 3000  # points that are drawn as a picture inside a vector file


def save_validation(found: Validation, path: str) -> None:
    """Every panel of every check on one sheet; the ending of the path chooses png, svg or pdf."""
    panels = [titled(check, panel) for check in found.checks for panel in check.panels]
    rows = max(1, -(-len(panels) // PER_ROW))
    with styled():
        figure = new_figure(4.2 * PER_ROW, 2.9 * rows + 0.5)
        axes = figure.subplots(rows, PER_ROW, squeeze=False).ravel()
        for axis, panel in zip(axes, panels, strict=False):
            draw_panel(axis, panel)
        for axis in axes[len(panels) :]:
            axis.set_axis_off()
        figure.suptitle(found.verdict, fontsize=11, fontweight="bold")
        save(figure, path, dpi=150)


def titled(check: Check, panel: Panel) -> Panel:
    """The panel with the name of its check before its title."""
    if check.title in panel.title:
        return panel
    return replace(panel, title=f"{check.title}: {panel.title[:1].lower()}{panel.title[1:]}")


def draw_panels(figure: Any, panels: Sequence[Panel]) -> None:
    """Some panels, three to a row."""
    across = PER_ROW
    rows = -(-len(panels) // across)
    axes = figure.subplots(rows, across, squeeze=False).ravel()
    for axis, panel in zip(axes, panels, strict=False):
        draw_panel(axis, panel)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()


def draw_panel(axis: Any, panel: Panel) -> None:
    """One panel on its axes."""
    for trace in panel.traces:
        _draw(axis, trace)
    for x, text in panel.markers:
        axis.axvline(x, ls=":", lw=0.8, color="0.2")
        word = axis.annotate(
            text,
            (x, 1.0),
            (2, -2),
            ("data", "axes fraction"),
            "offset points",
            va="top",
            fontsize=6,
            clip_on=True,
        )
        word.set_in_layout(False)  # a long one near the edge must not take room from the axes
    if panel.log_x:
        axis.set_xscale("log")
    if panel.log_y:
        axis.set_yscale("log")
    else:
        axis.locator_params(axis="y", nbins=6)
    if not panel.log_x:
        axis.locator_params(axis="x", nbins=4)
    if panel.x_range is not None and panel.y_range is not None:
        axis.set(xlim=panel.x_range, ylim=panel.y_range)
    axis.set(xlabel=panel.x_label, ylabel=panel.y_label)
    axis.set_title(panel.title)
    if len(axis.get_legend_handles_labels()[1]) > 1:
        axis.legend(loc="best", fontsize=7, handlelength=1.4)
    if notes := [t.label for t in panel.traces if _is_note(t)]:
        text = "\n".join(line for note in notes for line in wrap(f"– –  {note}", NOTE))
        axis.annotate(
            text, (0.5, 0.0), (0, -30), "axes fraction", "offset points",
            ha="center", va="top", fontsize=6.5, color=SOFT,
        )  # fmt: skip


def _is_note(trace: Trace) -> bool:
    """Whether what a line means is a sentence: in a legend it would take the room of the curves."""
    return trace.role == "limit" and len(trace.label or "") > NOTE // 2


def _draw(axis: Any, trace: Trace) -> None:
    colour = COLOURS[trace.role]
    label = None if _is_note(trace) else trace.label or None
    if trace.points:
        size = 3.0 if len(trace.x) < 100 else 1.2 if len(trace.x) < MANY else 0.4
        axis.plot(trace.x, trace.y, ".", ms=size, color=colour, label=label, rasterized=len(trace.x) > MANY)
    elif trace.role == "limit":
        axis.plot(trace.x, trace.y, "--", lw=0.7, color=colour, label=label)
    else:
        width = 1.5 if trace.role == "measured" else 0.9
        axis.plot(trace.x, trace.y, lw=width, color=colour, label=label, alpha=0.85)
