"""A tracked branch with error bars: stable motions filled, unstable ones open, the model's under it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.figures.saving import save
from app.figures.style import new_figure, styled

if TYPE_CHECKING:
    from analysis.tracking.tracking import TrackedBranch

Array = NDArray[np.float64]
KINDS = ((True, "stable", "C0"), (False, "unstable", "none"), (None, "at a fold", "0.8"))


def save_tracked(
    branch: TrackedBranch, names: tuple[str, str], model: tuple[Array, Array] | None, path: str
) -> None:
    """``names`` of response and force with units; ``model``: parameter and amplitude of its branch."""
    over_force = branch.plan.kind == "force"
    with styled():
        figure = new_figure(5.2, 3.6)
        axis = figure.subplots()
        if model is not None:
            axis.plot(*model, "-", color="C1", lw=1.2, label="model")
        backbone = branch.plan.kind == "backbone"
        for stable, label, face in KINDS:
            own = [p for p in branch.in_order() if branch.stable(p) is stable]
            if not own:
                continue
            x = [branch.parameter(p) for p in own]
            y = [p.point.amplitude for p in own]
            axis.errorbar(
                [v.value for v in x], [v.value for v in y], [v.error for v in y], [v.error for v in x],
                fmt="o", ms=4, color="C0", mfc="C0" if backbone else face, lw=0.8,
                label="measured" if backbone else label,
            )  # fmt: skip
        for fold in branch.folds:
            amplitude = fold.goal.value if over_force else np.nan
            axis.plot([fold.parameter.value], [amplitude], "x", color="C3", ms=7, label="fold")
        axis.set(
            xlabel=f"force {names[1]}" if over_force else "frequency [Hz]", ylabel=f"amplitude {names[0]}"
        )
        handles, labels = axis.get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        axis.legend(unique.values(), unique.keys(), frameon=False, fontsize=8)
        save(figure, path, dpi=150)
