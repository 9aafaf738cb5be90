"""Branches of periodic motions: amplitude over the parameter, stable drawn full and unstable dashed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from app.figures.saving import save
from app.figures.style import new_figure, styled

if TYPE_CHECKING:
    from analysis import Branch

MARKS = {"fold": "o", "period doubling": "D", "branch point": "s", "torus": "^"}


def save_branches(branches: Sequence[Branch], labels: Sequence[str], path: str) -> None:
    """One panel for each output; the ending of the path chooses png, svg or pdf."""
    outputs = branches[0].model.outputs
    with styled():
        figure = new_figure(4.6 * len(outputs), 3.4)
        axes = figure.subplots(1, len(outputs), squeeze=False)[0]
        for i, (axis, name) in enumerate(zip(axes, outputs, strict=True)):
            for k, (branch, label) in enumerate(zip(branches, labels, strict=True)):
                _draw(axis, branch, i, f"C{k}", label)
            axis.set(xlabel=branches[0].over, ylabel=f"amplitude of {name}")
        handles, names = axes[0].get_legend_handles_labels()
        unique = dict(zip(names, handles, strict=True))
        if unique:
            axes[0].legend(unique.values(), unique.keys(), frameon=False, fontsize=8)
        save(figure, path, dpi=150)


def _draw(axis: Any, branch: Branch, output: int, colour: str, label: str) -> None:
    x, y, stable = branch.parameters, branch.amplitudes(output), branch.stable
    for wanted, style in ((True, "-"), (False, "--")):
        shown = stable == wanted
        either = shown | np.roll(shown, 1) & (np.arange(len(x)) > 0)  # lines meet where stability changes
        axis.plot(np.where(either, x, np.nan), np.where(either, y, np.nan), style, color=colour, lw=1.4,
                  label=label if wanted and label else None)  # fmt: skip
    for special in branch.specials:
        size = branch.amplitude(special.point, output)
        axis.plot([special.point.parameter], [size], MARKS[special.kind], color=colour, ms=5,
                  mfc="none", label=special.kind)  # fmt: skip
