"""Information criterion over the number of terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from app.figures.saving import save
from app.figures.style import MEASURED, MODEL, SOFT, new_figure, styled

if TYPE_CHECKING:
    from analysis import Selection


def save_path(found: Selection, terms: Mapping[str, str], path: str) -> None:
    """The criterion of the best model of each size; the kept one is marked and its terms are named."""
    sizes = [len(step.terms) for step in found.path]
    lowest = min(step.bic for step in found.path)
    heights = [step.bic - lowest + 1.0 for step in found.path]
    with styled():
        figure = new_figure(6.4, 3.8)
        axis = figure.subplots()
        axis.semilogy(sizes, heights, "o-", color=MEASURED, ms=5)
        best = min(range(len(heights)), key=heights.__getitem__)
        axis.semilogy(sizes[best], heights[best], "o", color=MODEL, ms=10, label="kept", zorder=0)
        for x, y, step in zip(sizes, heights, found.path, strict=True):
            words = ", ".join(terms[n] for n in step.terms) or "none"
            axis.annotate(
                words if len(words) < 40 else "all", (x, y), (6, 8), textcoords="offset points", fontsize=7,
                rotation=30, color=SOFT,
            )  # fmt: skip
        axis.set_xlim(-0.6, max(sizes) + 2.5)
        axis.set_xticks(sorted(sizes))
        axis.margins(y=0.2)
        axis.set(xlabel="number of terms", ylabel="criterion above the best, + 1")
        axis.set_title("Best model of each size")
        axis.legend(loc="upper right")
        save(figure, path, dpi=150)
